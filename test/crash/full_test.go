package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func dice0() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

// hall is a daybook on a small disk.
type hall struct {
	*disk
	t      *testing.T
	r      *rand.Rand
	ledger *ledger
	tracks []*track
	flags  []string
	d      *daybook
}

// newHall starts a daybook on a small disk. These tests mostly wait: they run beside each other.
func newHall(t *testing.T, minFree string) *hall {
	t.Parallel()
	h := &hall{disk: newDisk(t), t: t, r: dice(t), ledger: newLedger()}
	h.flags = []string{"--flush.interval=1s", "--wal.min-free-disk=" + minFree, "--table.cache=4MiB"}
	h.tracks = h.ledger.add("crash_disk", 60, time.Now().Add(-40*time.Minute), time.Now().Add(4*time.Minute), 200*time.Millisecond)
	h.d = start(t, h.data(), h.flags...)
	return h
}

// write lets senders write until so many samples are acknowledged.
func (h *hall) write(samples int64) {
	h.t.Helper()
	f := launchFleet(h.d.url, h.r, load{senders: 4, tracks: h.tracks, late: 0.05, again: 0.05, fullSpeed: samples, patient: true})
	await(h.t, time.Minute, "enough samples are written", func() error {
		if f.samples.Load() >= samples {
			return nil
		}
		return h.d.running()
	})
	f.join(h.t)
}

// crowd lets senders write, and the disk become full meanwhile. It returns when nothing is taken any more.
func (h *hall) crowd(leave int64) {
	h.t.Helper()
	f := launchFleet(h.d.url, h.r, load{senders: 4, tracks: h.tracks, late: 0.05, again: 0.05, fullSpeed: 1 << 40, patient: true})
	await(h.t, time.Minute, "some samples are written", func() error {
		if f.samples.Load() >= 5000 {
			return nil
		}
		return h.d.running()
	})
	h.fill(leave)
	await(h.t, time.Minute, "writes are refused", func() error {
		if f.busy.Load() > 20 {
			return nil
		}
		return h.d.running()
	})
	f.join(h.t)
}

// told says whether the log has a line at error level with a text.
func (h *hall) told(text string) bool {
	return slices.ContainsFunc(h.d.errors(), func(m string) bool { return strings.Contains(m, text) })
}

func (h *hall) restart() {
	h.t.Helper()
	h.d.kill()
	h.d = start(h.t, h.data(), h.flags...)
	h.d.verifyStart(h.t, h.ledger)
}

// TestDiskFullReserve lets the disk become too full while there is still the room that is kept free: senders get 503
// and are told what to do, all can be read, and with room again it goes on by itself.
func TestDiskFullReserve(t *testing.T) {
	h := newHall(t, "8MiB")
	h.write(20_000)
	h.fill(6 * mebi)
	a := h.d.awaitRefusal(t, h.tracks[:10])
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	for _, part := range []string{"wal.min_free_disk", "make room", h.data()} {
		if !strings.Contains(a.text, part) {
			t.Errorf("the answer does not say %q: %s", part, a.text)
		}
	}
	h.d.verify(t, h.ledger)
	h.d.awaitFlush() // there is room for that
	if n := h.d.metric("daybook_head_unflushed_samples"); n != 0 {
		t.Errorf("%v samples are not flushed, though there is the room that was kept for it", n)
	}
	h.clear()
	h.d.awaitWrites(t, h.tracks[:10])
	h.write(20_000)
	h.d.verify(t, h.ledger)
	h.restart()
}

// TestDiskFull lets the disk run full to the last byte under load, again and again: in the log, in the table, wherever
// it happens. With room again it goes on by itself, and nothing acknowledged is lost.
func TestDiskFull(t *testing.T) {
	h := newHall(t, "0")
	for range 5 {
		h.crowd(h.r.Int64N(mebi / 2))
		a := h.d.awaitRefusal(t, h.tracks[:10])
		if a.header.Get("Retry-After") == "" || !strings.Contains(a.text, "no space left") {
			t.Errorf("503 with Retry-After %q: %s", a.header.Get("Retry-After"), a.text)
		}
		h.d.verify(t, h.ledger)
		h.clear()
		h.d.awaitWrites(t, h.tracks[:10])
		h.write(5_000)
		h.d.verify(t, h.ledger)
	}
	h.d.awaitFlush()
	h.d.verify(t, h.ledger)
	t.Logf("free at last: %d bytes; errors told about:\n%s", h.free(), lines(h.d.errors()))
	h.restart()
}

// fullInTable has the table run out of room while it writes a flush: the log has what the flush is about.
func (h *hall) fullInTable() {
	h.t.Helper()
	h.write(60_000) // each series has a long open hour, which a flush writes whole
	h.d.awaitFlush()
	for range 10 {
		h.leave(64 << 10) // for a new segment of the log, and not for the flush
		w := new(write)
		for _, k := range h.tracks {
			w.add(k, k.forward(h.r, 1))
		}
		w.post(reading, h.d.url)
		// The table may use the room for something else, and the log has none then: once more.
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if h.told("the disk is full") {
				return
			}
		}
	}
	h.t.Fatal("the table never found the disk full")
}

