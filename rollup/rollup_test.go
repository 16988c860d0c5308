package rollup

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

const (
	closeAfter = 15 * time.Minute
	closeOver  = 45 * time.Minute
	sealAfter  = 30 * time.Second
	tick       = 10 * time.Second
)

func config(now func() time.Time) Config {
	return Config{
		CloseAfter: closeAfter, CloseOver: closeOver, SealAfter: sealAfter, Tick: tick,
		Now: now, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

func open(t testing.TB, svc table.Service, writer string, alone bool, today series.Day) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), svc, store.Config{Tables: "daybook", Buckets: 16, Writer: writer, Alone: alone}, today)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hour is the current one; a test's clock begins at a midnight.
func hour() series.Hour { return series.MillisOf(time.Now()).Hour() }

// some gives an id in each bucket.
func some() (ids []series.ID) {
	for b := range 16 {
		id := keys.SeriesID("", labels.FromStrings(model.MetricNameLabel, "m"))
		id[4] = byte(b << 4)
		ids = append(ids, id)
	}
	return ids
}

func four(h series.Hour) (samples []series.Sample) {
	for i := range 4 {
		samples = append(samples, series.Sample{T: h.Start() + series.Millis(i)*900_000, V: float64(i)})
	}
	return samples
}

func put(t testing.TB, s *store.Store, id series.ID, hours ...series.Hour) {
	t.Helper()
	w := store.Write{ID: id, Top: hours[len(hours)-1]}
	for _, h := range hours {
		w.Slots = append(w.Slots, store.HourSlot{Hour: h, Data: slot.Encode(nil, h, four(h))})
	}
	ok(t, s.WriteHours(context.Background(), s.Bucket(id), series.MillisOf(time.Now()), []store.Write{w}))
}

// value is what a counter stands at.
func value(c prometheus.Counter) float64 {
	var m dto.Metric
	_ = c.Write(&m)
	return m.GetCounter().GetValue()
}

// paged says how many samples the page of a day has.
func paged(t testing.TB, s *store.Store, id series.ID, day series.Day) int {
	t.Helper()
	samples, err := theFloats(s.Pages(t.Context(), id, day, day, day.FirstHour(), day.FirstHour()+23))
	ok(t, err)
	return len(samples)
}

// run starts a roller that stops with the test.
func run(t *testing.T, s *store.Store) (r *Roller, stop func()) {
	r = New(config(time.Now), s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	return r, stop
}

// TestClosedAfterMidnight closes a day after the grace, a bucket after the other, spread over the time that is given.
func TestClosedAfterMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, tabletest.NewModel(), "a", true, hour().Day())
		ids, today := some(), hour().Day()
		for _, id := range ids {
			put(t, s, id, hour())
		}
		r, stop := run(t, s)
		defer stop()
		count := func() (n int) {
			for _, id := range ids {
				n += paged(t, s, id, today) / 4
			}
			return n
		}
		time.Sleep(24*time.Hour + closeAfter - time.Second)
		synctest.Wait()
		if s.Closed() == today || count() > 0 {
			t.Fatalf("before the grace is over the day is closed: %v, with %d pages", s.Closed() == today, count())
		}
		for part := 1; part <= 8; part++ {
			time.Sleep(closeOver / 8)
			synctest.Wait()
			if n := count(); n < 2*part-2 || n > 2*part+1 {
				t.Errorf("%d eighths of the time are gone and %d pages of 16 are written", part, n)
			}
		}
		time.Sleep(tick)
		synctest.Wait()
		if s.Closed() != today || count() != 16 {
			t.Fatalf("when the time is over the day is closed: %v, with %d pages", s.Closed() == today, count())
		}
		if n := value(r.pages); n != 16 {
			t.Errorf("the metric counts %v pages", n)
		}
	})
}

