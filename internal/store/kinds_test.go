package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// histogramsOf gives native histograms at some of the times of samples: more samples have more of them. They are of both
// kinds, in changing layouts, and take some 60 bytes.
func histogramsOf(samples []series.Sample) (all []series.Histogram) {
	for _, s := range samples {
		if s.T%25 != 0 {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(s.T), math.Float64bits(s.V)))
		h := &histogram.Histogram{
			Schema: int32(s.T % 3), ZeroThreshold: 0.001, Count: 3, Sum: s.V,
			PositiveSpans: []histogram.Span{{Offset: int32(s.T % 7), Length: 8}}, PositiveBuckets: make([]int64, 8),
		}
		for i := range h.PositiveBuckets {
			h.PositiveBuckets[i] = int64(r.Uint32())
		}
		one := series.Histogram{T: s.T, Int: h}
		if s.T%2 == 0 {
			one = series.Histogram{T: s.T, Float: h.ToFloat(nil)}
		}
		all = append(all, one)
	}
	return all
}

// exemplarsOf gives exemplars at the times of histogramsOf, two of a time now and then.
func exemplarsOf(samples []series.Sample) (all []series.Exemplar) {
	for _, s := range samples {
		if s.T%25 != 0 {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(s.T), 3))
		for range 1 + s.T/25%2 {
			all = append(all, series.Exemplar{T: s.T, V: s.V, Labels: labels.FromStrings("trace_id", fmt.Sprintf("%016x", r.Uint64()))})
		}
	}
	return slot.MergeExemplars(nil, all)
}

// kindsOf encodes an hour: samples, and the histograms and exemplars that go with them.
func kindsOf(h series.Hour, samples []series.Sample) []store.HourSlot {
	return []store.HourSlot{
		encoded(h, samples),
		{Hour: h, Kind: slot.Histograms, Data: slot.EncodeHistograms(nil, h, histogramsOf(samples))},
		{Hour: h, Kind: slot.Exemplars, Data: slot.EncodeExemplars(nil, h, exemplarsOf(samples))},
	}
}

// putKinds writes an hour of a series with slots of all kinds, or some.
func putKinds(t testing.TB, s *store.Store, now series.Hour, id series.ID, slots ...store.HourSlot) {
	t.Helper()
	top := now
	for _, one := range slots {
		top = max(top, one.Hour)
	}
	ok(t, s.WriteHours(t.Context(), s.Bucket(id), now.Start(), []store.Write{{ID: id, Slots: slots, Top: top}}))
}

// everyHistogram merges what ring and pages hold of the days first..last.
func everyHistogram(t testing.TB, s *store.Store, id series.ID, first, last series.Day) (all []series.Histogram) {
	t.Helper()
	for d := first; d <= last; d++ {
		page, err := theHistograms(s.Pages(t.Context(), id, d, d, d.FirstHour(), d.FirstHour()+23))
		ok(t, err)
		all, _ = slot.MergeHistograms(all, page)
	}
	ring, err := theHistograms(s.Ring(t.Context(), id, first.FirstHour(), last.FirstHour()+23))
	ok(t, err)
	all, _ = slot.MergeHistograms(all, ring)
	return all
}

func everyExemplar(t testing.TB, s *store.Store, id series.ID, first, last series.Day) (all []series.Exemplar) {
	t.Helper()
	for d := first; d <= last; d++ {
		page, err := theExemplars(s.Pages(t.Context(), id, d, d, d.FirstHour(), d.FirstHour()+23))
		ok(t, err)
		all = slot.MergeExemplars(all, page)
	}
	ring, err := theExemplars(s.Ring(t.Context(), id, first.FirstHour(), last.FirstHour()+23))
	ok(t, err)
	return slot.MergeExemplars(all, ring)
}

func containsHistograms(t testing.TB, what string, got, want []series.Histogram) {
	t.Helper()
	byTime := map[series.Millis]series.Histogram{}
	for _, h := range got {
		byTime[h.T] = h
	}
	for _, w := range want {
		if have, found := byTime[w.T]; !found || !slot.SameHistogram(have, w) {
			t.Fatalf("%s: the histogram at %d of %d is missing among %d, or another", what, w.T, len(want), len(got))
		}
	}
}

