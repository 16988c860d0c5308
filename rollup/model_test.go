package rollup

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

var modelSeeds = flag.Int("model.seeds", 12, "how many random histories the model test goes through, for each kind of world")

// TestModel goes through random histories: hours are written, the clock moves, days are closed, pages sealed, processes
// die in the middle of it and come back. After each step everything acknowledged is looked for in the raw tables, where
// the two rules of package store must hold, and asked for as a reader does.
func TestModel(t *testing.T) {
	for _, kind := range []struct {
		name    string
		writers []string
		alone   bool
		back    bool // the clock goes back, too, and far ahead
	}{
		{"alone", []string{"a"}, true, false},
		{"two writers", []string{"a", "b"}, false, false},
		{"a wild clock", []string{"a"}, true, true},
		{"two writers and a wild clock", []string{"a", "b"}, false, true},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for seed := range *modelSeeds {
				w := &world{TB: t, seed: seed, random: rand.New(rand.NewPCG(uint64(seed), 7)), alone: kind.alone, wild: kind.back}
				w.begin(kind.writers)
				for w.step = range 60 {
					w.one()
				}
			}
		})
	}
}

// world is the tables, the processes that write to them, and what must be in them.
type world struct {
	testing.TB
	seed, step int
	random     *rand.Rand
	alone      bool
	wild       bool

	now      time.Time
	svc      *tabletest.Model
	ids      []series.ID
	writers  []*process
	lastStep string
}

// process is one writer and what it has written: of each series and hour all samples, as package ingest has them.
type process struct {
	name   string
	faulty *tabletest.FaultyService
	store  *store.Store
	roller *Roller
	hours  []map[series.Hour]*written // of each series
}

// written is an hour of a series. What was tried and not acknowledged stays among the samples: it is tried again.
type written struct {
	samples []series.Sample
	acked   []series.Sample
}

func (w *world) begin(writers []string) {
	w.now = time.Date(2026, 11, 28, w.random.IntN(24), w.random.IntN(60), 0, 0, time.UTC)
	w.svc = tabletest.NewModel()
	w.svc.PageRows, w.svc.EmptyPages = 2, w.seed%2 == 0
	w.ids = some()[:3]
	w.ids[2][4] = w.ids[0][4] // two in one bucket
	w.ids[2][15]++
	for _, name := range writers {
		p := &process{name: name, hours: make([]map[series.Hour]*written, len(w.ids))}
		for i := range p.hours {
			p.hours[i] = map[series.Hour]*written{}
		}
		w.writers = append(w.writers, p)
		w.restart(p)
	}
}

func (w *world) fail(format string, args ...any) {
	w.Helper()
	w.Fatalf("seed %d, step %d (%s), %s: %s", w.seed, w.step, w.lastStep, w.now.Format(time.DateTime), fmt.Sprintf(format, args...))
}

func (w *world) restart(p *process) {
	p.faulty = tabletest.Faulty(w.svc)
	s, err := store.Open(w.Context(), p.faulty, store.Config{Tables: "daybook", Buckets: 16, Writer: p.name, Alone: w.alone}, w.today())
	if err != nil {
		w.fail("opening: %v", err)
	}
	cfg := config(func() time.Time { return w.now })
	cfg.CloseOver = 0
	p.store, p.roller = s, New(cfg, s)
}

func (w *world) hour() series.Hour { return series.MillisOf(w.now).Hour() }
func (w *world) today() series.Day { return series.MillisOf(w.now).Day() }

// one does one random step, sometimes with a process that dies of it, and checks everything.
func (w *world) one() {
	p := w.writers[w.random.IntN(len(w.writers))]
	dies := w.random.IntN(5) == 0
	if dies {
		p.faulty.Add(tabletest.Fault{
			Method: tabletest.Transact, Call: 1 + w.random.IntN(4), Effect: tabletest.Effect(w.random.IntN(2)),
		})
	}
	err := w.act(p)
	if err != nil && !errors.Is(err, tabletest.ErrInjected) {
		w.fail("%v", err)
	}
	if dies {
		w.restart(p)
	}
	w.check()
}

