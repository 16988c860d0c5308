package ingest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"daybook/ingest"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// histograms gives every histogram of a series that there is, as all gives its samples.
func (w *world) histograms(id series.ID) ([]series.Histogram, error) {
	fresh := w.in.Head().Histograms(nil, id, -1<<62, 1<<62)
	var got []series.Histogram
	err := w.months(func(first, last series.Day) error {
		page, err := theHistograms(w.store.Pages(w.tb.Context(), id, first, last, first.FirstHour(), last.FirstHour()+23))
		got, _ = slot.MergeHistograms(got, page)
		return err
	})
	if err != nil {
		return nil, err
	}
	ring, err := theHistograms(w.store.Ring(w.tb.Context(), id, -1<<20, 1<<20))
	got, _ = slot.MergeHistograms(got, ring)
	got, _ = slot.MergeHistograms(got, fresh)
	return got, err
}

// exemplars gives every exemplar of a series that there is.
func (w *world) exemplars(id series.ID) ([]series.Exemplar, error) {
	fresh := w.in.Head().Exemplars(nil, id, -1<<62, 1<<62)
	var got []series.Exemplar
	err := w.months(func(first, last series.Day) error {
		page, err := theExemplars(w.store.Pages(w.tb.Context(), id, first, last, first.FirstHour(), last.FirstHour()+23))
		got = slot.MergeExemplars(got, page)
		return err
	})
	if err != nil {
		return nil, err
	}
	ring, err := theExemplars(w.store.Ring(w.tb.Context(), id, -1<<20, 1<<20))
	return slot.MergeExemplars(slot.MergeExemplars(got, ring), fresh), err
}

// months goes over the days that tests write to, a month at a time.
func (w *world) months(f func(first, last series.Day) error) error {
	first, end := series.MillisOf(day0.Add(-retention)).Day()-1, series.MillisOf(day0).Day()+365
	for first < end {
		last := first
		for keys.MonthOf(last+1) == keys.MonthOf(first) && last < end {
			last++
		}
		if err := f(first, last); err != nil {
			return err
		}
		first = last + 1
	}
	return nil
}

func (w *world) expectHistograms(metric string, want ...series.Histogram) {
	w.tb.Helper()
	got, err := w.histograms(w.id(metric))
	must(w.tb, err)
	if !slices.EqualFunc(got, want, slot.SameHistogram) {
		w.tb.Errorf("%s has %d histograms, want %d: %v", metric, len(got), len(want), got)
	}
}

func (w *world) expectExemplars(metric string, want ...series.Exemplar) {
	w.tb.Helper()
	got, err := w.exemplars(w.id(metric))
	must(w.tb, err)
	want = slot.MergeExemplars(want, nil)
	if !slices.EqualFunc(got, want, func(a, b series.Exemplar) bool {
		return a.T == b.T && math.Float64bits(a.V) == math.Float64bits(b.V) && labels.Equal(a.Labels, b.Labels)
	}) {
		w.tb.Errorf("%s has %d exemplars, want %d: %v", metric, len(got), len(want), got)
	}
}

// whole is a request of version 1.0 as the generated code writes it.
func whole(t testing.TB, r *prompb.WriteRequest) []byte {
	b, err := r.Marshal()
	must(t, err)
	return snappy.Encode(nil, b)
}

// v2 makes requests of version 2.0.
type v2 struct {
	symbols writev2.SymbolsTable
	request writev2.Request
}

func newV2() *v2 { return &v2{symbols: writev2.NewSymbolTable()} }

func (r *v2) add(ts writev2.TimeSeries, pairs ...string) *writev2.TimeSeries {
	for _, text := range pairs {
		ts.LabelsRefs = append(ts.LabelsRefs, r.symbols.Symbolize(text))
	}
	r.request.Timeseries = append(r.request.Timeseries, ts)
	return &r.request.Timeseries[len(r.request.Timeseries)-1]
}

// metric adds a series like the function of this name.
func (r *v2) metric(name string, samples ...series.Sample) *writev2.TimeSeries {
	var ts writev2.TimeSeries
	for _, s := range samples {
		ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: int64(s.T), Value: s.V})
	}
	return r.add(ts, "__name__", name, "job", "test")
}

func (r *v2) exemplar(e series.Exemplar) writev2.Exemplar {
	x := writev2.Exemplar{Timestamp: int64(e.T), Value: e.V}
	e.Labels.Range(func(l labels.Label) {
		x.LabelsRefs = append(x.LabelsRefs, r.symbols.Symbolize(l.Name), r.symbols.Symbolize(l.Value))
	})
	return x
}

func (r *v2) body(t testing.TB) []byte {
	r.request.Symbols = r.symbols.Symbols()
	b, err := r.request.Marshal()
	must(t, err)
	return snappy.Encode(nil, b)
}

func (r *v2) send(w *world) (ingest.Result, error) {
	return w.in.WriteV2(w.tb.Context(), r.body(w.tb))
}

// send writes series of floats in one of the versions.
func (w *world) send(version int, all ...prompb.TimeSeries) (ingest.Result, error) {
	if version == 1 {
		return w.write(all...)
	}
	r := newV2()
	for _, ts := range all {
		var pairs []string
		for _, l := range ts.Labels {
			pairs = append(pairs, l.Name, l.Value)
		}
		to := r.add(writev2.TimeSeries{}, pairs...)
		for _, s := range ts.Samples {
			to.Samples = append(to.Samples, writev2.Sample{Timestamp: s.Timestamp, Value: s.Value})
		}
	}
	return r.send(w)
}

// native is an integer histogram with a few buckets, different for each n.
func native(tm time.Time, n int) series.Histogram {
	return series.Histogram{T: series.MillisOf(tm), Int: &histogram.Histogram{
		Schema: 3, ZeroThreshold: 1e-128, ZeroCount: uint64(n), Count: uint64(n + 12), Sum: 18.4 * float64(n+1),
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 2}, {Offset: 1, Length: 2}}, PositiveBuckets: []int64{1, 1, -1, 2},
		NegativeSpans: []histogram.Span{{Offset: -3, Length: 2}}, NegativeBuckets: []int64{3, -1},
	}}
}

