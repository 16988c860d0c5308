package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// life is a story of two series over two days, a step at a time; each step may be repeated. Where samples are written,
// histograms and exemplars are, too.
type life struct {
	ids   [2]series.ID
	days  [2]series.Day
	steps []func(context.Context, *store.Store) error
	want  map[series.ID]map[series.Hour]written
}

func newLife() *life {
	l := &life{days: [2]series.Day{today, today + 1}}
	for i := range l.ids {
		l.ids[i], _ = named(fmt.Sprint("life", i))
	}
	l.begin()
	// The first series is so dense that its hours and its day are spilled; the second one ends after an hour.
	l.write(0, ten, ten, noise(ten, 2_500)[:1_300])
	l.write(0, ten, ten, noise(ten, 2_500))
	l.write(1, ten, ten, every(ten, 10))
	for h := ten + 2; h < ten+8; h += 2 {
		l.write(0, h, h, noise(h, 2_500))
	}
	l.write(0, ten+10, ten+3, noise(ten+3, 50)) // late, into the ring
	l.write(0, ten+27, ten+1, noise(ten+1, 50)) // late, into a page that is not there yet
	l.close(today)
	l.write(0, ten+27, ten+27, noise(ten+27, 2_500)) // over an hour in the ring
	l.write(0, ten+28, ten+9, every(ten+9, 40))      // late, into a page that is there
	l.write(1, ten+29, ten, every(ten, 20))
	l.seal(0, today)
	l.seal(1, today)
	l.write(0, ten+30, ten+9, every(ten+9, 80))
	l.close(today + 1)
	l.seal(0, today)
	return l
}

// begin forgets what was written.
func (l *life) begin() {
	l.want = map[series.ID]map[series.Hour]written{}
	for _, id := range l.ids {
		l.want[id] = map[series.Hour]written{}
	}
}

// write adds a step that writes an hour; more samples of the same hour hold those of before.
func (l *life) write(which int, now, h series.Hour, samples []series.Sample) {
	id, slots, all := l.ids[which], kindsOf(h, samples), allOf(samples)
	l.steps = append(l.steps, func(ctx context.Context, s *store.Store) error {
		err := s.WriteHours(ctx, s.Bucket(id), now.Start(), []store.Write{{ID: id, Slots: slots, Top: max(now, h)}})
		if err == nil {
			l.want[id][h] = all
		}
		return err
	})
}

func (l *life) close(day series.Day) {
	l.steps = append(l.steps, func(ctx context.Context, s *store.Store) error { return closeDays(ctx, s, day) })
}

func (l *life) seal(which int, day series.Day) {
	l.steps = append(l.steps, func(ctx context.Context, s *store.Store) error {
		return s.Seal(ctx, store.Page{ID: l.ids[which], Day: day})
	})
}

// check wants all that was written.
func (l *life) check(t *testing.T, s *store.Store, what string) {
	t.Helper()
	for _, id := range l.ids {
		got := everything(t, s, id, l.days[0], l.days[1])
		histograms, exemplars := everyHistogram(t, s, id, l.days[0], l.days[1]), everyExemplar(t, s, id, l.days[0], l.days[1])
		n := 0
		for h, want := range l.want[id] {
			at := fmt.Sprintf("%s: hour %d", what, h-ten)
			contains(t, at, got, want.samples)
			containsHistograms(t, at, histograms, want.histograms)
			containsExemplars(t, at, exemplars, want.exemplars)
			n += len(want.samples)
		}
		if len(got) > n+2_500 { // what a write with a lost answer left may be more than was promised, but no other hour's
			t.Fatalf("%s: %d samples, %d were written", what, len(got), n)
		}
	}
	l.rule2(t, s, what)
}

// rule2 wants all hours of closed days in their pages.
func (l *life) rule2(t *testing.T, s *store.Store, what string) {
	t.Helper()
	for _, id := range l.ids {
		pages := map[series.Day]written{}
		for h, want := range l.want[id] {
			day := h.Day()
			if day > s.Closed() {
				continue
			}
			if _, read := pages[day]; !read {
				pages[day] = pageOf(t, s, id, day)
			}
			at := fmt.Sprintf("%s: the page of hour %d", what, h-ten)
			contains(t, at, pages[day].samples, want.samples)
			containsHistograms(t, at, pages[day].histograms, want.histograms)
			containsExemplars(t, at, pages[day].exemplars, want.exemplars)
		}
	}
}

