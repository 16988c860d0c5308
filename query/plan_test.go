package query

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// TestPlan checks, for many times and ranges, that every hour is looked for wherever it may be, and nowhere else.
func TestPlan(t *testing.T) {
	today := series.MillisOf(midnight).Day()
	for _, closed := range []series.Day{today - 5, today - 2, today - 1, today, today + 300} {
		w := newWorld(t, midnight, closed)
		for minute := -26 * 60; minute < 26*60; minute += 29 {
			w.now = midnight.Add(time.Duration(minute) * time.Minute)
			for _, from := range []int{-400 * 24, -60, -49, -26, -25, -24, -23, -5, -1, 0, 1, 2, 3, 100} {
				for _, length := range []int{0, 1, 2, 23, 24, 25, 26, 49, 500 * 24} {
					start := w.now.Add(time.Duration(from) * time.Hour)
					checkPlan(t, w, closed, series.MillisOf(start), series.MillisOf(start.Add(time.Duration(length)*time.Hour)))
				}
			}
		}
	}
}

func checkPlan(t *testing.T, w *world, closed series.Day, from, to series.Millis) {
	t.Helper()
	p := w.reader.plan(store.Span{From: from, To: to})
	now := series.MillisOf(w.now).Hour()
	inRing := func(h series.Hour) bool { return p.ring && h >= p.from && h <= p.to }
	inPages := func(h series.Hour) bool {
		return slices.ContainsFunc(p.months, func(m pages) bool { return h.Day() >= m.first && h.Day() <= m.last })
	}
	ring, days := false, series.Day(0)
	for h := from.Hour(); h <= min(to.Hour(), now+1); h++ {
		needRing := h >= now-24 || h.Day() > closed
		needPage := h < now-24
		if needRing && !inRing(h) || needPage && !inPages(h) {
			t.Fatalf("now %v, closed %d, %d to %d: hour %d is missing in %+v", w.now, closed, from.Hour()-now, to.Hour()-now, h-now, p)
		}
		ring = ring || needRing
		if needPage && (days == 0 || h.OfDay() == 0) {
			days++
		}
	}
	planned := 0
	for i, m := range p.months {
		planned += m.days
		if m.days != int(m.last-m.first)+1 || keys.MonthOf(m.first) != m.month || keys.MonthOf(m.last) != m.month || m.written < m.days ||
			i > 0 && p.months[i-1].last != m.first-1 {
			t.Fatalf("the months are %+v", p.months)
		}
	}
	if p.ring && !ring && from.Hour() <= now+1 || planned != int(days) {
		t.Fatalf("now %v, closed %d, %d to %d: the ring is needed: %v, and %d pages: %+v", w.now, closed, from.Hour()-now, to.Hour()-now, ring, days, p)
	}
}

// TestPlanOfEverything cuts ranges without bounds.
func TestPlanOfEverything(t *testing.T) {
	w := newWorld(t, midnight, 0)
	p := w.reader.plan(store.Span{From: -1 << 63, To: 1<<63 - 1})
	now := series.MillisOf(midnight).Hour()
	if p.months[0].first != keys.FirstDay || p.months[len(p.months)-1].last != now.Day()-2 || p.to != now+2 || !p.ring {
		t.Errorf("the plan is %+v", p)
	}
	for _, around := range [][2]series.Millis{{-1 << 63, -1 << 62}, {1 << 62, 1<<63 - 1}, {0, -1}} {
		if got, err := w.samples(t.Context(), new(index.Series), around[0], around[1]); err != nil || len(got) > 0 {
			t.Errorf("%v: %d samples, error %v", around, len(got), err)
		}
	}
}

// TestOneYear reads a year of pages with few operations: a range read for each month, and the ring.
func TestOneYear(t *testing.T) {
	w := newWorld(t, midnight.Add(3*time.Hour), series.MillisOf(midnight).Day()-1)
	begin := midnight.AddDate(-1, 0, 0)
	want := steps(begin, w.now, 6*time.Hour, func(s float64) float64 { return s })
	entry := w.load(metric("m"), want)
	read := func(from, to time.Time) *table.Cost {
		t.Helper()
		cost := new(table.Cost)
		got, err := w.samples(table.WithCost(t.Context(), cost), entry, series.MillisOf(from), series.MillisOf(to))
		w.ok(err)
		same(t, fmt.Sprint(from, to), got, between(want, series.MillisOf(from), series.MillisOf(to)))
		return cost
	}
	const each = 2 // pages of an answer: the model gives an empty one before the one with rows
	if c := read(begin, w.now); c.PointReads.Load() > 3 || c.RangeReads.Load() > 12*each || c.RowsScanned.Load() > 366 {
		t.Errorf("a year takes %d point reads, %d range reads and %d rows", c.PointReads.Load(), c.RangeReads.Load(), c.RowsScanned.Load())
	}
	if c := read(begin.AddDate(0, 2, 0), begin.AddDate(0, 3, 0)); c.RangeReads.Load() > 2*each || c.RowsScanned.Load() > 32 {
		t.Errorf("a month takes %d range reads and %d rows", c.RangeReads.Load(), c.RowsScanned.Load())
	}
	if c := read(begin.AddDate(0, 2, 3), begin.AddDate(0, 2, 4)); c.PointReads.Load() > 2 || c.RangeReads.Load() > 0 {
		t.Errorf("a day takes %d point reads and %d range reads", c.PointReads.Load(), c.RangeReads.Load())
	}
}