func float(tm time.Time, n int) series.Histogram {
	return series.Histogram{T: series.MillisOf(tm), Float: &histogram.FloatHistogram{
		CounterResetHint: histogram.GaugeType, Schema: -4, ZeroThreshold: 0.001, ZeroCount: 0.5, Count: 12.25 + float64(n), Sum: -math.MaxFloat64,
		PositiveSpans: []histogram.Span{{Offset: 7, Length: 3}}, PositiveBuckets: []float64{0.25, math.Pi, 3},
	}}
}

func custom(tm time.Time, bounds ...float64) series.Histogram {
	return series.Histogram{T: series.MillisOf(tm), Int: &histogram.Histogram{
		Schema: histogram.CustomBucketsSchema, Count: 6, Sum: 9, CustomValues: bounds,
		PositiveSpans: []histogram.Span{{Offset: 0, Length: 3}}, PositiveBuckets: []int64{1, 1, 1},
	}}
}

// staleHistogram is the stale marker of a series of histograms.
func staleHistogram(tm time.Time) series.Histogram {
	return series.Histogram{T: series.MillisOf(tm), Int: &histogram.Histogram{Sum: stale}}
}

func protoV1(h series.Histogram) prompb.Histogram {
	if h.Int != nil {
		return prompb.FromIntHistogram(int64(h.T), h.Int)
	}
	return prompb.FromFloatHistogram(int64(h.T), h.Float)
}

func protoV2(h series.Histogram) writev2.Histogram {
	if h.Int != nil {
		return writev2.FromIntHistogram(0, int64(h.T), h.Int)
	}
	return writev2.FromFloatHistogram(0, int64(h.T), h.Float)
}

// sendHistograms sends histograms of one series beside a control, in either version.
func (w *world) sendHistograms(version int, name string, all ...series.Histogram) (ingest.Result, error) {
	if version == 1 {
		ts := metric(name)
		for _, h := range all {
			ts.Histograms = append(ts.Histograms, protoV1(h))
		}
		return w.write(ts, metric("control", now))
	}
	r := newV2()
	ts := r.metric(name)
	for _, h := range all {
		ts.Histograms = append(ts.Histograms, protoV2(h))
	}
	r.metric("control", now)
	return r.send(w)
}

// Histograms come back bit for bit from everywhere: memory, the log, the ring, a page.
func TestHistogramsKept(t *testing.T) {
	for version := 1; version <= 2; version++ {
		w := newWorld(t, nil)
		before := day0.Add(-50 * time.Hour)
		want := []series.Histogram{
			native(before, 1), float(before.Add(time.Second), 2), native(day0.Add(-3*time.Hour), 3), native(day0.Add(-time.Minute), 4),
			float(day0.Add(-30*time.Second), 5), custom(day0.Add(-20*time.Second), 0.5, 1), custom(day0.Add(-15*time.Second), 0.5, 1, 2), staleHistogram(day0),
		}
		result, err := w.sendHistograms(version, "m", want...)
		if err != nil || result != (ingest.Result{Samples: 1, Histograms: len(want)}) {
			t.Fatalf("version %d: %+v, %v", version, result, err)
		}
		if n := w.in.Unflushed(); n != int64(len(want)+1) {
			t.Errorf("%d unflushed of %d", n, len(want)+1)
		}
		rng := rand.New(rand.NewPCG(1, 0))
		for step, do := range []func() error{
			func() error { return nil }, func() error { return w.crashNow(rng) }, w.flush, w.restart,
			func() error { _, err := w.sendHistograms(version, "m", want...); return err }, w.flush,
			func() error { w.now.add(30 * time.Hour); return w.roller.CloseDays(t.Context(), w.now.day()-1) },
			func() error { w.now.add(time.Hour); return w.roller.Seal(t.Context()) },
			func() error { _, err := w.sendHistograms(version, "m", want...); return err }, w.restart,
		} {
			must(t, do())
			w.expectHistograms("m", want...)
			w.expect("control", now)
			if t.Failed() {
				t.Fatalf("version %d, step %d", version, step)
			}
		}
		if n := w.in.Held(); n != 0 {
			t.Errorf("version %d: %d bytes are said to be in memory when all is flushed", version, n)
		}
	}
}

