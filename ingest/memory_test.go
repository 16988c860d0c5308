package ingest_test

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"

	"daybook/internal/series"
)

// Hours are counted while they are in memory: those that are not flushed, and the newest of each series.
func TestMemory(t *testing.T) {
	w := newWorld(t, nil)
	if m := w.in.Memory(); m.Hours != 0 || m.First <= m.Last {
		t.Errorf("of nothing: %+v", m)
	}
	w.put(metric("m", at(day0.Add(-3*time.Hour), 1), at(day0, 2)), metric("n", at(day0, 3)))
	first, last := series.MillisOf(day0.Add(-3*time.Hour)).Hour().Start(), (series.MillisOf(day0).Hour()+1).Start()-1
	if m := w.in.Memory(); m.Hours != 3 || m.First != first || m.Last != last {
		t.Errorf("before the flush: %+v, want 3 hours from %d to %d", m, first, last)
	}
	must(t, w.flush())
	if m := w.in.Memory(); m.Hours != 2 || m.First != series.MillisOf(day0).Hour().Start() || m.Last != last {
		t.Errorf("after the flush: %+v", m)
	}
}

// All of time has its ends at the ends of the numbers.
func TestAlways(t *testing.T) {
	w := newWorld(t, nil)
	ts := metric("m", at(day0, 1))
	ts.Exemplars = []prompb.Exemplar{{Timestamp: day0.UnixMilli(), Value: 1, Labels: []prompb.Label{{Name: "trace_id", Value: "a"}}}}
	h := prompb.FromIntHistogram(day0.UnixMilli()+1, &histogram.Histogram{Count: 1, ZeroCount: 1, Sum: 0})
	ts.Histograms = []prompb.Histogram{h}
	w.put(ts)
	head, id := w.in.Head(), w.id("m")
	from, to := series.Millis(math.MinInt64), series.Millis(math.MaxInt64)
	if n := len(head.Samples(nil, id, from, to)); n != 1 {
		t.Errorf("%d samples", n)
	}
	if n := len(head.Histograms(nil, id, from, to)); n != 1 {
		t.Errorf("%d histograms", n)
	}
	if n := len(head.Exemplars(nil, id, from, to)); n != 1 {
		t.Errorf("%d exemplars", n)
	}
}
