package slot

import (
	"math"
	"math/bits"
	"slices"
)

// maxCode is the greatest length of a code, so that a decoding table of 1<<maxCode entries tells all.
const maxCode = 12

// code is the Huffman code of one symbol.
type code struct {
	bits uint16
	len  uint8
}

// huffman builds the codes of a block. A single symbol gets a code of no bits.
type huffman struct {
	lens   [symbolCount]uint8 // 0: not used
	codes  [symbolCount]code
	used   [symbolCount]uint64 // count<<16 | symbol, ascending
	weight [symbolCount]uint64
	n      int // symbols used
}

// build computes code lengths and codes for the symbols in tallies, which ascend by symbol.
func (t *huffman) build(tallies []tally) {
	t.lens = [symbolCount]uint8{}
	t.n = len(tallies)
	total := uint(0)
	for i, s := range tallies {
		t.used[i] = uint64(s.n)<<16 | uint64(s.sym)
		total += uint(s.n)
	}
	if t.n == 1 {
		t.codes[tallies[0].sym] = code{}
		return
	}
	slices.Sort(t.used[:t.n])
	t.minimalLengths()
	// The longest code worth having for so few symbols; a smaller table is quicker to build for the reader.
	t.limit(uint8(min(maxCode, max(bits.Len(total), bits.Len(uint(t.n-1))))))
	t.assign(tallies)
}

// minimalLengths leaves in weight[i] the length of an optimal code for used[i] (Moffat and Katajainen, "In-place
// calculation of minimum-redundancy codes", 1995): first the parents of a tree, then depths of inner nodes, then depths
// of leaves, all in one array.
func (t *huffman) minimalLengths() {
	w, n := t.weight[:t.n], t.n
	for i, u := range t.used[:n] {
		w[i] = u >> 16
	}
	w[0] += w[1]
	root, leaf := 0, 2
	for next := 1; next < n-1; next++ {
		if leaf >= n || w[root] < w[leaf] {
			w[next] = w[root]
			w[root] = uint64(next)
			root++
		} else {
			w[next] = w[leaf]
			leaf++
		}
		if leaf >= n || (root < next && w[root] < w[leaf]) {
			w[next] += w[root]
			w[root] = uint64(next)
			root++
		} else {
			w[next] += w[leaf]
			leaf++
		}
	}
	w[n-2] = 0
	for next := n - 3; next >= 0; next-- {
		w[next] = w[w[next]] + 1
	}
	free, inner, depth := 1, 0, uint64(0)
	root, next := n-2, n-1
	for free > 0 {
		for root >= 0 && w[root] == depth {
			inner++
			root--
		}
		for free > inner {
			w[next] = depth
			next--
			free--
		}
		free, inner = 2*inner, 0
		depth++
	}
}

// limit shortens codes longer than longest, at the cost of the rarest others, and keeps the code complete.
func (t *huffman) limit(longest uint8) {
	room := 1 << longest // in units of a code of the greatest length
	for i, l := range t.weight[:t.n] {
		l = min(l, uint64(longest))
		t.weight[i] = l
		room -= 1 << (uint64(longest) - l)
	}
	for i := 0; room < 0; i = (i + 1) % t.n {
		if l := t.weight[i]; l < uint64(longest) {
			t.weight[i]++
			room += 1 << (uint64(longest) - l - 1)
		}
	}
	for i := t.n - 1; room > 0; i = (i - 1 + t.n) % t.n {
		if gain := 1 << (uint64(longest) - t.weight[i]); gain <= room && t.weight[i] > 1 {
			t.weight[i]--
			room -= gain
		}
	}
	for i, u := range t.used[:t.n] {
		t.lens[u&0xffff] = uint8(t.weight[i])
	}
}

// assign gives out canonical codes: ascending by length, then by symbol.
func (t *huffman) assign(tallies []tally) {
	var count [maxCode + 2]uint16
	for _, l := range t.weight[:t.n] {
		count[l+1]++
	}
	next := firstCodes(&count)
	for _, s := range tallies {
		l := t.lens[s.sym]
		t.codes[s.sym] = code{next[l], l}
		next[l]++
	}
}

// firstCodes returns the first code of each length, given at [l+1] how many codes have length l.
func firstCodes(count *[maxCode + 2]uint16) (next [maxCode + 1]uint16) {
	for l := 1; l <= maxCode; l++ {
		next[l] = (next[l-1] + count[l]) << 1
	}
	return next
}

// nLog2 holds n*log2(n) for small n.
var nLog2 = func() (t [1024]float64) {
	for n := 1; n < len(t); n++ {
		t[n] = float64(n) * math.Log2(float64(n))
	}
	return t
}()

// countBits is n*log2(n), within a thousandth: the entropy of a histogram is countBits(total) less the sum of
// countBits(count).
func countBits(n uint32) float64 {
	if n < uint32(len(nLog2)) {
		return nLog2[n]
	}
	shift := bits.Len32(n) - 10
	return nLog2[n>>shift]/float64(n>>shift)*float64(n) + float64(shift)*float64(n)
}
