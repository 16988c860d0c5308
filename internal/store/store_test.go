package store_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/embedded"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// today is 2026-11-30, the last day of a month; the tests begin at its hour 10.
const (
	today = series.Day(20787)
	ten   = series.Hour(today)*series.HoursPerDay + 10
)

// keep is the configuration that most tests use.
var keep = store.Config{Tables: "daybook", Buckets: 16, Writer: "a", Alone: true}

func writer(name string) store.Config {
	cfg := keep
	cfg.Writer, cfg.Alone = name, false
	return cfg
}

// inMemory is the embedded table without a disk.
func inMemory(t testing.TB) table.Service {
	t.Helper()
	svc, err := embedded.Open(embedded.Config{Dir: "table", FS: vfs.NewMem(), CacheBytes: 8 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, svc.Close()) })
	return svc
}

// strict is a service whose queries come in pages of few rows, with empty ones in between.
func strict() *tabletest.Model {
	m := tabletest.NewModel()
	m.PageRows, m.EmptyPages = 2, true
	return m
}

func open(t testing.TB, svc table.Service, cfg store.Config, day series.Day) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), svc, cfg, day)
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

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
}

// named is a series with one label besides its name.
func named(value string) (series.ID, labels.Labels) {
	ls := labels.FromStrings(model.MetricNameLabel, "m", "i", value)
	return keys.SeriesID("", ls), ls
}

// every gives n samples of an hour, evenly apart, whose values are the times in seconds.
func every(h series.Hour, n int) (samples []series.Sample) {
	for i := range n {
		t := h.Start() + series.Millis(i)*series.MillisPerHour/series.Millis(n)
		samples = append(samples, series.Sample{T: t, V: float64(t) / 1000})
	}
	return samples
}

// noise gives n samples of an hour at irregular times with values that cannot be compressed.
func noise(h series.Hour, n int) (samples []series.Sample) {
	r := rand.New(rand.NewPCG(uint64(h), uint64(n)))
	apart := int(series.MillisPerHour) / n
	for i := range n {
		t := h.Start() + series.Millis(i*apart+r.IntN(apart))
		samples = append(samples, series.Sample{T: t, V: r.NormFloat64()})
	}
	return samples
}

func encoded(h series.Hour, samples []series.Sample) store.HourSlot {
	return store.HourSlot{Hour: h, Data: slot.Encode(nil, h, samples)}
}

// put writes one hour of a series at a time, as the newest that it has.
func put(s *store.Store, now series.Millis, id series.ID, h series.Hour, samples []series.Sample) error {
	return s.WriteHours(context.Background(), s.Bucket(id), now, []store.Write{{ID: id, Slots: []store.HourSlot{encoded(h, samples)}, Top: h}})
}

// closeDays does what package rollup does, at once.
func closeDays(ctx context.Context, s *store.Store, through series.Day) error {
	s.Closing(through)
	for b := range s.Buckets() {
		if _, err := s.CloseBucket(ctx, b, through); err != nil {
			return err
		}
	}
	return s.SetClosed(ctx, through)
}

func ring(t testing.TB, s *store.Store, id series.ID, from, to series.Hour) []series.Sample {
	t.Helper()
	samples, err := theFloats(s.Ring(t.Context(), id, from, to))
	ok(t, err)
	return samples
}

func page(t testing.TB, s *store.Store, id series.ID, day series.Day) []series.Sample {
	t.Helper()
	samples, err := theFloats(s.Pages(t.Context(), id, day, day, day.FirstHour(), day.FirstHour()+23))
	ok(t, err)
	return samples
}

// everything merges what ring and pages hold of the days first..last.
func everything(t testing.TB, s *store.Store, id series.ID, first, last series.Day) (all []series.Sample) {
	t.Helper()
	for d := first; d <= last; d++ {
		all, _ = slot.Merge(nil, all, page(t, s, id, d))
	}
	all, _ = slot.Merge(nil, all, ring(t, s, id, first.FirstHour(), last.FirstHour()+23))
	return all
}

func join(parts ...[]series.Sample) []series.Sample { return slices.Concat(parts...) }

