package slot

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The bodies of histograms and exemplars are numbers of a byte or two and texts that repeat themselves: zstd makes them
// smaller by half and more. Where it does not, as in the body of a single histogram, they stand as they are.

// worthPacking is how long a body is that may become smaller: a frame has some bytes of its own.
const worthPacking = 32

var packers = sync.Pool{New: func() any {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are fixed, and allowed
	}
	return w
}}

var unpackers = sync.Pool{New: func() any {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes))
	if err != nil {
		panic(err) // the options are fixed, and allowed
	}
	return r
}}

// appendBody appends a body, and flags the slot that begins at dst[from] where it became smaller by compression.
func appendBody(dst []byte, from int, body []byte) []byte {
	if len(body) >= worthPacking {
		w := packers.Get().(*zstd.Encoder)
		n := len(dst)
		packed := w.EncodeAll(body, dst)
		packers.Put(w)
		if len(packed)-n < len(body) {
			packed[from] |= flagPacked
			return packed
		}
		dst = packed[:n]
	}
	return append(dst, body...)
}

// readBody gives what appendBody was given; where it is compressed, in scratch. It takes at most MaxBytes.
func readBody(packed bool, b, scratch []byte) (body []byte, err error) {
	if !packed {
		return b, nil
	}
	r := unpackers.Get().(*zstd.Decoder)
	defer unpackers.Put(r)
	if body, err = r.DecodeAll(b, scratch[:0]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return body, nil
}

// keptScratch is how many things a buffer may have room for that is kept for the next slot.
const keptScratch = 1 << 19

func keep[T any](scratch []T) []T {
	if cap(scratch) > keptScratch {
		return nil
	}
	return scratch[:0]
}