// TestDiskFullInTable goes on from a table that waits for room in the middle of a flush, in each way that there is.
func TestDiskFullInTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		then func(h *hall)
	}{
		{"room", func(h *hall) {
			h.d.verify(h.t, h.ledger)
			h.clear()
			h.d.awaitWrites(h.t, h.tracks)
			h.d.awaitFlush()
		}},
		{"kill, room, start", func(h *hall) {
			h.d.kill()
			h.clear()
			h.d = start(h.t, h.data(), h.flags...)
		}},
		{"kill, start, room", func(h *hall) {
			h.d.kill()
			h.fill(0)
			what := h.startsFull()
			h.t.Logf("the start on a full disk: %s", what)
			h.clear()
			if what == "ended" {
				h.d = start(h.t, h.data(), h.flags...)
			}
			h.d.awaitReady()
		}},
		{"term, room, start", func(h *hall) {
			h.termFull()
			h.clear()
			h.d = start(h.t, h.data(), h.flags...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHall(t, "0")
			h.fullInTable()
			c.then(h)
			h.d.verifyStart(t, h.ledger)
			h.write(2_000)
			h.d.verify(t, h.ledger)
			h.restart()
		})
	}
}

// startsFull is a start on a full disk: it waits for room and answers 503, ends with an error that says why, or is ready
// and refuses writes later. It says which.
func (h *hall) startsFull() (what string) {
	h.t.Helper()
	h.d = launch(h.t, h.data(), h.flags...)
	var told time.Time
	await(h.t, startWithin, "the outcome of a start on a full disk", func() error {
		select {
		case <-h.d.exited:
			if text := h.d.log.text(); h.d.err == nil || !strings.Contains(text, "no space left") {
				h.t.Errorf("it ended with %v and did not say why: %s", h.d.err, text)
			}
			what = "ended"
			return nil
		default:
		}
		if !h.d.listens() {
			return errors.New("it does not listen")
		}
		status, _, err := h.d.get("/-/ready")
		switch {
		case err == nil && status == 200:
			what = "ready"
		case !h.told("the disk is full"):
			return errors.New("neither ready, nor waiting, nor ended")
		case told.IsZero():
			told = time.Now()
			return errors.New("it may still end")
		case time.Since(told) < 300*time.Millisecond:
			return errors.New("it may still end")
		default:
			what = "waits"
		}
		return nil
	})
	return what
}

// TestStartOnFullDisk starts daybook on a disk with no room, or some that does not suffice, and then with room: nothing
// is lost, and each start that fails says why.
func TestStartOnFullDisk(t *testing.T) {
	h := newHall(t, "0")
	h.write(20_000)
	h.d.kill()
	var outcomes []string
	for _, leave := range []int64{0, 4 << 10, 12 << 10, 24 << 10, 48 << 10, 96 << 10, 300 << 10} {
		h.fill(leave)
		what := h.startsFull()
		if what == "waits" {
			if status, _, _ := h.d.get("/-/ready"); status != 503 {
				t.Errorf("it waits, and /-/ready has status %d", status)
			}
			h.termFull()
		}
		outcomes = append(outcomes, fmt.Sprintf("%d bytes: %s", leave, what))
		h.d.kill()
		h.clear()
	}
	t.Logf("with so much room: %v", outcomes)
	h.d = start(t, h.data(), h.flags...)
	h.d.verifyStart(t, h.ledger)
	h.write(2_000)
	h.restart()
}

// TestFirstStartOnFullDisk makes a data directory where there is no room, and then with room.
func TestFirstStartOnFullDisk(t *testing.T) {
	h := newHall(t, "0")
	h.d.term()
	for _, leave := range []int64{0, 4 << 10, 8 << 10, 16 << 10} {
		if err := os.RemoveAll(h.data()); err != nil {
			t.Fatal(err)
		}
		h.fill(leave)
		what := h.startsFull()
		h.d.kill()
		h.clear()
		h.d = start(t, h.data(), h.flags...)
		t.Logf("with %d bytes of room: %s, and ready with more", leave, what)
		h.write(500)
		h.d.verify(t, h.ledger)
		h.d.kill()
		h.ledger.forget()
	}
}

// termFull sends SIGTERM to a daybook that cannot flush: it must end all the same, and say what is up.
func (h *hall) termFull() {
	h.t.Helper()
	if err := h.d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	text := h.d.fails(stopWithin)
	full := strings.Contains(text, "stopped while the disk was full") || strings.Contains(text, "no space left")
	if !full || !strings.Contains(text, "nothing is lost") {
		h.t.Errorf("it does not say why it ended: %s", text)
	}
}
