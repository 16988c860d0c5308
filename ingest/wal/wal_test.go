package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// reports is a log handler that keeps the messages of errors.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (r *reports) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r *reports) WithGroup(string) slog.Handler                    { return r }
func (r *reports) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, record.Message)
	return nil
}

func (r *reports) damage() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, func(s string) bool { return strings.Contains(s, "DAMAGE") })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func configFor(dir string) Config {
	return Config{Dir: dir, SegmentBytes: 1 << 20, MaxBytes: 1 << 30, Logger: slog.New(&reports{})}
}

// open opens a log and gives the records that were in it.
func open(t testing.TB, cfg Config) (*Log, []string) {
	t.Helper()
	var records []string
	l, err := Open(cfg, func(r []byte) error { records = append(records, string(r)); return nil })
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, records
}

func appendAll(t testing.TB, l *Log, records ...string) {
	t.Helper()
	for _, r := range records {
		must(t, l.Append([]byte(r)))
	}
}

func same(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %.200q, want %.200q", what, got, want)
	}
}

func files(t testing.TB, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	return found
}

func TestRoundTrip(t *testing.T) {
	cfg := configFor(filepath.Join(t.TempDir(), "new"))
	l, records := open(t, cfg)
	same(t, "a new log", records)
	want := []string{"one", "", "three\x00", strings.Repeat("long ", 100_000)}
	appendAll(t, l, want...)
	must(t, l.Close())
	for i := range 3 {
		l, records = open(t, cfg)
		same(t, fmt.Sprintf("opening %d", i), records, want...)
		must(t, l.Close())
	}
	l, records = open(t, cfg)
	same(t, "in the end", records, want...)
	appendAll(t, l, "more")
	must(t, l.Close())
	_, records = open(t, cfg)
	same(t, "with more", records, append(want, "more")...)
}

// A log that is not closed is a crash; all of it is on disk.
func TestNotClosed(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	appendAll(t, l, "a", "b")
	_, records := open(t, cfg)
	same(t, "after a crash", records, "a", "b")
}

