package wal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

const (
	magic        = "daybkwal"
	version      = 1
	headerBytes  = 24
	segmentStart = 2 * headerBytes
	mark         = 0x5ca1ab1e
	recordHeader = 16
	maxRecord    = 256 << 20
)

// ErrNewer says that a segment was written by a newer daybook.
var ErrNewer = errors.New("the write-ahead log was written by a newer version of daybook: start that version")

// ErrTooLong says that a record is over the format's limit.
var ErrTooLong = fmt.Errorf("a record of the write-ahead log may have %d bytes", maxRecord)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is the file being written.
type segment struct {
	number uint64
	file   file
	salt   [8]byte
	size   int64 // up to here everything is on disk
	broken bool  // the file may hold something else behind size, so nothing may follow
	buffer []byte
}

// file is what a segment needs of its *os.File; in tests it fails.
type file interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

func create(dir, path string, number uint64) (*segment, error) {
	s := &segment{number: number, size: segmentStart}
	if _, err := rand.Read(s.salt[:]); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	s.file = f
	header := appendHeader(nil, s.salt)
	if _, err = f.Write(append(header, header...)); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return s, nil
}

func (s *segment) empty() bool { return s.size == segmentStart && !s.broken }

// append writes the bodies behind one another and syncs. After an error nothing counts as written: the file is cut
// to what it was, or is broken where that fails.
func (s *segment) append(batch []*request) error {
	s.buffer = s.buffer[:0]
	for _, r := range batch {
		s.buffer = s.appendRecord(s.buffer, r.body)
	}
	_, err := s.file.WriteAt(s.buffer, s.size)
	if err != nil {
		s.broken = s.file.Truncate(s.size) != nil
		return err
	}
	if err := s.file.Sync(); err != nil {
		// What a failed fsync left in the file is unknown, and a second one proves nothing.
		s.broken = true
		return err
	}
	s.size += int64(len(s.buffer))
	if cap(s.buffer) > 8<<20 {
		s.buffer = nil
	}
	return nil
}

func (s *segment) appendRecord(b, body []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, mark)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	b = binary.LittleEndian.AppendUint32(b, headerSum(s.salt, b[start:]))
	return append(b, body...)
}

func headerSum(salt [8]byte, header []byte) uint32 {
	return crc32.Update(crc32.Checksum(salt[:], castagnoli), castagnoli, header)
}

func appendHeader(b []byte, salt [8]byte) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = append(b, salt[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// readHeader reads the two copies of a segment's header and uses the first that is whole.
func readHeader(r io.Reader) (salt [8]byte, err error) {
	var both [segmentStart]byte
	_, err = io.ReadFull(r, both[:])
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return salt, errShortHeader
	case err != nil:
		return salt, err // whole records may well follow
	}
	for _, b := range [][]byte{both[:headerBytes], both[headerBytes:]} {
		if crc32.Checksum(b[:20], castagnoli) != binary.LittleEndian.Uint32(b[20:]) || string(b[:8]) != magic {
			continue
		}
		if v := binary.LittleEndian.Uint32(b[8:]); v > version {
			return salt, fmt.Errorf("format %d, this program knows up to %d: %w", v, version, ErrNewer)
		}
		copy(salt[:], b[12:20])
		return salt, nil
	}
	return salt, errBadHeader
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
