package store_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
)

// TestTwoWriters lets two processes write, close and seal the same series at the same time. Each has samples that the
// other has not, and some that both have; nothing gets lost, and both read everything.
func TestTwoWriters(t *testing.T) {
	svc := inMemory(t)
	a := open(t, svc, writer("a"), today)
	b := open(t, svc, writer("b"), today)
	const many = 8
	var ids [many]series.ID
	for i := range ids {
		ids[i], _ = named(string(rune('0' + i)))
	}
	last := ten + 60
	// all of an hour; writer a has all but each third sample, writer b all but each fourth.
	all := func(h series.Hour) []series.Sample { return every(h, 24) }
	part := func(h series.Hour, w int) (some []series.Sample) {
		for i, s := range all(h) {
			if i%(w+3) != 0 || i == 0 {
				some = append(some, s)
			}
		}
		return some
	}
	var both sync.WaitGroup
	errs := make(chan error, 2)
	for w, s := range []*store.Store{a, b} {
		both.Go(func() {
			errs <- process(t.Context(), s, ids[:], last, func(h series.Hour) []series.Sample { return part(h, w) })
		})
	}
	both.Wait()
	ok(t, <-errs)
	ok(t, <-errs)
	for _, id := range ids {
		var want []series.Sample
		for h := ten; h <= last; h++ {
			merged, _ := slot.Merge(nil, part(h, 0), part(h, 1))
			want = append(want, merged...)
		}
		for _, s := range []*store.Store{a, b, open(t, svc, writer("c"), today+3)} {
			same(t, "everything", everything(t, s, id, today, last.Day()), want)
		}
	}
}

// process is the life of one process: each hour twice, a late one now and then, days closed and sealed.
func process(ctx context.Context, s *store.Store, ids []series.ID, last series.Hour, part func(series.Hour) []series.Sample) error {
	for h := ten; h <= last; h++ {
		if h.OfDay() == 1 {
			if err := closeDays(ctx, s, h.Day()-1); err != nil {
				return err
			}
		}
		for _, id := range ids {
			whole := part(h)
			for _, samples := range [][]series.Sample{whole[:len(whole)/2], whole} {
				if err := put(s, h.Start(), id, h, samples); err != nil {
					return err
				}
			}
			old := h - 30
			if old < ten {
				continue
			}
			w := store.Write{ID: id, Slots: []store.HourSlot{encoded(old, part(old))}, Top: h}
			if err := s.WriteHours(ctx, s.Bucket(id), h.Start(), []store.Write{w}); err != nil {
				return err
			}
		}
		for _, p := range s.Unsealed(h.Start(), 5) {
			if err := s.Seal(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestNewcomerIsRead wants samples of a writer that started later in the answers of one that runs already, also where
// few hours are asked for.
func TestNewcomerIsRead(t *testing.T) {
	svc := strict()
	a := open(t, svc, writer("a"), today)
	b := open(t, svc, writer("b"), today)
	id, _ := named("x")
	ok(t, put(b, ten.Start(), id, ten, every(ten, 10)))
	same(t, "b's hour, read by a", ring(t, a, id, ten, ten), every(ten, 10))
}

// TestWriterThatIsGone changes the writer's id. What the old one had not closed is in the ring only, for ever, and
// readers are told to look there.
func TestWriterThatIsGone(t *testing.T) {
	svc := strict()
	id, _ := named("x")
	ok(t, put(open(t, svc, keep, today), ten.Start(), id, ten, every(ten, 10)))
	renamed := keep
	renamed.Writer = "b"
	s := open(t, svc, renamed, today+5)
	ok(t, closeDays(t.Context(), s, today+6))
	ok(t, put(s, (ten+7*26).Start(), id, ten+7*26, every(ten+7*26, 10))) // the same slot
	if got := s.FirstOpen(); got != today {
		t.Errorf("the first open day is %d, want %d", got-today, 0)
	}
	same(t, "the old writer's hour", ring(t, s, id, s.FirstOpen().FirstHour(), ten+1), every(ten, 10))
}

// TestTwoWritersFit lets two writers fill a ring and a page with the largest slots that are not spilled, the first of
// them when it was still alone.
func TestTwoWritersFit(t *testing.T) {
	svc := inMemory(t)
	id, _ := named("dense")
	alone := open(t, svc, keep, today)
	fill := func(s *store.Store, n int) {
		t.Helper()
		for h := ten - 24; h <= ten+1; h++ {
			ok(t, put(s, ten.Start(), id, h, noise(h, n)))
		}
	}
	fill(alone, largest(t, 10<<10))
	b := open(t, svc, writer("b"), today)
	fill(b, largest(t, 5<<10))
	merged := noise(ten, largest(t, 10<<10))
	merged, _ = slot.Merge(nil, merged, noise(ten, largest(t, 5<<10)))
	same(t, "the hour", ring(t, b, id, ten, ten), merged)

	a := open(t, svc, writer("a"), today)
	for _, s := range []*store.Store{a, b} {
		fill(s, largest(t, 5<<10))
		ok(t, closeDays(t.Context(), s, today+1))
		for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ { // all of it once more, late
			ok(t, put(s, (ten+100).Start(), id, h, noise(h, largest(t, 5<<10))))
		}
	}
	for _, s := range []*store.Store{a, b} {
		ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: today}))
	}
	same(t, "the page", page(t, a, id, today)[:10], noise(today.FirstHour(), largest(t, 5<<10))[:10])
}

// largest is how many samples of noise an hour's slot of that many bytes has.
func largest(t *testing.T, bytes int) int {
	t.Helper()
	n := bytes / 12
	for len(encoded(ten, noise(ten, n+50)).Data) < bytes-400 && n < math.MaxInt16 {
		n += 50
	}
	return n
}