func containsExemplars(t testing.TB, what string, got, want []series.Exemplar) {
	t.Helper()
	found := map[series.Exemplar]bool{}
	for _, x := range got {
		found[x] = true
	}
	for _, w := range want {
		if !found[w] {
			t.Fatalf("%s: %v of %d exemplars is missing among %d", what, w, len(want), len(got))
		}
	}
}

// written is what was written of an hour, in all kinds.
type written struct {
	samples    []series.Sample
	histograms []series.Histogram
	exemplars  []series.Exemplar
}

func allOf(samples []series.Sample) written {
	return written{samples, histogramsOf(samples), exemplarsOf(samples)}
}

// pageOf reads all that a page holds.
func pageOf(t testing.TB, s *store.Store, id series.ID, day series.Day) written {
	t.Helper()
	r, err := s.Pages(t.Context(), id, day, day, day.FirstHour(), day.FirstHour()+23)
	ok(t, err)
	return written{r.Floats, r.Histograms, r.Exemplars}
}

// sameKinds wants the histograms and exemplars that go with samples, and no others.
func sameKinds(t testing.TB, what string, s *store.Store, id series.ID, first, last series.Day, want []series.Sample) {
	t.Helper()
	h, x := everyHistogram(t, s, id, first, last), everyExemplar(t, s, id, first, last)
	containsHistograms(t, what, h, histogramsOf(want))
	containsExemplars(t, what, x, exemplarsOf(want))
	if len(h) != len(histogramsOf(want)) || len(x) != len(exemplarsOf(want)) {
		t.Fatalf("%s: %d histograms and %d exemplars, want %d and %d", what, len(h), len(x), len(histogramsOf(want)), len(exemplarsOf(want)))
	}
}

// TestKinds takes a series with all kinds, and one for each with that alone, through flush, closing, late hours, sealing
// and a restart. Each reader gets its kind.
func TestKinds(t *testing.T) {
	for _, kinds := range [][]slot.Kind{
		{slot.Floats, slot.Histograms, slot.Exemplars}, {slot.Histograms}, {slot.Exemplars}, {slot.Histograms, slot.Exemplars},
	} {
		for _, n := range []int{20, 2_500} {
			t.Run(fmt.Sprintf("%v %d", kinds, n), func(t *testing.T) { lifeOfKinds(t, kinds, n) })
		}
	}
}