// TestCloseDaysHurries waits for days that are just being closed slowly.
func TestCloseDaysHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, tabletest.NewModel(), "a", true, hour().Day())
		for day := range 3 {
			today := hour().Day()
			for _, id := range some() {
				put(t, s, id, hour())
			}
			r, stop := run(t, s)
			time.Sleep(24*time.Hour + closeAfter + closeOver/4)
			synctest.Wait()
			if s.Closed() == today {
				t.Fatalf("day %d: closed at once, though nobody waits (somebody did, a day ago)", day)
			}
			start := time.Now()
			ok(t, r.CloseDays(t.Context(), today))
			if took := time.Since(start); s.Closed() != today || took > time.Second {
				t.Errorf("day %d: closed: %v, after %v", day, s.Closed() == today, took)
			}
			ok(t, r.CloseDays(t.Context(), today)) // nothing to do, nobody to hurry
			stop()
			time.Sleep(24*time.Hour - closeAfter - closeOver/4)
		}
	})
}

// TestHurryIsOver closes slowly again after somebody once waited when nothing was being closed.
func TestHurryIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, tabletest.NewModel(), "a", true, hour().Day())
		r, stop := run(t, s)
		defer stop()
		for range 2 {
			for _, id := range some() {
				put(t, s, id, hour())
			}
			time.Sleep(24 * time.Hour)
			today := hour().Day()
			ok(t, r.CloseDays(t.Context(), today-1))
			for _, id := range some() {
				put(t, s, id, hour())
			}
			time.Sleep(24*time.Hour + closeAfter + closeOver/2)
			synctest.Wait()
			if s.Closed() == today {
				t.Error("the next day is closed at once, though nobody waits any more")
			}
			time.Sleep(closeOver)
			synctest.Wait()
			if s.Closed() != today {
				t.Error("the next day is not closed")
			}
			time.Sleep(24*time.Hour - closeAfter - closeOver - closeOver/2)
		}
	})
}

// TestSeriesThatEnded closes days of series that are written no more, and all days of a time in which nothing ran.
func TestSeriesThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := tabletest.NewModel()
		s := open(t, svc, "a", true, hour().Day())
		first := hour()
		ids := some()
		put(t, s, ids[0], first)
		time.Sleep(23 * time.Hour)
		put(t, s, ids[1], hour()-1, hour())
		time.Sleep(2 * time.Hour)
		put(t, s, ids[1], hour()) // of the next day, with the day before still open
		_, stop := run(t, s)
		stop() // at once: nothing is done, as after a crash

		time.Sleep(3 * 24 * time.Hour)
		s = open(t, svc, "a", true, hour().Day())
		if s.Closed() != first.Day()-1 {
			t.Fatalf("the first open day is %d, want the first day", s.Closed()+1-first.Day())
		}
		r, stop := run(t, s)
		defer stop()
		ok(t, r.CloseDays(t.Context(), hour().Day()-1))
		if s.Closed() != hour().Day()-1 {
			t.Error("not all days up to yesterday are closed")
		}
		for i, want := range []struct{ first, second int }{{4, 0}, {8, 4}} {
			if a, b := paged(t, s, ids[i], first.Day()), paged(t, s, ids[i], first.Day()+1); a != want.first || b != want.second {
				t.Errorf("series %d has %d and %d samples in its pages, want %v", i, a, b, want)
			}
		}
		put(t, s, ids[1], hour()-24, hour()) // all slots of the ring may be overwritten now
	})
}

// TestRestartWhileClosing stops in the middle of a closing. Late samples come, and the next process closes the day.
func TestRestartWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := tabletest.NewModel()
		s := open(t, svc, "a", true, hour().Day())
		ids, today := some(), hour().Day()
		for _, id := range ids {
			put(t, s, id, hour())
		}
		_, stop := run(t, s)
		time.Sleep(24*time.Hour + closeAfter + closeOver/2)
		stop()
		if s.Closed() == today {
			t.Fatal("the day is closed though only half of the time is over")
		}
		s = open(t, svc, "a", true, hour().Day())
		for _, id := range ids {
			put(t, s, id, today.FirstHour()+5) // late, of the day that is half closed
		}
		_, stop = run(t, s)
		defer stop()
		time.Sleep(closeOver + tick)
		synctest.Wait()
		for _, id := range ids {
			if n := paged(t, s, id, today); s.Closed() != today || n != 8 {
				t.Errorf("the day is closed: %v, the page of series %v has %d samples, want 8", s.Closed() == today, id, n)
			}
		}
	})
}

