// Package ingest is what a write means: it takes remote write requests apart, checks them, makes them durable in the
// write-ahead log, keeps them in memory (the head), and flushes them into the store: samples, native histograms,
// exemplars, and the metadata of metric families.
//
// What it promises:
//
//   - When Write returns nil, or a *RefusedError, all of the request that was not refused is on disk. No crash loses
//     it, and sending it again is harmless.
//   - The first value of a timestamp stays, be it a float or a histogram. Another one is refused where the first is in
//     memory; where it is only in the table, that is found when the hour is flushed, and the later value is left out,
//     counted and logged. Exemplars of one time stay beside each other. Of metadata the newest stays.
//   - The log holds only what was accepted, in the order in which it was: what is read back after a crash needs no
//     judgement.
//   - Memory is bounded by the number of series and by the size that the log may have.
//
// The hours of a series that have samples which the table has not are in memory, as is the newest hour, which follows
// the samples and not the clock: history loaded in order of time takes the same way as live data.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"daybook/ingest/wal"
	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/keys"
)

// Config says how samples are taken.
type Config struct {
	Dir           string        // for the write-ahead log
	Retention     time.Duration // samples older than this are refused; 0 for none
	FlushInterval time.Duration // how long a sample is at most in memory only, when all is well
	FlushBytes    int64         // of the log, above which, and 1 KiB for each series, flushing hurries
	MaxLogBytes   int64         // of the log, above which nothing is taken
	MaxBody       int           // bytes of a request as it comes
	MaxDecoded    int           // bytes of a request, decompressed
	MaxInFlight   int64         // bytes of all requests being handled, decompressed
	MaxPerHour    int           // samples of a series in an hour
	MaxExemplars  int           // of a series in an hour; the first ones stay
	Seed          uint64        // of the head's hash: random, for a sender must not know it

	Metadata *index.Metadata // of metric families, for who else asks; nil for none else

	Now       func() time.Time
	CloseDays func(ctx context.Context, through series.Day) error // closes past days; see store.ErrDayOpen
	// FreeDisk gives an error, which says what to do, when the disk has too little room to take anything. May be nil.
	FreeDisk   func() error
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Future is how far ahead of the clock a sample may be.
const Future = 10 * time.Minute

// earliest is the first time that keys can name (package keys clips days).
const earliest = series.Millis(keys.FirstDay) * series.MillisPerDay

// Ingester takes writes. Its methods may be called from many goroutines.
type Ingester struct {
	cfg      Config
	store    *store.Store
	head     *head
	families *families
	log      *wal.Log
	metrics  *metrics
	inFlight *inFlight
	requests sync.Pool // *request

	grown     chan struct{} // has a value when the log has grown
	lastGrown time.Time     // when Run last heard of that
	flushing  sync.Mutex    // one round at a time
}

// Open reads the write-ahead log back into memory. The catalogue must be in the index already. Call Run then.
func Open(cfg Config, s *store.Store, x *index.Index) (*Ingester, error) {
	in := &Ingester{
		cfg: cfg, store: s,
		head:     newHead(x, s, cfg.Seed),
		families: newFamilies(cfg.Metadata, x.Len),
		inFlight: newInFlight(cfg.MaxInFlight),
		requests: sync.Pool{New: func() any { return new(request) }},
		grown:    make(chan struct{}, 1),
	}
	start := time.Now()
	records, err := in.replay()
	if err != nil {
		return nil, err
	}
	in.metrics = newMetrics(cfg.Registerer, in)
	cfg.Logger.Info("the write-ahead log is read", "records", records, "samples", in.head.unflushed.Load(),
		"took", time.Since(start).Round(time.Millisecond))
	return in, nil
}

const segmentBytes = 128 << 20

// Run flushes until ctx ends.
func (in *Ingester) Run(ctx context.Context) { in.flushLoop(ctx) }

// Head gives what is not in the table yet.
func (in *Ingester) Head() interface {
	Samples(dst []series.Sample, id series.ID, from, to series.Millis) []series.Sample
	Histograms(dst []series.Histogram, id series.ID, from, to series.Millis) []series.Histogram
	Exemplars(dst []series.Exemplar, id series.ID, from, to series.Millis) []series.Exemplar
} {
	return in.head
}

// Close flushes what is in memory and closes the log. No Write may come any more, and Run must have ended. Where
// flushing fails the log keeps everything for the next start.
func (in *Ingester) Close(ctx context.Context) error {
	err := in.Flush(ctx)
	if err != nil {
		err = fmt.Errorf("flushing at the end (nothing is lost, the next start reads the write-ahead log): %w", err)
	}
	return errors.Join(err, in.log.Close())
}
