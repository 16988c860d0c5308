package slot

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"

	"daybook/internal/series"
)

// SameHistogram tells whether two histograms are the same in all their bits, time, kind and layout included.
func SameHistogram(a, b series.Histogram) bool {
	if a.T != b.T || (a.Int == nil) != (b.Int == nil) || (a.Float == nil) != (b.Float == nil) {
		return false
	}
	if a.Int == nil && a.Float == nil {
		return true
	}
	l, m := layoutOf(a), layoutOf(b)
	return l.same(&m) && sameInt(a.Int, b.Int) && sameFloat(a.Float, b.Float)
}

// sameInt compares what is not layout.
func sameInt(a, b *histogram.Histogram) bool {
	if a == nil {
		return true
	}
	return a.CounterResetHint == b.CounterResetHint && a.ZeroCount == b.ZeroCount && a.Count == b.Count &&
		math.Float64bits(a.Sum) == math.Float64bits(b.Sum) &&
		slices.Equal(a.PositiveBuckets, b.PositiveBuckets) && slices.Equal(a.NegativeBuckets, b.NegativeBuckets)
}

// sameFloat compares what is not layout.
func sameFloat(a, b *histogram.FloatHistogram) bool {
	if a == nil {
		return true
	}
	return a.CounterResetHint == b.CounterResetHint &&
		sameFloats([]float64{a.ZeroCount, a.Count, a.Sum}, []float64{b.ZeroCount, b.Count, b.Sum}) &&
		sameFloats(a.PositiveBuckets, b.PositiveBuckets) && sameFloats(a.NegativeBuckets, b.NegativeBuckets)
}

func sameFloats(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

// MergeHistograms gives the histograms of two runs, each in strictly ascending time order, in that order. At a time that
// both have, the one of first stays; conflicts counts those times where they are not the same.
func MergeHistograms(first, second []series.Histogram) (merged []series.Histogram, conflicts int) {
	merged = make([]series.Histogram, 0, len(first)+len(second))
	for len(first) > 0 && len(second) > 0 {
		a, b := first[0], second[0]
		switch {
		case a.T < b.T:
			merged, first = append(merged, a), first[1:]
		case a.T > b.T:
			merged, second = append(merged, b), second[1:]
		default:
			if !SameHistogram(a, b) {
				conflicts++
			}
			merged, first, second = append(merged, a), first[1:], second[1:]
		}
	}
	merged = append(merged, first...)
	return append(merged, second...), conflicts
}

// JoinHistograms is Join for histograms.
func JoinHistograms(dst []series.Histogram, base, before int) []series.Histogram {
	if before == base || before == len(dst) || dst[before].T > dst[before-1].T {
		return dst
	}
	merged, _ := MergeHistograms(dst[base:before], dst[before:])
	return append(dst[:base], merged...)
}
