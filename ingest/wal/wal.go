// Package wal is the write-ahead log: records appended to files, each on disk before Append returns. It knows nothing
// of what is in a record. Many appends share one fsync.
//
// A log is a folder of segments, 0000000000000001.wal and so on, always written at the end of the newest; a log that
// is opened begins a new one. Rotate begins a new segment, and Drop removes old ones once what they hold is elsewhere.
//
//	segment   header  header  record  record  …          the header stands twice, so that one bad byte spares it
//	header    "daybkwal"  version u32  salt u64  crc32c u32 of the 20 bytes before
//	record    mark u32  length u32  crc32c u32 of the body  crc32c u32 of salt and the 12 bytes before  body
//
// Numbers are little-endian. The salt is random, so that no body can hold what looks like a record of its segment.
//
// Reading gives every whole record. A record cut short at the end of the newest segment was never acknowledged and
// is passed over; any other damage is reported, the reader goes on at the next whole record, and a damaged segment is
// kept under another name (.damaged) instead of being dropped.
package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Config says where a log is and how large it may become.
type Config struct {
	Dir          string
	SegmentBytes int64 // a segment is followed by a new one when it has become this large
	MaxBytes     int64 // of all segments together; beyond that Append gives ErrFull
	Logger       *slog.Logger
}

// ErrFull says that the log has reached its configured size, as what it holds could not be written to the table yet.
var ErrFull = errors.New("the write-ahead log is full: the table has not taken its data yet")

// ErrClosed says that the log was closed.
var ErrClosed = errors.New("the write-ahead log is closed")

// Log is an open log. Its methods may be called from many goroutines.
type Log struct {
	cfg  Config
	size atomic.Int64 // of all segments
	sync atomic.Int64 // how many fsyncs

	mu      sync.Mutex
	wake    *sync.Cond // something is pending, or the log closes
	pending []*request
	closed  bool
	done    chan struct{} // closed when the committer has ended

	file     sync.Mutex // held by the committer and by Rotate over the newest segment
	current  *segment
	segments []old // that are not written any more, oldest first
}

// old is a segment that is complete.
type old struct {
	number  uint64
	size    int64
	damaged bool
}

type request struct {
	body []byte
	done chan error
}

// Open opens the log in cfg.Dir, making the folder where there is none, gives every whole record there to replay in
// the order of writing, and begins a new segment. A record's bytes are replay's to keep.
func Open(cfg Config, replay func(record []byte) error) (*Log, error) {
	err := os.MkdirAll(cfg.Dir, 0o777)
	if err == nil {
		err = syncDir(filepath.Dir(cfg.Dir))
	}
	if err != nil {
		return nil, fmt.Errorf("making the write-ahead log's folder: %w", err)
	}
	l := &Log{cfg: cfg, done: make(chan struct{})}
	l.wake = sync.NewCond(&l.mu)
	numbers, next, err := list(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("listing the write-ahead log: %w", err)
	}
	for i, n := range numbers {
		s, err := replaySegment(l.path(n), i == len(numbers)-1, cfg.Logger, replay)
		if err != nil {
			return nil, err
		}
		if s.size == 0 {
			continue // it was never completed, and is gone
		}
		s.number = n
		l.segments = append(l.segments, s)
		l.size.Add(s.size)
	}
	if l.current, err = create(cfg.Dir, l.path(next), next); err != nil {
		return nil, fmt.Errorf("beginning a segment of the write-ahead log: %w", err)
	}
	l.size.Add(l.current.size)
	go l.commit()
	return l, nil
}

