package slot

import "math/bits"

// A number u > 0 is written as its class, for which there is a Huffman code, and as its place in the class in plain bits.
// With fineness 0 a class is an octave, all numbers with the same highest bit; with fineness f an octave has 1<<f
// classes, and numbers below 2<<f are each a class of their own. Zeros have no class: a run of 1<<k to 2<<k - 1 of them
// is one symbol with k bits behind it.
//
//	fineness 0   class 1: 1   2: 2-3   3: 4-7        4: 8-15  ...
//	fineness 1   class 1: 1   2: 2  3: 3   4: 4-5  5: 6-7   6: 8-11  7: 12-15 ...
//
// An octave where small numbers are likelier than large ones, as in any bell-shaped distribution, gains from being
// split; but each class in use costs some bits in the table, which is why the fineness is chosen for each block.

const (
	maxFineness = 2
	maxRunBits  = 22                  // a slot has at most 1<<22 samples
	firstClass  = maxRunBits          // symbols 0..22 are runs of zeros, symbol firstClass+c is class c >= 1
	maxClass    = 61<<maxFineness + 7 // of 1<<64 - 1 with the greatest fineness
	symbolCount = firstClass + 1 + maxClass
)

// classOf returns the class of u > 0 and how many bits give the place in it.
func classOf(u uint64, fineness uint) (class, width uint) {
	width = uint(bits.Len64(u)) - 1
	if width < fineness {
		width = fineness
	}
	width -= fineness
	return width<<fineness + uint(u>>(width&63)), width
}

// classStart is the inverse of classOf: the first number of a class.
func classStart(class, fineness uint) (u uint64, width uint) {
	if class>>fineness < 2 {
		return uint64(class), 0
	}
	width = class>>fineness - 1
	return uint64(class-width<<fineness) << width, width
}

// zigzag maps numbers of both signs to numbers >= 0, small to small: 0, -1, 1, -2, 2 to 0, 1, 2, 3, 4.
func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
