package crash

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// quietFlags have daybook leave everything in the write-ahead log.
var quietFlags = []string{"--flush.interval=1h"}

// The parts of the log's format that the tests cut at, see package ingest/wal.
const (
	segmentHeader = 48
	recordHeader  = 16
	recordMark    = 0x5ca1ab1e
)

// record is where one write lies in a segment.
type record struct{ start, end int64 }

// records takes a segment apart.
func records(t *testing.T, path string) (all []record) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := segmentHeader; at < len(data); {
		if at+recordHeader > len(data) || binary.LittleEndian.Uint32(data[at:]) != recordMark {
			t.Fatalf("%s: no record at %d", path, at)
		}
		end := at + recordHeader + int(binary.LittleEndian.Uint32(data[at+4:]))
		all = append(all, record{int64(at), int64(end)})
		at = end
	}
	return all
}

// shelf is a data directory that was killed with some writes in the newest segment of its log, to be copied.
type shelf struct {
	dir     string
	segment string // its name
	records []record
	ledgers []*ledger // of each record
}

// newShelf makes a data directory. Each write has series of its own, so that each record has a ledger.
func newShelf(t *testing.T, writes int) *shelf {
	t.Helper()
	for range 10 {
		s := &shelf{dir: t.TempDir()}
		d := start(t, s.dir, quietFlags...)
		base := time.Now().Add(-time.Hour)
		names := newLedger()
		for range writes {
			tracks := names.add("crash_log", 4, base, time.Now(), time.Second)
			d.send(t, tracks, base, base.Add(15*time.Second), base.Add(30*time.Second))
			s.ledgers = append(s.ledgers, newLedger().having(tracks))
		}
		d.kill()
		s.segment = newest(segments(s.dir))
		s.records = records(t, filepath.Join(s.dir, "wal", s.segment))
		if len(s.records) == writes {
			return s
		}
		// The first flush began in between, with a new segment.
	}
	t.Fatalf("no segment has all %d writes", writes)
	return nil
}

// having adds series of another ledger.
func (l *ledger) having(tracks []*track) *ledger {
	for _, k := range tracks {
		l.tracks, l.byKey[k.key] = append(l.tracks, k), k
	}
	return l
}

// copied gives a copy of the directory whose newest segment was changed.
func (s *shelf) copied(t *testing.T, change func(segment []byte) []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "wal", s.segment)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// expect is the ledger of the records for which want holds: these must be there, and nothing else.
func (s *shelf) expect(want func(n int) bool) *ledger {
	all := newLedger()
	for n, l := range s.ledgers {
		if want(n) {
			all.having(l.tracks)
		}
	}
	return all
}

// TestTornTail cuts the log within its last two records: daybook must start and have the samples of all whole ones.
func TestTornTail(t *testing.T) {
	r := dice(t)
	const writes = 8
	s := newShelf(t, writes)
	last, lastButOne := s.records[writes-1], s.records[writes-2]
	cuts := []int64{ // the edges, then some of all others; the unit tests of the log have every one
		lastButOne.start, lastButOne.start + 1, lastButOne.start + recordHeader, lastButOne.end - 1,
		last.start, last.start + 1, last.start + 4, last.start + recordHeader - 1, last.start + recordHeader, last.end - 1, last.end,
	}
	for len(cuts) < 48 {
		cuts = append(cuts, lastButOne.start+r.Int64N(last.end-lastButOne.start))
	}
	for _, cut := range cuts {
		dir := s.copied(t, func(segment []byte) []byte { return segment[:cut] })
		d := start(t, dir, quietFlags...)
		d.verify(t, s.expect(func(n int) bool { return s.records[n].end <= cut }))
		if all := d.errors(); len(all) > 0 {
			t.Errorf("cut at %d of %d bytes: errors for what is no damage:\n%s", cut, last.end, lines(all))
		}
		d.kill()
		if t.Failed() {
			t.Fatalf("cut at %d of %d bytes", cut, last.end)
		}
	}
}

// TestFlippedByte damages one byte in the middle of the log: daybook must start, say so loudly, and have the samples
// of all other records.
func TestFlippedByte(t *testing.T) {
	r := dice(t)
	const writes = 8
	s := newShelf(t, writes)
	for _, at := range flips(r, s.records[1:writes-1]) {
		bit := byte(1) << r.IntN(8)
		dir := s.copied(t, func(segment []byte) []byte { segment[at] ^= bit; return segment })
		d := start(t, dir, quietFlags...)
		hit := func(n int) bool { return s.records[n].start <= at && at < s.records[n].end }
		d.verify(t, s.expect(func(n int) bool { return !hit(n) }))
		if !slices.ContainsFunc(d.errors(), func(m string) bool { return strings.Contains(m, "DAMAGE") }) {
			t.Errorf("bit %#02x at %d: no DAMAGE in the log at error level", bit, at)
		}
		d.kill()
		if t.Failed() {
			t.Fatalf("bit %#02x at %d flipped; the records are at %v", bit, at, s.records)
		}
	}
	for _, at := range []int64{r.Int64N(segmentHeader), 0, segmentHeader / 2} { // the header stands there twice
		dir := s.copied(t, func(segment []byte) []byte { segment[at] ^= 1 << r.IntN(8); return segment })
		d := start(t, dir, quietFlags...)
		d.verify(t, s.expect(func(int) bool { return true }))
		d.kill()
	}
	s.settleDamage(t)
}

// flips gives places in the records: each byte of one header, and some in bodies.
func flips(r *rand.Rand, among []record) (at []int64) {
	for n := range int64(recordHeader) {
		at = append(at, among[r.IntN(len(among))].start+n)
	}
	for range 8 {
		one := among[r.IntN(len(among))]
		at = append(at, one.start+recordHeader+r.Int64N(one.end-one.start-recordHeader))
	}
	return at
}

// settleDamage sees that a damaged segment is kept when what could be read of it is in the table.
func (s *shelf) settleDamage(t *testing.T) {
	t.Helper()
	at := s.records[3].start + recordHeader
	dir := s.copied(t, func(segment []byte) []byte { segment[at] ^= 1; return segment })
	d := start(t, dir, quietFlags...)
	d.term()
	if kept := names(filepath.Join(dir, "wal"), ".damaged"); fmt.Sprint(kept) != fmt.Sprintf("[%s.damaged]", s.segment) {
		t.Errorf("the damaged segment is not kept: %v", kept)
	}
	d = start(t, dir, quietFlags...)
	d.verify(t, s.expect(func(n int) bool { return n != 3 }))
	if all := d.errors(); len(all) > 0 {
		t.Errorf("the damage is told about again:\n%s", lines(all))
	}
}