// prometheus#17140: bounds of custom buckets are a histogram's own.
func TestCustomBounds(t *testing.T) {
	w := newWorld(t, nil)
	for _, tm := range []time.Time{day0.Add(-time.Minute), day0.Add(-45 * time.Second)} {
		r := newV2()
		one, two := protoV2(custom(tm, 0.5, 1)), protoV2(custom(tm, 2, 4))
		r.metric("a").Histograms = []writev2.Histogram{one}
		r.metric("b").Histograms = []writev2.Histogram{two}
		result, err := r.send(w)
		if err != nil || result.Histograms != 2 {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	for _, do := range []func() error{w.flush, w.restart} {
		w.expectHistograms("a", custom(day0.Add(-time.Minute), 0.5, 1), custom(day0.Add(-45*time.Second), 0.5, 1))
		w.expectHistograms("b", custom(day0.Add(-time.Minute), 2, 4), custom(day0.Add(-45*time.Second), 2, 4))
		must(t, do())
	}
	result, err := w.sendHistograms(1, "c", custom(day0))
	if re := refused(t, err); re.Histograms != 1 || result != (ingest.Result{Samples: 1}) {
		t.Errorf("1.0 without bounds: %+v, %v", result, err)
	}
}

func TestHistogramsRefused(t *testing.T) {
	with := func(edit func(*histogram.Histogram)) series.Histogram {
		h := native(day0, 1)
		edit(h.Int)
		return h
	}
	withFloat := func(edit func(*histogram.FloatHistogram)) series.Histogram {
		h := float(day0, 1)
		edit(h.Float)
		return h
	}
	for what, c := range map[string]struct {
		h    series.Histogram
		says string
	}{
		"too few buckets":      {with(func(h *histogram.Histogram) { h.PositiveBuckets = h.PositiveBuckets[:3] }), "spans need 4 buckets, have 3"},
		"too many buckets":     {with(func(h *histogram.Histogram) { h.NegativeBuckets = append(h.NegativeBuckets, 1) }), "spans need 2 buckets, have 3"},
		"no spans":             {with(func(h *histogram.Histogram) { h.PositiveSpans = nil }), "spans need 0 buckets"},
		"four billion buckets": {with(func(h *histogram.Histogram) { h.PositiveSpans[0].Length = math.MaxUint32 }), "out of range"},
		"a span beyond all":    {with(func(h *histogram.Histogram) { h.PositiveSpans[1].Offset = math.MaxInt32 }), "out of range"},
		"a negative offset":    {with(func(h *histogram.Histogram) { h.PositiveSpans[1].Offset = -1 }), "offset is negative"},
		"a negative bucket":    {with(func(h *histogram.Histogram) { h.PositiveBuckets[0] = -1 }), "is negative"},
		"counts that wrap around": {with(func(h *histogram.Histogram) {
			h.PositiveBuckets = []int64{math.MaxInt64, 0, 0, -math.MaxInt64 + 4}
			h.Count = 1<<63 + 7
		}), "observations"},
		"another count":         {with(func(h *histogram.Histogram) { h.Count++ }), "should equal"},
		"a schema too fine":     {with(func(h *histogram.Histogram) { h.Schema = 9 }), "invalid schema"},
		"a schema too coarse":   {with(func(h *histogram.Histogram) { h.Schema = -5 }), "invalid schema"},
		"no schema of all":      {with(func(h *histogram.Histogram) { h.Schema = math.MinInt32 }), "invalid schema"},
		"bounds of its own":     {with(func(h *histogram.Histogram) { h.CustomValues = []float64{1} }), "must not have custom bounds"},
		"an unknown hint":       {with(func(h *histogram.Histogram) { h.CounterResetHint = 17 }), "reset hint is 17"},
		"a negative threshold":  {with(func(h *histogram.Histogram) { h.ZeroThreshold = -1 }), "zero threshold is -1"},
		"a threshold of NaN":    {with(func(h *histogram.Histogram) { h.ZeroThreshold = math.NaN() }), "zero threshold is NaN"},
		"a float below zero":    {withFloat(func(h *histogram.FloatHistogram) { h.PositiveBuckets[1] = -0.5 }), "is negative"},
		"a float count below":   {withFloat(func(h *histogram.FloatHistogram) { h.Count = -1 }), "count is negative"},
		"float buckets missing": {withFloat(func(h *histogram.FloatHistogram) { h.PositiveBuckets = nil }), "spans need 3 buckets, have 0"},
		"bounds out of order":   {custom(day0, 1, 0.5), "strictly increasing"},
		"bounds that are equal": {custom(day0, 1, 1), "strictly increasing"},
		"a bound of NaN":        {custom(day0, 1, math.NaN()), "must not be NaN"},
		"an infinite bound":     {custom(day0, 1, math.Inf(1)), "must not be explicitly defined"},
		"too few bounds":        {custom(day0, 1), "insufficient"},
		"no bounds":             {custom(day0), "custom"},
		"too old":               {native(day0.Add(-retention-time.Second), 1), "is older than the retention"},
		"in the future":         {native(day0.Add(ingest.Future+time.Second), 1), "in the future"},
	} {
		t.Run(what, func(t *testing.T) {
			for version := 1; version <= 2; version++ {
				w := newWorld(t, nil)
				result, err := w.sendHistograms(version, "bad", c.h)
				re := refused(t, err)
				if re.Histograms != 1 || re.Samples != 0 || result != (ingest.Result{Samples: 1}) {
					t.Errorf("version %d: %+v, %+v", version, result, re)
				}
				if text := err.Error(); !strings.Contains(text, c.says) || !strings.Contains(text, `{__name__="bad", job="test"}`) {
					t.Errorf("version %d: %q does not say %q", version, text, c.says)
				}
				result, err = w.sendHistograms(version, "both", c.h, native(day0.Add(-time.Minute), 1))
				if re = refused(t, err); re.Histograms != 1 || result != (ingest.Result{Samples: 1, Histograms: 1}) {
					t.Errorf("version %d: %+v, %+v", version, result, re)
				}
				must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
				w.expect("control", now)
				w.expectHistograms("both", native(day0.Add(-time.Minute), 1))
				if n := w.index.Len(); n != 2 {
					t.Errorf("version %d: %d series", version, n)
				}
			}
		})
	}
}

// What claims billions of buckets in a few bytes takes no more memory than what has a few.
func TestHistogramBombs(t *testing.T) {
	w := newWorld(t, nil)
	far := native(day0, 1)
	far.Int.PositiveSpans[0].Offset = 2_000_000_000
	spans := native(day0.Add(-time.Second), 1)
	for range 1000 {
		spans.Int.PositiveSpans = append(spans.Int.PositiveSpans, histogram.Span{Length: math.MaxUint32})
	}
	body := func(h series.Histogram) []byte {
		ts := metric("m")
		ts.Histograms = append(ts.Histograms, protoV1(h))
		return body(ts)
	}
	for what, c := range map[string]struct {
		body []byte
		good bool
	}{
		"an offset of two billion":             {body(far), true},
		"a thousand spans of four billion":     {body(spans), false},
		"a list that is said to be four bytes": {snappy.Encode(nil, []byte{0x0a, 4, 0x22, 2, 0x4a, 0x7f}), false},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := w.in.Write(t.Context(), c.body)
		runtime.ReadMemStats(&after)
		if (err == nil) != c.good || errors.Is(err, ingest.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
			t.Errorf("%s: %d bytes of memory taken", what, taken)
		}
	}
	must(t, w.flush())
	w.expectHistograms("m", far)
}

// The first of a time stays, be it float or histogram; the same bits are as good as there.
func TestSameTimeOfKinds(t *testing.T) {
	for version := 1; version <= 2; version++ {
		w := newWorld(t, nil)
		first, other := native(day0, 1), native(day0, 2)
		hinted := native(day0, 1)
		hinted.Int.CounterResetHint = histogram.CounterReset
		_, err := w.sendHistograms(version, "m", first)
		must(t, err)
		w.put(metric("f", at(day0, 1)))
		try := func(when string) {
			t.Helper()
			result, err := w.sendHistograms(version, "m", first)
			if err != nil || result.Histograms != 1 {
				t.Errorf("%s: the same again: %+v, %v", when, result, err)
			}
			for _, h := range []series.Histogram{other, hinted, float(day0, 1)} {
				result, err := w.sendHistograms(version, "m", h)
				if re := refused(t, err); re.Histograms != 1 || result != (ingest.Result{Samples: 1}) || !strings.Contains(err.Error(), "another value is stored") {
					t.Errorf("%s: another histogram: %+v, %v", when, result, err)
				}
			}
			if _, err := w.write(metric("m", at(day0, 1))); refused(t, err).Samples != 1 {
				t.Errorf("%s: a float where a histogram is: %v", when, err)
			}
			if _, err := w.sendHistograms(version, "f", first); refused(t, err).Histograms != 1 {
				t.Errorf("%s: a histogram where a float is: %v", when, err)
			}
			w.expectHistograms("m", first)
			w.expect("m")
			w.expect("f", at(day0, 1))
			w.expectHistograms("f")
		}
		try("in memory")
		must(t, w.flush())
		try("flushed")
		must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
		must(t, w.flush())
		w.expectHistograms("m", first)
		w.expect("f", at(day0, 1))
	}
}

// What only the table knows is not known when another kind comes for its time: that is left out later.
func TestSameTimeOfKindsInTheTable(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.sendHistograms(2, "m", native(day0, 1), native(day0.Add(-time.Second), 2))
	must(t, err)
	w.put(metric("f", at(day0, 1), at(day0.Add(-time.Second), 2)))
	must(t, w.restart())
	w.put(metric("m", at(day0, 1), at(day0.Add(-2*time.Second), 3)))
	_, err = w.sendHistograms(2, "f", native(day0, 1), native(day0.Add(-2*time.Second), 3))
	must(t, err)
	must(t, w.flush())
	w.expectHistograms("m", native(day0.Add(-time.Second), 2), native(day0, 1))
	w.expect("m", at(day0.Add(-2*time.Second), 3))
	w.expect("f", at(day0.Add(-time.Second), 2), at(day0, 1))
	w.expectHistograms("f", native(day0.Add(-2*time.Second), 3))
	if n := w.logs.with("were left out"); n != 2 {
		t.Errorf("%d lines say that something was left out: %q", n, w.logs.lines)
	}
}

// Where nothing is left of what came for an hour, nothing is written of it, and nothing is left in memory.
func TestAllLeftOut(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.sendHistograms(2, "m", native(day0, 1))
	must(t, err)
	w.put(metric("f", at(day0, 1)))
	must(t, w.restart())
	w.put(metric("m", at(day0, 1)))
	_, err = w.sendHistograms(2, "f", native(day0, 1))
	must(t, err)
	for _, do := range []func() error{w.flush, w.flush, w.restart} {
		must(t, do())
		if n := w.in.Unflushed(); n != 0 || w.in.Held() != 0 {
			t.Errorf("%d unflushed, %d bytes held", n, w.in.Held())
		}
		w.expectHistograms("m", native(day0, 1))
		w.expect("m")
		w.expect("f", at(day0, 1))
		w.expectHistograms("f")
	}
}

// A series may change between float and histogram within an hour, and back.
func TestKindsInTurn(t *testing.T) {
	w := newWorld(t, nil)
	var floats []series.Sample
	var all []series.Histogram
	for i := range 40 {
		tm := day0.Add(time.Duration(i-40) * 15 * time.Second)
		if i/5%2 == 0 {
			floats = append(floats, at(tm, float64(i)))
			w.put(metric("m", floats[len(floats)-1]))
		} else {
			all = append(all, native(tm, i))
			_, err := w.sendHistograms(1+i%2, "m", all[len(all)-1])
			must(t, err)
		}
		if i%7 == 6 {
			must(t, w.flush())
		}
	}
	for _, do := range []func() error{func() error { return nil }, w.flush, w.restart} {
		must(t, do())
		w.expect("m", floats...)
		w.expectHistograms("m", all...)
	}
}

func TestMaxHistogramsPerHour(t *testing.T) {
	w := newWorld(t, nil)
	big := func(i int) series.Histogram {
		h := series.Histogram{T: series.MillisOf(day0) + series.Millis(i), Float: &histogram.FloatHistogram{Schema: 0, PositiveSpans: []histogram.Span{{Length: 5000}}}}
		for j := range 5000 {
			h.Float.PositiveBuckets = append(h.Float.PositiveBuckets, math.Pi*float64(i*j))
		}
		return h
	}
	var want []series.Histogram
	stored := 0
	for i := range 60 { // 40 kB each, as they come
		result, err := w.sendHistograms(2, "m", big(i))
		if result.Histograms == 1 {
			want = append(want, big(i))
			stored++
		} else if re := refused(t, err); !strings.Contains(err.Error(), "bytes of native histograms") || re.Histograms != 1 {
			t.Fatal(err)
		}
		if i == 10 {
			must(t, w.flush())
		}
	}
	if stored < 28 || stored == 60 {
		t.Errorf("%d histograms of 40 kB are stored", stored)
	}
	result, err := w.sendHistograms(2, "m", big(0), native(day0.Add(-time.Hour), 1))
	if err != nil || result.Histograms != 2 {
		t.Errorf("what is there already, and another hour: %+v, %v", result, err)
	}
	must(t, w.flush())
	w.expectHistograms("m", append([]series.Histogram{native(day0.Add(-time.Hour), 1)}, want...)...)
}

func example(tm time.Time, v float64, pairs ...string) series.Exemplar {
	return series.Exemplar{T: series.MillisOf(tm), V: v, Labels: labels.FromStrings(pairs...)}
}

// sendExemplars sends exemplars of one series, which need not have samples, beside a control.
func (w *world) sendExemplars(version int, name string, all ...series.Exemplar) (ingest.Result, error) {
	if version == 1 {
		ts := metric(name)
		for _, e := range all {
			x := prompb.Exemplar{Timestamp: int64(e.T), Value: e.V}
			e.Labels.Range(func(l labels.Label) { x.Labels = append(x.Labels, prompb.Label{Name: l.Name, Value: l.Value}) })
			ts.Exemplars = append(ts.Exemplars, x)
		}
		return w.write(ts, metric("control", now))
	}
	r := newV2()
	ts := r.metric(name)
	for _, e := range all {
		ts.Exemplars = append(ts.Exemplars, r.exemplar(e))
	}
	r.metric("control", now)
	return r.send(w)
}

// Exemplars come back from everywhere, in order of time; of one time different ones stay beside each other.
func TestExemplarsKept(t *testing.T) {
	for version := 1; version <= 2; version++ {
		w := newWorld(t, nil)
		want := []series.Exemplar{
			example(day0, 1, "trace_id", "abc", "span_id", "é"), example(day0, 1, "trace_id", "def"), example(day0, 2, "trace_id", "abc", "span_id", "é"),
			example(day0.Add(-time.Minute), math.Inf(1)), example(day0.Add(-50*time.Hour), 3, "trace_id", strings.Repeat("é", 120)),
		}
		result, err := w.sendExemplars(version, "m", append(want, want[0])...)
		if err != nil || result != (ingest.Result{Samples: 1, Exemplars: 6}) {
			t.Fatalf("version %d: %+v, %v", version, result, err)
		}
		for step, do := range []func() error{
			func() error { return nil }, func() error { return w.crashNow(rand.New(rand.NewPCG(1, 0))) }, w.flush,
			func() error { _, err := w.sendExemplars(version, "m", want...); return err }, w.restart,
			func() error { _, err := w.sendExemplars(version, "m", want...); return err }, w.flush,
			func() error { w.now.add(30 * time.Hour); return w.roller.CloseDays(t.Context(), w.now.day()-1) }, w.restart,
		} {
			must(t, do())
			w.expectExemplars("m", want...)
			if t.Failed() {
				t.Fatalf("version %d, step %d", version, step)
			}
		}
	}
}

func TestExemplarsRefused(t *testing.T) {
	good := example(day0, 1, "trace_id", "abc")
	for what, c := range map[string]struct {
		bad  series.Exemplar
		says string
	}{
		"129 characters": {example(day0, 1, "trace_id", strings.Repeat("é", 121)), "more than 128 characters"},
		"64 KiB":         {example(day0, 1, "trace_id", strings.Repeat("x", 64<<10)), "more than 128 characters"},
		"many labels":    {example(day0, 1, strings.Fields(fmt.Sprint(rand.New(rand.NewPCG(1, 2)).Perm(400)))...), ""},
		"not UTF-8":      {example(day0, 1, "trace_id", "\xff"), "not valid UTF-8"},
		"no name":        {example(day0, 1, "", "x"), "empty name"},
		"too old":        {example(day0.Add(-retention-time.Second), 1), "is older than the retention"},
		"in the future":  {example(day0.Add(ingest.Future+time.Second), 1), "in the future"},
	} {
		t.Run(what, func(t *testing.T) {
			for version := 1; version <= 2; version++ {
				w := newWorld(t, nil)
				result, err := w.sendExemplars(version, "bad", c.bad)
				re := refused(t, err)
				if re.Exemplars != 1 || result != (ingest.Result{Samples: 1}) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("version %d: %+v, %v", version, result, err)
				}
				if result, err = w.sendExemplars(version, "both", c.bad, good); refused(t, err).Exemplars != 1 || result.Exemplars != 1 {
					t.Errorf("version %d: %+v, %v", version, result, err)
				}
				must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
				w.expectExemplars("both", good)
				w.expect("control", now)
				if n := w.index.Len(); n != 2 {
					t.Errorf("version %d: %d series", version, n)
				}
			}
		})
	}
}

// Of an hour the first exemplars stay, also after a crash.
func TestMaxExemplars(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.MaxExemplars = 10 })
	var all []series.Exemplar
	for i := range 15 {
		all = append(all, example(day0.Add(time.Duration(i)*time.Second), float64(i), "trace_id", fmt.Sprint(i)))
	}
	result, err := w.sendExemplars(2, "m", all[:6]...)
	if err != nil || result.Exemplars != 6 {
		t.Errorf("%+v, %v", result, err)
	}
	must(t, w.flush())
	result, err = w.sendExemplars(2, "m", all...)
	if err != nil || result.Exemplars != 10 {
		t.Errorf("%+v, %v", result, err)
	}
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	w.expectExemplars("m", all[:10]...)
	hour := example(day0.Add(-time.Hour), 1)
	if result, err = w.sendExemplars(1, "m", hour); err != nil || result.Exemplars != 1 {
		t.Errorf("another hour: %+v, %v", result, err)
	}
	must(t, w.flush())
	w.expectExemplars("m", append([]series.Exemplar{hour}, all[:10]...)...)
}

