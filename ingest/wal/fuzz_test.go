package wal

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"testing"
)

// The reader never panics, whatever the bytes are, gives nothing that was not appended, and gives all that is whole: a
// segment is changed in some places by the fuzzer, and each record whose bytes it did not touch must be there.
func FuzzReader(f *testing.F) {
	records := []string{"first", "", "the third one is longer", "x"}
	_, data := segmentOf(f, records...)
	_, other := segmentOf(f, "of another segment")
	f.Add([]byte{}, uint16(0), uint16(0), true)
	f.Add([]byte{0}, uint16(50), uint16(1), false)
	f.Add([]byte("first"), uint16(60), uint16(200), true)
	f.Add(other[segmentStart:], uint16(70), uint16(0), false)
	f.Add(data, uint16(0), uint16(headerBytes), true)
	f.Fuzz(func(t *testing.T, patch []byte, at, drop uint16, newest bool) {
		from := min(int(at), len(data))
		to := min(from+int(drop), len(data))
		got := readAll(t, slices.Concat(data[:from], patch, data[to:]), newest)
		start := segmentStart
		for _, r := range records {
			end := start + recordHeader + len(r)
			if from >= max(end, segmentStart) {
				if len(got) == 0 || got[0] != r {
					t.Fatalf("the record %q, which stands before what was changed, is not given: %q", r, got)
				}
				got = got[1:]
			}
			start = end
		}
		for _, r := range got {
			if !slices.Contains(records, r) {
				t.Fatalf("the record %q was never appended", r)
			}
		}
	})
}

// Arbitrary bytes behind a good header.
func FuzzReaderBytes(f *testing.F) {
	_, data := segmentOf(f, "first", "second")
	f.Add(data[segmentStart:], true)
	f.Add(bytes.Repeat([]byte{0x1e, 0xab, 0xa1, 0x5c}, 20), false)
	f.Fuzz(func(t *testing.T, b []byte, newest bool) {
		for _, r := range readAll(t, slices.Concat(data[:segmentStart], b), newest) {
			if !slices.Contains([]string{"first", "second"}, r) {
				t.Fatalf("the record %q was never appended", r)
			}
		}
		readAll(t, b, newest)
	})
}

func readAll(t *testing.T, data []byte, newest bool) (got []string) {
	r := reader{in: bufio.NewReader(bytes.NewReader(data)), path: "fuzz", newest: newest, log: slog.New(&reports{})}
	if err := r.run(func(b []byte) error { got = append(got, string(b)); return nil }); err != nil {
		t.Fatal(fmt.Errorf("reading: %w", err))
	}
	if r.torn && (!newest || r.whole > int64(len(data))) {
		t.Fatalf("to be cut to %d of %d bytes", r.whole, len(data))
	}
	return got
}