// TestCrashes breaks every table operation of a story in turn. The process dies of it, and
// the next one repeats the step: at both moments everything that was acknowledged is there.
func TestCrashes(t *testing.T) {
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprintf("alone=%v", alone), func(t *testing.T) {
			t.Parallel()
			l, cfg := newLife(), keep
			cfg.Alone = alone
			// A crash after an operation is one before the next.
			for call := 1; crashes(t, l, cfg, tabletest.Fault{Method: tabletest.Transact, Call: call, Effect: tabletest.FailAfter}); call++ {
			}
		})
	}
	t.Run("reads", func(t *testing.T) {
		t.Parallel()
		l := newLife()
		for _, method := range []tabletest.Method{tabletest.Get, tabletest.Query, tabletest.Create} {
			for call := 1; crashes(t, l, keep, tabletest.Fault{Method: method, Call: call}); call += 3 {
			}
		}
	})
}

// crashes goes through the story with one fault and says whether that struck.
func crashes(t *testing.T, l *life, cfg store.Config, fault tabletest.Fault) (struck bool) {
	t.Helper()
	what := fmt.Sprintf("alone=%v, %s %d, effect %d", cfg.Alone, fault.Method, fault.Call, fault.Effect)
	svc := strict()
	svc.PageRows, svc.EmptyPages = 3, false
	l.begin()
	open(t, svc, cfg, today)
	faulty := tabletest.Faulty(svc)
	s := open(t, faulty, cfg, today)
	faulty.Add(fault)
	for i, step := range l.steps {
		err := step(t.Context(), s)
		if err == nil {
			continue
		}
		is(t, err, tabletest.ErrInjected)
		struck = true
		s = open(t, svc, cfg, today+1)
		at := fmt.Sprintf("%s, step %d", what, i)
		l.check(t, s, at+", after the crash")
		if err := step(t.Context(), s); err != nil {
			t.Fatalf("%s: repeated: %v", at, err)
		}
	}
	faulty.Heal()
	l.check(t, s, what+", at the end")
	for _, id := range l.ids {
		var samples, histograms, exemplars int
		for _, hour := range l.want[id] {
			samples, histograms, exemplars = samples+len(hour.samples), histograms+len(hour.histograms), exemplars+len(hour.exemplars)
		}
		n, h, x := len(everything(t, s, id, l.days[0], l.days[1])), len(everyHistogram(t, s, id, l.days[0], l.days[1])), len(everyExemplar(t, s, id, l.days[0], l.days[1]))
		if n != samples || h != histograms || x != exemplars {
			t.Fatalf("%s: %d samples, %d histograms and %d exemplars at the end, %d, %d and %d were written", what, n, h, x, samples, histograms, exemplars)
		}
	}
	return struck
}

// TestRepeats does every step twice, and closes again and again.
func TestRepeats(t *testing.T) {
	l := newLife()
	s := open(t, strict(), keep, today)
	for i, step := range l.steps {
		for range 2 {
			ok(t, step(t.Context(), s))
		}
		ok(t, closeDays(t.Context(), s, s.Closed()))
		l.check(t, s, fmt.Sprint("step ", i))
	}
}

// TestClockAhead closes days to come while the clock is ahead. When it is right again those days are open again, and
// closing them another time keeps what their pages had.
func TestClockAhead(t *testing.T) {
	for _, n := range []int{60, 1_200} {
		t.Run(fmt.Sprint(n, " samples an hour"), func(t *testing.T) { clockAhead(t, n) })
	}
}