// same compares bit for bit.
func same(t testing.TB, what string, got, want []series.Sample) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d samples, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i].T != want[i].T || math.Float64bits(got[i].V) != math.Float64bits(want[i].V) {
			t.Fatalf("%s: sample %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
		}
	}
}

// contains wants every sample of want in got.
func contains(t testing.TB, what string, got, want []series.Sample) {
	t.Helper()
	for _, w := range want {
		i, found := slices.BinarySearchFunc(got, w.T, func(s series.Sample, at series.Millis) int { return cmp.Compare(s.T, at) })
		if !found || math.Float64bits(got[i].V) != math.Float64bits(w.V) {
			t.Fatalf("%s: %v of %d samples is missing among %d", what, w, len(want), len(got))
		}
	}
}

// write changes a table behind the store's back.
func write(t testing.TB, svc table.Service, name string, key table.Key, kind table.Kind, properties ...table.Property) {
	t.Helper()
	ok(t, svc.Transact(t.Context(), name, key.Partition, []table.Operation{{Kind: kind, Row: key.Row, Properties: properties}}))
}

// read gives an entity that must be there.
func read(t testing.TB, svc table.Service, name string, key table.Key) table.Entity {
	t.Helper()
	e, err := svc.Get(t.Context(), name, key, nil)
	ok(t, err)
	return e
}

// rows lists all rows of a partition.
func rows(t testing.TB, svc table.Service, name, partition string) (all []table.Entity) {
	t.Helper()
	q := table.Query{Partition: partition}
	for {
		p, err := svc.Query(t.Context(), name, q)
		ok(t, err)
		all = append(all, p.Entities...)
		if q.Token = p.Next; q.Token == "" {
			return all
		}
	}
}

func key(s *store.Store, id series.ID, row keys.Row) table.Key {
	return table.Key{Partition: string(keys.Buckets(s.Buckets()).Partition(s.Bucket(id), s.Tenant())), Row: string(row)}
}

func TestOpenRefuses(t *testing.T) {
	svc := strict()
	open(t, svc, keep, today)
	other := keep
	other.Buckets = 256
	_, err := store.Open(t.Context(), svc, other, today)
	is(t, err, store.ErrBuckets)
	if text := err.Error(); !strings.Contains(text, "has 16 buckets") || !strings.Contains(text, "says 256") {
		t.Errorf("the message does not say both numbers: %s", text)
	}
	other.Buckets = 17
	_, err = store.Open(t.Context(), svc, other, today)
	is(t, err, keys.ErrBuckets)
	other = keep
	other.Writer = "Big"
	_, err = store.Open(t.Context(), svc, other, today)
	is(t, err, keys.ErrWriter)

	write(t, svc, "daybookmeta", table.Key{Partition: "meta", Row: "store"}, table.InsertOrMerge, table.Property{Name: "version", Value: []byte{4}})
	_, err = store.Open(t.Context(), svc, keep, today)
	is(t, err, store.ErrNewer)
	if text := err.Error(); !strings.Contains(text, "version 2") || !strings.Contains(text, "up to 1") {
		t.Errorf("the message does not say both versions: %s", text)
	}
}

// TestOpenFindsItself wants a writer's record found, however many writers there are and pages they come in: without
// it, days whose pages are not written would count as closed.
func TestOpenFindsItself(t *testing.T) {
	svc := strict()
	for _, name := range []string{"a", "b", "c", "d", "z"} {
		open(t, svc, writer(name), today-3)
	}
	for _, name := range []string{"a", "d", "z"} {
		if got := open(t, svc, writer(name), today).Closed(); got != today-4 {
			t.Errorf("writer %s has closed up to day %d, want %d", name, got, today-4)
		}
	}
	alone := keep
	alone.Writer = "new"
	if got := open(t, svc, alone, today); got.Closed() != today-1 || got.FirstOpen() != today-3 {
		t.Errorf("a new writer has closed up to %d and the first open day is %d, want %d and %d", got.Closed(), got.FirstOpen(), today-1, today-3)
	}
}

