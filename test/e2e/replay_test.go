package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestReplay writes recorded traffic into daybook and reads all of it back: out of memory, from the write-ahead log
// after a crash, from the table after an orderly restart, and when everything has been sent a second time.
func TestReplay(t *testing.T) {
	recorded := readRecording(t)

	// The recording lies across three hours and a midnight. No flush comes between, so that the crash leaves the
	// write-ahead log alone to bring everything back.
	t.Run("original times", func(t *testing.T) {
		d := startDaybook(t, "1h")
		want := recorded.content(t)
		replay(t, d, recorded)
		expectEqual(t, "from memory", d.readBack(t, want), want)
		d.crash(t)
		expectEqual(t, "after kill -9", d.readBack(t, want), want)
		d.restart(t)
		expectEqual(t, "after a restart", d.readBack(t, want), want)
		d.crash(t)
		expectEqual(t, "after kill -9 of a restarted one", d.readBack(t, want), want)
		replay(t, d, recorded)
		expectEqual(t, "sent again", d.readBack(t, want), want)
	})

	// As if the sender were at work now: the open hour is written in several flushes, and the crash finds a part of it
	// in the table and a part in the write-ahead log.
	t.Run("shifted to now", func(t *testing.T) {
		d := startDaybook(t, "2s")
		shifted := recorded.endingAt(t, time.Now())
		want := shifted.content(t)
		half := len(shifted) / 2
		replay(t, d, shifted[:half])
		// One cycle may have begun before the last request, the next one has not.
		d.awaitFlushes(t, d.flushes(t)+2, time.Minute)
		replay(t, d, shifted[half:])
		d.crash(t)
		expectEqual(t, "after kill -9", d.readBack(t, want), want)
		d.awaitFlushes(t, 2, time.Minute)
		expectEqual(t, "after a flush", d.readBack(t, want), want)
		d.restart(t)
		expectEqual(t, "after a restart", d.readBack(t, want), want)
		replay(t, d, shifted)
		d.restart(t)
		expectEqual(t, "sent again", d.readBack(t, want), want)
	})
}

// replay sends a recording, one request after the other as fast as it goes. Each must be accepted.
func replay(t *testing.T, to *daybook, r recording) {
	t.Helper()
	for i, q := range r {
		if status, text := to.write(t, q.Header, q.Body); status/100 != 2 {
			t.Fatalf("recorded request %d was answered with %d: %.300s", i, status, text)
		}
	}
}

// readBack reads the samples of all metrics in the time that want covers.
func (a api) readBack(t *testing.T, want samples) samples {
	t.Helper()
	first, last := want.span()
	return a.readAll(t, first, last)
}

// readAll reads the samples of all metrics from the first to the last millisecond, one metric a query.
func (a api) readAll(t *testing.T, first, last int64) samples {
	t.Helper()
	all := make(samples)
	for _, name := range a.names(t) {
		for key, points := range a.raw(t, fmt.Sprintf("{__name__=%q}", name), first, last) {
			all[key] = points
		}
	}
	return all
}
