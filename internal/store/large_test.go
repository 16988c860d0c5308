package store_test

import (
	"fmt"
	"testing"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// TestLargeHours writes hours that do not fit in a property, again and again with another size.
func TestLargeHours(t *testing.T) {
	t.Parallel()
	for _, regular := range []bool{true, false} {
		t.Run(fmt.Sprintf("regular=%v", regular), func(t *testing.T) {
			s := open(t, inMemory(t), keep, today)
			id, _ := named("dense")
			old := ten - 30 // goes to its page only
			for _, n := range []int{1, 36_000, 2_000, 100_000, 5_000, 0, 36_000} {
				for _, h := range []series.Hour{ten, old} {
					want := noise(h, max(n, 1))[:n]
					if regular {
						for i := range want {
							want[i].T = h.Start() + series.Millis(i)*36
						}
					}
					ok(t, put(s, ten.Start(), id, h, want))
					what := fmt.Sprintf("%d samples", n)
					if h == old {
						same(t, what, page(t, s, id, old.Day()), want)
						continue
					}
					same(t, what, ring(t, s, id, h, h), want)
					same(t, what, ring(t, s, id, h-24, h+1), want)
				}
			}
		})
	}
}

// TestLargeRing fills the ring with 26 hours of 10 Hz.
func TestLargeRing(t *testing.T) {
	t.Parallel()
	s := open(t, inMemory(t), keep, today)
	id, _ := named("dense")
	var want []series.Sample
	for h := ten - 24; h <= ten+1; h++ {
		samples := noise(h, 36_000)
		ok(t, put(s, ten.Start(), id, h, samples))
		want = append(want, samples...)
	}
	same(t, "26 hours", ring(t, s, id, ten-24, ten+1), want)
	own, err := s.OwnRing(t.Context(), id)
	ok(t, err)
	if len(own) != keys.RingSlots {
		t.Errorf("%d of the ring's hours are there", len(own))
	}
}

// TestLargeDays closes days of all sizes: in one property, split over several, in a row of its own, over several rows,
// and left in hours. Late hours are sealed into them.
func TestLargeDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		perHour        int
		properties     int // of the page
		rows           int // with pieces of its slot
		sealed, pieces int // the same when late hours were folded in
	}{
		{"whole", 60, 1, 0, 1, 0},
		{"split", 600, 3, 0, 3, 0},
		{"a row", 3_600, 1, 1, 1, 1},
		{"rows", 5_000, 1, 2, 1, 2},
		{"hours", 14_500, 24, 24, 24, 24}, // over 3 MB: it does not fit in a transaction
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := inMemory(t)
			s := open(t, svc, keep, today)
			id, _ := named("dense")
			var want []series.Sample
			for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ {
				samples := noise(h, c.perHour)
				if h == ten {
					samples = samples[:c.perHour/2]
				}
				ok(t, put(s, h.Start(), id, h, samples))
				want = append(want, samples...)
			}
			ok(t, closeDays(t.Context(), s, today))
			same(t, "the page", page(t, s, id, today), want)
			shape(t, svc, s, id, c.properties, c.rows)

			whole := noise(ten, c.perHour)
			ok(t, put(s, (ten+30).Start(), id, ten, whole))
			ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: today}))
			want = nil
			for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ {
				want = append(want, noise(h, c.perHour)...)
			}
			same(t, "the page with its late hour", page(t, s, id, today), want)
			shape(t, svc, s, id, c.sealed, c.pieces)
			ranged, err := theFloats(s.Pages(t.Context(), id, today-2, today, (today - 2).FirstHour(), ten+100))
			ok(t, err)
			same(t, "a range of pages", ranged, want)
		})
	}
}

// shape checks of how many properties and further rows today's page consists.
func shape(t *testing.T, svc table.Service, s *store.Store, id series.ID, properties, pieces int) {
	t.Helper()
	row := key(s, id, keys.PageRow(id, today))
	n := 0
	for _, e := range rows(t, svc, "daybookraw202611", row.Partition) {
		if e.Key != row {
			n++
		}
	}
	if e := read(t, svc, "daybookraw202611", row); len(e.Properties) != properties || n != pieces {
		t.Errorf("the page has %d properties and %d further rows, want %d and %d", len(e.Properties), n, properties, pieces)
	}
}

