package api

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// noon is the time that it is.
var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

const interval = 15 * time.Second

// named makes a series of the name and further label names and values in turn, which are in order.
func named(name string, pairs ...string) prompb.TimeSeries {
	s := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name}}}
	for i := 0; i < len(pairs); i += 2 {
		s.Labels = append(s.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return s
}

// every gives a series a sample each interval from..to.
func every(s prompb.TimeSeries, from, to time.Time, f func(i int) float64) prompb.TimeSeries {
	for i := 0; !from.After(to); i++ {
		s.Samples = append(s.Samples, prompb.Sample{Timestamp: from.UnixMilli(), Value: f(i)})
		from = from.Add(interval)
	}
	return s
}

// before is what is flushed into the table. Values are whole numbers, so that sums do not depend on their order.
func before() (all []prompb.TimeSeries) {
	from, to := noon.Add(-3*time.Hour), noon.Add(-time.Hour)
	return append(data(from, to, 0),
		every(named("ended", "job", "batch"), from, to, func(i int) float64 { return float64(i) }),
		every(named("yesterday", "job", "batch"), noon.Add(-26*time.Hour), noon.Add(-25*time.Hour), func(i int) float64 { return float64(i % 5) }),
	)
}

// after is what stays in memory.
func after() []prompb.TimeSeries {
	from := noon.Add(-time.Hour).Add(interval)
	stale := every(named("stale", "job", "batch"), noon.Add(-10*time.Minute), noon.Add(-5*time.Minute), func(i int) float64 {
		if i == 20 {
			return math.Float64frombits(value.StaleNaN)
		}
		return float64(i)
	})
	special := named("special")
	for i, v := range []float64{1.5, math.Inf(1), math.Inf(-1), 5e-324, math.MaxFloat64, 1e21, 1e-7, math.NaN()} {
		special.Samples = append(special.Samples, prompb.Sample{Timestamp: noon.Add(-5*time.Minute).UnixMilli() + int64(i)*1001, Value: v})
	}
	all := data(from, noon, 481)
	for i := range all {
		if s := &all[i]; s.Labels[0].Value == "seconds_bucket" {
			for n, trace := range []string{"a", "b"} {
				s.Exemplars = append(s.Exemplars, prompb.Exemplar{
					Labels: []prompb.Label{{Name: "trace_id", Value: trace}}, Value: float64(n) / 4,
					Timestamp: noon.Add(time.Duration(n-5)*time.Minute).UnixMilli() + 1,
				})
			}
		}
	}
	return append(all, stale, special,
		every(named("my.metric", "my.label", "1", "日本", "ü"), from, noon, func(i int) float64 { return float64(i) }),
		every(named("hostile", "value", "\"'<script>&\n\\\u2028"), from, noon, func(int) float64 { return 1 }),
	)
}

// data are series that go on from one part into the other.
func data(from, to time.Time, first int) (all []prompb.TimeSeries) {
	for n, instance := range []string{"a:9100", "b:9100", "c:9100"} {
		all = append(all, every(named("up", "instance", instance, "job", "node"), from, to, func(i int) float64 {
			return float64(min(1, (i+first+n)%7))
		}))
		for c, code := range []string{"200", "500"} {
			all = append(all, every(named("requests_total", "code", code, "instance", instance, "job", "api"), from, to, func(i int) float64 {
				return float64((i + first) % 500 * (n + 1) * (5 - 4*c)) // with resets
			}))
		}
	}
	for n, le := range []string{"0.1", "1", "10", "+Inf"} {
		all = append(all, every(named("seconds_bucket", "job", "api", "le", le), from, to, func(i int) float64 {
			return float64((i + first) * (n + 1))
		}))
	}
	integers, floats := named("latency", "job", "api"), named("latency", "job", "float")
	for i := 0; !from.Add(time.Duration(i) * interval).After(to); i++ {
		at := from.Add(time.Duration(i) * interval).UnixMilli()
		h := latency(i + first)
		integers.Histograms = append(integers.Histograms, prompb.FromIntHistogram(at, h))
		floats.Histograms = append(floats.Histograms, prompb.FromFloatHistogram(at, h.ToFloat(nil)))
	}
	all = append(all, integers, floats)
	for i := range 12 {
		all = append(all, every(named("many", "n", fmt.Sprintf("%02d", i)), from, to, func(int) float64 { return float64(i * 5 % 12) }))
	}
	return all
}

// latency is a native histogram that has seen so many observations of each kind.
func latency(n int) *histogram.Histogram {
	u := uint64(n)
	return &histogram.Histogram{
		Schema: 1, ZeroThreshold: 0.001, ZeroCount: u, Count: 5 * u, Sum: float64(7 * n),
		PositiveSpans: []histogram.Span{{Offset: -2, Length: 2}, {Offset: 3, Length: 1}}, PositiveBuckets: []int64{int64(n), 0, 0},
		NegativeSpans: []histogram.Span{{Offset: 0, Length: 1}}, NegativeBuckets: []int64{int64(n)},
	}
}