func TestManyAppendsShareSyncs(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	const writers, each = 32, 25
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				if err := l.Append(fmt.Appendf(nil, "%d/%d", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n := l.Syncs(); n >= writers*each || n < each {
		t.Errorf("%d fsyncs for %d appends of %d writers", n, writers*each, writers)
	}
	_, records := open(t, cfg)
	if len(records) != writers*each {
		t.Errorf("%d records instead of %d", len(records), writers*each)
	}
	for w := range writers { // the records of one writer stand in its order
		n := 0
		for _, r := range records {
			if strings.HasPrefix(r, fmt.Sprintf("%d/", w)) {
				if want := fmt.Sprintf("%d/%d", w, n); r != want {
					t.Fatalf("%s where %s should be", r, want)
				}
				n++
			}
		}
	}
}

func TestRotateAndDrop(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	if n, err := l.Rotate(); err != nil || len(files(t, cfg.Dir, "*.wal")) != 1 {
		t.Errorf("rotating an empty log: %d, %v, files %q", n, err, files(t, cfg.Dir, "*"))
	}
	appendAll(t, l, "a")
	first, err := l.Rotate()
	must(t, err)
	appendAll(t, l, "b")
	second, err := l.Rotate()
	must(t, err)
	if again, err := l.Rotate(); err != nil || again != second {
		t.Errorf("rotating again without a record gives %d, not %d; %v", again, second, err)
	}
	appendAll(t, l, "c")
	must(t, l.Drop(first))
	_, records := open(t, cfg)
	same(t, "the first dropped", records, "b", "c")
	must(t, l.Drop(second))
	must(t, l.Drop(second))
	_, records = open(t, cfg)
	same(t, "the second dropped", records, "c")
}

func TestSizes(t *testing.T) {
	cfg := configFor(t.TempDir())
	cfg.SegmentBytes, cfg.MaxBytes = 1000, 3000
	l, _ := open(t, cfg)
	body := make([]byte, 300)
	n := 0
	for ; l.Ready() == nil; n++ {
		must(t, l.Append(body))
	}
	if err := l.Append(body); !errors.Is(err, ErrFull) {
		t.Errorf("a full log says %v", err)
	}
	if segments := len(files(t, cfg.Dir, "*.wal")); segments < 3 || n < 7 || n > 10 {
		t.Errorf("%d records of 300 bytes in %d segments of 1000 bytes", n, segments)
	}
	if got := onDisk(t, cfg.Dir); got != l.Size() {
		t.Errorf("Size is %d, the files have %d bytes", l.Size(), got)
	}
	number, err := l.Rotate()
	must(t, err)
	must(t, l.Drop(number))
	if got := onDisk(t, cfg.Dir); got != l.Size() || got != l.CurrentSize() || got != segmentStart {
		t.Errorf("Size is %d, CurrentSize %d, the files have %d bytes", l.Size(), l.CurrentSize(), got)
	}
	must(t, l.Append(body))
	must(t, l.Close())
	l, _ = open(t, cfg)
	if got := onDisk(t, cfg.Dir); got != l.Size() {
		t.Errorf("after opening Size is %d, the files have %d bytes", l.Size(), got)
	}
}

func onDisk(t *testing.T, dir string) (n int64) {
	for _, name := range files(t, dir, "*") {
		info, err := os.Stat(name)
		must(t, err)
		n += info.Size()
	}
	return n
}

func TestClosed(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	must(t, l.Close())
	must(t, l.Close())
	if err := l.Append([]byte("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed log says %v", err)
	}
	if left := files(t, cfg.Dir, "*"); len(left) != 0 {
		t.Errorf("a log without records leaves %q", left)
	}
}

func TestTooLong(t *testing.T) {
	l, _ := open(t, configFor(t.TempDir()))
	if err := l.Append(make([]byte, maxRecord+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
}

// Close waits for what is pending.
func TestCloseDuringAppends(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	var group sync.WaitGroup
	var mu sync.Mutex
	var taken []string
	started := make(chan struct{}, 8)
	for w := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				r := fmt.Sprintf("%d/%d", w, i)
				if err := l.Append([]byte(r)); err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				taken = append(taken, r)
				mu.Unlock()
				if i == 0 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 8 {
		<-started
	}
	must(t, l.Close())
	group.Wait()
	_, records := open(t, cfg)
	slices.Sort(taken)
	slices.Sort(records)
	same(t, "what was taken", records, taken...)
}

// What replay says ends Open.
func TestReplayFails(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	appendAll(t, l, "a", "b")
	no := errors.New("no")
	if _, err := Open(cfg, func([]byte) error { return no }); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	_, records := open(t, cfg)
	same(t, "afterwards", records, "a", "b")
}

// Other files in the folder are let be.
func TestForeignFiles(t *testing.T) {
	cfg := configFor(t.TempDir())
	for _, name := range []string{"README", "1.wal", "000000000000000g.wal", "0000000000000001.wal.bak"} {
		must(t, os.WriteFile(filepath.Join(cfg.Dir, name), []byte("not a segment"), 0o666))
	}
	l, records := open(t, cfg)
	same(t, "foreign files", records)
	must(t, l.Close())
	if n := len(files(t, cfg.Dir, "*")); n != 4 || cfg.Logger.Handler().(*reports).damage() {
		t.Errorf("%d files are left of 4", n)
	}
}

// segmentOf makes a folder with one segment of records, as a crash leaves it, and gives the segment's bytes.
func segmentOf(t testing.TB, records ...string) (name string, data []byte) {
	t.Helper()
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	appendAll(t, l, records...)
	name = files(t, cfg.Dir, "*.wal")[0]
	data, err := os.ReadFile(name)
	must(t, err)
	return filepath.Base(name), data
}

// folder makes a log's folder with the given segment alone.
func folder(t testing.TB, name string, data []byte) Config {
	t.Helper()
	cfg := configFor(t.TempDir())
	must(t, os.WriteFile(filepath.Join(cfg.Dir, name), data, 0o666))
	return cfg
}

// A power failure leaves the newest segment cut anywhere behind what was synced.
func TestCutAnywhere(t *testing.T) {
	records := []string{"first", "second", "the last but one", "the last of all"}
	name, data := segmentOf(t, records...)
	ends := []int{segmentStart}
	for _, r := range records {
		ends = append(ends, ends[len(ends)-1]+recordHeader+len(r))
	}
	if ends[4] != len(data) {
		t.Fatalf("the segment has %d bytes, not %d", len(data), ends[4])
	}
	for size := range len(data) + 1 {
		whole := 0
		for whole < 4 && ends[whole+1] <= size {
			whole++
		}
		cfg := folder(t, name, data[:size])
		for i := range 3 { // from the second time on it is not the newest
			l, got := open(t, cfg)
			same(t, fmt.Sprintf("cut to %d bytes, opened %d times before", size, i), got, records[:whole]...)
			if cfg.Logger.Handler().(*reports).damage() {
				t.Fatalf("cut to %d bytes, opened %d times before: damage is reported: %q", size, i, cfg.Logger.Handler().(*reports).lines)
			}
			if got := onDisk(t, cfg.Dir); got != l.Size() {
				t.Errorf("cut to %d bytes: Size is %d, the files have %d", size, l.Size(), got)
			}
			if i == 2 {
				must(t, l.Drop(1<<62))
				if kept := files(t, cfg.Dir, "*.damaged"); len(kept) > 0 {
					t.Errorf("cut to %d bytes: kept %q", size, kept)
				}
			}
		}
	}
}

// The same in a segment that is not the newest is damage, as all of it was on disk.
func TestCutInOlderSegment(t *testing.T) {
	name, data := segmentOf(t, "first", "second")
	for size := range len(data) {
		cfg := folder(t, name, data[:size])
		must(t, os.WriteFile(filepath.Join(cfg.Dir, "00000000000000ff.wal"), mustSegment(t, "later"), 0o666))
		_, got := open(t, cfg)
		if len(got) == 0 || got[len(got)-1] != "later" {
			t.Errorf("cut to %d bytes: the next segment is not read: %q", size, got)
		}
		atEnd := size == segmentStart || size == segmentStart+recordHeader+5 // nobody can see what is missing
		if damage := cfg.Logger.Handler().(*reports).damage(); damage == atEnd {
			t.Errorf("cut to %d bytes: damage is reported: %v", size, damage)
		}
	}
}

func mustSegment(t *testing.T, records ...string) []byte {
	t.Helper()
	_, data := segmentOf(t, records...)
	return data
}

// One bad byte, wherever it is, costs at most its own record, and is reported.
func TestFlipAnywhere(t *testing.T) {
	records := []string{"first", "the second one", "third", "and the fourth"}
	name, data := segmentOf(t, records...)
	for at := range data {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := bytes.Clone(data)
			bad[at] ^= flip
			want, end := []string{}, segmentStart
			for _, r := range records {
				start := end
				if end += recordHeader + len(r); at < start || at >= end {
					want = append(want, r)
				}
			}
			cfg := folder(t, name, bad)
			log := cfg.Logger.Handler().(*reports)
			l, got := open(t, cfg)
			same(t, fmt.Sprintf("byte %d flipped by %#x", at, flip), got, want...)
			must(t, l.Drop(1<<62))
			kept := len(files(t, cfg.Dir, name+".damaged"))
			switch inRecord := at >= segmentStart; {
			case inRecord && (!log.damage() || kept != 1):
				t.Errorf("byte %d flipped: reported: %v, files kept: %d", at, log.damage(), kept)
			case !inRecord && (log.damage() || kept != 0): // the other copy of the header serves
				t.Errorf("byte %d of the headers flipped: reported: %v, files kept: %d", at, log.damage(), kept)
			}
			if kept == 1 {
				still, err := os.ReadFile(files(t, cfg.Dir, name+".damaged")[0])
				if must(t, err); !bytes.Equal(still, bad) {
					t.Errorf("byte %d flipped: what was kept is not what was there", at)
				}
			}
		}
	}
}

// A segment that was damaged is still reported, and kept, when it is read for the second time.
func TestDamageIsRemembered(t *testing.T) {
	name, data := segmentOf(t, "first", "second", "third")
	data[segmentStart+2] ^= 4
	cfg := folder(t, name, data[:len(data)-2]) // and its end is cut, too
	for i := range 2 {
		l, got := open(t, cfg)
		same(t, fmt.Sprintf("opening %d", i), got, "second")
		if i == 1 {
			must(t, l.Drop(1<<62))
		}
	}
	if kept := files(t, cfg.Dir, "*.damaged"); len(kept) != 1 {
		t.Errorf("kept %q", kept)
	}
}

// What was kept of a damaged segment is not overwritten by the next one.
func TestDamagedFilesAreKeptApart(t *testing.T) {
	name, data := segmentOf(t, "a", "b")
	data[len(data)-1] ^= 1
	cfg := folder(t, name, data)
	for i := range 3 {
		l, _ := open(t, cfg)
		must(t, l.Drop(1<<62))
		must(t, l.Close())
		kept := files(t, cfg.Dir, "*.damaged")
		if len(kept) != i+1 {
			t.Fatalf("round %d: kept %q", i, kept)
		}
		l, _ = open(t, cfg)
		appendAll(t, l, "c")
		newest := l.path(l.current.number)
		if slices.Contains(kept, newest+damagedSuffix) {
			t.Fatalf("segment %s has the number of a damaged one", newest)
		}
		must(t, l.Close())
		segment, err := os.ReadFile(newest)
		must(t, err)
		segment[len(segment)-1] ^= 1
		must(t, os.WriteFile(newest, segment, 0o666))
	}
}

func TestBothHeadersDamaged(t *testing.T) {
	name, data := segmentOf(t, "first")
	data[3] ^= 1
	data[headerBytes+3] ^= 1
	cfg := folder(t, name, data)
	l, got := open(t, cfg)
	same(t, "records", got)
	if !cfg.Logger.Handler().(*reports).damage() {
		t.Error("nothing is reported")
	}
	appendAll(t, l, "goes on")
	must(t, l.Drop(1))
	if kept := files(t, cfg.Dir, "*.damaged"); len(kept) != 1 {
		t.Errorf("kept %q", kept)
	}
	_, got = open(t, cfg)
	same(t, "afterwards", got, "goes on")
}

func TestNewerVersion(t *testing.T) {
	name, data := segmentOf(t, "first")
	for i := range 2 {
		h := data[i*headerBytes : (i+1)*headerBytes]
		binary.LittleEndian.PutUint32(h[8:], version+1)
		binary.LittleEndian.PutUint32(h[20:], crcOf(h[:20]))
	}
	cfg := folder(t, name, data)
	if _, err := Open(cfg, func([]byte) error { return nil }); !errors.Is(err, ErrNewer) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadFile(filepath.Join(cfg.Dir, name)); !bytes.Equal(left, data) {
		t.Error("the newer log was changed")
	}
}

// A body may be anything, a whole segment too, and damage before it does not bring its records to life.
func TestBodyLooksLikeRecords(t *testing.T) {
	_, inner := segmentOf(t, "never appended", "nor this")
	name, data := segmentOf(t, "before", string(inner), "behind")
	cfg := folder(t, name, data)
	_, got := open(t, cfg)
	same(t, "whole", got, "before", string(inner), "behind")
	data[segmentStart+recordHeader+len("before")+4] ^= 1 // the length in the header of the record with the segment
	cfg = folder(t, name, data)
	_, got = open(t, cfg)
	same(t, "damaged", got, "before", "behind")
}
