package wal

import (
	"bufio"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/iotest"
)

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// failing is a file on a disk that fails.
type failing struct {
	*os.File
	room     int   // bytes that can still be written
	truncate error // what Truncate answers
	sync     error // what Sync answers; nothing is written then, and the page cache forgets
}

func (f *failing) WriteAt(b []byte, at int64) (int, error) {
	if len(b) > f.room {
		n, _ := f.File.WriteAt(b[:f.room], at)
		return n, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

func (f *failing) Truncate(size int64) error {
	if f.truncate != nil {
		return f.truncate
	}
	return f.File.Truncate(size)
}

func (f *failing) Sync() error {
	if f.sync != nil {
		return f.sync
	}
	return f.File.Sync()
}

// fail has the newest segment fail from now on.
func fail(l *Log, f *failing) *failing {
	l.file.Lock()
	defer l.file.Unlock()
	f.File = l.current.file.(*os.File)
	l.current.file = f
	return f
}

// A disk that is full in the middle of a record, and has room later.
func TestDiskFull(t *testing.T) {
	for room := range recordHeader + len("refused") {
		cfg := configFor(t.TempDir())
		l, _ := open(t, cfg)
		appendAll(t, l, "before")
		f := fail(l, &failing{room: room})
		for range 2 {
			if err := l.Append([]byte("refused")); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("got %v", err)
			}
		}
		f.room = 1 << 20
		appendAll(t, l, "after")
		if n := len(files(t, cfg.Dir, "*.wal")); n != 1 {
			t.Errorf("room for %d bytes: %d segments where one would do", room, n)
		}
		_, got := open(t, cfg)
		same(t, "after a crash", got, "before", "after")
		if cfg.Logger.Handler().(*reports).damage() {
			t.Errorf("room for %d bytes: damage is reported", room)
		}
	}
}

// Nothing is written behind what could not be cut off, nor into a file that failed to sync.
func TestBrokenSegmentIsLeft(t *testing.T) {
	for name, f := range map[string]*failing{
		"cannot be cut": {room: 20, truncate: syscall.EIO},
		"failed fsync":  {room: 1 << 20, sync: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configFor(t.TempDir())
			l, _ := open(t, cfg)
			appendAll(t, l, "before")
			fail(l, f)
			if err := l.Append([]byte("refused")); err == nil {
				t.Fatal("the write went through")
			}
			appendAll(t, l, "after", "more")
			if n := len(files(t, cfg.Dir, "*.wal")); n != 2 {
				t.Errorf("%d segments, not 2", n)
			}
			l, got := open(t, cfg)
			if n := len(got); n < 3 || got[0] != "before" || got[n-2] != "after" || got[n-1] != "more" {
				t.Errorf("after a crash: %q", got) // what was refused may be there
			}
			number, err := l.Rotate()
			must(t, err)
			must(t, l.Drop(number))
			if l.Size() != segmentStart {
				t.Errorf("an empty log has %d bytes", l.Size())
			}
		})
	}
}

// While no new segment can be begun, nothing is written into a broken one.
func TestBrokenAndNoNewSegment(t *testing.T) {
	cfg := configFor(t.TempDir())
	l, _ := open(t, cfg)
	appendAll(t, l, "before")
	f := fail(l, &failing{room: 1 << 20, sync: syscall.EIO})
	must(t, os.Mkdir(l.path(2), 0o777)) // in the way
	if err := l.Append([]byte("refused")); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	f.sync = nil // a second fsync proves nothing
	if err := l.Append([]byte("refused too")); err == nil {
		t.Fatal("something was written behind a failed fsync")
	}
	if _, err := l.Rotate(); err == nil {
		t.Fatal("a segment was begun where none can be")
	}
	must(t, os.Remove(l.path(2)))
	appendAll(t, l, "after")
	_, got := open(t, cfg)
	if n := len(got); n < 2 || got[0] != "before" || got[n-1] != "after" {
		t.Errorf("after a crash: %q", got)
	}
}

// A segment that reaches its size goes on where no new one can be begun.
func TestNoNewSegment(t *testing.T) {
	cfg := configFor(t.TempDir())
	cfg.SegmentBytes = 100
	l, _ := open(t, cfg)
	must(t, os.Mkdir(l.path(2), 0o777)) // in the way
	appendAll(t, l, string(make([]byte, 200)), "more")
	must(t, os.Remove(l.path(2)))
	appendAll(t, l, "and more", "in the next one")
	if n := len(files(t, cfg.Dir, "*.wal")); n != 2 {
		t.Errorf("%d segments, not 2", n)
	}
	_, got := open(t, cfg)
	same(t, "after a crash", got, string(make([]byte, 200)), "more", "and more", "in the next one")
}

// A disk that cannot be read is not a segment that ends: nothing is cut.
func TestReadError(t *testing.T) {
	_, data := segmentOf(t, "first", "second")
	for size := range data {
		in := io.MultiReader(bytes.NewReader(data[:size]), iotest.ErrReader(syscall.EIO))
		r := reader{in: bufio.NewReader(in), path: "test", newest: true, log: slog.New(&reports{})}
		if err := r.run(func([]byte) error { return nil }); !errors.Is(err, syscall.EIO) || r.torn {
			t.Errorf("an error after %d bytes: %v, to be cut: %v", size, err, r.torn)
		}
	}
}