// TestLargeDayKeepsLateHours closes a day that stays in hours when its page has a late hour with more in it than the
// ring: a series that was dense, a standstill, and the rest of an hour that came a day later.
func TestLargeDayKeepsLateHours(t *testing.T) {
	t.Parallel()
	s := open(t, inMemory(t), keep, today)
	id, _ := named("dense")
	var want []series.Sample
	for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ {
		samples := noise(h, 14_500)
		want = append(want, samples...)
		if h == ten {
			samples = samples[:7_250]
		}
		ok(t, put(s, h.Start(), id, h, samples))
	}
	ok(t, put(s, (ten+25).Start(), id, ten, noise(ten, 14_500)))
	ok(t, closeDays(t.Context(), s, today))
	same(t, "the page", page(t, s, id, today), want)
}

// TestDamaged takes away and alters what large slots consist of: that is an error, not wrong data.
func TestDamaged(t *testing.T) {
	svc := inMemory(t)
	s := open(t, svc, keep, today)
	spilled, _ := named("spilled")
	split, _ := named("split")
	ok(t, put(s, ten.Start(), spilled, ten, noise(ten, 9_000)))
	for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ {
		ok(t, put(s, h.Start(), split, h, noise(h, 600)))
	}
	ok(t, closeDays(t.Context(), s, today))

	ringKey := key(s, spilled, keys.SeriesRow(spilled))
	piece := ringKey
	piece.Row = string(keys.SpillRow(keys.Row(ringKey.Row), keys.RingProperty(slot.Floats, ten, "a"), 0))
	inRing := func() error { _, err := theFloats(s.Ring(t.Context(), spilled, ten, ten)); return err }
	damage(t, svc, "daybookring", piece, inRing)
	damage(t, svc, "daybookring", ringKey, inRing)
	damage(t, svc, "daybookraw202611", key(s, split, keys.PageRow(split, today)), func() error {
		_, err := theFloats(s.Pages(t.Context(), split, today, today, today.FirstHour(), ten))
		return err
	})
}

// damage alters each property of an entity, takes each away, and at last the entity itself; read must fail.
func damage(t *testing.T, svc table.Service, name string, key table.Key, do func() error) {
	t.Helper()
	whole := read(t, svc, name, key)
	fails := func(what string) {
		t.Helper()
		if do() == nil {
			t.Errorf("row %s without an error, %s", key.Row, what)
		}
		write(t, svc, name, key, table.InsertOrReplace, whole.Properties...)
		ok(t, do())
	}
	for i, p := range whole.Properties {
		if len(whole.Properties) > 1 && i > 0 {
			rest := append(append([]table.Property(nil), whole.Properties[:i]...), whole.Properties[i+1:]...)
			write(t, svc, name, key, table.InsertOrReplace, rest...)
			is(t, do(), store.ErrDamaged)
			fails("property " + p.Name + " is gone")
			write(t, svc, name, key, table.InsertOrMerge, table.Property{Name: p.Name, Value: p.Value[:len(p.Value)/2]})
			fails("property " + p.Name + " is cut short")
		}
		for _, at := range []int{0, 1, 2, len(p.Value) / 2, len(p.Value) - 1} {
			bad := append([]byte(nil), p.Value...)
			bad[at] ^= 0x10
			write(t, svc, name, key, table.InsertOrMerge, table.Property{Name: p.Name, Value: bad})
			fails(fmt.Sprintf("property %s altered at %d", p.Name, at))
		}
	}
	if len(key.Row) > 39 { // a row of pieces
		write(t, svc, name, key, table.Delete)
		is(t, do(), store.ErrDamaged)
		fails("it is gone")
	}
}

// TestReadWhileRewritten reads a large slot that is written anew between the reads of its parts.
func TestReadWhileRewritten(t *testing.T) {
	svc := inMemory(t)
	s := open(t, svc, keep, today)
	id, _ := named("dense")
	ok(t, put(s, ten.Start(), id, ten, noise(ten, 36_000)[:20_000]))

	on, released := make(chan struct{}), make(chan struct{})
	slow := tabletest.Faulty(svc, tabletest.Fault{
		Method: tabletest.Get, Table: "daybookring", Call: 2, Effect: tabletest.Pass,
		Struck: func() { close(on) }, Wait: released,
	})
	reader := open(t, slow, keep, today)
	done := make(chan error, 1)
	var got []series.Sample
	go func() {
		var err error
		got, err = theFloats(reader.Ring(t.Context(), id, ten, ten))
		done <- err
	}()
	<-on
	ok(t, put(s, ten.Start(), id, ten, noise(ten, 36_000)))
	close(released)
	ok(t, <-done)
	same(t, "the hour", got, noise(ten, 36_000))
}
