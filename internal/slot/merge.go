package slot

import (
	"math"

	"daybook/internal/series"
)

// Merge appends to dst the samples of two runs, each in strictly ascending time order, in that order. At a time that both
// have, the sample of first stays; conflicts counts those times where the bits of the values differ. dst must not overlap
// with the runs.
func Merge(dst, first, second []series.Sample) (merged []series.Sample, conflicts int) {
	for len(first) > 0 && len(second) > 0 {
		a, b := first[0], second[0]
		switch {
		case a.T < b.T:
			n := before(first, b.T)
			dst = append(dst, first[:n]...)
			first = first[n:]
		case a.T > b.T:
			n := before(second, a.T)
			dst = append(dst, second[:n]...)
			second = second[n:]
		default:
			dst = append(dst, a)
			if math.Float64bits(a.V) != math.Float64bits(b.V) {
				conflicts++
			}
			first, second = first[1:], second[1:]
		}
	}
	dst = append(dst, first...)
	return append(dst, second...), conflicts
}

// before returns how many samples of run lie before t; at least the first does. Mostly one run simply follows the other.
func before(run []series.Sample, t series.Millis) int {
	if run[len(run)-1].T < t {
		return len(run)
	}
	n := 1
	for run[n].T < t {
		n++
	}
	return n
}

// Join merges dst[before:], which was just appended, into dst[base:before]; see Merge. Where it is all later, as it
// nearly always is, nothing is copied.
func Join(dst []series.Sample, base, before int) []series.Sample {
	if before == base || before == len(dst) || dst[before].T > dst[before-1].T {
		return dst
	}
	merged, _ := Merge(nil, dst[base:before], dst[before:])
	return append(dst[:base], merged...)
}
