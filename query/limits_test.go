package query

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/promql"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
)

// slow is a world in which reads of the ring last until the channel is closed.
func slow(t *testing.T) (w *world, release chan struct{}) {
	w = newWorld(t, midnight, series.MillisOf(midnight).Day()-1)
	w.load(metric("m"), steps(midnight.Add(-time.Hour), midnight, time.Minute, func(s float64) float64 { return s }))
	release = make(chan struct{})
	w.tables.Add(tabletest.Fault{Method: tabletest.Get, Effect: tabletest.Pass, Wait: release})
	return w, release
}

func (w *world) limited(concurrent int, timeout time.Duration) *Reader {
	cfg := w.config()
	cfg.MaxConcurrent, cfg.Timeout = concurrent, timeout
	return New(cfg, w.store, w.index, &w.head)
}

// ask evaluates m and gives the error of its result.
func ask(ctx context.Context, r *Reader) error {
	q, result, err := r.Instant(ctx, "m", midnight)
	if err != nil {
		return err
	}
	q.Close()
	return result.Err
}

func timedOut(err error) bool { return errors.As(err, new(promql.ErrQueryTimeout)) }
func canceled(err error) bool { return errors.As(err, new(promql.ErrQueryCanceled)) }

// TestTimeout ends queries that read, and queries that wait for others, in time.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := slow(t)
		defer close(release)
		r := w.limited(1, 10*time.Second)
		start := time.Now()
		first := make(chan error, 1)
		go func() { first <- ask(t.Context(), r) }()
		synctest.Wait()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := ask(ctx, r); !timedOut(err) || time.Since(start) != 3*time.Second {
			t.Errorf("a query that waits for another ends with %v after %v", err, time.Since(start))
		}
		if err := <-first; !timedOut(err) || time.Since(start) != 10*time.Second {
			t.Errorf("a query that waits for the table ends with %v after %v", err, time.Since(start))
		}
		if err := ask(t.Context(), r); !timedOut(err) || time.Since(start) != 20*time.Second {
			t.Errorf("the next one ends with %v after %v", err, time.Since(start))
		}
	})
}

// TestChartTimeout ends a chart, too.
func TestChartTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := slow(t)
		defer close(release)
		start := time.Now()
		found, err := w.reader.Series(t.Context(), nil, AlwaysFrom, AlwaysTo)
		w.ok(err)
		if len(found) > 0 {
			t.Fatalf("no selector selects %d series", len(found))
		}
		found, err = w.index.Select(t.Context(), index.AllMonths)
		w.ok(err)
		_, err = w.limited(1, 10*time.Second).Chart(t.Context(), found, "24h", 0)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("a chart that waits for the table ends with %v after %v", err, time.Since(start))
		}
	})
}

// TestCanceled ends queries whose client is gone.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := slow(t)
		r := w.limited(1, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 2)
		for range 2 { // one reads, one waits
			go func() { answers <- ask(ctx, r) }()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-answers; !canceled(err) {
				t.Errorf("a query whose client is gone ends with %v", err)
			}
		}
		close(release)
		if err := ask(t.Context(), r); err != nil {
			t.Errorf("the next query: %v", err)
		}
	})
}

// TestConcurrent lets so many queries run at a time and no more.
func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, release := slow(t)
		r := w.limited(3, time.Minute)
		before := w.tables.Calls(tabletest.Get)
		answers := make(chan error, 10)
		for range 10 {
			go func() { answers <- ask(t.Context(), r) }()
		}
		synctest.Wait()
		if n := w.tables.Calls(tabletest.Get) - before; n != 3 {
			t.Errorf("%d queries read at a time, want 3", n)
		}
		close(release)
		for range 10 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestTableFails wants a failure of the table as such, whatever the table calls it: the client is still there.
func TestTableFails(t *testing.T) {
	for _, cause := range []error{tabletest.ErrInjected, context.Canceled, context.DeadlineExceeded, table.ErrClosed, table.ErrNotFound} {
		w := newWorld(t, midnight, series.MillisOf(midnight).Day()-1)
		entry := w.load(metric("m"), steps(midnight.Add(-time.Hour), midnight, time.Minute, func(s float64) float64 { return s }))
		w.tables.Add(tabletest.Fault{Method: tabletest.Get, Err: cause})
		err := ask(t.Context(), w.reader)
		if errors.Is(cause, table.ErrNotFound) {
			w.ok(err) // nothing is there
			continue
		}
		if err == nil || timedOut(err) || canceled(err) || !errors.Is(err, cause) {
			t.Errorf("%v: the query ends with %v", cause, err)
		}
		if _, err := w.reader.Chart(t.Context(), w.reader.Find(entry.ID), "24h", 0); !errors.Is(err, cause) {
			t.Errorf("%v: the chart ends with %v", cause, err)
		}
	}
}

// TestMaxSamples ends a query that takes too much memory.
func TestMaxSamples(t *testing.T) {
	w := promWorld(t)
	cfg := w.config()
	cfg.MaxSamples = 1000
	r := New(cfg, w.store, w.index, &w.head)
	q, result, err := r.Instant(t.Context(), "count_over_time(requests_total[1d])", midnight)
	w.ok(err)
	defer q.Close()
	if !errors.As(result.Err, new(promql.ErrTooManySamples)) {
		t.Errorf("the query ends with %v", result.Err)
	}
}

func errorNames(err error, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			return false
		}
	}
	return errors.Is(err, ErrTooMuch)
}
