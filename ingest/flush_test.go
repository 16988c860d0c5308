package ingest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"daybook/ingest"
	"daybook/internal/series"
)

func at(tm time.Time, v float64) series.Sample { return series.Sample{T: series.MillisOf(tm), V: v} }

// expect compares what there is of a metric, anywhere, with samples in order of time.
func (w *world) expect(metric string, want ...series.Sample) {
	w.tb.Helper()
	truth := map[series.Millis]uint64{}
	for _, s := range want {
		truth[s.T] = math.Float64bits(s.V)
	}
	got, err := w.all(w.id(metric))
	must(w.tb, err)
	if err := same(truth, got); err != nil {
		w.tb.Errorf("%s: %v", metric, err)
	}
}

// Hours that are older than the ring lie in pages only. After a restart, what the ring has says nothing of them.
func TestBackfilledHourIsNotOverwritten(t *testing.T) {
	w := newWorld(t, nil)
	newer := at(day0.Add(-5*24*time.Hour), 1)
	w.put(metric("m", newer))
	must(t, w.restart())
	older := at(day0.Add(-10*24*time.Hour), 2)
	w.put(metric("m", older))
	must(t, w.flush())
	beside := series.Sample{T: newer.T + 1000, V: 3} // of the hour that the first process wrote
	w.put(metric("m", beside))
	must(t, w.flush())
	w.expect("m", older, newer, beside)
}

// The same with the ring of a series that ended days ago.
func TestBackfillBehindAnOldRing(t *testing.T) {
	w := newWorld(t, nil)
	ended := at(day0, 1)
	w.put(metric("m", ended))
	must(t, w.flush())
	w.now.add(10 * 24 * time.Hour)
	filled := at(day0.Add(5*24*time.Hour), 2)
	w.put(metric("m", filled))
	must(t, w.restart())
	live := at(w.now.Now(), 4)
	beside := series.Sample{T: filled.T + 1000, V: 3}
	for _, s := range []series.Sample{ended, live, beside} {
		w.put(metric("m", s))
		must(t, w.flush())
	}
	w.expect("m", ended, filled, beside, live)
}

// A clock that was ahead and is put back can have hours in memory that share a slot of the ring.
func TestTwoHoursOfOneRingSlot(t *testing.T) {
	w := newWorld(t, nil)
	ahead := at(day0, 1)
	w.put(metric("m", ahead))
	w.now.add(-6 * time.Hour)
	behind := at(day0.Add(-26*time.Hour), 2)
	w.put(metric("m", behind))
	must(t, w.flush())
	w.expect("m", behind, ahead)
}

// Where two values for a time are in the log and, after a crash, neither is in the table, the first one stays.
func TestFirstValueStaysAfterCrash(t *testing.T) {
	w := newWorld(t, nil)
	first, open := at(day0.Add(-3*time.Hour), 1), at(day0, 0)
	// A long request, so that whoever reads the log out of order has the second one first.
	request := []prompb.TimeSeries{metric("m", open)}
	for i := range 5000 {
		request = append(request, metric(fmt.Sprintf("other%d", i), open))
	}
	w.put(append(request, metric("m", first))...)
	w.service.Add(failSync) // so that the log keeps everything, and the hour leaves memory all the same
	if err := w.flush(); err == nil {
		t.Fatal("the flush went through")
	}
	w.put(metric("m", series.Sample{T: first.T, V: 2}))
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 2))))
	w.expect("m", first, open)
	must(t, w.flush())
	w.expect("m", first, open)
}

// What was acknowledged is read back even where a limit would refuse it by now.
func TestReplayKnowsNoLimits(t *testing.T) {
	limit := 1000
	w := newWorld(t, func(c *ingest.Config) { c.MaxPerHour = limit })
	var all []series.Sample
	for i := range 100 {
		all = append(all, at(day0.Add(-time.Duration(100-i)*time.Second), float64(i)))
	}
	w.put(metric("m", all...))
	limit = 10
	w.now.add(2 * retention)
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	w.expect("m", all...)
	must(t, w.flush())
	w.expect("m", all...)
}