// expectMetadata compares what is known of families.
func (w *world) expectMetadata(want ...series.Metadata) {
	w.tb.Helper()
	if got := w.meta.All(); !slices.Equal(got, want) {
		w.tb.Errorf("the metadata is %+v, want %+v", got, want)
	}
}

func metadataV1(t *testing.T, all ...series.Metadata) []byte {
	var r prompb.WriteRequest
	for _, m := range all {
		r.Metadata = append(r.Metadata, prompb.MetricMetadata{
			Type:             prompb.MetricMetadata_MetricType(prompb.MetricMetadata_MetricType_value[strings.ToUpper(m.Type)]),
			MetricFamilyName: m.Family, Help: m.Help, Unit: m.Unit,
		})
	}
	return whole(t, &r)
}

// The newest metadata stays, over crashes and restarts, and what is known already costs nothing.
func TestMetadataV1(t *testing.T) {
	w := newWorld(t, nil)
	a := series.Metadata{Family: "a", Type: "counter", Help: "One.", Unit: "bytes"}
	b := series.Metadata{Family: "b", Type: "gaugehistogram", Help: "é\n\"\x00"}
	c := series.Metadata{Family: "c", Type: "unknown"}
	newer := series.Metadata{Family: "a", Type: "gauge", Help: "Two."}
	send := func(all ...series.Metadata) {
		t.Helper()
		_, err := w.in.Write(t.Context(), metadataV1(t, all...))
		must(t, err)
	}
	send(a, b)
	send(c, newer)
	rng := rand.New(rand.NewPCG(1, 1))
	must(t, w.crashNow(rng))
	w.expectMetadata(newer, b, c)
	size := w.in.LogSize()
	send(newer)
	if w.in.LogSize() == size {
		t.Error("what may be in no table yet is acknowledged without the log")
	}
	must(t, w.flush())
	size = w.in.LogSize()
	send(newer, b, c)
	if w.in.LogSize() != size {
		t.Error("what is in the table is logged again")
	}
	must(t, w.restart())
	w.expectMetadata(newer, b, c)
	send(a)
	must(t, w.crashNow(rng))
	w.expectMetadata(a, b, c)
	if n := w.index.Len(); n != 0 {
		t.Errorf("%d series", n)
	}
}

