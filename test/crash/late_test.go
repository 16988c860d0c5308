package crash

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"
)

// TestOldHoursAfterRestart goes on in an hour that was flushed before a kill, after the process that came then has
// flushed an earlier hour of the same series: it must not take the later hour for new, and replace what is stored.
func TestOldHoursAfterRestart(t *testing.T) {
	l := newLedger()
	dir := t.TempDir()
	hour := time.Now().Add(-5 * 24 * time.Hour).Truncate(time.Hour)
	live := time.Now().Add(-30 * time.Hour).Truncate(time.Hour)
	tracks := l.add("crash_old", 10, hour, time.Now(), time.Minute)

	d := start(t, dir, busyFlags...)
	d.send(t, tracks, hour.Add(time.Minute), hour.Add(3*time.Hour), live)
	d.awaitFlush()
	d.kill()

	d = start(t, dir, busyFlags...)
	d.verifyStart(t, l)
	d.send(t, tracks, hour.Add(10*time.Minute))
	d.awaitFlush()
	d.send(t, tracks, hour.Add(3*time.Hour+10*time.Minute), live.Add(10*time.Minute))
	d.awaitFlush()
	d.verify(t, l)
	d.term()
	d = start(t, dir, busyFlags...)
	d.verify(t, l)
}

// send sends one request with a sample of each series at each of the times, which must be taken.
func (d *daybook) send(t *testing.T, tracks []*track, times ...time.Time) {
	t.Helper()
	w := new(write)
	for _, k := range tracks {
		var samples []prompb.Sample
		for _, at := range times {
			samples = append(samples, k.at(at))
		}
		w.add(k, samples)
	}
	if a := w.post(reading, d.url); !a.ok() {
		t.Fatalf("a write was answered with status %d: %s", a.status, a.text)
	}
}

// awaitFlush waits until a round that began after now has written all that is in memory.
func (d *daybook) awaitFlush() {
	d.t.Helper()
	before := d.metric("daybook_flush_cycles_total")
	await(d.t, time.Minute, "a whole flush", func() error {
		if d.metric("daybook_flush_cycles_total") >= before+2 {
			return nil
		}
		return d.running()
	})
}
