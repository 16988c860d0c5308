package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"daybook/internal/series"
)

// promWorld holds two days around midnight: what is older than the ring is in pages, the last day in the ring, the last
// ten minutes in the head. Values are chosen so that results can be worked out by hand; x counts seconds from the first
// sample, two days and a half before the end.
//
//	requests_total{i="1"|"2"|"3"}   i*x, each 15 s: a rate of i a second
//	restarts_total                  x modulo one hour, each 15 s: resets at each full hour
//	temp{room="a"|"b"}              10 and 20, each 60 s
//	ended                           1 until 10:00:00, then a stale marker at 10:00:15
//	silent                          1 until 10:00:00, and nothing more
//	latency_bucket{le}              0.1: x, 1: 3x, +Inf: 4x, each 15 s
func promWorld(t *testing.T) *world {
	now := midnight.Add(12 * time.Hour)
	w := newWorld(t, now, series.MillisOf(midnight).Day()-1)
	begin := midnight.Add(-48 * time.Hour)
	for i := 1; i <= 3; i++ {
		all := steps(begin, now, 15*time.Second, func(x float64) float64 { return float64(i) * x })
		flushed := len(all) - 40
		entry := w.load(metric("requests_total", "i", fmt.Sprint(i)), all[:flushed])
		w.head.samples[entry.ID] = all[flushed:]
	}
	w.load(metric("restarts_total"), steps(begin, now, 15*time.Second, func(x float64) float64 { return math.Mod(x, 3600) }))
	for room, v := range map[string]float64{"a": 10, "b": 20} {
		w.load(metric("temp", "room", room), steps(begin, now, time.Minute, func(float64) float64 { return v }))
	}
	ten := midnight.Add(10 * time.Hour)
	one := steps(ten.Add(-time.Hour), ten.Add(time.Second), 15*time.Second, func(float64) float64 { return 1 })
	w.load(metric("silent"), one)
	w.load(metric("ended"), append(one, series.Sample{T: series.MillisOf(ten.Add(15 * time.Second)), V: math.Float64frombits(value.StaleNaN)}))
	for le, factor := range map[string]float64{"0.1": 1, "1": 3, "+Inf": 4} {
		w.load(metric("latency_bucket", "le", le), steps(begin, now, 15*time.Second, func(x float64) float64 { return factor * x }))
	}
	return w
}

