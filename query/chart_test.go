package query

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/table"
)

// TestChartIsOnePointRead asks for the last 24 h in every minute around a midnight, with the day before closed and not.
func TestChartIsOnePointRead(t *testing.T) {
	start := midnight.Add(-2 * time.Hour)
	for _, late := range []bool{false, true} {
		w := newWorld(t, start, series.MillisOf(midnight).Day()-2)
		all := steps(start.Add(-23*time.Hour), start.Add(5*time.Hour), time.Minute, func(s float64) float64 { return s })
		now := series.MillisOf(start)
		entry := w.load(metric("m"), between(all, 0, now))
		for minute := range 4 * 60 {
			w.now = start.Add(time.Duration(minute) * time.Minute)
			now = series.MillisOf(w.now)
			if w.now.Equal(midnight.Add(time.Hour)) && !late {
				w.closeDays(series.MillisOf(midnight).Day() - 1)
			}
			flushed := between(all, now.Hour().Start(), now)
			if late && (now.Hour()-26).Day() > w.store.Closed() {
				w.closeDays(series.MillisOf(midnight).Day() - 1) // at the last moment, when a slot of the ring is needed
			}
			w.load(metric("m"), flushed)
			cost := new(table.Cost)
			c, err := w.reader.Chart(table.WithCost(t.Context(), cost), []*index.Series{entry}, "24h", 0)
			w.ok(err)
			if cost.PointReads.Load() != 1 || cost.RangeReads.Load() != 0 || cost.RowsScanned.Load() != 0 {
				t.Fatalf("at %v: %d point reads, %d range reads of %d rows", w.now, cost.PointReads.Load(), cost.RangeReads.Load(), cost.RowsScanned.Load())
			}
			if c.From != now-series.MillisPerDay || c.To != now || c.Span != "24h" || len(c.Series) != 1 {
				t.Fatalf("at %v: the chart goes from %d to %d", w.now, c.From, c.To)
			}
			var got []series.Sample
			for i, at := range c.Series[0].T {
				got = append(got, series.Sample{T: at, V: c.Series[0].V[i]})
			}
			same(t, w.now.String(), got, between(all, c.From, c.To))
		}
	}
}

// TestChartHasWhatIsNotFlushed wants samples of the head in the chart.
func TestChartHasWhatIsNotFlushed(t *testing.T) {
	w := newWorld(t, midnight.Add(time.Hour), series.MillisOf(midnight).Day()-1)
	all := steps(midnight.Add(-2*time.Hour), w.now, time.Minute, func(s float64) float64 { return s })
	entry := w.load(metric("m"), all[:100])
	w.head.samples[entry.ID] = all[90:]
	c, err := w.reader.Chart(t.Context(), []*index.Series{entry}, "24h", 0)
	w.ok(err)
	if len(c.Series[0].T) != len(all) {
		t.Errorf("the chart has %d samples, want %d", len(c.Series[0].T), len(all))
	}
}

func TestChartLimits(t *testing.T) {
	w := newWorld(t, midnight, series.MillisOf(midnight).Day()-1)
	var found []*index.Series
	for i := range 5 {
		found = append(found, w.load(metric("m", "i", fmt.Sprint(i)), steps(midnight.Add(-time.Hour), midnight, time.Minute, math.Sqrt)))
	}
	for _, c := range []struct{ limit, drawn int }{{0, 3}, {-1, 3}, {1, 1}, {3, 3}, {4, 3}} {
		chart, err := w.reader.Chart(t.Context(), found, "24h", c.limit)
		w.ok(err)
		if len(chart.Series) != c.drawn || chart.Left != 5-c.drawn {
			t.Errorf("limit %d: %d series and %d left out, want %d drawn of 5", c.limit, len(chart.Series), chart.Left, c.drawn)
		}
		for i, l := range chart.Series {
			if l.ID != found[i].ID || len(l.T) != 60 {
				t.Errorf("limit %d: line %d is of series %v with %d samples", c.limit, i, l.ID, len(l.T))
			}
		}
	}
	chart, err := w.reader.Chart(t.Context(), nil, "24h", 0)
	w.ok(err)
	if len(chart.Series) != 0 || chart.Left != 0 {
		t.Errorf("a chart of nothing has %d series and %d left out", len(chart.Series), chart.Left)
	}
	for _, span := range []string{"", "31d", "1y", "24H"} {
		if _, err := w.reader.Chart(t.Context(), found, span, 0); !errors.Is(err, ErrBadQuery) {
			t.Errorf("span %q: the error is %v", span, err)
		}
	}
	if got := w.reader.Find(found[2].ID); len(got) != 1 || got[0] != found[2] || w.reader.Find(series.ID{}) != nil {
		t.Errorf("found by id: %v", got)
	}
}

