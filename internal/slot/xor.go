package slot

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"daybook/internal/series"
)

// Encoding "xor" is for values with no decimal structure: each is combined with its predecessor by exclusive or, as in
// Facebook's Gorilla and in Prometheus's chunks. A new window is opened not only where the old one is too narrow, but also
// where it is so wide that a new one is cheaper.
const (
	leadingBits = 5
	widthBits   = 6
	maxLeading  = 1<<leadingBits - 1
	windowCost  = leadingBits + widthBits
)

// xorWindow is which bits of a difference are written: width of them behind leading zeros.
type xorWindow struct{ leading, width uint }

// next returns how x, not 0, is written: in the window w, or in a new one, where that pays.
func (w xorWindow) next(x uint64) (to xorWindow, isNew bool) {
	leading := min(uint(bits.LeadingZeros64(x)), maxLeading)
	trailing := uint(bits.TrailingZeros64(x))
	width := 64 - leading - trailing
	if leading >= w.leading && w.leading+w.width+trailing >= 64 && w.width <= width+windowCost {
		return w, false
	}
	return xorWindow{leading, width}, true
}

// xorBits is the size in bits of the values of samples.
func xorBits(samples []series.Sample) int {
	size := 64
	window := xorWindow{}
	prev := math.Float64bits(samples[0].V)
	for i := range samples[1:] {
		v := math.Float64bits(samples[i+1].V)
		x := v ^ prev
		prev = v
		size++
		if x == 0 {
			continue
		}
		w, isNew := window.next(x)
		if isNew {
			size += windowCost
		}
		size += 1 + int(w.width)
		window = w
	}
	return size
}

// appendXOR writes the values of samples, of which size is the size in bytes.
func appendXOR(dst []byte, samples []series.Sample, size int) []byte {
	n := len(dst)
	dst = slices.Grow(dst, size+slack)
	w := bitWriter{b: dst[n:cap(dst)]}
	window := xorWindow{}
	prev := math.Float64bits(samples[0].V)
	w.putLong(prev, 64)
	for i := range samples[1:] {
		v := math.Float64bits(samples[i+1].V)
		x := v ^ prev
		prev = v
		if x == 0 {
			w.put(0, 1)
			continue
		}
		next, isNew := window.next(x)
		if isNew {
			w.put(0b11<<windowCost|uint64(next.leading)<<widthBits|uint64(next.width-1), 2+windowCost)
		} else {
			w.put(0b10, 2)
		}
		w.putLong(x>>((64-next.leading-next.width)&63), next.width)
		window = next
	}
	return dst[:n+w.end()]
}

// decodeXOR reads the values of out and returns what follows them.
func decodeXOR(out []series.Sample, b []byte) ([]byte, error) {
	r := bitReader{b: b}
	frame := xorWindow{}
	v := r.takeLong(64)
	out[0].V = math.Float64frombits(v)
	for i := range out[1:] {
		w := window(r.b, r.pos)
		if w>>63 == 0 {
			r.pos++
			out[i+1].V = math.Float64frombits(v)
			continue
		}
		if w>>62 == 0b10 {
			r.pos += 2
		} else {
			frame.leading = uint(w >> (62 - leadingBits) & maxLeading)
			frame.width = uint(w>>(62-windowCost)&(1<<widthBits-1)) + 1
			r.pos += 2 + windowCost
		}
		if frame.width == 0 || frame.leading+frame.width > 64 {
			return nil, fmt.Errorf("%w: a window of %d bits behind %d", ErrCorrupt, frame.width, frame.leading)
		}
		v ^= r.takeLong(frame.width) << (64 - frame.leading - frame.width)
		out[i+1].V = math.Float64frombits(v)
	}
	n, ok := r.end()
	if !ok {
		return nil, fmt.Errorf("%w: the values end early", ErrCorrupt)
	}
	return b[n:], nil
}