// near rounds, as sums of floats need not be exact.
func near(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

func show(r *promql.Result) string {
	if r.Err != nil {
		return "error: " + r.Err.Error()
	}
	var all []string
	switch v := r.Value.(type) {
	case promql.Vector:
		for _, s := range v {
			all = append(all, fmt.Sprintf("%s %s", s.Metric, near(s.F)))
		}
	case promql.Matrix:
		for _, s := range v {
			line := s.Metric.String()
			for _, p := range s.Floats {
				line += " " + near(p.F) + "@" + time.UnixMilli(p.T).UTC().Format("15:04:05")
			}
			all = append(all, line)
		}
	case promql.Scalar:
		all = append(all, near(v.V))
	}
	return strings.Join(all, "; ")
}

// TestInstant evaluates at one time, given as an offset from midnight.
func TestInstant(t *testing.T) {
	w := promWorld(t)
	const ten = 10 * time.Hour
	for _, c := range []struct {
		at   time.Duration
		expr string
		want string
	}{
		// A value now, in the page, in the ring, in the head.
		{-30 * time.Hour, `requests_total{i="2"}`, `{__name__="requests_total", i="2"} 129600`},
		{-24 * time.Hour, `temp`, `{__name__="temp", room="a"} 10; {__name__="temp", room="b"} 20`},
		{2 * time.Hour, `requests_total{i="1"}`, `{__name__="requests_total", i="1"} 180000`},
		{12*time.Hour - time.Minute, `requests_total{i="1"}`, `{__name__="requests_total", i="1"} 215940`},
		// Rates over hours' edges, over midnight, over the edges between page, ring and head, with resets.
		{5 * time.Minute, `sum by (i) (rate(requests_total[10m]))`, `{i="1"} 1; {i="2"} 2; {i="3"} 3`},
		{0, `rate(requests_total{i="3"}[5m])`, `{i="3"} 3`},
		{-12 * time.Hour, `rate(requests_total{i="1"}[20h])`, `{i="1"} 1`},
		{12*time.Hour - time.Minute, `sum(rate(requests_total[47h]))`, `{} 6`},
		// From 23:30:15 to 00:30:00: 1800-1815 and the reset's 3585, extrapolated from 3585 s to an hour.
		{30 * time.Minute, `increase(restarts_total[1h])`, `{} 3584.93724`},
		{30 * time.Minute, `resets(restarts_total[3h])`, `{} 3`},
		{0, `count_over_time(requests_total{i="1"}[1d])`, `{i="1"} 5760`},
		{12*time.Hour - time.Second, `count_over_time(requests_total{i="1"}[3d])`, `{i="1"} 14400`},
		// Stale markers end a series at once, silence after the lookback.
		{ten, `{__name__=~"ended|silent"}`, `{__name__="ended"} 1; {__name__="silent"} 1`},
		{ten + 15*time.Second, `{__name__=~"ended|silent"}`, `{__name__="silent"} 1`},
		{ten + 5*time.Minute - time.Second, `{__name__=~"ended|silent"}`, `{__name__="silent"} 1`},
		{ten + 5*time.Minute, `{__name__=~"ended|silent"}`, ``},
		{ten + 15*time.Second, `count_over_time(ended[1h])`, `{} 239`},
		// Other times than now.
		{12*time.Hour - time.Minute, `requests_total{i="1"} offset 36h`, `{__name__="requests_total", i="1"} 86340`},
		{-47 * time.Hour, `requests_total{i="1"} offset -10h`, `{__name__="requests_total", i="1"} 39600`},
		{ten, `requests_total{i="1"} @ 1796083200`, `{__name__="requests_total", i="1"} 172800`},
		{ten, `sum(requests_total @ 1796083200) - sum(requests_total offset 10h)`, `{} 0`},
		{2 * time.Hour, `max_over_time(rate(requests_total{i="2"}[5m])[6h:10m])`, `{i="2"} 2`},
		{2 * time.Hour, `sum_over_time((temp{room="a"} > 5)[30m:1m])`, `{room="a"} 300`},
		// The rest of the language.
		{2 * time.Hour, `topk(1, rate(requests_total[5m]))`, `{i="3"} 3`},
		{2 * time.Hour, `bottomk(2, temp)`, `{__name__="temp", room="a"} 10; {__name__="temp", room="b"} 20`},
		{2 * time.Hour, `histogram_quantile(0.25, rate(latency_bucket[10m]))`, `{} 0.1`},
		{2 * time.Hour, `histogram_quantile(0.5, rate(latency_bucket[10m]))`, `{} 0.55`},
		{2 * time.Hour, `histogram_quantile(0.75, rate(latency_bucket[10m]))`, `{} 1`},
		{2 * time.Hour, `absent(nobody{a="b"})`, `{a="b"} 1`},
		{2 * time.Hour, `absent(temp{room="a"})`, ``},
		{ten + time.Hour, `absent(silent)`, `{} 1`},
		{2 * time.Hour, `temp{room!="a"} + on() group_left temp{room="a"}`, `{room="b"} 30`},
		{2 * time.Hour, `avg_over_time(temp{room=~"a|c"}[2d])`, `{room="a"} 10`},
		{2 * time.Hour, `temp{room!~".*"}`, ``},
		{2 * time.Hour, `count({__name__=~".+_total"})`, `{} 4`},
		{2 * time.Hour, `scalar(temp{room="a"}) * 2`, `20`},
		{2 * time.Hour, `temp / on(room) temp{room="nobody"}`, ``},
	} {
		q, r, err := w.reader.Instant(t.Context(), c.expr, midnight.Add(c.at))
		w.ok(err)
		if got := show(r); got != c.want {
			t.Errorf("at %v, %s:\n got %s\nwant %s", c.at, c.expr, got, c.want)
		}
		q.Close()
	}
}

// TestRange evaluates over the edges between page, ring and head.
func TestRange(t *testing.T) {
	w := promWorld(t)
	for _, c := range []struct {
		from, to, step time.Duration
		expr           string
		want           string
	}{
		{-10 * time.Minute, 10 * time.Minute, 10 * time.Minute, `requests_total{i="1"}`, `{__name__="requests_total", i="1"} 172200@23:50:00 172800@00:00:00 173400@00:10:00`},
		{-20 * time.Hour, 12*time.Hour - time.Minute, 15 * time.Hour, `rate(requests_total{i="2"}[5m])`, `{i="2"} 2@04:00:00 2@19:00:00 2@10:00:00`},
		{-48 * time.Hour, -47 * time.Hour, 30 * time.Minute, `temp{room="b"}`, `{__name__="temp", room="b"} 20@00:00:00 20@00:30:00 20@01:00:00`},
		{10 * time.Hour, 10*time.Hour + time.Minute, 15 * time.Second, `ended`, `{__name__="ended"} 1@10:00:00`},
		{10*time.Hour + 4*time.Minute, 10*time.Hour + 6*time.Minute, time.Minute, `silent`, `{__name__="silent"} 1@10:04:00`},
		{0, 0, time.Minute, `1`, `{} 1@00:00:00`},
		{11 * time.Hour, 13 * time.Hour, time.Hour, `temp{room="a"}`, `{__name__="temp", room="a"} 10@11:00:00 10@12:00:00`}, // now, and an hour on
	} {
		q, r, err := w.reader.Range(t.Context(), c.expr, midnight.Add(c.from), midnight.Add(c.to), c.step)
		w.ok(err)
		if got := show(r); got != c.want {
			t.Errorf("from %v to %v, %s:\n got %s\nwant %s", c.from, c.to, c.expr, got, c.want)
		}
		q.Close()
	}
}

// TestEveryStep reads the newest sample at each step of two days and a half, whose value says when it was taken.
func TestEveryStep(t *testing.T) {
	w := promWorld(t)
	q, r, err := w.reader.Range(t.Context(), `requests_total{i="1"}`, midnight.Add(-48*time.Hour), midnight.Add(12*time.Hour-15*time.Second), 45*time.Second)
	w.ok(err)
	defer q.Close()
	m, err := r.Matrix()
	w.ok(err)
	if len(m) != 1 || len(m[0].Floats) != 60*80 {
		t.Fatalf("%d series", len(m))
	}
	for i, p := range m[0].Floats {
		if p.F != float64(45*i) {
			t.Fatalf("step %d: %v, want %d", i, p.F, 45*i)
		}
	}
}

func TestParseErrors(t *testing.T) {
	w := newWorld(t, midnight, 0)
	for _, expr := range []string{"", "{}", "rate(m)", "m[5m", `m{a=~"("}`} {
		if q, _, err := w.reader.Instant(t.Context(), expr, midnight); err == nil {
			t.Errorf("%q is a query: %v", expr, q)
		}
	}
	q, r, err := w.reader.Range(t.Context(), "m[5m]", midnight, midnight, time.Minute)
	if err == nil {
		t.Errorf("a range of ranges: %v %v", q, r)
	}
}