// TestSealed folds late hours when their page was left alone for a while, and not before.
func TestSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := tabletest.NewModel()
		s := open(t, svc, "a", true, hour().Day())
		id, day := some()[0], hour().Day()-3
		r, stop := run(t, s)
		defer stop()
		for i := range 5 { // every 20 s another hour
			put(t, s, id, day.FirstHour()+series.Hour(i))
			time.Sleep(20 * time.Second)
		}
		synctest.Wait()
		if n := value(r.seals); n != 0 {
			t.Errorf("%v pages are sealed while hours come", n)
		}
		time.Sleep(sealAfter)
		synctest.Wait()
		if n := value(r.seals); n != 1 {
			t.Errorf("%v pages are sealed, want 1", n)
		}
		described, err := s.Describe(t.Context(), id)
		ok(t, err)
		if len(described) != 2 || len(described[1].Slots) != 1 || !described[1].Slots[0].Day || described[1].Slots[0].Info.Count != 20 {
			t.Errorf("the page is %+v, want one slot of the day with 20 samples", described[1:])
		}
	})
}

// TestFailures goes on when the table is there again.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := tabletest.Faulty(tabletest.NewModel())
		s := open(t, faulty, "a", true, hour().Day())
		today := hour().Day()
		put(t, s, some()[0], hour())
		put(t, s, some()[0], (today - 3).FirstHour())
		faulty.Add(tabletest.Fault{Method: tabletest.Transact})
		r, stop := run(t, s)
		defer stop()
		time.Sleep(25*time.Hour + time.Second)
		synctest.Wait()
		if n := value(r.failures); n < 2 {
			t.Errorf("%v failures are counted", n)
		}
		if err := r.CloseDays(t.Context(), today); err == nil || s.Closed() == today {
			t.Errorf("the day is closed without its pages (error %v)", err)
		}
		faulty.Heal()
		time.Sleep(closeOver + sealAfter + tick)
		synctest.Wait()
		if s.Closed() != today || paged(t, s, some()[0], today) != 4 || value(r.seals) != 1 {
			t.Errorf("closed: %v, %d samples, %v pages sealed", s.Closed() == today, paged(t, s, some()[0], today), value(r.seals))
		}
	})
}

// TestYearAhead lets the clock jump ahead by a year for a moment.
func TestYearAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := tabletest.NewModel()
		s := open(t, svc, "a", true, hour().Day())
		id, start := some()[3], hour()
		put(t, s, id, start-5, start)
		ahead := New(config(func() time.Time { return time.Now().Add(365 * 24 * time.Hour) }), s)
		ok(t, ahead.once(t.Context()))
		if s.Closed() != start.Day()+363 { // within the grace of the last one
			t.Errorf("days are closed up to %d from today", s.Closed()-start.Day())
		}
		wrote := []series.Hour{start - 5, start}
		for i := range 60 { // two days and a half later
			time.Sleep(time.Hour)
			if i == 10 {
				s = open(t, svc, "a", true, hour().Day())
			}
			ok(t, New(config(time.Now), s).closeDays(t.Context(), hour().Day()-1, 0))
			put(t, s, id, hour())
			wrote = append(wrote, hour())
		}
		for _, h := range wrote {
			samples, err := theFloats(s.Ring(t.Context(), id, h, h))
			ok(t, err)
			if h >= hour()-24 && len(samples) != 4 {
				t.Errorf("hour %d has %d samples in the ring", h-start, len(samples))
			}
			if h.Day() < hour().Day() {
				if samples, err = theFloats(s.Pages(t.Context(), id, h.Day(), h.Day(), h, h)); err != nil || len(samples) < 4 {
					t.Errorf("hour %d has %d samples in its page (error %v)", h-start, len(samples), err)
				}
			}
		}
	})
}