// act does something.
func (w *world) act(p *process) error {
	switch n := w.random.IntN(20); {
	case n < 10:
		w.lastStep = "write by " + p.name
		return w.write(p)
	case n < 14:
		return w.moveClock()
	case n < 17:
		w.lastStep = "roll by " + p.name
		return p.roller.once(w.Context())
	case n < 18:
		w.lastStep = "seal by " + p.name
		id, day := w.ids[w.random.IntN(len(w.ids))], w.today()-series.Day(w.random.IntN(4))
		if day > p.store.Closed() {
			return nil
		}
		return p.store.Seal(w.Context(), store.Page{ID: id, Day: day})
	default:
		w.lastStep = "restart of " + p.name
		w.restart(p)
		return nil
	}
}

func (w *world) moveClock() error {
	ahead := time.Duration(w.random.IntN(4*60)) * time.Minute
	switch n := w.random.IntN(12); {
	case n == 0:
		ahead = time.Duration(w.random.IntN(72)) * time.Hour
	case n == 1 && w.wild:
		ahead = -time.Duration(w.random.IntN(60)) * time.Hour
	case n == 2 && w.wild:
		ahead = 300 * 24 * time.Hour
	case n == 3 && w.wild:
		ahead = -300 * 24 * time.Hour
	}
	w.lastStep = fmt.Sprint("clock by ", ahead)
	w.now = w.now.Add(ahead)
	return nil
}

// write adds samples to some hours of a series and flushes them, as package ingest does: hours are written whole, and
// days closed first where the ring has no room.
func (w *world) write(p *process) error {
	n := w.random.IntN(len(w.ids))
	var hours []series.Hour
	for range 1 + w.random.IntN(3) {
		hours = append(hours, w.someHour())
	}
	slices.Sort(hours)
	one := store.Write{ID: w.ids[n]}
	for i, h := range hours {
		if i > 0 && (h-hours[i-1])%keys.RingSlots == 0 {
			continue // the same hour, or one of the same slot in the ring
		}
		have := p.hours[n][h]
		if have == nil {
			have = new(written)
			p.hours[n][h] = have
		}
		w.grow(have, h)
		one.Slots = append(one.Slots, slotsOf(h, have.samples)...)
	}
	for h := range p.hours[n] {
		one.Top = max(one.Top, h)
	}
	if err := w.flush(p, one); err != nil {
		return err
	}
	for _, s := range one.Slots { // of all kinds of an hour, the same
		p.hours[n][s.Hour].acked = slices.Clone(p.hours[n][s.Hour].samples)
	}
	return nil
}

// slotsOf gives an hour of a series, in all kinds: with the samples go histograms and exemplars. Those that the series
// does not have at these times are not written.
func slotsOf(h series.Hour, samples []series.Sample) (slots []store.HourSlot) {
	var histograms []series.Histogram
	var exemplars []series.Exemplar
	for _, s := range samples {
		if s.T%18_000 == 0 {
			histograms = append(histograms, histogramAt(s))
		}
		if s.T%12_000 == 0 {
			exemplars = append(exemplars, exemplarAt(s))
		}
	}
	slots = append(slots, store.HourSlot{Hour: h, Kind: slot.Floats, Data: slot.Encode(nil, h, samples)})
	if len(histograms) > 0 {
		slots = append(slots, store.HourSlot{Hour: h, Kind: slot.Histograms, Data: slot.EncodeHistograms(nil, h, histograms)})
	}
	if len(exemplars) > 0 {
		slots = append(slots, store.HourSlot{Hour: h, Kind: slot.Exemplars, Data: slot.EncodeExemplars(nil, h, exemplars)})
	}
	return slots
}

func histogramAt(s series.Sample) series.Histogram {
	return series.Histogram{T: s.T, Int: &histogram.Histogram{Schema: 1, Count: uint64(s.V), Sum: s.V}}
}

func exemplarAt(s series.Sample) series.Exemplar {
	return series.Exemplar{T: s.T, V: s.V, Labels: labels.FromStrings("trace_id", fmt.Sprint(s.T))}
}

// thing is a sample, a histogram or an exemplar, by the sample that it goes with.
type thing struct {
	kind slot.Kind
	series.Sample
}

// things are what slotsOf made of samples.
func things(samples []series.Sample) (all []thing) {
	for _, s := range samples {
		all = append(all, thing{slot.Floats, s})
		if s.T%18_000 == 0 {
			all = append(all, thing{slot.Histograms, s})
		}
		if s.T%12_000 == 0 {
			all = append(all, thing{slot.Exemplars, s})
		}
	}
	return all
}

