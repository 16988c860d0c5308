package query

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"daybook/internal/series"
)

func TestOrdered(t *testing.T) {
	p := parser.NewParser(parser.Options{EnableExperimentalFunctions: true})
	for expr, want := range map[string]bool{
		"up": false, "sum by (a) (up)": false, "1": false, `"text"`: false, "a + b": false, "up[5m]": false,
		"sort(up)": true, "sort_desc(up)": true, `sort_by_label(up, "a")`: true, "topk(2, up)": true, "bottomk(2, up)": true,
		"limitk(2, up)": true, "(topk(2, up))": true, "topk(2, up) * 2": true, "sort(up) > 1": true, "abs(sort(up))": true,
		"-sort(up)": true, "sum by (a) (topk(2, up))": false, "topk(2, sum by (a) (up))": true,
		"max_over_time(sort(up)[5m:1m])": false, "sort(up) or up": true, "quantile(0.5, up)": false,
	} {
		parsed, err := p.ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := ordered(parsed); got != want {
			t.Errorf("%s: ordered is %v", expr, got)
		}
	}
}

// The same question has the same answer each time, sorted by labels unless another order was asked for.
func TestInstantOrder(t *testing.T) {
	w := newWorld(t, midnight, series.MillisOf(midnight).Day()-2)
	for i := range 40 {
		w.load(metric("m", "i", fmt.Sprintf("%02d", i)), []series.Sample{{T: series.MillisOf(midnight) - 1000, V: float64((i * 7) % 40)}})
	}
	ask := func(expr string) promql.Vector {
		q, result, err := w.reader.Instant(t.Context(), expr, midnight)
		w.ok(err)
		defer q.Close()
		w.ok(result.Err)
		v, err := result.Vector()
		w.ok(err)
		return slices.Clone(v)
	}
	byLabels := func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) }
	for _, expr := range []string{"m", "sum by (i) (m)", "m * on (i) m", "count_values(\"v\", m)", "m or m offset 1m"} {
		if v := ask(expr); len(v) != 40 || !slices.IsSortedFunc(v, byLabels) {
			t.Errorf("%s gives %v", expr, v)
		}
	}
	byValue := func(a, b promql.Sample) int { return int(a.F - b.F) }
	for _, expr := range []string{"sort(m)", "sort(m) * 2", "bottomk(30, m)"} {
		if v := ask(expr); len(v) < 30 || !slices.IsSortedFunc(v, byValue) {
			t.Errorf("%s gives %v", expr, v)
		}
	}
}

// A query may ask for another lookback, and for statistics of each step.
func TestQueryOptions(t *testing.T) {
	w := newWorld(t, midnight, series.MillisOf(midnight).Day()-2)
	w.load(metric("m"), []series.Sample{{T: series.MillisOf(midnight.Add(-2 * time.Minute)), V: 1}})
	for lookback, want := range map[time.Duration]int{0: 1, time.Minute: 0, 3 * time.Minute: 1} {
		q, result, err := w.reader.Instant(t.Context(), "m", midnight, promql.NewPrometheusQueryOpts(true, lookback, nil))
		w.ok(err)
		if v, err := result.Vector(); err != nil || len(v) != want {
			t.Errorf("a lookback of %v: %v, %v", lookback, v, err)
		}
		if steps := q.Stats().Samples.TotalSamplesPerStep; len(steps) != 1 || steps[0] != int64(want) {
			t.Errorf("a lookback of %v: samples per step %v", lookback, steps)
		}
		q.Close()
	}
	q, result, err := w.reader.Range(t.Context(), "m", midnight.Add(-4*time.Minute), midnight, time.Minute, promql.NewPrometheusQueryOpts(true, 0, nil))
	w.ok(err)
	w.ok(result.Err)
	if steps := q.Stats().Samples.TotalSamplesPerStep; !slices.Equal(steps, []int64{0, 0, 1, 1, 1}) {
		t.Errorf("samples per step %v", steps)
	}
	q.Close()
}