func TestMetadataV2(t *testing.T) {
	w := newWorld(t, nil)
	r := newV2()
	add := func(name string, kind writev2.Metadata_MetricType, help, unit string) *writev2.TimeSeries {
		ts := r.metric(name, now)
		ts.Metadata = writev2.Metadata{Type: kind, HelpRef: r.symbols.Symbolize(help), UnitRef: r.symbols.Symbolize(unit)}
		return ts
	}
	add("requests_total", writev2.Metadata_METRIC_TYPE_COUNTER, "Requests.", "")
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		add("latency_seconds"+suffix, writev2.Metadata_METRIC_TYPE_HISTOGRAM, "Latency.", "seconds")
	}
	for _, suffix := range []string{"_bucket", "_gcount", "_gsum"} {
		add("queue"+suffix, writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM, "Queue.", "")
	}
	for _, suffix := range []string{"", "_count", "_sum"} {
		add("quantiles"+suffix, writev2.Metadata_METRIC_TYPE_SUMMARY, "", "")
	}
	add("disk_sum", writev2.Metadata_METRIC_TYPE_GAUGE, "", "bytes")
	add("none", writev2.Metadata_METRIC_TYPE_UNSPECIFIED, "", "")
	add("help_only", writev2.Metadata_METRIC_TYPE_UNSPECIFIED, "Help.", "")
	add("_sum", writev2.Metadata_METRIC_TYPE_SUMMARY, "", "")
	ts := add("native_count", writev2.Metadata_METRIC_TYPE_HISTOGRAM, "", "")
	ts.Samples, ts.Histograms = nil, []writev2.Histogram{protoV2(native(day0, 1))}
	_, err := r.send(w)
	must(t, err)
	for _, do := range []func() error{func() error { return nil }, func() error { return w.crashNow(rand.New(rand.NewPCG(1, 1))) }, w.restart} {
		must(t, do())
		w.expectMetadata(
			series.Metadata{Family: "_sum", Type: "summary"},
			series.Metadata{Family: "disk_sum", Type: "gauge", Unit: "bytes"},
			series.Metadata{Family: "help_only", Type: "unknown", Help: "Help."},
			series.Metadata{Family: "latency_seconds", Type: "histogram", Help: "Latency.", Unit: "seconds"},
			series.Metadata{Family: "native_count", Type: "histogram"},
			series.Metadata{Family: "quantiles", Type: "summary"},
			series.Metadata{Family: "queue", Type: "gaugehistogram", Help: "Queue."},
			series.Metadata{Family: "requests_total", Type: "counter", Help: "Requests."},
		)
	}
}

