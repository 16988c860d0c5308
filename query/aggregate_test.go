package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"daybook/internal/series"
)

// bits writes a matrix with every bit of its values; NaNs are alike, as arithmetic may choose among them.
func bits(r *promql.Result) string {
	if r.Err != nil {
		return "error: " + r.Err.Error()
	}
	var b strings.Builder
	for _, s := range r.Value.(promql.Matrix) {
		fmt.Fprintf(&b, "%s", s.Metric)
		for _, p := range s.Floats {
			if math.IsNaN(p.F) {
				p.F = math.NaN()
			}
			fmt.Fprintf(&b, " %x@%d", math.Float64bits(p.F), p.T)
		}
		for _, p := range s.Histograms {
			fmt.Fprintf(&b, " %s@%d", p.H, p.T)
		}
		b.WriteString("\n")
	}
	return fmt.Sprintf("%s%v", &b, r.Warnings)
}

// odd gives a series of values that are hard to add up.
func odd(r *rand.Rand, from, to time.Time) (samples []series.Sample) {
	values := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, -math.MaxFloat64, 5e-324, 1, 1e100, -1e100, 0.1}
	for at := series.MillisOf(from); at < series.MillisOf(to); at += series.Millis(1000 + r.IntN(60_000)) {
		v := r.NormFloat64() * math.Pow(10, float64(r.IntN(20)-10))
		switch r.IntN(12) {
		case 0:
			v = values[r.IntN(len(values))]
		case 1:
			v = math.Float64frombits(value.StaleNaN)
		case 2:
			at += series.Millis(r.IntN(600_000))
		}
		samples = append(samples, series.Sample{T: at, V: v})
	}
	return samples
}

// TestAggregatesAreTheEngines evaluates aggregations with and without aggregating beforehand: every bit is the same.
func TestAggregatesAreTheEngines(t *testing.T) {
	w := newWorld(t, midnight.Add(9*time.Hour), series.MillisOf(midnight).Day()-1)
	r := rand.New(rand.NewPCG(11, 12))
	for i := range 40 {
		all := odd(r, midnight.Add(4*time.Hour), w.now)
		pairs := []string{"i", fmt.Sprint(i), "region", []string{"eu", "us", "", "as"}[i%4], "zone", fmt.Sprint(i % 3)}
		entry := w.load(metric([]string{"m", "n"}[i%2], pairs...), all[:len(all)-20])
		w.head.samples[entry.ID] = all[len(all)-40:]
	}
	total := 0
	for expr, groups := range map[string]int{
		"sum(m)": 1, "avg(m)": 1, "min(m)": 1, "max(m)": 1, "group(m)": 1, "quantile(0.9, m)": 1, "quantile(0, m)": 1, "quantile(1, n)": 1,
		"sum by (region) (n)": 2, "avg by (region, zone) (m)": 6, "avg without (i, zone) (m)": 2, "min without (i) (n)": 6, "quantile by (zone) (0.37, m)": 3,
		`sum by (__name__) ({__name__=~"m|n"})`: 2, `max without () (m)`: 0, "avg by (i) (m)": 0, "((avg((m))))": 1, "sum(m offset 17m)": 1, "sum(m offset -3m)": 1,
		"avg(m @ 1796099000)": 1, "sum(m @ end())": 1, "100 - avg by (zone) (m)": 3, "absent(sum(m))": 1, "timestamp(sum(m offset 5m))": 1, "topk(1, avg by (zone) (n))": 3,
		"sum(m) / sum(n)": 1, "m + on() group_left sum(n)": 1, "avg(-m)": 0, "sum(abs(m))": 0, "count(m)": 0, "stddev(m)": 0, "quantile(1.5, m)": 0, "quantile(-1, m)": 0,
		"quantile(scalar(n{i='1'}), m)": 0, "sum(rate(m[5m]))": 0, "sum_over_time(sum(m)[5m:1m])": 0, "sum(nothing)": 0, `avg by (region) (m{i=~"1.?"})`: 2,
	} {
		for _, step := range []time.Duration{time.Second, 17 * time.Second, time.Minute, 13 * time.Minute} {
			to := w.now.Add(-time.Duration(r.IntN(3600_000)) * time.Millisecond)
			from := to.Add(-step * time.Duration(r.IntN(200)))
			explained := new(Explanation)
			q, result, err := w.reader.Range(WithExplanation(t.Context(), explained), expr, from, to, step)
			w.ok(err)
			got, beforehand := bits(result), 0
			q.Close()
			for _, s := range explained.Selectors() {
				beforehand = max(beforehand, s.Groups)
			}
			q, result, err = w.reader.Range(WithStatistics(t.Context()), expr, from, to, step)
			w.ok(err)
			want := bits(result)
			q.Close()
			if got != want {
				t.Fatalf("%s from %v to %v step %v:\n%s\nwant\n%s", expr, from, to, step, got, want)
			}
			if beforehand != groups {
				t.Errorf("%s: %d groups beforehand, want %d", expr, beforehand, groups)
			}
			total += len(got)
		}
	}
	if total < 100_000 {
		t.Errorf("the queries gave only %d bytes: they test nothing", total)
	}
}

// TestAggregatesOfHistograms leaves them to the engine, also where they come late in the selection.
func TestAggregatesOfHistograms(t *testing.T) {
	w := newWorld(t, midnight.Add(9*time.Hour), series.MillisOf(midnight).Day()-1)
	for i := range 20 {
		entry := w.load(metric("m", "i", fmt.Sprint(i)), steps(midnight.Add(7*time.Hour), w.now, time.Minute, math.Sqrt))
		if i == 13 {
			h := &histogram.Histogram{Count: 3, Sum: 2, PositiveSpans: []histogram.Span{{Offset: 1, Length: 1}}, PositiveBuckets: []int64{3}}
			w.head.histograms[entry.ID] = []series.Histogram{{T: series.MillisOf(w.now.Add(-90*time.Minute)) + 1, Int: h}}
		}
	}
	for _, expr := range []string{"sum(m)", "avg(m)", "max(m)", "quantile(0.5, m)"} {
		answer := func(statistics bool) string {
			ctx := t.Context()
			if statistics {
				ctx = WithStatistics(ctx)
			}
			q, result, err := w.reader.Range(ctx, expr, w.now.Add(-2*time.Hour), w.now, time.Minute)
			w.ok(err)
			defer q.Close()
			return bits(result)
		}
		if got, want := answer(false), answer(true); got != want || len(got) < 1000 {
			t.Errorf("%s:\n%s\nwant\n%s", expr, got, want)
		}
	}
}

// TestAggregatesOfTooMuch refuses what the engine refuses.
func TestAggregatesOfTooMuch(t *testing.T) {
	w := newWorld(t, midnight.Add(9*time.Hour), series.MillisOf(midnight).Day()-1)
	for i := range 20 {
		w.load(metric("m", "i", fmt.Sprint(i)), steps(midnight.Add(7*time.Hour), w.now, time.Minute, math.Sqrt))
	}
	cfg := w.config()
	cfg.MaxSamples = 1000
	q, result, err := New(cfg, w.store, w.index, &w.head).Range(t.Context(), "sum(m)", w.now.Add(-time.Hour), w.now, time.Minute)
	w.ok(err)
	defer q.Close()
	if result.Err == nil || !strings.Contains(result.Err.Error(), "too many samples") {
		t.Errorf("20 series at 61 steps, where 1000 samples are allowed: %v", result.Err)
	}
}
