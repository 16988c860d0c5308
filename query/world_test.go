package query

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// midnight is when 2026-12-01 begins, the first day of a month.
var midnight = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// world is a reader with everything below it.
type world struct {
	testing.TB
	now    time.Time
	tables *tabletest.FaultyService
	store  *store.Store
	index  *index.Index
	head   memory
	reader *Reader
}

// memory is a head.
type memory struct {
	mu         sync.Mutex
	samples    map[series.ID][]series.Sample // ascending
	histograms map[series.ID][]series.Histogram
	exemplars  map[series.ID][]series.Exemplar
}

func (m *memory) Samples(dst []series.Sample, id series.ID, from, to series.Millis) []series.Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.samples[id] {
		if s.T >= from && s.T <= to {
			dst = append(dst, s)
		}
	}
	return dst
}

func (m *memory) Histograms(dst []series.Histogram, id series.ID, from, to series.Millis) []series.Histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range m.histograms[id] {
		if h.T >= from && h.T <= to {
			dst = append(dst, h)
		}
	}
	return dst
}

func (m *memory) Exemplars(dst []series.Exemplar, id series.ID, from, to series.Millis) []series.Exemplar {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.exemplars[id] {
		if e.T >= from && e.T <= to {
			dst = append(dst, e)
		}
	}
	return dst
}

// newWorld makes a world at a time; days up to closed are closed.
func newWorld(t testing.TB, now time.Time, closed series.Day) *world {
	t.Helper()
	model := tabletest.NewModel()
	model.EmptyPages = true
	w := &world{TB: t, now: now, tables: tabletest.Faulty(model), head: memory{
		samples: map[series.ID][]series.Sample{}, histograms: map[series.ID][]series.Histogram{}, exemplars: map[series.ID][]series.Exemplar{},
	}}
	w.store = w.open(closed + 1)
	var err error
	w.index, err = index.Open(t.Context(), w.store, keys.MonthOf(keys.FirstDay), 0)
	w.ok(err)
	w.reader = New(w.config(), w.store, w.index, &w.head)
	return w
}

func (w *world) open(today series.Day) *store.Store {
	w.Helper()
	cfg := store.Config{Tables: "daybook", Buckets: 16, Writer: "a", Alone: true}
	s, err := store.Open(w.Context(), table.Counted(w.tables, new(table.Totals)), cfg, today)
	w.ok(err)
	return s
}

func (w *world) config() Config {
	return Config{
		MaxSamples: 1_000_000, Timeout: time.Minute, Lookback: 5 * time.Minute, MaxConcurrent: 4, MaxChart: 3, MaxRows: 1_000_000, Parallel: 3,
		Now: func() time.Time { return w.now }, Logger: slog.New(slog.DiscardHandler), Registerer: prometheus.NewRegistry(),
	}
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// listed enters a series into the index, for the months of some days.
func (w *world) listed(ls labels.Labels, days ...series.Day) *index.Series {
	w.Helper()
	entry, _, err := w.index.Add(keys.SeriesID("", ls), ls)
	w.ok(err)
	for _, d := range append(days, series.MillisOf(w.now).Day()) {
		w.index.Enter(entry, keys.MonthOf(d))
	}
	return entry
}

// load writes the samples of a series into the store.
func (w *world) load(ls labels.Labels, samples []series.Sample) *index.Series {
	w.Helper()
	write := store.Write{}
	entry := w.listed(ls)
	for len(samples) > 0 {
		h := samples[0].T.Hour()
		n := slices.IndexFunc(samples, func(s series.Sample) bool { return s.T.Hour() != h })
		if n < 0 {
			n = len(samples)
		}
		write.Slots = append(write.Slots, store.HourSlot{Hour: h, Data: slot.Encode(nil, h, samples[:n])})
		write.Top = h
		w.index.Enter(entry, keys.MonthOf(h.Day()))
		samples = samples[n:]
	}
	write.ID = entry.ID
	w.ok(w.store.WriteHours(w.Context(), w.store.Bucket(entry.ID), series.MillisOf(w.now), []store.Write{write}))
	return entry
}

// samples reads a series.
func (w *world) samples(ctx context.Context, entry *index.Series, from, to series.Millis) ([]series.Sample, error) {
	run, err := w.reader.read(ctx, entry, from, to)
	if err != nil {
		return nil, err
	}
	return slices.Clone(run.Floats), nil
}

// closeDays closes days as package rollup does.
func (w *world) closeDays(through series.Day) {
	w.Helper()
	w.store.Closing(through)
	for b := range w.store.Buckets() {
		_, err := w.store.CloseBucket(w.Context(), b, through)
		w.ok(err)
	}
	w.ok(w.store.SetClosed(w.Context(), through))
}

func metric(name string, pairs ...string) labels.Labels {
	return labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...)
}

// steps gives a sample each step from..to (to excluded) whose value is what f says of its time in seconds from the first.
func steps(from, to time.Time, step time.Duration, f func(seconds float64) float64) (samples []series.Sample) {
	for t := from; t.Before(to); t = t.Add(step) {
		samples = append(samples, series.Sample{T: series.MillisOf(t), V: f(t.Sub(from).Seconds())})
	}
	return samples
}

func same(t testing.TB, what string, got, want []series.Sample) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b series.Sample) bool {
		return a.T == b.T && math.Float64bits(a.V) == math.Float64bits(b.V)
	}) {
		t.Fatalf("%s: %d samples, want %d", what, len(got), len(want))
	}
}

func between(all []series.Sample, from, to series.Millis) []series.Sample {
	at := func(t series.Millis) int {
		i, _ := slices.BinarySearchFunc(all, t, func(s series.Sample, t series.Millis) int { return cmp.Compare(s.T, t) })
		return i
	}
	return all[at(from):at(to+1)]
}
