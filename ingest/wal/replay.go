package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
)

var (
	errShortHeader = errors.New("the file ends within its header")
	errBadHeader   = errors.New("both copies of the header are damaged")
)

// replaySegment gives each whole record of a segment to replay. newest says that the segment may end in a record cut
// short, or even within its header: the process died while it wrote.
func replaySegment(path string, newest bool, log *slog.Logger, replay func([]byte) error) (old, error) {
	f, err := os.Open(path)
	if err != nil {
		return old{}, fmt.Errorf("opening a segment of the write-ahead log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return old{}, fmt.Errorf("opening a segment of the write-ahead log: %w", err)
	}
	r := reader{in: bufio.NewReaderSize(f, 1<<20), path: path, newest: newest, log: log}
	if err := r.run(replay); err != nil {
		return old{}, fmt.Errorf("reading the write-ahead log %s: %w", path, err)
	}
	s := old{size: info.Size(), damaged: r.damaged}
	if r.torn {
		s.size = r.whole
		if err := cut(path, r.whole); err != nil {
			return s, fmt.Errorf("cutting the write-ahead log to its last whole record: %w", err)
		}
	}
	return s, nil
}

// cut removes what was never completed from a segment which is soon not the newest any more, where that would be
// damage. A segment without a header goes altogether. It is on disk before the next segment can be.
func cut(path string, size int64) error {
	if size == 0 {
		return os.Remove(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

type reader struct {
	in      *bufio.Reader
	path    string
	newest  bool
	log     *slog.Logger
	at      int64 // offset in the file
	whole   int64 // where the last whole record ends
	torn    bool  // behind whole there is a record that was never completed
	salt    [8]byte
	damaged bool
}

func (r *reader) run(replay func([]byte) error) error {
	var err error
	r.salt, err = readHeader(r.in)
	switch {
	case errors.Is(err, errShortHeader) && r.newest:
		r.torn = true
		return nil
	case errors.Is(err, ErrNewer):
		return err
	case errors.Is(err, errShortHeader) || errors.Is(err, errBadHeader):
		r.report("its records cannot be read", err)
		return nil
	case err != nil:
		return err
	}
	r.at, r.whole = segmentStart, segmentStart
	for {
		body, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if body == nil {
			continue
		}
		r.whole = r.at
		if err := replay(body); err != nil {
			return err
		}
	}
}

// next reads one record; nil without an error where something damaged was passed over.
func (r *reader) next() ([]byte, error) {
	header, err := r.in.Peek(recordHeader)
	if len(header) < recordHeader {
		return nil, r.end(err, len(header))
	}
	if !r.valid(header) {
		return nil, r.resync()
	}
	length := int(binary.LittleEndian.Uint32(header[4:]))
	sum := binary.LittleEndian.Uint32(header[8:])
	start := r.at
	r.skip(recordHeader)
	body := make([]byte, length)
	n, err := io.ReadFull(r.in, body)
	r.at += int64(n)
	if err != nil {
		return nil, r.end(err, recordHeader+n)
	}
	if crc32.Checksum(body, castagnoli) != sum {
		r.report("a record is damaged and was passed over", fmt.Errorf("wrong checksum at offset %d, %d bytes", start, length))
		return nil, nil
	}
	return body, nil
}

func (r *reader) valid(header []byte) bool {
	return binary.LittleEndian.Uint32(header) == mark &&
		headerSum(r.salt, header[:12]) == binary.LittleEndian.Uint32(header[12:]) &&
		binary.LittleEndian.Uint32(header[4:]) <= maxRecord
}

// end deals with the end of the file, n bytes into a record.
func (r *reader) end(err error, n int) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if n > 0 && r.newest && !r.damaged {
		r.torn = true
		r.log.Info("the write-ahead log ends in a record that was never completed, nor acknowledged", "file", r.path, "bytes", n)
	} else if n > 0 {
		r.report("its last record is cut short", io.ErrUnexpectedEOF)
	}
	return io.EOF
}

// resync looks for the next header of a record.
func (r *reader) resync() error {
	start := r.at
	for {
		header, err := r.in.Peek(recordHeader)
		if len(header) < recordHeader {
			r.report("it is damaged up to its end", fmt.Errorf("no record from offset %d on", start))
			if errors.Is(err, io.EOF) {
				return io.EOF
			}
			return err
		}
		if r.valid(header) {
			r.report("it is damaged in between; what follows is read", fmt.Errorf("no record from offset %d to %d", start, r.at))
			return nil
		}
		r.skip(1)
	}
}

func (r *reader) skip(n int) {
	discarded, _ := r.in.Discard(n) // of what was peeked: cannot fail
	r.at += int64(discarded)
}

func (r *reader) report(what string, err error) {
	r.damaged = true
	r.log.Error("DAMAGE in the write-ahead log: "+what+"; the file is kept as .damaged when the rest is in the table",
		"file", r.path, "err", err)
}