func lifeOfKinds(t *testing.T, kinds []slot.Kind, n int) {
	svc := inMemory(t)
	s := open(t, svc, keep, today)
	id, _ := named("x")
	var want []series.Sample
	hour := func(now, h series.Hour, samples []series.Sample) {
		t.Helper()
		slots := slices.DeleteFunc(kindsOf(h, samples), func(one store.HourSlot) bool { return !slices.Contains(kinds, one.Kind) })
		putKinds(t, s, now, id, slots...)
		want, _ = slot.Merge(nil, want, samples)
	}
	check := func(what string) {
		t.Helper()
		samples, histograms, exemplars := want, histogramsOf(want), exemplarsOf(want)
		if !slices.Contains(kinds, slot.Floats) {
			samples = nil
		}
		if !slices.Contains(kinds, slot.Histograms) {
			histograms = nil
		}
		if !slices.Contains(kinds, slot.Exemplars) {
			exemplars = nil
		}
		same(t, what, everything(t, s, id, today-1, today+1), samples)
		h, x := everyHistogram(t, s, id, today-1, today+1), everyExemplar(t, s, id, today-1, today+1)
		containsHistograms(t, what, h, histograms)
		containsExemplars(t, what, x, exemplars)
		if len(h) != len(histograms) || len(x) != len(exemplars) {
			t.Fatalf("%s: %d histograms and %d exemplars, want %d and %d", what, len(h), len(x), len(histograms), len(exemplars))
		}
	}
	for h := ten; h < ten+8; h++ {
		hour(h, h, noise(h, n))
	}
	check("in the ring")
	own, err := s.OwnRing(t.Context(), id)
	ok(t, err)
	if len(own) != 8*len(kinds) {
		t.Errorf("of its own it has %d slots in the ring, want %d", len(own), 8*len(kinds))
	}
	ok(t, closeDays(t.Context(), s, today))
	check("closed")
	hour(ten+27, ten+27, noise(ten+27, n)) // over ten+1 in the ring
	check("the ring goes over it")
	hour(ten+28, ten-1, noise(ten-1, n)) // late, into the page
	for _, kind := range kinds {
		data, err := s.OwnPageHour(t.Context(), id, ten-1, kind)
		ok(t, err)
		if info, err := slot.Inspect(data); err != nil || info.Kind != kind {
			t.Errorf("the page's hour is of %v, want %v (error %v)", info.Kind, kind, err)
		}
	}
	check("with a late hour")
	ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: today}))
	check("sealed")
	page := read(t, svc, "daybookraw202611", key(s, id, keys.PageRow(id, today)))
	for _, p := range page.Properties {
		if property, _ := keys.ParseProperty(p.Name); !property.Day {
			t.Errorf("the sealed page has the property %q", p.Name)
		}
	}
	s = open(t, svc, keep, today+1)
	check("opened again")
	ranged, err := theHistograms(s.Pages(t.Context(), id, today-2, today, (today - 2).FirstHour(), ten+13))
	ok(t, err)
	single, err := theHistograms(s.Pages(t.Context(), id, today, today, today.FirstHour(), ten+13))
	ok(t, err)
	if len(ranged) != len(single) {
		t.Errorf("a range of pages has %d histograms, the page %d", len(ranged), len(single))
	}
	rangedExemplars, err := theExemplars(s.Pages(t.Context(), id, today-2, today, (today - 2).FirstHour(), ten+13))
	ok(t, err)
	singleExemplars, err := theExemplars(s.Pages(t.Context(), id, today, today, today.FirstHour(), ten+13))
	ok(t, err)
	containsExemplars(t, "a range of pages", rangedExemplars, singleExemplars)
}

// TestKindsAreProjected reads an hour of one kind of a ring that has all: no other property travels.
func TestKindsAreProjected(t *testing.T) {
	svc := inMemory(t)
	open(t, svc, keep, today)
	counted := new(table.Totals)
	s := open(t, table.Counted(svc, counted), keep, today)
	id, _ := named("x")
	putKinds(t, s, ten, id, kindsOf(ten, every(ten, 100))...)
	got, err := theHistograms(s.Ring(t.Context(), id, ten, ten))
	ok(t, err)
	containsHistograms(t, "the ring", got, histogramsOf(every(ten, 100)))
	own, err := s.OwnRing(t.Context(), id)
	ok(t, err)
	if len(own) != 3 || own[0].Kind == own[1].Kind || own[1].Kind == own[2].Kind {
		t.Errorf("the ring's own slots are %v", own)
	}
}

// TestWrongKind puts a slot where one of another kind belongs.
func TestWrongKind(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	id, _ := named("x")
	slots := kindsOf(ten, every(ten, 10))
	putKinds(t, s, ten, id, slots...)
	write(t, svc, "daybookring", key(s, id, keys.SeriesRow(id)), table.InsertOrMerge,
		table.Property{Name: keys.RingProperty(slot.Histograms, ten, "a"), Value: slots[0].Data})
	_, err := theHistograms(s.Ring(t.Context(), id, ten, ten))
	is(t, err, slot.ErrKind)
	if text := err.Error(); !strings.Contains(text, `"n10_a"`) {
		t.Errorf("the message does not name the property: %s", text)
	}
}

// TestDescribeKinds wants the ends of each slot in what Describe gives.
func TestDescribeKinds(t *testing.T) {
	s := open(t, strict(), keep, today)
	id, _ := named("x")
	samples := every(ten, 10)
	putKinds(t, s, ten, id, kindsOf(ten, samples)...)
	d, err := s.Describe(t.Context(), id)
	ok(t, err)
	if len(d) != 1 || len(d[0].Slots) != 3 {
		t.Fatalf("described as %+v", d)
	}
	for _, one := range d[0].Slots {
		switch one.Info.Kind {
		case slot.Floats:
			same(t, one.Property, []series.Sample{one.First.Sample, one.Last.Sample}, []series.Sample{samples[0], samples[9]})
		case slot.Histograms:
			want := histogramsOf(samples)
			if !slot.SameHistogram(one.First.Histogram, want[0]) || !slot.SameHistogram(one.Last.Histogram, want[len(want)-1]) {
				t.Errorf("%s: from %v to %v", one.Property, one.First.Histogram, one.Last.Histogram)
			}
		case slot.Exemplars:
			want := exemplarsOf(samples)
			containsExemplars(t, one.Property, []series.Exemplar{want[0], want[len(want)-1]}, []series.Exemplar{one.First.Exemplar, one.Last.Exemplar})
		}
	}
}