// TestListedMonths reads only the months that a series is listed in.
func TestListedMonths(t *testing.T) {
	w := newWorld(t, midnight.Add(3*time.Hour), series.MillisOf(midnight).Day()-1)
	spring := time.Date(2026, 4, 10, 0, 0, 0, 0, time.UTC)
	want := steps(spring, spring.AddDate(0, 0, 5), time.Hour, func(s float64) float64 { return s })
	entry := w.load(metric("m"), want)
	cost := new(table.Cost)
	got, err := w.samples(table.WithCost(t.Context(), cost), entry, 0, series.MillisOf(w.now))
	w.ok(err)
	same(t, "spring", got, want)
	if cost.PointReads.Load() != 1 || cost.RangeReads.Load() > 2 {
		t.Errorf("%d point reads and %d range reads, want the ring and one month", cost.PointReads.Load(), cost.RangeReads.Load())
	}
}

// TestEverywhere has samples in head, ring and page, some in several of them: each counts once.
func TestEverywhere(t *testing.T) {
	w := newWorld(t, midnight.Add(-2*time.Hour), series.MillisOf(midnight).Day()-2)
	all := steps(midnight.Add(-20*time.Hour), midnight.Add(-2*time.Hour), time.Minute, func(s float64) float64 { return s })
	entry := w.load(metric("m"), all)
	w.now = midnight.Add(2 * time.Hour)
	w.closeDays(series.MillisOf(midnight).Day() - 1) // now in ring and page
	more := steps(midnight.Add(-3*time.Hour), w.now, time.Minute, func(s float64) float64 { return s + 17*3600 })
	w.head.samples[entry.ID] = more // and the newest in the head, too
	want := slices.Concat(all[:len(all)-60], more)
	for now := w.now; now.Before(midnight.Add(48 * time.Hour)); now = now.Add(97 * time.Minute) {
		w.now = now
		got, err := w.samples(t.Context(), entry, 0, series.MillisOf(now))
		w.ok(err)
		same(t, now.String(), got, want)
	}
}

// TestFlushWhileReading moves samples from the head into the ring while they are read.
func TestFlushWhileReading(t *testing.T) {
	w := newWorld(t, midnight.Add(10*time.Hour), series.MillisOf(midnight).Day()-1)
	want := steps(midnight.Add(7*time.Hour+30*time.Minute), w.now, 15*time.Second, func(s float64) float64 { return s })
	entry := w.listed(metric("m"), series.MillisOf(midnight).Day())
	w.head.samples[entry.ID] = want
	var flushing sync.WaitGroup
	done := make(chan struct{})
	flushing.Go(func() {
		defer close(done)
		for n := 5; n <= len(want); n += 5 { // hours are written whole
			h := want[n-1].T.Hour()
			hour := between(want[:n], h.Start(), (h+1).Start()-1)
			write := store.Write{ID: entry.ID, Slots: []store.HourSlot{{Hour: h, Data: slot.Encode(nil, h, hour)}}, Top: h}
			if err := w.store.WriteHours(t.Context(), w.store.Bucket(entry.ID), series.MillisOf(w.now), []store.Write{write}); err != nil {
				t.Error(err)
			}
			w.head.mu.Lock()
			w.head.samples[entry.ID] = want[n:]
			w.head.mu.Unlock()
		}
	})
	var got []series.Sample
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		var err error
		got, err = w.samples(t.Context(), entry, 0, series.MillisOf(w.now))
		w.ok(err)
		same(t, "while flushing", got, want)
	}
	flushing.Wait()
}

// TestCloseWhileReading closes a day and overwrites its hours in the ring between the two reads of a query.
func TestCloseWhileReading(t *testing.T) {
	today := series.MillisOf(midnight).Day()
	w := newWorld(t, midnight.Add(-12*time.Hour), today-2)
	want := steps(midnight.Add(-12*time.Hour), midnight.Add(-11*time.Hour), time.Minute, func(s float64) float64 { return s })
	entry := w.load(metric("m"), want)
	w.now = midnight.Add(14 * time.Hour) // 26 h later, and the day is not closed
	on, released := make(chan struct{}), make(chan struct{})
	pause := tabletest.Fault{Method: tabletest.Get, Call: 2, Effect: tabletest.Pass, Struck: func() { close(on) }, Wait: released}
	w.tables.Add(pause)
	type answer struct {
		samples []series.Sample
		err     error
	}
	answers := make(chan answer)
	go func() {
		got, err := w.samples(t.Context(), entry, want[0].T, want[len(want)-1].T)
		answers <- answer{got, err}
	}()
	<-on
	w.tables.Heal()
	w.closeDays(today - 1)
	w.load(metric("m"), steps(w.now, w.now.Add(time.Minute), time.Minute, func(s float64) float64 { return s }))
	close(released)
	a := <-answers
	w.ok(a.err)
	same(t, "an hour that moved", a.samples, want)
}

func TestLastOfMonth(t *testing.T) {
	for day := keys.FirstDay; day < keys.LastDay; day++ {
		if month := keys.MonthOf(day); keys.MonthOf(day+1) != month && lastOf(month) != day {
			t.Fatalf("the last day of month %v is %d, want %d", month, lastOf(month), day)
		}
	}
}