func TestMetadataRefused(t *testing.T) {
	w := newWorld(t, nil)
	good := series.Metadata{Family: "good", Type: "gauge", Help: "Good."}
	for says, bad := range map[string]series.Metadata{
		"without the name":     {Type: "gauge", Help: "Help."},
		"is not valid UTF-8":   {Family: "m", Type: "gauge", Help: "\xff"},
		"at most 16384":        {Family: "m", Type: "gauge", Help: strings.Repeat("x", 16<<10)},
		`x\xff: metadata that`: {Family: "x\xff", Type: "gauge"},
	} {
		_, err := w.in.Write(t.Context(), metadataV1(t, bad, good, bad))
		if re := refused(t, err); re.Metadata != 2 || !strings.Contains(err.Error(), says) {
			t.Errorf("%q does not say %q", err, says)
		}
		must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
		w.expectMetadata(good)
	}
}

// A request of a kind is stored in either version, and what is refused of it in the other's form in the log.
func TestRefusedStaysRefusedV2(t *testing.T) {
	w := newWorld(t, nil)
	r := newV2()
	r.metric("a", now).Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_GAUGE, HelpRef: r.symbols.Symbolize("Help.")}
	far := series.Sample{T: now.T + 11*60_000, V: 7}
	r.metric("b", now, far, at(day0.Add(-time.Hour), 2)).Exemplars = []writev2.Exemplar{r.exemplar(example(day0, 5))}
	good, bad := native(day0, 1), native(day0.Add(time.Second), 2)
	bad.Int.Count++
	ts := r.metric("h")
	ts.Histograms = []writev2.Histogram{protoV2(good), protoV2(bad), protoV2(custom(day0.Add(2*time.Second), 1, 2))}
	ts.Exemplars = []writev2.Exemplar{r.exemplar(example(day0, 1, "trace_id", "abc")), r.exemplar(example(day0, 1, "trace_id", strings.Repeat("x", 200)))}
	r.metric("c", far)
	result, err := r.send(w)
	if re := refused(t, err); re.Samples != 2 || re.Histograms != 1 || re.Exemplars != 1 || result != (ingest.Result{Samples: 3, Histograms: 2, Exemplars: 2}) {
		t.Errorf("%+v, %v", result, err)
	}
	w.now.add(24 * time.Hour) // now the refused ones would be good
	for _, do := range []func() error{func() error { return w.crashNow(rand.New(rand.NewPCG(1, 1))) }, w.restart} {
		must(t, do())
		w.expect("a", now)
		w.expect("b", at(day0.Add(-time.Hour), 2), now)
		w.expect("c")
		w.expectExemplars("b", example(day0, 5))
		w.expectHistograms("h", good, custom(day0.Add(2*time.Second), 1, 2))
		w.expectExemplars("h", example(day0, 1, "trace_id", "abc"))
		w.expectMetadata(series.Metadata{Family: "a", Type: "gauge", Help: "Help."})
	}
}