// fill gives slots of all kinds of an hour that are nearly as long as asked for, and cannot be compressed.
func fill(t *testing.T, h series.Hour, sizes [3]int) []store.HourSlot {
	t.Helper()
	n := 500 * sizes[slot.Floats] * 97 / 100 / len(encoded(h, noise(h, 500)).Data)
	r := rand.New(rand.NewPCG(uint64(h), 1))
	custom := make([]float64, (sizes[slot.Histograms]-80)/8)
	for i := range custom {
		custom[i] = math.Float64frombits(r.Uint64())
	}
	text := make([]byte, sizes[slot.Exemplars]-60)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	slots := []store.HourSlot{
		encoded(h, noise(h, n)),
		{Hour: h, Kind: slot.Histograms, Data: slot.EncodeHistograms(nil, h, []series.Histogram{
			{T: h.Start(), Int: &histogram.Histogram{CustomValues: custom}},
		})},
		{Hour: h, Kind: slot.Exemplars, Data: slot.EncodeExemplars(nil, h, []series.Exemplar{
			{T: h.Start(), Labels: labels.FromStrings("a", string(text))},
		})},
	}
	for kind, one := range slots {
		if len(one.Data) > sizes[kind] || len(one.Data) < sizes[kind]*9/10 {
			t.Fatalf("%v: %d bytes where %d were asked for", one.Kind, len(one.Data), sizes[kind])
		}
	}
	return slots
}

// TestFullEntities fills a ring and a page with the longest slots of all kinds that are not spilled: first a writer that
// is alone, then another beside it. Both entities stay within the limits of the service, which the table enforces.
func TestFullEntities(t *testing.T) {
	t.Parallel()
	svc := inMemory(t)
	id, _ := named("full")
	for i, cfg := range []store.Config{keep, writer("b")} {
		s := open(t, svc, cfg, today)
		share := i + 1
		sized := func(floats, histograms, exemplars int) [3]int {
			return [3]int{floats / share, histograms / share, exemplars / share}
		}
		day := sized(160<<10/24-20, 192<<10/24-100, 80<<10/24-100)
		for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ {
			putKinds(t, s, h, id, fill(t, h, day)...)
		}
		ok(t, closeDays(t.Context(), s, today))
		late := sized(4<<10, 4<<10, 2<<10)
		for h := today.FirstHour(); h < (today + 1).FirstHour(); h++ {
			putKinds(t, s, h+100, id, fill(t, h, late)...)
		}
		ok(t, closeDays(t.Context(), s, today+3))
		whole := sized(10<<10, 12<<10, 4<<10)
		first := (today + 4).FirstHour()
		for h := first; h < first+keys.RingSlots; h++ {
			putKinds(t, s, h, id, fill(t, h, whole)...)
		}
	}
	s := open(t, svc, writer("b"), today)
	for _, c := range []struct {
		table      string
		row        keys.Row
		properties int
	}{
		{"daybookring", keys.SeriesRow(id), 26 * 3 * 2},
		{"daybookraw202611", keys.PageRow(id, today), 24*3*2 + 10},
	} {
		k := key(s, id, c.row)
		e := read(t, svc, c.table, k)
		size := table.EntitySize(k, e.Properties)
		if size < table.MaxEntity*9/10 || size > table.MaxEntity || len(e.Properties) < c.properties {
			t.Errorf("%s has %d properties and %d bytes, want %d and nearly 1 MiB", c.table, len(e.Properties), size, c.properties)
		}
		for _, p := range e.Properties {
			if len(p.Value) > 0 && p.Value[0] == 0xf2 {
				t.Errorf("%s: %q is spilled", c.table, p.Name)
			}
		}
	}
}