// list gives the numbers of the segments in a folder, sorted, and the first number that neither a segment nor what was
// kept of a damaged one has.
func list(dir string) (numbers []uint64, next uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		name, damaged := strings.CutSuffix(e.Name(), damagedSuffix)
		digits, ok := strings.CutSuffix(name, ".wal")
		n, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil || len(digits) != 16 {
			continue
		}
		next = max(next, n)
		if !damaged {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, next + 1, nil
}

const damagedSuffix = ".damaged"

func (l *Log) path(number uint64) string {
	return filepath.Join(l.cfg.Dir, fmt.Sprintf("%016x.wal", number))
}

// Append returns when the record is on disk. On an error it may or may not be found again after a crash. The body is
// not kept.
func (l *Log) Append(body []byte) error {
	if len(body) > maxRecord {
		return ErrTooLong
	}
	if err := l.Ready(); err != nil {
		return err
	}
	r := &request{body, make(chan error, 1)}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.pending = append(l.pending, r)
	l.wake.Signal()
	l.mu.Unlock()
	return <-r.done
}

// Ready tells whether the log has room for records: nil or ErrFull.
func (l *Log) Ready() error {
	if l.size.Load() >= l.cfg.MaxBytes {
		return fmt.Errorf("%d bytes: %w", l.size.Load(), ErrFull)
	}
	return nil
}

// commit writes what is pending, all of it with one fsync, until the log closes.
func (l *Log) commit() {
	defer close(l.done)
	var batch []*request
	for {
		l.mu.Lock()
		for len(l.pending) == 0 && !l.closed {
			l.wake.Wait()
		}
		if len(l.pending) == 0 {
			l.mu.Unlock()
			return
		}
		batch, l.pending = l.pending, batch[:0]
		l.mu.Unlock()
		err := l.write(batch)
		for i, r := range batch {
			r.done <- err
			batch[i] = nil
		}
	}
}

func (l *Log) write(batch []*request) error {
	l.file.Lock()
	defer l.file.Unlock()
	if l.current.broken {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("beginning a segment of the write-ahead log behind one that could not be written: %w", err)
		}
	}
	before := l.current.size
	err := l.current.append(batch)
	l.sync.Add(1)
	l.size.Add(l.current.size - before)
	if l.current.broken || l.current.size >= l.cfg.SegmentBytes {
		if rotateErr := l.rotate(); rotateErr != nil && err == nil {
			l.cfg.Logger.Warn("the write-ahead log cannot begin a new segment and goes on in the old one", "err", rotateErr)
		}
	}
	if err != nil {
		return fmt.Errorf("writing to the write-ahead log: %w", err)
	}
	return nil
}

// Rotate begins a new segment and returns the number of the one before: what was appended until now is in that or in
// older ones.
func (l *Log) Rotate() (uint64, error) {
	l.file.Lock()
	defer l.file.Unlock()
	if l.current.empty() {
		return l.current.number - 1, nil
	}
	if err := l.rotate(); err != nil {
		return 0, fmt.Errorf("beginning a segment of the write-ahead log: %w", err)
	}
	return l.segments[len(l.segments)-1].number, nil
}

func (l *Log) rotate() error {
	number := l.current.number + 1
	next, err := create(l.cfg.Dir, l.path(number), number)
	if err != nil {
		return err
	}
	l.size.Add(next.size)
	l.segments = append(l.segments, old{number: l.current.number, size: l.current.size})
	err = l.current.file.Close()
	l.current = next
	return err
}

// Drop removes the segments up to and including number. All they hold must be durable elsewhere.
func (l *Log) Drop(number uint64) error {
	l.file.Lock()
	defer l.file.Unlock()
	for len(l.segments) > 0 && l.segments[0].number <= number {
		s := l.segments[0]
		if err := l.remove(s); err != nil {
			return fmt.Errorf("removing a segment of the write-ahead log: %w", err)
		}
		l.segments = l.segments[1:]
		l.size.Add(-s.size)
	}
	return nil
}

func (l *Log) remove(s old) error {
	if s.damaged {
		return os.Rename(l.path(s.number), l.path(s.number)+damagedSuffix)
	}
	return os.Remove(l.path(s.number))
}

// Size is how many bytes all segments have.
func (l *Log) Size() int64 { return l.size.Load() }

// CurrentSize is how many bytes the newest segment has.
func (l *Log) CurrentSize() int64 {
	l.file.Lock()
	defer l.file.Unlock()
	return l.current.size
}

// Syncs is how many fsyncs there were since the log was opened.
func (l *Log) Syncs() int64 { return l.sync.Load() }

// Close writes what is pending and closes the log. A newest segment without records is removed.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.wake.Signal()
	l.mu.Unlock()
	<-l.done
	l.file.Lock()
	defer l.file.Unlock()
	err := l.current.file.Close()
	if l.current.empty() {
		err = errors.Join(err, os.Remove(l.path(l.current.number)))
	}
	return err
}
