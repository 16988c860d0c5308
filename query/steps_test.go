package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"daybook/internal/series"
	"daybook/internal/table"
)

// ragged gives a series with gaps, stale markers, NaN and odd times.
func ragged(r *rand.Rand, from, to time.Time) (samples []series.Sample) {
	at := series.MillisOf(from)
	for end := series.MillisOf(to); at < end; at += series.Millis(1 + r.IntN(40_000)) {
		v := float64(r.IntN(1000)) / 10
		switch r.IntN(60) {
		case 0:
			at += series.Millis(r.IntN(3 * 3600_000))
		case 1:
			v = math.Float64frombits(value.StaleNaN)
		case 2:
			v = math.NaN()
		}
		samples = append(samples, series.Sample{T: at, V: v})
	}
	return samples
}

// TestStepsSeeTheSame evaluates with all samples read, and with only those that the steps look at.
func TestStepsSeeTheSame(t *testing.T) {
	now := midnight.Add(9 * time.Hour)
	w := newWorld(t, now, series.MillisOf(midnight).Day()-1)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 12 {
		all := ragged(r, midnight.Add(-40*time.Hour), now)
		entry := w.load(metric([]string{"a", "b", "c"}[i%3], "i", fmt.Sprint(i)), all[:len(all)-20])
		w.head.samples[entry.ID] = all[len(all)-40:]
	}
	whole := func(expr string, from, to time.Time, step time.Duration) string {
		everything := w.reader.Queryable()
		q, err := w.reader.engine.NewRangeQuery(t.Context(), everything, nil, expr, from, to, step)
		w.ok(err)
		defer q.Close()
		return show(q.Exec(t.Context()))
	}
	read := 0
	for _, expr := range []string{
		"a", "a offset 17m", "a offset -1h", "sum by (i) (b)", "avg(a)", "topk(2, c)", "a + on() group_left b{i='1'}", "a @ 1796083200",
		"a @ end()", "rate(a[5m])", "count_over_time(b[90s])", "last_over_time(c[1h] offset 1h)", "timestamp(a)", "absent(a{i='3'})",
		"max_over_time(b[1ms])", "count_over_time(a[2m] @ 1796083200)", "quantile(0.9, c)", "quantile by (i) (0.3, {__name__=~\"a|b|c\"})", "count(a offset 5m) or count(b)", "-a", "abs(b) > 20",
		"max_over_time(a[30m:1m])", "sum(rate(b[2m]))[10m:3m]", "sort(a)", "present_over_time(c[31s])",
	} {
		for _, step := range []time.Duration{time.Millisecond, 13 * time.Second, time.Minute, 10 * time.Minute, 61 * time.Minute, 5 * time.Hour} {
			to := now.Add(-time.Duration(r.IntN(40*3600_000)) * time.Millisecond)
			from := to.Add(-step * time.Duration(r.IntN(100)))
			if expr == "sum(rate(b[2m]))[10m:3m]" {
				continue // only an instant can be asked for it
			}
			q, result, err := w.reader.Range(t.Context(), expr, from, to, step)
			w.ok(err)
			got := show(result)
			q.Close()
			if want := whole(expr, from, to, step); got != want {
				t.Fatalf("%s from %v to %v step %v:\n%s\nwant\n%s", expr, from, to, step, got, want)
			}
			read += len(got)
		}
		at := now.Add(-time.Duration(r.IntN(40*3600_000)) * time.Millisecond)
		q, result, err := w.reader.Instant(t.Context(), expr, at)
		w.ok(err)
		got := show(result)
		q.Close()
		everything := w.reader.Queryable()
		q, err = w.reader.engine.NewInstantQuery(t.Context(), everything, nil, expr, at)
		w.ok(err)
		want := q.Exec(t.Context())
		sortUnordered(q, want)

		if show(want) != got {
			t.Fatalf("%s at %v:\n%s\nwant\n%s", expr, at, got, show(want))
		}
		q.Close()
	}
	if read < 10_000 {
		t.Errorf("the queries gave only %d bytes: they test nothing", read)
	}
}

