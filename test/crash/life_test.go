package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSecondProcess starts a second daybook on the directory of a running one: it must end and say why.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	text := launch(t, dir).fails(startWithin)
	for _, part := range []string{dir, fmt.Sprint(first.cmd.Process.Pid), "another daybook is using the data directory"} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
	if status, _, err := first.get("/-/ready"); status != 200 {
		t.Errorf("the first one: status %d, %v", status, err)
	}
	first.kill()
	start(t, dir) // a lock does not outlive its process
}

// TestNewerFormat has daybook refuse a directory that a newer one wrote, and leave it alone.
func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	start(t, dir).term()
	name, text := filepath.Join(dir, "FORMAT"), "daybook data directory, format 2\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := launch(t, dir).fails(startWithin)
	for _, part := range []string{dir, "format 2", "up to 1", "newer version of daybook"} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
	if now, err := os.ReadFile(name); err != nil || string(now) != text {
		t.Errorf("FORMAT says %q now, %v", now, err)
	}
}

// TestTermFlushes sends SIGTERM while senders are at work: requests under way are answered, what was acknowledged is in
// the table, and the log is empty.
func TestTermFlushes(t *testing.T) {
	r := dice(t)
	dir, l := t.TempDir(), newLedger()
	tracks := l.add("crash_term", 300, time.Now().Add(-10*time.Hour), time.Now(), 15*time.Second)
	for range 3 {
		d := start(t, dir, quietFlags...)
		f := launchFleet(d.url, r, load{senders: killSenders, tracks: tracks, late: 0.1, again: 0.05, fullSpeed: 1 << 40})
		time.Sleep(300*time.Millisecond + upTo(r, 300*time.Millisecond))
		took := d.term()
		f.join(t)
		if all := segments(dir); len(all) > 0 {
			t.Errorf("after SIGTERM the log has %v", all)
		}
		if all := d.errors(); len(all) > 0 {
			t.Errorf("errors in the log:\n%s", lines(all))
		}
		d = start(t, dir, quietFlags...)
		ready := time.Since(d.begun)
		have := d.verify(t, l) // does not settle, so that what was not acknowledged can be told
		if n := f.handled(d.readAll(t)); n > 0 {
			t.Errorf("%d requests were handled and not answered", n)
		}
		t.Logf("ended in %v, %d acknowledged, %d there, ready in %v", took.Round(time.Millisecond), f.samples.Load(), have, ready.Round(time.Millisecond))
		d.kill()
	}
}

// handled counts the requests without an answer that are in daybook all the same. A request that came too late, on a
// connection that was being closed, is not.
func (f *fleet) handled(found map[string][]point) (n int) {
	for _, w := range f.unanswered {
		for i, k := range w.tracks {
			if k.stored(found[k.key], w.series[i].Samples[0].Timestamp) {
				n++
				break
			}
		}
	}
	return n
}

// stored says whether a sample that was not acknowledged is among those found.
func (k *track) stored(found []point, t int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, _ := k.search(t)
	return !k.sent[i].must && slices.ContainsFunc(found, func(p point) bool { return p.t == t })
}

// TestReadySoon restarts daybook on 20,000 series, after SIGTERM and after SIGKILL.
func TestReadySoon(t *testing.T) {
	const (
		count  = 20_000
		atOnce = 2_000
		soon   = 20 * time.Second // two seconds is what it should be; machines differ
	)
	dir, l := t.TempDir(), newLedger()
	base := time.Now().Add(-time.Hour)
	tracks := l.add("crash_many", count, base, time.Now(), time.Minute)
	send := func(d *daybook, at time.Time) {
		for n := 0; n < count; n += atOnce {
			d.send(t, tracks[n:n+atOnce], at, at.Add(15*time.Second), at.Add(30*time.Second))
		}
	}
	for n, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		d := start(t, dir, quietFlags...)
		send(d, base.Add(time.Duration(n)*time.Minute))
		if end == syscall.SIGTERM {
			d.term()
		} else {
			d.kill()
		}
		d = start(t, dir, quietFlags...)
		took := time.Since(d.begun)
		t.Logf("ready %v after %v, with %d series", took.Round(time.Millisecond), end, count)
		if took > soon {
			t.Errorf("ready only %v after %v", took, end)
		}
		d.verify(t, l)
		d.kill()
	}
}
