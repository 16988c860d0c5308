package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"daybook/ingest"
	"daybook/internal/series"
	"daybook/internal/table/tabletest"
)

var (
	failSync = tabletest.Fault{Method: tabletest.Sync, Call: 1}
	errBusy  = errors.New("503 ServerBusy")
)

// oneBucket gives names of metrics whose series lie in one bucket.
func (w *world) oneBucket(n int) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("m", i); w.store.Bucket(w.id(name)) == 3 {
			names = append(names, name)
		}
	}
	return names
}

// A flush that failed anywhere, done or not, is repeated until it is through: nothing is lost, nothing doubled, and the
// log keeps all of it until then.
func TestFlushIsRepeated(t *testing.T) {
	second := func(effect tabletest.Effect) tabletest.Fault {
		return tabletest.Fault{Method: tabletest.Transact, Table: "daybookring", Call: 2, Effect: effect, Err: errBusy}
	}
	for what, fault := range map[string]tabletest.Fault{
		"refused":                      {Method: tabletest.Transact, Table: "daybookring", Call: 1},
		"answer lost":                  {Method: tabletest.Transact, Table: "daybookring", Call: 1, Effect: tabletest.FailAfter, Err: context.DeadlineExceeded},
		"second of two refused":        second(tabletest.FailBefore),
		"second of two, answer lost":   second(tabletest.FailAfter),
		"catalogue refused":            {Method: tabletest.Transact, Table: "daybookcat202610", Call: 1, Err: errBusy},
		"catalogue, answer lost":       {Method: tabletest.Transact, Table: "daybookcat202610", Call: 2, Effect: tabletest.FailAfter},
		"page refused":                 {Method: tabletest.Transact, Table: "daybookraw202610", Call: 1, Err: errBusy},
		"second page, answer lost":     {Method: tabletest.Transact, Table: "daybookraw202610", Call: 2, Effect: tabletest.FailAfter},
		"table not created":            {Method: tabletest.Create, Call: 1},
		"table created, answer lost":   {Method: tabletest.Create, Call: 1, Effect: tabletest.FailAfter},
		"not durable":                  {Method: tabletest.Sync, Call: 1},
		"durable, answer lost":         {Method: tabletest.Sync, Call: 1, Effect: tabletest.FailAfter},
		"reading what is there failed": {Method: tabletest.Get, Call: 30, Err: errBusy},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, nil)
			names := w.oneBucket(150) // two transactions
			must(t, w.store.Sync(t.Context()))
			want := []series.Sample{at(day0.Add(-50*time.Hour), 1), at(day0.Add(-3*time.Hour), 2), at(day0.Add(-time.Minute), 3), now}
			write := func(samples ...series.Sample) {
				var request []prompb.TimeSeries
				for _, name := range names {
					request = append(request, metric(name, samples...))
				}
				w.put(request...)
			}
			check := func(when string) { // the first, the last, and those where one transaction ends and another begins
				t.Helper()
				for _, i := range []int{0, 1, 50, 98, 99, 100, 101, 149} {
					w.expect(names[i], want...)
				}
				if t.Failed() {
					t.Fatal(when)
				}
			}
			write(want[:2]...)
			if what == "reading what is there failed" { // hours that this process has not written
				must(t, w.restart())
			}
			write(want...)
			w.service.Add(fault)
			size := w.in.LogSize()
			if err := w.flush(); err == nil {
				t.Fatal("the flush went through")
			}
			if w.in.LogSize() < size {
				t.Error("segments of the log are gone after a flush that failed")
			}
			check("after a failed flush")
			write(want...) // a sender that did not get its answer
			im, err := w.snapshot(rand.New(rand.NewPCG(1, 1)))
			must(t, err)
			must(t, w.flush())
			if n := w.in.Unflushed(); n != 0 || w.in.LogSize() >= size {
				t.Errorf("after the flush %d samples are unflushed, the log has %d bytes", n, w.in.LogSize())
			}
			check("after the repeated flush")
			must(t, w.crash(im))
			check("after a crash between the flushes")
			must(t, w.flush())
			check("and a flush")
		})
	}
}

// While the table is away writes go on until the log is full; then senders are told to come again. What is in memory
// can be read all along, and all of it is in the table when that is back.
func TestTableAwayForLong(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.MaxLogBytes = 20_000 })
	var want []series.Sample
	next := func() series.Sample {
		w.now.add(time.Minute)
		return at(w.now.Now(), float64(len(want)))
	}
	for range 3 {
		want = append(want, next())
		w.put(metric("m", want[len(want)-1]))
	}
	must(t, w.flush())
	w.service.Add(
		tabletest.Fault{Method: tabletest.Transact, Err: errBusy}, tabletest.Fault{Method: tabletest.Sync, Err: errBusy},
		tabletest.Fault{Method: tabletest.Create, Err: errBusy})
	for {
		s := next()
		_, err := w.write(metric("m", s), metric("other", s))
		if errors.Is(err, ingest.ErrUnavailable) {
			break
		}
		must(t, err)
		want = append(want, s)
		if len(want)%20 == 0 {
			if err := w.flush(); !errors.Is(err, errBusy) {
				t.Fatalf("flushing while the table is away: %v", err)
			}
		}
		if len(want) > 10_000 {
			t.Fatal("the log is never full")
		}
	}
	if size := w.in.LogSize(); len(want) < 50 || size < 20_000 || size > 25_000 {
		t.Errorf("%d samples and %d bytes of log before the first 503", len(want), size)
	}
	if got := w.in.Head().Samples(nil, w.id("m"), 0, 1<<62); len(got) != len(want)-3 {
		t.Errorf("%d samples in memory, not %d", len(got), len(want)-3)
	}
	w.expect("m", want...)
	w.expect("other", want[3:]...)
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 1)))) // a new process, and the table is there
	w.expect("m", want...)
	must(t, w.flush())
	s := next()
	w.put(metric("m", s))
	w.expect("m", append(want, s)...)
	w.expect("other", want[3:]...)
}