// TestReadsOfManySeries scans a metric's rows where most of them are wanted, and reads single ones otherwise.
func TestReadsOfManySeries(t *testing.T) {
	w := newWorld(t, midnight.Add(9*time.Hour), series.MillisOf(midnight).Day()-1)
	const n = 200
	for i := range n {
		w.load(metric("m", "i", fmt.Sprint(i), "third", fmt.Sprint(i%3 == 0)), steps(midnight.Add(-28*24*time.Hour), w.now, 2*time.Hour, math.Sqrt))
		w.load(metric("other", "i", fmt.Sprint(i)), steps(midnight, w.now, time.Hour, math.Sqrt))
	}
	cost := func(expr string, from, to time.Time, step time.Duration) (*table.Cost, *promql.Result, SelectorPlan) {
		t.Helper()
		c, e := new(table.Cost), new(Explanation)
		ctx := WithExplanation(table.WithCost(t.Context(), c), e)
		q, result, err := w.reader.Range(ctx, expr, from, to, step)
		w.ok(err)
		w.ok(result.Err)
		t.Cleanup(q.Close)
		return c, result, e.Selectors()[0]
	}
	const pages = 2 // of an answer: the model gives an empty one before the one with rows
	day := w.now.Add(10*time.Minute - 24*time.Hour)
	c, result, plan := cost("m", day, w.now, time.Minute)
	if got := len(result.Value.(promql.Matrix)); got != n {
		t.Fatalf("%d series, want %d", got, n)
	}
	if c.RangeReads.Load() > 16*2*pages || c.PointReads.Load() > 16*2 || c.RowsScanned.Load() > n {
		t.Errorf("24 h of all: %d point reads, %d range reads, %d rows", c.PointReads.Load(), c.RangeReads.Load(), c.RowsScanned.Load())
	}
	if plan.Series != n || plan.Rows != n || plan.PageDays != 0 || plan.RingHours == 0 || plan.Scanned < n*9/10 {
		t.Errorf("the plan is %+v", plan)
	}
	c, _, plan = cost(`m{third="true"}`, day, w.now, time.Minute)
	if c.RangeReads.Load() > 0 || c.PointReads.Load() != int64(plan.Series) || plan.Scanned != 0 {
		t.Errorf("24 h of a third: %d point reads, %d range reads of %d series", c.PointReads.Load(), c.RangeReads.Load(), plan.Series)
	}
	c, _, _ = cost("m", midnight.Add(-26*24*time.Hour), w.now, 15*time.Minute)
	if rows := c.RowsScanned.Load(); rows < n*20 || rows > n*30 || c.RangeReads.Load() > 16*8*pages {
		t.Errorf("26 days of all: %d rows in %d range reads", rows, c.RangeReads.Load())
	}
	// A step that looks at a few hours reads the slots of these and no others.
	c, _, plan = cost("m", w.now.Add(-8*time.Hour), w.now, 4*time.Hour)
	if c.Slots.Load() > 3*2*n || plan.RingHours > 6 {
		t.Errorf("three instants: %d slots decoded, %d hours of the ring", c.Slots.Load(), plan.RingHours)
	}
}

// TestMaxRows refuses a query that would read too much, and says which setting that is.
func TestMaxRows(t *testing.T) {
	w := newWorld(t, midnight.Add(9*time.Hour), series.MillisOf(midnight).Day()-1)
	w.load(metric("m"), steps(midnight.Add(-100*24*time.Hour), w.now, time.Hour, math.Sqrt))
	cfg := w.config()
	cfg.MaxRows = 90
	r := New(cfg, w.store, w.index, &w.head)
	for expr, fits := range map[string]bool{"count_over_time(m[80d])": true, "count_over_time(m[95d])": false, "m + count_over_time(m[60d]) + count_over_time(m[40d])": false} {
		q, result, err := r.Instant(t.Context(), expr, w.now)
		w.ok(err)
		if fits && result.Err != nil || !fits && (result.Err == nil || !errorNames(result.Err, "query.max_rows", "90")) {
			t.Errorf("%s: %v", expr, result.Err)
		}
		q.Close()
	}
}