// prometheus#17149: references out of range are refused by name, and the rest of the request is kept.
func TestReferencesRefused(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(*writev2.TimeSeries)
		says string
		want ingest.Result
	}{
		"a label":      {func(ts *writev2.TimeSeries) { ts.LabelsRefs[1] = 99 }, "label reference 99 is out of range", ingest.Result{Samples: 1}},
		"an odd count": {func(ts *writev2.TimeSeries) { ts.LabelsRefs = ts.LabelsRefs[:3] }, "have 3 references", ingest.Result{Samples: 1}},
		"the largest":  {func(ts *writev2.TimeSeries) { ts.LabelsRefs[0] = math.MaxUint32 }, "label reference 4294967295 is out of range", ingest.Result{Samples: 1}},
		"help":         {func(ts *writev2.TimeSeries) { ts.Metadata.HelpRef = 99 }, "help reference 99 is out of range", ingest.Result{Samples: 1}},
		"unit":         {func(ts *writev2.TimeSeries) { ts.Metadata.UnitRef = 99 }, "unit reference 99 is out of range", ingest.Result{Samples: 1}},
		"an exemplar's": {func(ts *writev2.TimeSeries) {
			ts.Exemplars = []writev2.Exemplar{{LabelsRefs: []uint32{1, 99}, Timestamp: int64(now.T)}}
		}, "label reference 99 is out of range", ingest.Result{Samples: 2}},
		"odd exemplar": {func(ts *writev2.TimeSeries) {
			ts.Exemplars = []writev2.Exemplar{{LabelsRefs: []uint32{1}, Timestamp: int64(now.T)}}
		}, "have 1 references", ingest.Result{Samples: 2}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, nil)
			r := newV2()
			c.edit(r.metric("m", now))
			r.metric("control", now)
			result, err := r.send(w)
			refused(t, err)
			if result != c.want || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v, %v", result, err)
			}
			must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
			w.expect("control", now)
		})
	}
	w := newWorld(t, nil)
	r := writev2.Request{Symbols: []string{"__name__", "", "m"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{0, 2}, Samples: []writev2.Sample{{Timestamp: int64(now.T)}}}}}
	b, err := r.Marshal()
	must(t, err)
	if _, err := w.in.WriteV2(t.Context(), snappy.Encode(nil, b)); !errors.Is(err, ingest.ErrMessage) || w.index.Len() != 0 {
		t.Errorf("a first symbol that is not empty: %v", err)
	}
}

// The same series in one request again, and in the other version, is the same series.
func TestSeriesRepeated(t *testing.T) {
	w := newWorld(t, nil)
	r := newV2()
	r.metric("m", at(day0.Add(-time.Minute), 1))
	r.metric("m", now, at(day0.Add(-time.Minute), 1))
	r.metric("m").Exemplars = []writev2.Exemplar{r.exemplar(example(day0, 1))}
	result, err := r.send(w)
	if err != nil || result != (ingest.Result{Samples: 3, Exemplars: 1}) {
		t.Errorf("%+v, %v", result, err)
	}
	result, err = r.send(w)
	if err != nil || result != (ingest.Result{Samples: 3, Exemplars: 1}) {
		t.Errorf("again: %+v, %v", result, err)
	}
	w.put(metric("m", now, at(day0.Add(-time.Second), 5)))
	for _, do := range []func() error{w.flush, w.restart} {
		w.expect("m", at(day0.Add(-time.Minute), 1), at(day0.Add(-time.Second), 5), now)
		w.expectExemplars("m", example(day0, 1))
		if n := w.index.Len(); n != 1 {
			t.Errorf("%d series", n)
		}
		must(t, do())
	}
}

func TestNothingToStoreV2(t *testing.T) {
	w := newWorld(t, nil)
	size := w.in.LogSize()
	empty := newV2()
	empty.metric("m")
	for what, body := range map[string][]byte{
		"an empty request":          {0},
		"symbols only":              newV2().body(t),
		"a series without anything": empty.body(t),
	} {
		result, err := w.in.WriteV2(t.Context(), body)
		if err != nil || result != (ingest.Result{}) {
			t.Errorf("%s: %+v, %v", what, result, err)
		}
	}
	if w.in.LogSize() != size || w.index.Len() != 0 {
		t.Errorf("the log grew from %d to %d bytes, and there are %d series", size, w.in.LogSize(), w.index.Len())
	}
}