func clockAhead(t *testing.T, n int) {
	svc := inMemory(t)
	s := open(t, svc, keep, today)
	id, _ := named("x")
	var want []series.Sample
	hour := func(now, h series.Hour) {
		t.Helper()
		putKinds(t, s, now, id, kindsOf(h, noise(h, n))...)
		want = join(want, noise(h, n))
	}
	hour(ten, ten-1)
	hour(ten, ten)
	ok(t, closeDays(t.Context(), s, today+365))
	hour(ten, ten+1)                                     // the clock is back, the process goes on: into ring and page
	hour(ten+1, ten+2)                                   // and again
	contains(t, "the page", page(t, s, id, today), want) // rule 2

	s = open(t, svc, keep, today)
	if got := s.Closed(); got != today-1 {
		t.Fatalf("opened with the right clock the store has closed up to day %d, want %d", got-today, -1)
	}
	hour(ten+3, ten+3) // the day is open: into the ring only
	for h := ten + 4; h < (today + 1).FirstHour(); h++ {
		hour(h, h)
	}
	s = open(t, svc, keep, today+1)
	ok(t, closeDays(t.Context(), s, today))
	same(t, "the page, closed again", page(t, s, id, today), want)
	sameKinds(t, "closed again", s, id, today-1, today+2, want)
	for h := (today + 1).FirstHour(); h < ten+40; h++ { // the ring goes over what it had
		hour(h, h)
	}
	same(t, "everything", everything(t, s, id, today-1, today+2), want)

	s = open(t, svc, keep, today+2)
	ok(t, closeDays(t.Context(), s, today+1))
	same(t, "everything", everything(t, s, id, today-1, today+2), want)
	sameKinds(t, "everything", s, id, today-1, today+2, want)
	e := read(t, svc, "daybookmeta", table.Key{Partition: "meta", Row: "writer-a"})
	if len(e.Property("highest")) == 0 {
		t.Error("the store has forgotten that it was ahead")
	}
}

// TestNothingSealed seals what there is nothing to seal of.
func TestNothingSealed(t *testing.T) {
	svc := strict()
	open(t, svc, keep, today)
	id, _ := named("x")
	counted := new(table.Totals)
	s := open(t, table.Counted(svc, counted), keep, today)
	before := counted.Transactions.Load()
	ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: today - 1}))
	ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: keys.FirstDay}))
	if n := counted.Transactions.Load() - before; n != 0 {
		t.Errorf("%d transactions for nothing", n)
	}
}

// TestUnsealed remembers pages that got hours late until they are sealed, also when sealing fails at first.
func TestUnsealed(t *testing.T) {
	faulty := tabletest.Faulty(strict())
	s := open(t, faulty, keep, today)
	id, _ := named("x")
	late := ten - 48
	ok(t, put(s, ten.Start(), id, late, every(late, 10)))
	ok(t, put(s, ten.Start(), id, ten-12, every(ten-12, 10))) // of yesterday: into ring and page
	ok(t, put(s, ten.Start(), id, ten, every(ten, 10)))       // of today: no page yet
	if got := s.Unsealed(ten.Start(), 10); len(got) != 0 {
		t.Errorf("%v are left alone for long enough at once", got)
	}
	if got := s.Unsealed(ten.Start()+1, 1); len(got) != 1 {
		t.Errorf("%d pages, at most one was asked for", len(got))
	}
	got := s.Unsealed(ten.Start()+1, 10)
	if len(got) != 2 {
		t.Fatalf("the pages to seal are %v, want two", got)
	}
	faulty.Add(tabletest.Fault{Method: tabletest.Transact, Call: 1})
	if err := s.Seal(t.Context(), got[0]); !errors.Is(err, tabletest.ErrInjected) {
		t.Errorf("sealing gives %v", err)
	}
	if again := s.Unsealed(ten.Start()+1, 10); len(again) != 2 {
		t.Errorf("a page whose sealing failed is forgotten: %v", again)
	}
	for _, p := range got {
		ok(t, s.Seal(t.Context(), p))
	}
	if rest := s.Unsealed(ten.Start()+1, 10); len(rest) != 0 {
		t.Errorf("%v are sealed and still to seal", rest)
	}
	same(t, "the sealed page", page(t, s, id, late.Day()), every(late, 10))
}
