package slot

import "encoding/binary"

// Bits are written and read from the most significant bit of each byte downwards, so that a drawing of a slot reads from
// left to right and the canonical codes of a Huffman table lie in the order of the decoding table.

// slack is how many bytes past its last bit a bitWriter may touch: it always stores whole 64-bit words.
const slack = 8

// bitWriter writes bits into b, which must have slack bytes more than will be written.
type bitWriter struct {
	b   []byte
	pos int    // whole bytes written
	acc uint64 // the bits behind them, from the top
	n   uint   // how many of those, 0 to 7
}

// put writes the low n bits of v, n <= 56; the bits of v above must be zero.
func (w *bitWriter) put(v uint64, n uint) {
	w.n += n
	w.acc |= v << ((64 - w.n) & 63)
	if n == 0 {
		return
	}
	binary.BigEndian.PutUint64(w.b[w.pos:], w.acc)
	w.pos += int(w.n >> 3)
	w.acc <<= w.n & 56
	w.n &= 7
}

// putLong writes the low n bits of v, n <= 64.
func (w *bitWriter) putLong(v uint64, n uint) {
	if n > 32 {
		w.put(v>>32, n-32)
		v, n = v&(1<<32-1), 32
	}
	w.put(v, n)
}

// end pads to a whole byte with zeros and returns the number of bytes written.
func (w *bitWriter) end() int {
	if w.n > 0 {
		return w.pos + 1
	}
	return w.pos
}

// bitReader reads what a bitWriter wrote. It never fails: behind the end there are zeros, and end tells at last whether
// all that was read had been there.
type bitReader struct {
	b   []byte
	pos uint // in bits
}

// window returns the bits from position pos on at the top of a word; at least 57 of them are valid.
func window(b []byte, pos uint) uint64 {
	if i := pos >> 3; i+8 <= uint(len(b)) {
		return binary.BigEndian.Uint64(b[i:]) << (pos & 7)
	}
	return windowAtEnd(b, pos)
}

func windowAtEnd(b []byte, pos uint) uint64 {
	var word [8]byte
	if i := pos >> 3; i < uint(len(b)) {
		copy(word[:], b[i:])
	}
	return binary.BigEndian.Uint64(word[:]) << (pos & 7)
}

// top returns the n <= 63 highest bits of w, also where n is 0.
func top(w uint64, n uint) uint64 { return w >> 1 >> ((63 - n) & 63) }

// take reads n <= 56 bits.
func (r *bitReader) take(n uint) uint64 {
	v := top(window(r.b, r.pos), n)
	r.pos += n
	return v
}

// takeLong reads n <= 64 bits.
func (r *bitReader) takeLong(n uint) uint64 {
	if n <= 32 {
		return r.take(n)
	}
	high := r.take(n - 32)
	return high<<32 | r.take(32)
}

// end skips the padding of the last byte and returns how many bytes were read; ok is false where the reader ran past the
// end or the padding is not zero.
func (r *bitReader) end() (n int, ok bool) {
	pad := -r.pos & 7
	zero := r.take(pad) == 0
	n = int(r.pos >> 3)
	return n, zero && n <= len(r.b)
}
