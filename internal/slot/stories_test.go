package slot

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
)

// A story is how the histograms of a series come one after the other; next gives the one after before, nil at first.
type story struct {
	name string
	next func(r *rand.Rand, before *series.Histogram) series.Histogram
}

var stories = []story{
	{"latency", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		if before == nil {
			return series.Histogram{Int: latency(r)}
		}
		return series.Histogram{Int: observe(r, before.Int)}
	}},
	{"restarts", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		if before == nil || r.IntN(20) == 0 {
			h := latency(r)
			h.CounterResetHint = histogram.CounterResetHint(r.IntN(4))
			return series.Histogram{Int: h}
		}
		return series.Histogram{Int: observe(r, before.Int)}
	}},
	{"float", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		if before == nil {
			return series.Histogram{Float: latency(r).ToFloat(nil)}
		}
		h := before.Float.Copy()
		for i := range h.PositiveBuckets {
			n := float64(r.IntN(4))
			h.PositiveBuckets[i] += n
			h.Count += n
		}
		h.Sum += r.Float64()
		return series.Histogram{Float: h}
	}},
	{"rates", func(r *rand.Rand, before *series.Histogram) series.Histogram { // what a recording rule makes of rate()
		if before == nil {
			before = &series.Histogram{Float: latency(r).ToFloat(nil)}
		}
		h := before.Float.Copy()
		h.CounterResetHint = histogram.GaugeType
		for i := range h.PositiveBuckets {
			h.PositiveBuckets[i] = r.Float64() * 10
		}
		h.Sum = r.Float64()
		return series.Histogram{Float: h}
	}},
	{"custom", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		if before == nil || r.IntN(30) == 0 {
			return series.Histogram{Int: &histogram.Histogram{
				Schema: -53, CustomValues: []float64{0.5, 1, 2.5 + float64(r.IntN(3))}, Count: 6, Sum: 9,
				PositiveSpans: []histogram.Span{{Offset: 0, Length: 3}}, PositiveBuckets: []int64{1, 1, 1},
			}}
		}
		return series.Histogram{Int: observe(r, before.Int)}
	}},
	{"changing kinds", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		var one series.Histogram
		switch {
		case before == nil:
			one.Int = latency(r)
		case before.Int != nil:
			one.Int = observe(r, before.Int)
		default:
			one.Float = before.Float.Copy()
		}
		switch {
		case r.IntN(4) > 0:
		case one.Int != nil:
			one = series.Histogram{Float: one.Int.ToFloat(nil)}
		default:
			one = series.Histogram{Int: latency(r)}
		}
		return one
	}},
	{"stale", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		if r.IntN(3) == 0 {
			return series.Histogram{Int: &histogram.Histogram{Sum: stale}}
		}
		if before == nil || math.Float64bits(before.Int.Sum) == staleBits {
			return series.Histogram{Int: latency(r)}
		}
		return series.Histogram{Int: observe(r, before.Int)}
	}},
	{"odd", func(r *rand.Rand, _ *series.Histogram) series.Histogram {
		if r.IntN(2) == 0 {
			return series.Histogram{Int: oddInt(r)}
		}
		return series.Histogram{Float: oddFloat(r)}
	}},
	{"odd, and again", func(r *rand.Rand, before *series.Histogram) series.Histogram {
		switch {
		case before == nil:
			return series.Histogram{Float: oddFloat(r)}
		case r.IntN(2) == 0:
			return *before
		}
		h := *before.Float
		h.Count, h.ZeroCount = oddNumber(r), oddNumber(r)
		return series.Histogram{Float: &h}
	}},
}

// latency makes a histogram of some observations as client libraries do.
func latency(r *rand.Rand) *histogram.Histogram {
	h := &histogram.Histogram{
		Schema: 3, ZeroThreshold: 2.938735877055719e-39, ZeroCount: uint64(r.IntN(2)),
		PositiveSpans:   []histogram.Span{{Offset: -20, Length: 2}, {Offset: 3, Length: 24}},
		PositiveBuckets: make([]int64, 26),
	}
	h.Count = h.ZeroCount
	return observe(r, h)
}

// observe is h after some seconds of log-normal latencies, which fall into the buckets that it has.
func observe(r *rand.Rand, before *histogram.Histogram) *histogram.Histogram {
	h := before.Copy()
	n := len(h.PositiveBuckets)
	for range r.IntN(150) {
		at := int(float64(n)/2 + r.NormFloat64()*float64(n)/6)
		if at < 0 || at >= n {
			continue
		}
		h.Count++
		h.PositiveBuckets[at]++
		if at+1 < n {
			h.PositiveBuckets[at+1]--
		}
		h.Sum += math.Exp2(float64(at-n/2)/8) * (0.9 + r.Float64()/10)
	}
	return h
}

// oddInt makes a histogram whose parts have nothing to do with each other.
func oddInt(r *rand.Rand) *histogram.Histogram {
	h := &histogram.Histogram{
		CounterResetHint: histogram.CounterResetHint(r.Uint32()), Schema: int32(r.Uint32()), ZeroThreshold: oddNumber(r),
		ZeroCount: r.Uint64(), Count: r.Uint64(), Sum: oddNumber(r),
		PositiveSpans: oddSpans(r), NegativeSpans: oddSpans(r), CustomValues: oddNumbers(r),
	}
	for range r.IntN(4) {
		h.PositiveBuckets = append(h.PositiveBuckets, int64(r.Uint64()))
		h.NegativeBuckets = append(h.NegativeBuckets, int64(r.Uint64()>>r.IntN(64)))
	}
	return h
}