// thingsIn decodes a slot. What is not as slotsOf made it is no thing.
func thingsIn(kind slot.Kind, data []byte) (all []thing, err error) {
	switch kind {
	case slot.Histograms:
		histograms, err := slot.DecodeHistograms(nil, data)
		return histogramThings(histograms), err
	case slot.Exemplars:
		exemplars, err := slot.DecodeExemplars(nil, data)
		return exemplarThings(exemplars), err
	}
	samples, err := slot.Decode(nil, data)
	return floatThings(samples), err
}

func floatThings(samples []series.Sample) (all []thing) {
	for _, s := range samples {
		all = append(all, thing{slot.Floats, s})
	}
	return all
}

func histogramThings(histograms []series.Histogram) (all []thing) {
	for _, h := range histograms {
		s := series.Sample{T: h.T, V: h.Int.Sum}
		if slot.SameHistogram(h, histogramAt(s)) {
			all = append(all, thing{slot.Histograms, s})
		}
	}
	return all
}

func exemplarThings(exemplars []series.Exemplar) (all []thing) {
	for _, x := range exemplars {
		s := series.Sample{T: x.T, V: x.V}
		if labels.Equal(x.Labels, exemplarAt(s).Labels) {
			all = append(all, thing{slot.Exemplars, s})
		}
	}
	return all
}

func (w *world) someHour() series.Hour {
	switch n := w.random.IntN(10); {
	case n < 5:
		return w.hour()
	case n == 5:
		return w.hour() + 1
	case n < 8:
		return w.hour() - series.Hour(w.random.IntN(26))
	}
	return w.hour() - series.Hour(w.random.IntN(100))
}

// grow adds a few samples; a time's value is the same for all writers.
func (w *world) grow(have *written, h series.Hour) {
	for range 1 + w.random.IntN(3) {
		t := h.Start() + series.Millis(w.random.IntN(600))*6000
		have.samples, _ = slot.Merge(nil, have.samples, []series.Sample{{T: t, V: float64(t % 9973)}})
	}
}

func (w *world) flush(p *process, one store.Write) error {
	bucket, now := p.store.Bucket(one.ID), series.MillisOf(w.now)
	err := p.store.WriteHours(w.Context(), bucket, now, []store.Write{one})
	if !errors.Is(err, store.ErrDayOpen) {
		return err
	}
	if err := p.roller.CloseDays(w.Context(), now.Day()-1); err != nil {
		return err
	}
	return p.store.WriteHours(w.Context(), bucket, now, []store.Write{one})
}

// check wants both rules to hold in the tables, and readers to find everything.
func (w *world) check() {
	w.Helper()
	for _, p := range w.writers {
		closed := w.closed(p)
		for n, id := range w.ids {
			ring := w.raw(p.name, "daybookring", id, keys.SeriesRow(id))
			for h, have := range p.hours[n] {
				page := w.raw(p.name, keys.Tables("daybook").Pages(h.Day()), id, keys.PageRow(id, h.Day()))
				w.rules(p, h, closed, have.acked, ring, page)
			}
		}
	}
	for n := range w.ids {
		w.read(w.writers[w.random.IntN(len(w.writers))].store, n)
	}
}

func (w *world) rules(p *process, h series.Hour, closed series.Day, want []series.Sample, ring, page map[thing]bool) {
	w.Helper()
	for _, s := range things(want) {
		inRing, inPage := ring[s], page[s]
		switch {
		case !inRing && !inPage:
			w.fail("rule 1: writer %s lost %v of hour %d", p.name, s, h-w.hour())
		case !inPage && h.Day() <= closed:
			w.fail("rule 2: %v of writer %s, hour %d, is not in the page of a closed day", s, p.name, h-w.hour())
		case !inRing && h >= w.hour()-24 && h <= w.hour()+1 && !w.wild:
			w.fail("rule 2: %v of writer %s, hour %d, is not in the ring", s, p.name, h-w.hour())
		}
	}
}

// closed is what is written down of a writer.
func (w *world) closed(p *process) series.Day {
	e, err := w.svc.Get(context.Background(), "daybookmeta", table.Key{Partition: "meta", Row: "writer-" + p.name}, nil)
	if err != nil {
		w.fail("%v", err)
	}
	n, _ := binary.Varint(e.Property("closed"))
	return series.Day(n)
}