// TestLine wants what cannot be drawn as NaN, everything else bit for bit, and one NaN in a gap.
func TestLine(t *testing.T) {
	nan, stale := math.NaN(), math.Float64frombits(value.StaleNaN)
	type at struct {
		seconds int
		v       float64
	}
	for _, c := range []struct {
		name     string
		in, want []at
	}{
		{"nothing", nil, nil},
		{"a single one", []at{{0, 1}}, []at{{0, 1}}},
		{"two far apart", []at{{0, 1}, {9000, 2}}, []at{{0, 1}, {9000, 2}}}, // nobody knows what is usual
		{
			"special values",
			[]at{{0, 1.5}, {15, math.Inf(1)}, {30, math.Inf(-1)}, {45, math.Copysign(0, -1)}, {60, 5e-324}, {75, nan}, {90, stale}, {105, math.MaxFloat64}},
			[]at{{0, 1.5}, {15, nan}, {30, nan}, {45, math.Copysign(0, -1)}, {60, 5e-324}, {75, nan}, {90, nan}, {105, math.MaxFloat64}},
		},
		{"a few missing", []at{{0, 1}, {15, 2}, {30, 3}, {105, 4}, {120, 5}}, []at{{0, 1}, {15, 2}, {30, 3}, {105, 4}, {120, 5}}},
		{"a gap", []at{{0, 1}, {15, 2}, {30, 3}, {106, 4}, {121, 5}}, []at{{0, 1}, {15, 2}, {30, 3}, {45, nan}, {106, 4}, {121, 5}}},
		{"stopped and started", []at{{0, 1}, {15, 2}, {30, stale}, {906, 4}, {921, 5}}, []at{{0, 1}, {15, 2}, {30, nan}, {906, 4}, {921, 5}}},
		{
			"a lone point between gaps",
			[]at{{0, 1}, {15, 2}, {30, 3}, {900, 4}, {1800, 5}, {1815, 6}, {1830, 7}},
			[]at{{0, 1}, {15, 2}, {30, 3}, {45, nan}, {900, 4}, {915, nan}, {1800, 5}, {1815, 6}, {1830, 7}},
		},
	} {
		var in []series.Sample
		for _, s := range c.in {
			in = append(in, series.Sample{T: series.Millis(s.seconds) * 1000, V: s.v})
		}
		l := line(new(index.Series), in)
		var got []at
		for i := range l.T {
			got = append(got, at{int(l.T[i] / 1000), l.V[i]})
		}
		if !slices.EqualFunc(got, c.want, func(a, b at) bool {
			return a.seconds == b.seconds && (math.Float64bits(a.v) == math.Float64bits(b.v) || math.IsNaN(a.v) && math.IsNaN(b.v))
		}) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUsualDistance(t *testing.T) {
	for _, c := range []struct {
		times []series.Millis
		want  series.Millis
	}{
		{nil, 0}, {[]series.Millis{5}, 0}, {[]series.Millis{5, 7}, 0}, {[]series.Millis{0, 15, 30}, 15},
		{[]series.Millis{0, 15, 30, 45, 9000}, 15}, {[]series.Millis{-30, -15, 0, 1, 2, 3}, 1},
	} {
		var samples []series.Sample
		for _, at := range c.times {
			samples = append(samples, series.Sample{T: at})
		}
		if got := usualDistance(samples); got != c.want {
			t.Errorf("%v: %d, want %d", c.times, got, c.want)
		}
	}
}
