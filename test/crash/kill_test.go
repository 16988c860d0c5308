package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// busyFlags have daybook flush, close and seal all the time.
var busyFlags = []string{
	"--flush.interval=1s", "--flush.wal-size=256KiB", "--rollup.close-after=1s", "--rollup.close-over=2s",
	"--rollup.seal-after=1s", "--table.cache=4MiB",
}

const killSenders = 6

// TestKillNine kills daybook again and again on one store that grows: each time everything that was acknowledged must
// be there after the restart, once and bit for bit, and nothing else.
func TestKillNine(t *testing.T) {
	r := dice(t)
	now := time.Now()
	s := &siege{t: t, r: r, dir: t.TempDir(), ledger: newLedger()}
	// Live series go from before the ring until now, over every hour; history is days old, in order.
	s.live = s.ledger.add("crash_live", 240, now.Add(-25*time.Hour), now.Add(4*time.Minute), 40*time.Second)
	s.history = s.ledger.add("crash_history", 60, now.Add(-9*24*time.Hour), now.Add(-3*24*time.Hour), time.Minute)
	planned := []moment{
		inFlush, atRotation, anyTime, inTableFlush, atDrop, inClosing, anyTime, inSealing, inFlush, atRotation,
		inClosing, anyTime, inTableFlush, atDrop, inFlush, inClosing, anyTime, atRotation, inSealing, anyTime,
	}
	rounds := len(planned)
	if text := os.Getenv("DAYBOOK_CRASH_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("DAYBOOK_CRASH_ROUNDS: %v", err)
		}
	}
	for n := range rounds {
		s.round(n, planned[n%len(planned)])
	}
	s.last()
	if rounds >= len(planned) && s.inFlush < rounds/4 {
		t.Errorf("only %d of %d kills landed in a flush", s.inFlush, rounds)
	}
}

// TestKillNineYoung kills daybook soon after it has made its store, and while it makes it.
func TestKillNineYoung(t *testing.T) {
	r := dice(t)
	now := time.Now()
	for n, m := range []moment{anyTime, inFlush, inTableFlush, atRotation} {
		s := &siege{t: t, r: r, dir: t.TempDir(), ledger: newLedger()}
		s.live = s.ledger.add("crash_young", 100, now.Add(-2*time.Hour), now.Add(4*time.Minute), 15*time.Second)
		for range 8 {
			d := launch(t, s.dir, busyFlags...)
			time.Sleep(upTo(r, 60*time.Millisecond))
			d.kill()
		}
		s.round(n, m)
		s.last()
	}
}

// siege is a store that is killed again and again.
type siege struct {
	t       *testing.T
	r       *rand.Rand
	dir     string
	ledger  *ledger
	live    []*track
	history []*track
	inFlush int // kills that landed there
}

// round starts daybook on what the round before left, verifies, lets the senders at it and kills it.
func (s *siege) round(n int, m moment) {
	s.t.Helper()
	if m.before != nil && n > 0 {
		if err := m.before(s.dir); err != nil {
			s.t.Fatalf("round %d: preparing: %v", n, err)
		}
	}
	if n%4 == 3 { // dies while it starts
		d := launch(s.t, s.dir, busyFlags...)
		time.Sleep(upTo(s.r, 120*time.Millisecond))
		d.kill()
	}
	d := start(s.t, s.dir, busyFlags...)
	ready := time.Since(d.begun)
	have := d.verifyStart(s.t, s.ledger)
	verified := time.Since(d.begun) - ready
	tracks := s.live
	if n%2 == 1 {
		tracks = append(tracks[:len(tracks):len(tracks)], s.history...)
	}
	f := launchFleet(d.url, s.r, load{senders: killSenders, tracks: tracks, late: 0.1, again: 0.05, fullSpeed: 30_000})
	seen := m.await(d, s.dir, s.r)
	d.kill()
	f.join(s.t)
	for _, message := range d.errors() {
		s.t.Errorf("round %d: an error in the log: %s", n, message)
	}
	if !seen {
		s.t.Errorf("round %d: %s was waited for and not seen", n, m.name)
	}
	l := landed(s.dir)
	if l.segments > 1 {
		s.inFlush++
	}
	if l.damaged > 0 {
		s.t.Errorf("round %d: %d segments of the log are damaged", n, l.damaged)
	}
	s.t.Logf("round %2d: %6d samples verified in %v, ready in %v; %6d acknowledged in %5d requests; killed at %s: %v",
		n, have, verified.Round(time.Millisecond), ready.Round(time.Millisecond), f.samples.Load(), f.requests.Load(), m.name, l)
}

// last starts daybook once more, verifies, ends it in peace, and verifies once more, with nothing in the log.
func (s *siege) last() {
	s.t.Helper()
	d := start(s.t, s.dir, busyFlags...)
	d.verifyStart(s.t, s.ledger)
	took := d.term()
	if all := segments(s.dir); len(all) > 0 {
		s.t.Errorf("after SIGTERM the log has %v", all)
	}
	d = start(s.t, s.dir, busyFlags...)
	have := d.verify(s.t, s.ledger)
	all, must := s.ledger.counts()
	s.t.Logf("at last: ended in %v; %d samples sent, %d must be there, %d are", took.Round(time.Millisecond), all, must, have)
}