// A day that cannot be closed holds up the flush, not the writes.
func TestClosingFails(t *testing.T) {
	w := newWorld(t, nil)
	w.put(metric("m", now))
	must(t, w.flush())
	w.now.add(27 * time.Hour)
	later := at(w.now.Now(), 2)
	w.put(metric("m", later))
	w.service.Add(tabletest.Fault{Method: tabletest.Transact, Table: "daybookraw202610", Call: 1, Err: errBusy})
	if err := w.flush(); !errors.Is(err, errBusy) {
		t.Fatalf("got %v", err)
	}
	w.expect("m", now, later)
	must(t, w.flush())
	w.expect("m", now, later)
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	w.expect("m", now, later)
}

// The loop flushes once an interval, again soon after a failure, and at once when the log grows too much.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{tb: t, now: &clock{at: day0}, wal: t.TempDir(), logs: &recorder{}, memory: true, edit: func(c *ingest.Config) {
			c.Now, c.FlushInterval, c.FlushBytes = time.Now, 10*time.Minute, 1000
		}}
		must(t, w.open())
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { w.in.Run(ctx) })
		put := func(n int) {
			for i := range n {
				w.put(metric("m", series.Sample{T: series.MillisOf(time.Now()) - series.Millis(i), V: 1}))
			}
		}
		flushed := func(when string, want bool) {
			t.Helper()
			if synctest.Wait(); (w.in.Unflushed() == 0) != want {
				t.Errorf("%s: %d samples are unflushed", when, w.in.Unflushed())
			}
		}
		synctest.Wait()
		put(1)
		flushed("at once", false)
		time.Sleep(21 * time.Minute)
		flushed("after two intervals", true)
		w.service.Add(tabletest.Fault{Method: tabletest.Transact, Call: 1, Err: errBusy})
		put(1)
		time.Sleep(25 * time.Minute)
		flushed("after a failure", true)
		if w.logs.with("flushing failed and is tried again") != 1 {
			t.Errorf("the log says %q", w.logs.lines)
		}
		put(30)
		time.Sleep(time.Second)
		flushed("when the log has grown", true)
		w.service.Add(tabletest.Fault{Method: tabletest.Transact, Err: errBusy})
		before := w.service.Calls(tabletest.Transact)
		for range 600 {
			put(5)
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.service.Calls(tabletest.Transact) - before; n < 20 || n > 32 {
			t.Errorf("a table that is away was tried %d times in a minute", n)
		}
		w.service.Heal()
		time.Sleep(10 * time.Second)
		flushed("when the table is back", true)
		put(1)
		cancel()
		group.Wait()
		must(t, w.in.Close(context.Background()))
		if n := w.in.Unflushed(); n != 0 {
			t.Errorf("%d samples are unflushed at the end", n)
		}
		must(t, w.service.Close())
	})
}

// While writes come the loop takes its time; when they have stopped for half a minute it flushes what there is.
func TestRunWhenWritesStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{tb: t, now: &clock{at: day0}, wal: t.TempDir(), logs: &recorder{}, memory: true, edit: func(c *ingest.Config) {
			c.Now, c.FlushInterval = time.Now, 10*time.Minute
		}}
		must(t, w.open())
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() { w.in.Run(ctx) })
		for range 60 {
			w.put(metric("m", series.Sample{T: series.MillisOf(time.Now()), V: 1}))
			time.Sleep(5 * time.Second)
		}
		if n := w.service.Calls(tabletest.Sync); n != 0 {
			t.Errorf("%d rounds in half an interval", n)
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if n := w.in.Unflushed(); n != 0 {
			t.Errorf("%d samples are unflushed", n)
		}
		cancel()
		group.Wait()
		must(t, w.in.Close(context.Background()))
		must(t, w.service.Close())
	})
}

// Senders, flushes, closing and sealing at the same time; for the race detector, and for what they might do to each
// other.
func TestAllAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	const senders, rounds = 4, 60
	step := 20 * time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	var background, group sync.WaitGroup
	for _, work := range []func() error{
		w.flush,
		func() error { return w.roller.CloseDays(ctx, w.now.day()-1) },
		func() error { return w.roller.Seal(ctx) },
		func() error { _, err := w.all(w.id("m0")); return err },
	} {
		background.Go(func() {
			for ctx.Err() == nil {
				if err := work(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	want := make([][]series.Sample, senders)
	for n := range senders {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for i := range rounds {
				if n == 0 {
					w.now.add(step)
				}
				// Nearly in order, and some late: each time once.
				t0 := w.now.Now().Add(-time.Duration(rng.IntN(40)) * time.Hour)
				s := series.Sample{T: series.MillisOf(t0)/1000*1000 + series.Millis(i), V: rng.Float64()}
				for _, m := range []string{fmt.Sprint("m", n), fmt.Sprint("common", n%2)} {
					ts := metric(m, series.Sample{T: s.T + series.Millis(n*100), V: s.V})
					if _, err := w.write(ts, ts); err != nil {
						t.Error(err)
					}
				}
				want[n] = append(want[n], series.Sample{T: s.T + series.Millis(n*100), V: s.V})
			}
		})
	}
	group.Wait()
	cancel()
	background.Wait()
	for range 2 {
		for n := range senders {
			w.expect(fmt.Sprint("m", n), want[n]...)
		}
		w.expect("common0", append(append([]series.Sample{}, want[0]...), want[2]...)...)
		w.expect("common1", append(append([]series.Sample{}, want[1]...), want[3]...)...)
		must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	}
}