func oddFloat(r *rand.Rand) *histogram.FloatHistogram {
	return &histogram.FloatHistogram{
		CounterResetHint: histogram.CounterResetHint(r.Uint32()), Schema: int32(r.Uint32()), ZeroThreshold: oddNumber(r),
		ZeroCount: oddNumber(r), Count: oddNumber(r), Sum: oddNumber(r), PositiveSpans: oddSpans(r), NegativeSpans: oddSpans(r),
		PositiveBuckets: oddNumbers(r), NegativeBuckets: oddNumbers(r), CustomValues: oddNumbers(r),
	}
}

func oddSpans(r *rand.Rand) []histogram.Span {
	var spans []histogram.Span
	for range r.IntN(4) {
		spans = append(spans, histogram.Span{Offset: int32(r.Uint32()), Length: r.Uint32()})
	}
	if r.IntN(10) == 0 {
		spans = append(spans, histogram.Span{Offset: math.MinInt32, Length: 0}, histogram.Span{Offset: math.MaxInt32, Length: math.MaxUint32})
	}
	return spans
}

func oddNumbers(r *rand.Rand) (numbers []float64) {
	for range r.IntN(5) {
		numbers = append(numbers, oddNumber(r))
	}
	return numbers
}

func oddNumber(r *rand.Rand) float64 {
	odd := []float64{0, zero, 1, 2, 1.5, inf, -inf, stale, math.NaN(), math.Float64frombits(0xfff8000000000001),
		5e-324, 1e21, 1 << 53, 1<<53 + 2, -(1 << 53), 9007199254740991, -3}
	if n := r.IntN(len(odd) + 4); n < len(odd) {
		return odd[n]
	}
	return math.Float64frombits(r.Uint64())
}

// tell gives n histograms of a story, 15 s apart or at odd times.
func (s story) tell(r *rand.Rand, n int) (all []series.Histogram) {
	at := start.Start() + series.Millis(r.IntN(interval))
	jitter := r.IntN(2) == 0
	var before *series.Histogram
	for range n {
		h := s.next(r, before)
		h.T = at
		all = append(all, h)
		before = &all[len(all)-1]
		if at += interval; jitter {
			at += series.Millis(r.IntN(10))
		}
	}
	return all
}

// spell writes down every bit of a histogram.
func spell(h series.Histogram) string {
	bits := func(numbers ...float64) string {
		var s strings.Builder
		for _, v := range numbers {
			fmt.Fprintf(&s, "%016x ", math.Float64bits(v))
		}
		return s.String()
	}
	if i := h.Int; i != nil {
		return fmt.Sprintf("%d int hint %d schema %d zero %s%d count %d sum %sspans %v %v buckets %v %v custom %s", h.T, i.CounterResetHint,
			i.Schema, bits(i.ZeroThreshold), i.ZeroCount, i.Count, bits(i.Sum), i.PositiveSpans, i.NegativeSpans, i.PositiveBuckets,
			i.NegativeBuckets, bits(i.CustomValues...))
	}
	f := h.Float
	return fmt.Sprintf("%d float hint %d schema %d zero %scount %ssum %sspans %v %v buckets %s| %scustom %s", h.T, f.CounterResetHint,
		f.Schema, bits(f.ZeroThreshold, f.ZeroCount), bits(f.Count), bits(f.Sum), f.PositiveSpans, f.NegativeSpans,
		bits(f.PositiveBuckets...), bits(f.NegativeBuckets...), bits(f.CustomValues...))
}

func sameHistograms(t testing.TB, got, want []series.Histogram) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d histograms, want %d", len(got), len(want))
	}
	for i := range got {
		if g, w := spell(got[i]), spell(want[i]); g != w {
			t.Fatalf("histogram %d of %d is\n%s\nwant\n%s", i, len(got), g, w)
		}
	}
}

// someExemplars gives exemplars of traces, several of one time, with odd ones among them.
func someExemplars(r *rand.Rand, n int) (all []series.Exemplar) {
	at := start.Start()
	for range n {
		if r.IntN(3) > 0 {
			at += series.Millis(r.IntN(interval))
		}
		x := series.Exemplar{T: at, V: r.ExpFloat64(), Labels: labels.FromStrings("trace_id", fmt.Sprintf("%016x", r.Uint64()))}
		switch r.IntN(8) {
		case 0:
			x.V, x.Labels = oddNumber(r), labels.EmptyLabels()
		case 1:
			x.Labels = labels.FromStrings("span_id", fmt.Sprintf("%08x", r.Uint32()), "é", "'\x00\xff", "empty", "")
		case 2:
			x.V = math.Round(x.V * 100)
		}
		all = append(all, x)
	}
	return all
}

func sameExemplars(t testing.TB, got, want []series.Exemplar) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d exemplars, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		if g.T != w.T || math.Float64bits(g.V) != math.Float64bits(w.V) || fmt.Sprintf("%q", flatten(g.Labels)) != fmt.Sprintf("%q", flatten(w.Labels)) {
			t.Fatalf("exemplar %d of %d is %v, want %v", i, len(got), g, w)
		}
	}
}

// flatten lists names and values in the order in which they stand.
func flatten(ls labels.Labels) (all []string) {
	ls.Range(func(l labels.Label) { all = append(all, l.Name, l.Value) })
	return all
}
