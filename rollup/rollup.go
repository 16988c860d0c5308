// Package rollup is what happens to old data: days are closed, which writes their pages from the rings, and pages
// that got hours late are sealed, which folds those into their day.
//
// Both may die at any point and be repeated; package store says why nothing is lost. Closing a day is spread over the
// time that the ring leaves for it, and done at once when a flush waits for it.
package rollup

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daybook/internal/series"
	"daybook/internal/store"
)

// Config says when things are done.
type Config struct {
	CloseAfter time.Duration // how long after midnight UTC the day before is closed; well below two hours
	CloseOver  time.Duration // over how long the closing of a day is spread
	SealAfter  time.Duration // how long a page that got late hours is left alone before it is sealed
	Tick       time.Duration // how often is looked for something to do

	Now func() time.Time
	// Compact gives back the room that overwritten values of a table take. nil where the service does that itself.
	Compact    func(ctx context.Context, table string) error
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Roller closes and seals. Its methods may be called from many goroutines.
type Roller struct {
	cfg   Config
	store *store.Store

	mu      sync.Mutex   // held while days are closed
	waiting atomic.Int32 // how many wait for days to be closed at once
	urgent  chan struct{}

	pages    prometheus.Counter
	seals    prometheus.Counter
	failures prometheus.Counter
}

// New makes a Roller. Call Run then.
func New(cfg Config, s *store.Store) *Roller {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "daybook_rollup_" + name, Help: help})
		cfg.Registerer.MustRegister(c)
		return c
	}
	return &Roller{
		cfg: cfg, store: s, urgent: make(chan struct{}, 1),
		pages:    counter("pages_total", "Pages written when their day was closed."),
		seals:    counter("seals_total", "Pages whose late hours were folded into their day."),
		failures: counter("failures_total", "Attempts to close or to seal that failed and are repeated."),
	}
}

// Run closes and seals until ctx ends.
func (r *Roller) Run(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Tick)
	defer tick.Stop()
	for {
		if err := r.once(ctx); err != nil && ctx.Err() == nil {
			r.failures.Inc()
			r.cfg.Logger.Error("closing or sealing failed and is tried again", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *Roller) once(ctx context.Context) error {
	due := series.MillisOf(r.cfg.Now().Add(-r.cfg.CloseAfter)).Day() - 1
	if err := r.closeDays(ctx, due, r.cfg.CloseOver); err != nil {
		return err
	}
	return r.Seal(ctx)
}

// CloseDays closes all days up to and including through, at once.
func (r *Roller) CloseDays(ctx context.Context, through series.Day) error {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case r.urgent <- struct{}{}: // whoever is closing slowly stops pausing
	default:
	}
	return r.closeDays(ctx, through, 0)
}

// closeDays closes the days up to through, bucket after bucket, spread over some time.
func (r *Roller) closeDays(ctx context.Context, through series.Day, over time.Duration) error {
	if through <= r.store.Closed() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.store.Closed() + 1
	if through < first {
		return nil
	}
	start := time.Now()
	r.store.Closing(through)
	pages := 0
	buckets := rand.Perm(r.store.Buckets())
	for _, b := range buckets {
		if over > 0 && pages > 0 && !r.wait(ctx, over/time.Duration(len(buckets))) {
			over = 0
		}
		n, err := r.store.CloseBucket(ctx, b, through)
		if err != nil {
			return err
		}
		pages += n
		r.pages.Add(float64(n))
	}
	if err := r.store.SetClosed(ctx, through); err != nil {
		return err
	}
	r.cfg.Logger.Info("days are closed", "from", name(first), "through", name(through), "pages", pages,
		"took", time.Since(start).Round(time.Millisecond))
	return nil
}

// wait pauses and says whether to go on pausing: not when somebody waits for the days, nor when ctx ended. What is in
// urgent may be left from one who has long got his days.
func (r *Roller) wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for r.waiting.Load() == 0 {
		select {
		case <-timer.C:
			return true
		case <-r.urgent:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// sealBatch bounds how many pages are looked up at a time.
const sealBatch = 1000

// compactAfter is how many pages sealed in one go make it worth the while to rewrite their table: a backfill, not the
// few pages that get a sample late.
const compactAfter = 1000

// Seal folds the late hours of all pages that were left alone for long enough.
func (r *Roller) Seal(ctx context.Context) error {
	sealed := map[string]int{} // how many in each table
	if err := r.seal(ctx, sealed); err != nil {
		return err
	}
	for table, n := range sealed {
		if n < compactAfter || r.cfg.Compact == nil {
			continue
		}
		if err := r.cfg.Compact(ctx, table); err != nil {
			return fmt.Errorf("compacting table %q: %w", table, err)
		}
	}
	return nil
}

func (r *Roller) seal(ctx context.Context, sealed map[string]int) error {
	for {
		pages := r.store.Unsealed(series.MillisOf(r.cfg.Now().Add(-r.cfg.SealAfter)), sealBatch)
		for _, p := range pages {
			if err := r.store.Seal(ctx, p); err != nil {
				return err
			}
			r.seals.Inc()
			sealed[r.store.PagesTable(p.Day)]++
		}
		if len(pages) < sealBatch {
			return nil
		}
	}
}

func name(d series.Day) string { return d.Time().Format(time.DateOnly) }
