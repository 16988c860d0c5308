package e2e

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
)

// nativeHistograms makes series of native histograms of all kinds.
func (s *stream) nativeHistograms() {
	for i, host := range hosts {
		s.native(s.add("native_seconds", "host", host), time.Minute, &observations{schema: int32(2 + i%2)}, plain)
	}
	s.native(s.add("native_float_seconds", "host", hosts[0]), time.Minute, &observations{schema: 1}, halved)
	s.native(s.add("native_gauge", "host", hosts[1]), 2*time.Minute, &observations{schema: 0, forgets: true}, plain)
	for _, host := range hosts[:2] {
		s.native(s.add("native_custom", "host", host), time.Minute, &observations{schema: histogram.CustomBucketsSchema, bounds: []float64{0.1, 0.5, 1, 5}}, plain)
	}
	s.native(s.add("mixed", "kind", "both"), time.Minute, &observations{schema: 3}, s.sometimesFloat)
	s.native(s.add("native_ended", "host", hosts[2]), time.Minute, &observations{schema: 0}, s.sometimesStale)
}

// native observes a few values between scrapes, and begins anew twice or so.
func (s *stream) native(m *made, every time.Duration, o *observations, as func(taken) taken) {
	times := s.scrapes(s.begin, s.end, every)
	for _, t := range times {
		if o.forgets || s.rng.IntN(len(times)/2) == 0 {
			o.forget()
		}
		for range s.rng.IntN(8) {
			o.observe(s.rng.NormFloat64() * math.Exp(s.rng.NormFloat64()))
		}
		m.values = append(m.values, as(taken{at: t.UnixMilli(), whole: o.histogram()}))
	}
}

func plain(v taken) taken { return v }

// halved makes a float histogram whose counts need not be whole.
func halved(v taken) taken {
	v.float, v.whole = v.whole.ToFloat(nil).Mul(0.5), nil
	return v
}

// sometimesFloat makes every third hour one of floats.
func (*stream) sometimesFloat(v taken) taken {
	if v.at/time.Hour.Milliseconds()%3 == 0 {
		v.v, v.whole = v.whole.Sum, nil
	}
	return v
}

// sometimesStale makes the series end again and again.
func (s *stream) sometimesStale(v taken) taken {
	if s.rng.IntN(60) == 0 {
		v.whole = &histogram.Histogram{Sum: stale}
	}
	return v
}

// observations are what a native histogram counts.
type observations struct {
	schema    int32
	bounds    []float64 // of custom buckets
	forgets   bool      // each histogram is of what came since the last: a gauge
	up, down  map[int32]int64
	zero, all uint64
	sum       float64
}

func (o *observations) forget() {
	o.up, o.down, o.zero, o.all, o.sum = nil, nil, 0, 0, 0
}

func (o *observations) observe(v float64) {
	if o.up == nil {
		o.up, o.down = map[int32]int64{}, map[int32]int64{}
	}
	o.all++
	o.sum += v
	switch {
	case o.bounds != nil:
		i, _ := slices.BinarySearch(o.bounds, v)
		o.up[int32(i)]++
	case math.Abs(v) <= zeroThreshold:
		o.zero++
	case v > 0:
		o.up[o.bucket(v)]++
	default:
		o.down[o.bucket(-v)]++
	}
}

const zeroThreshold = 1e-3

// bucket is the number of the exponential bucket that a value lies in.
func (o *observations) bucket(v float64) int32 {
	return int32(math.Ceil(math.Log2(v) * math.Exp2(float64(o.schema))))
}

// histogram is what was observed.
func (o *observations) histogram() *histogram.Histogram {
	h := &histogram.Histogram{Schema: o.schema, Count: o.all, Sum: o.sum, CustomValues: o.bounds}
	if o.bounds == nil {
		h.ZeroThreshold, h.ZeroCount = zeroThreshold, o.zero
	}
	if o.forgets {
		h.CounterResetHint = histogram.GaugeType
	}
	h.PositiveSpans, h.PositiveBuckets = spans(o.up)
	h.NegativeSpans, h.NegativeBuckets = spans(o.down)
	return h
}

// spans lays buckets out as native histograms have them: runs of neighbours, and differences of counts.
func spans(counts map[int32]int64) (runs []histogram.Span, deltas []int64) {
	next, last := int32(0), int64(0)
	for _, i := range slices.Sorted(maps.Keys(counts)) {
		if len(runs) > 0 && i == next {
			runs[len(runs)-1].Length++
		} else {
			runs = append(runs, histogram.Span{Offset: i - next, Length: 1})
		}
		next = i + 1
		deltas = append(deltas, counts[i]-last)
		last = counts[i]
	}
	return runs, deltas
}