// Limits hold for 2.0 as for 1.0, and for what symbols become when they are written out.
func TestLimitsV2(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.MaxBody, c.MaxDecoded = 4000, 8000 })
	r := newV2()
	for i := range 100 {
		r.add(writev2.TimeSeries{Samples: []writev2.Sample{{Timestamp: int64(now.T) - int64(i)}}}, "__name__", "m", "long", strings.Repeat("x", 500))
	}
	if _, err := r.send(w); !errors.Is(err, ingest.ErrTooLarge) || !strings.Contains(err.Error(), "max_decoded") {
		t.Errorf("100 series of 500 bytes, written out: %v", err)
	}
	for what, c := range map[string]struct {
		body []byte
		want error
	}{
		"a long body":       {make([]byte, 4001), ingest.ErrTooLarge},
		"declared too long": {binary.AppendUvarint(nil, 8001), ingest.ErrTooLarge},
		"no body":           {nil, ingest.ErrMessage},
		"not protobuf":      {snappy.Encode(nil, []byte("not protobuf")), ingest.ErrMessage},
	} {
		if _, err := w.in.WriteV2(t.Context(), c.body); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Histograms and exemplars that the table does not take are in memory, which has an end: then nothing is taken, as with
// a full log.
func TestHeldHistograms(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.MaxLogBytes = 1 << 20 })
	wide := func(i int) series.Histogram { // many buckets of few bytes
		h := native(day0.Add(time.Duration(i)*time.Second), 0)
		h.Int.PositiveSpans, h.Int.PositiveBuckets = []histogram.Span{{Length: 5000}}, append(make([]int64, 4999), 7)
		return h
	}
	var want []series.Histogram
	var err error
	for i := 0; err == nil; i++ {
		if _, err = w.sendHistograms(2, "m", wide(i)); err == nil {
			want = append(want, wide(i))
		}
		if i > 100 {
			t.Fatal("there is no end")
		}
	}
	if !errors.Is(err, ingest.ErrUnavailable) || !strings.Contains(err.Error(), "wal.max_size") || len(want) < 3 || w.in.Held() > 1<<20 {
		t.Errorf("%d histograms of 40 KiB are held, %d bytes, then %v", len(want), w.in.Held(), err)
	}
	must(t, w.flush())
	_, err = w.sendHistograms(2, "m", wide(len(want)))
	must(t, err)
	w.expectHistograms("m", append(want, wide(len(want)))...)
}

// Metadata that could not be written to the table, or was, without an answer, is written with the next flush; the log
// has it until then.
func TestMetadataIsRepeated(t *testing.T) {
	for what, fault := range map[string]tabletest.Fault{
		"refused":     {Method: tabletest.Transact, Table: "daybookmeta", Call: 1, Err: errBusy},
		"answer lost": {Method: tabletest.Transact, Table: "daybookmeta", Call: 1, Effect: tabletest.FailAfter, Err: errBusy},
		"reading it":  {Method: tabletest.Get, Table: "daybookmeta", Call: 1, Err: errBusy},
		"not durable": failSync,
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, nil)
			one := series.Metadata{Family: "m", Type: "gauge", Help: "One."}
			send := func() {
				_, err := w.in.Write(t.Context(), metadataV1(t, one))
				must(t, err)
			}
			send()
			w.service.Add(fault)
			if err := w.flush(); err == nil {
				t.Fatal("nothing failed")
			}
			w.service.Heal()
			rng := rand.New(rand.NewPCG(1, 1))
			must(t, w.crashNow(rng))
			w.expectMetadata(one)
			must(t, w.flush())
			size := w.in.LogSize()
			if send(); w.in.LogSize() != size {
				t.Error("what is in the table is logged again")
			}
			must(t, w.crashNow(rng))
			w.expectMetadata(one)
		})
	}
}

// Everything at once: writers of all kinds in both versions, flushes, and a reader.
func TestKindsTogether(t *testing.T) {
	w := newWorld(t, nil)
	const writers, each = 4, 60
	var group sync.WaitGroup
	for n := range writers {
		group.Go(func() {
			for i := range each {
				tm := day0.Add(time.Duration(i-each) * 15 * time.Second)
				r := newV2()
				ts := r.metric("m")
				ts.Metadata = writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_HISTOGRAM, HelpRef: r.symbols.Symbolize(fmt.Sprint(i))}
				ts.Histograms = []writev2.Histogram{protoV2(native(tm, i))} // all writers send the same
				ts.Exemplars = []writev2.Exemplar{r.exemplar(example(tm, float64(n)))}
				r.metric(fmt.Sprint("f", n), at(tm, 1), at(tm.Add(time.Second), 2)).Exemplars = []writev2.Exemplar{r.exemplar(example(tm, 3))}
				if _, err := r.send(w); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		must(t, w.flush())
		w.in.Head().Histograms(nil, w.id("m"), -1<<62, 1<<62)
		w.in.Head().Exemplars(nil, w.id("m"), -1<<62, 1<<62)
	}
	before, err := w.exemplars(w.id("m"))
	must(t, err)
	if len(before) < 100 { // more where the hour was let go in between, which is counted anew then
		t.Errorf("%d exemplars of %d, 100 an hour are kept", len(before), writers*each)
	}
	for _, do := range []func() error{func() error { return w.crashNow(rand.New(rand.NewPCG(1, 1))) }, w.restart} {
		must(t, do())
		var histograms []series.Histogram
		for i := range each {
			tm := day0.Add(time.Duration(i-each) * 15 * time.Second)
			histograms = append(histograms, native(tm, i))
		}
		w.expectHistograms("m", histograms...)
		w.expectExemplars("m", before...)
		if m, ok := w.meta.Get("m"); !ok || m.Type != "histogram" {
			t.Errorf("metadata %+v", m)
		}
	}
	if n := w.in.Unflushed(); n != 0 {
		t.Errorf("%d unflushed", n)
	}
}
func theFloats(r store.Run, err error) ([]series.Sample, error)        { return r.Floats, err }
func theHistograms(r store.Run, err error) ([]series.Histogram, error) { return r.Histograms, err }
func theExemplars(r store.Run, err error) ([]series.Exemplar, error)   { return r.Exemplars, err }