// TestOldHourStaysAway writes for an hour and lets the series stop: 25 h and 26 h later the slot in the ring does not
// pass for a new hour's.
func TestOldHourStaysAway(t *testing.T) {
	s := open(t, strict(), keep, today)
	id, _ := named("stopped")
	want := every(ten, 240)
	ok(t, put(s, ten.Start(), id, ten, want))
	for h := ten + 1; h <= ten+3*keys.RingSlots; h++ {
		if got := ring(t, s, id, h, h); len(got) > 0 {
			t.Fatalf("%d hours later the ring gives %d samples for hour %d, the first %v", h-ten, len(got), h, got[0])
		}
		if got := ring(t, s, id, h-24, h); h > ten+24 && len(got) > 0 {
			t.Fatalf("%d hours later the ring gives %d samples for the last day", h-ten, len(got))
		}
	}
	same(t, "the hour itself", ring(t, s, id, ten, ten), want)
}

// TestRule1 wants no slot of the ring overwritten before the day that it holds is closed.
func TestRule1(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	id, _ := named("x")
	first, late := every(ten, 240), ten+keys.RingSlots
	ok(t, put(s, ten.Start(), id, ten, first))
	before := rows(t, svc, "daybookring", key(s, id, "").Partition)

	other, _ := named("y")
	for s.Bucket(other) != s.Bucket(id) {
		other[4] += 16
	}
	err := s.WriteHours(t.Context(), s.Bucket(id), late.Start(), []store.Write{
		{ID: other, Slots: []store.HourSlot{encoded(late-10, every(late-10, 5)), encoded(ten-100, every(ten-100, 5))}, Top: late},
		{ID: id, Slots: []store.HourSlot{encoded(late, every(late, 5))}, Top: late},
	})
	is(t, err, store.ErrDayOpen)
	if text := err.Error(); !strings.Contains(text, "2026-11-30") {
		t.Errorf("the message does not name the day: %s", text)
	}
	if after := rows(t, svc, "daybookring", key(s, id, "").Partition); len(after) != len(before) {
		t.Errorf("a refused write left %d rows in the ring's table, there were %d", len(after), len(before))
	}
	names, err := svc.Tables(t.Context())
	ok(t, err)
	if slices.ContainsFunc(names, keep.Tables.IsPages) {
		t.Errorf("a refused write made a page: %q", names)
	}

	ok(t, closeDays(t.Context(), s, today))
	ok(t, put(s, late.Start(), id, late, every(late, 5)))
	same(t, "the page", page(t, s, id, today), first)
	same(t, "the ring", ring(t, s, id, ten, late), every(late, 5))
}

// TestRule2 writes an hour at all ages, with its day open and closed: hours of closed days are in their pages, hours of
// the last 24 h in the ring.
func TestRule2(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today-2)
	now := ten + 14 // 00:00 of tomorrow
	for _, closed := range []series.Day{today - 3, today - 1, today} {
		ok(t, closeDays(t.Context(), s, closed))
		for age := series.Hour(-1); age <= 60; age++ {
			id, _ := named(string(rune('A'+closed-today)) + string(rune('A'+age)))
			h := now - age
			want := every(h, 7)
			err := s.WriteHours(t.Context(), s.Bucket(id), now.Start(), []store.Write{{ID: id, Slots: []store.HourSlot{encoded(h, want)}, Top: h}})
			if age <= 24 && (h-keys.RingSlots).Day() > closed {
				is(t, err, store.ErrDayOpen)
				continue
			}
			ok(t, err)
			inRing, inPage := len(ring(t, s, id, h, h)) > 0, len(page(t, s, id, h.Day())) > 0
			if wantRing := age <= 24; inRing != wantRing {
				t.Errorf("closed up to %d, %d hours old: in the ring: %v, want %v", closed-today, age, inRing, wantRing)
			}
			if wantPage := age > 24 || h.Day() <= closed; inPage != wantPage {
				t.Errorf("closed up to %d, %d hours old: in the page: %v, want %v", closed-today, age, inPage, wantPage)
			}
			same(t, "the hour", everything(t, s, id, h.Day(), h.Day()), want)
		}
	}
}
