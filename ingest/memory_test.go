package ingest_test

import (
	"testing"
	"time"

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