// raw gives what one writer has in an entity.
func (w *world) raw(writer, name string, id series.ID, row keys.Row) map[thing]bool {
	w.Helper()
	found := map[thing]bool{}
	key := table.Key{Partition: string(keys.Buckets(16).Partition(keys.Buckets(16).Of(id), "")), Row: string(row)}
	e, err := w.svc.Get(context.Background(), name, key, nil)
	if errors.Is(err, table.ErrNotFound) {
		return found
	}
	for _, p := range e.Properties {
		property, isSlot := keys.ParseProperty(p.Name)
		if !isSlot || property.Writer != writer || len(p.Value) == 0 {
			continue
		}
		all, err := thingsIn(property.Kind, p.Value)
		if err != nil {
			w.fail("%s %s %s: %v", name, row, p.Name, err)
		}
		for _, s := range all {
			found[s] = true
		}
	}
	return found
}

// read asks as package query does: the ring for the last 24 h and for days that are open, pages for what is older.
func (w *world) read(s *store.Store, n int) {
	w.Helper()
	id, ctx := w.ids[n], context.Background()
	recent := w.hour() - 24
	from := min(recent, s.FirstOpen().FirstHour())
	ring, err := theFloats(s.Ring(ctx, id, from, w.hour()+1))
	if err != nil {
		w.fail("the ring: %v", err)
	}
	first, last := w.today()-8, (recent - 1).Day()
	if w.wild { // hours of the last day may have lost their place in the ring to hours of a clock that was ahead
		last = (w.hour() + 1).Day()
	}
	found := map[thing]bool{}
	for _, got := range slices.Concat(floatThings(ring), floatThings(w.pages(s, id, first, last)), w.otherKinds(s, id, from, first, last)) {
		found[got] = true
	}
	for _, p := range w.writers {
		for h, have := range p.hours[n] {
			if h.Day() < first || h > w.hour()+1 {
				continue
			}
			for _, want := range things(have.acked) {
				if !found[want] {
					w.fail("a reader misses %v of hour %d by writer %s", want, h-w.hour(), p.name)
				}
			}
		}
	}
}

// otherKinds gives the histograms and exemplars of the ring from an hour on, and of pages.
func (w *world) otherKinds(s *store.Store, id series.ID, from series.Hour, first, last series.Day) []thing {
	w.Helper()
	ctx := context.Background()
	histograms, err1 := theHistograms(s.Ring(ctx, id, from, w.hour()+1))
	exemplars, err2 := theExemplars(s.Ring(ctx, id, from, w.hour()+1))
	if err := errors.Join(err1, err2); err != nil {
		w.fail("the ring: %v", err)
	}
	all := slices.Concat(histogramThings(histograms), exemplarThings(exemplars))
	for day := first; day <= last; day++ {
		histograms, err1 = theHistograms(s.Pages(ctx, id, day, day, day.FirstHour(), day.FirstHour()+23))
		exemplars, err2 = theExemplars(s.Pages(ctx, id, day, day, day.FirstHour(), day.FirstHour()+23))
		if err := errors.Join(err1, err2); err != nil {
			w.fail("a page: %v", err)
		}
		all = slices.Concat(all, histogramThings(histograms), exemplarThings(exemplars))
	}
	return all
}

// pages reads a range of days at once, a month at a time, and compares with reading each.
func (w *world) pages(s *store.Store, id series.ID, first, last series.Day) (all []series.Sample) {
	w.Helper()
	ctx := context.Background()
	for day := first; day <= last; {
		end := day
		var single []series.Sample
		for ; end <= last && keys.MonthOf(end) == keys.MonthOf(day); end++ {
			one, err := theFloats(s.Pages(ctx, id, end, end, end.FirstHour(), end.FirstHour()+23))
			if err != nil {
				w.fail("a page: %v", err)
			}
			single = append(single, one...)
		}
		ranged, err := theFloats(s.Pages(ctx, id, day, end-1, day.FirstHour(), end.FirstHour()-1))
		if err != nil || !slices.Equal(ranged, single) {
			w.fail("a range of pages has %d samples, the pages have %d (error %v)", len(ranged), len(single), err)
		}
		all = append(all, ranged...)
		day = end
	}
	return all
}

func theFloats(r store.Run, err error) ([]series.Sample, error)        { return r.Floats, err }
func theHistograms(r store.Run, err error) ([]series.Histogram, error) { return r.Histograms, err }
func theExemplars(r store.Run, err error) ([]series.Exemplar, error)   { return r.Exemplars, err }