// TestDayTooLargeForOneKind closes and seals a day of which the histograms do not fit in one slot: they stay in hours,
// and the other kinds are folded.
func TestDayTooLargeForOneKind(t *testing.T) {
	t.Parallel()
	svc := inMemory(t)
	s := open(t, svc, keep, today)
	id, _ := named("large")
	hours := today.FirstHour()
	var want []series.Sample
	for h := hours; h < hours+24; h++ {
		slots := fill(t, h, [3]int{2 << 10, 140 << 10, 1 << 10})
		putKinds(t, s, h, id, slots...)
		samples, err := slot.Decode(nil, slots[0].Data)
		ok(t, err)
		want = append(want, samples...)
	}
	for _, step := range []string{"closed", "sealed"} {
		if step == "closed" {
			ok(t, closeDays(t.Context(), s, today))
		} else {
			late := fill(t, hours+5, [3]int{2 << 10, 140 << 10, 1 << 10})
			putKinds(t, s, ten+30, id, late...)
			ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: today}))
		}
		same(t, step, page(t, s, id, today), want)
		got, err := theHistograms(s.Pages(t.Context(), id, today, today, hours, hours+23))
		ok(t, err)
		if len(got) != 24 {
			t.Errorf("%s: %d histograms, want 24", step, len(got))
		}
		e := read(t, svc, "daybookraw202611", key(s, id, keys.PageRow(id, today)))
		kinds := map[string]int{}
		for _, p := range e.Properties {
			if len(p.Value) > 0 {
				kinds[p.Name[:1]]++
			}
		}
		if kinds["n"] != 24 || kinds["h"] != 0 || kinds["x"] != 0 || kinds["d"] != 2 {
			t.Errorf("%s: the page has the properties %v", step, kinds)
		}
	}
}

// TestTwoWritersOfKinds lets two writers have parts of the same histograms and exemplars: readers merge them.
func TestTwoWritersOfKinds(t *testing.T) {
	svc := strict()
	id, _ := named("x")
	all := every(ten, 40)
	for i, name := range []string{"a", "b"} {
		s := open(t, svc, writer(name), today)
		putKinds(t, s, ten, id, kindsOf(ten, all[10*i:10*i+30])...)
	}
	s := open(t, svc, writer("b"), today)
	sameKinds(t, "both", s, id, today, today, all)
	ok(t, closeDays(t.Context(), s, today))
	sameKinds(t, "one of them has closed", s, id, today, today, all)
}

// TestSealKindsBreaks breaks sealing of a page whose kinds take a transaction each: what is sealed already and what is
// not are both read, and sealing again goes on.
func TestSealKindsBreaks(t *testing.T) {
	for call := 1; call <= 3; call++ {
		svc := inMemory(t)
		open(t, svc, writer("z"), today) // so that pages are merged, not replaced
		faulty := tabletest.Faulty(svc)
		s := open(t, faulty, writer("a"), today)
		id, _ := named("x")
		old := ten - 48
		want := noise(old, 2_500)
		putKinds(t, s, ten, id, kindsOf(old, want)...)
		faulty.Add(tabletest.Fault{Method: tabletest.Transact, Call: call, Effect: tabletest.FailBefore})
		is(t, s.Seal(t.Context(), store.Page{ID: id, Day: old.Day()}), tabletest.ErrInjected)
		sameKinds(t, fmt.Sprint("broken at ", call), s, id, old.Day(), old.Day(), want)
		ok(t, s.Seal(t.Context(), store.Page{ID: id, Day: old.Day()}))
		sameKinds(t, fmt.Sprint("sealed after ", call), s, id, old.Day(), old.Day(), want)
		same(t, "the floats", page(t, s, id, old.Day()), want)
	}
}

func theFloats(r store.Run, err error) ([]series.Sample, error)        { return r.Floats, err }
func theHistograms(r store.Run, err error) ([]series.Histogram, error) { return r.Histograms, err }
func theExemplars(r store.Run, err error) ([]series.Exemplar, error)   { return r.Exemplars, err }
