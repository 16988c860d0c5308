package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"

	"daybook/internal/series"
)

// Tags of the histogram message, which is the same in both versions. Its lists come packed or one by one.
const (
	tagCountInt       = 1<<3 | wireVarint
	tagCountFloat     = 2<<3 | wireFixed64
	tagSum            = 3<<3 | wireFixed64
	tagSchema         = 4<<3 | wireVarint
	tagZeroThreshold  = 5<<3 | wireFixed64
	tagZeroCountInt   = 6<<3 | wireVarint
	tagZeroCountFloat = 7<<3 | wireFixed64
	tagNegativeSpans  = 8<<3 | wireBytes
	tagNegativeDeltas = 9<<3 | wireBytes
	tagNegativeDelta  = 9<<3 | wireVarint
	tagNegativeCounts = 10<<3 | wireBytes
	tagNegativeCount  = 10<<3 | wireFixed64
	tagPositiveSpans  = 11<<3 | wireBytes
	tagPositiveDeltas = 12<<3 | wireBytes
	tagPositiveDelta  = 12<<3 | wireVarint
	tagPositiveCounts = 13<<3 | wireBytes
	tagPositiveCount  = 13<<3 | wireFixed64
	tagResetHint      = 14<<3 | wireVarint
	tagHistogramTime  = 15<<3 | wireVarint
	tagCustomValues   = 16<<3 | wireBytes
	tagCustomValue    = 16<<3 | wireFixed64
	tagSpanOffset     = 1<<3 | wireVarint
	tagSpanLength     = 2<<3 | wireVarint
)

// maxHistogramBytes is how long the histograms of a series within an hour may be, as they come: that fits in one
// transaction of the table, also where a restart has the count begin anew. It is some 3,600 histograms of 160 buckets.
const maxHistogramBytes = 1_250_000

// histogramFields is what a message says of a histogram. Buckets are taken as they stand, never expanded: a span that
// claims two billion buckets takes no more room than one that claims two.
type histogramFields struct {
	t                      series.Millis
	isFloat, zeroIsFloat   bool // the last of several counts decides
	count, zeroCount       uint64
	countF, zeroCountF     float64
	sum, zeroThreshold     float64
	schema                 int32
	hint                   uint64
	negative, positive     []histogram.Span
	negativeDs, positiveDs []int64
	negativeCs, positiveCs []float64
	custom                 []float64
}

// readHistogram reads a histogram of either version. 2.0's start timestamp is passed over.
func readHistogram(b []byte) (h histogramFields, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = nextField(b); err != nil {
			return h, err
		}
		if h.setNumber(f) {
			continue
		}
		if err = h.setList(f); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (h *histogramFields) setNumber(f field) bool {
	switch f.tag {
	case tagCountInt:
		h.isFloat, h.count = false, f.n
	case tagCountFloat:
		h.isFloat, h.countF = true, math.Float64frombits(f.n)
	case tagSum:
		h.sum = math.Float64frombits(f.n)
	case tagSchema:
		h.schema = int32(unzigzag(f.n & math.MaxUint32))
	case tagZeroThreshold:
		h.zeroThreshold = math.Float64frombits(f.n)
	case tagZeroCountInt:
		h.zeroIsFloat, h.zeroCount = false, f.n
	case tagZeroCountFloat:
		h.zeroIsFloat, h.zeroCountF = true, math.Float64frombits(f.n)
	case tagResetHint:
		h.hint = f.n
	case tagHistogramTime:
		h.t = series.Millis(f.n)
	default:
		return false
	}
	return true
}

func (h *histogramFields) setList(f field) (err error) {
	switch f.tag {
	case tagNegativeSpans:
		h.negative, err = appendSpan(h.negative, f.data)
	case tagPositiveSpans:
		h.positive, err = appendSpan(h.positive, f.data)
	case tagNegativeDeltas:
		h.negativeDs, err = appendDeltas(h.negativeDs, f.data)
	case tagPositiveDeltas:
		h.positiveDs, err = appendDeltas(h.positiveDs, f.data)
	case tagNegativeDelta:
		h.negativeDs = append(h.negativeDs, unzigzag(f.n))
	case tagPositiveDelta:
		h.positiveDs = append(h.positiveDs, unzigzag(f.n))
	case tagNegativeCounts:
		h.negativeCs, err = appendDoubles(h.negativeCs, f.data)
	case tagPositiveCounts:
		h.positiveCs, err = appendDoubles(h.positiveCs, f.data)
	case tagNegativeCount:
		h.negativeCs = append(h.negativeCs, math.Float64frombits(f.n))
	case tagPositiveCount:
		h.positiveCs = append(h.positiveCs, math.Float64frombits(f.n))
	case tagCustomValues:
		h.custom, err = appendDoubles(h.custom, f.data)
	case tagCustomValue:
		h.custom = append(h.custom, math.Float64frombits(f.n))
	}
	return err
}

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

func appendSpan(spans []histogram.Span, b []byte) ([]histogram.Span, error) {
	var span histogram.Span
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return spans, err
		}
		switch f.tag {
		case tagSpanOffset:
			span.Offset = int32(unzigzag(f.n & math.MaxUint32))
		case tagSpanLength:
			span.Length = uint32(f.n)
		}
		b = rest
	}
	return append(spans, span), nil
}

func appendDeltas(deltas []int64, b []byte) ([]int64, error) {
	n := 0
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	deltas = slices.Grow(deltas, n)
	for len(b) > 0 {
		delta, rest, err := nextVarint(b)
		if err != nil {
			return deltas, err
		}
		deltas, b = append(deltas, unzigzag(delta)), rest
	}
	return deltas, nil
}

func appendDoubles(all []float64, b []byte) ([]float64, error) {
	if len(b)%8 != 0 {
		return all, errCut
	}
	all = slices.Grow(all, len(b)/8)
	for ; len(b) > 0; b = b[8:] {
		all = append(all, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return all, nil
}

// histogram makes what is stored. Counts of the other kind than the histogram's own are not looked at, as in Prometheus.
func (h *histogramFields) histogram() series.Histogram {
	hint := histogram.CounterResetHint(h.hint)
	if h.isFloat {
		f := &histogram.FloatHistogram{
			CounterResetHint: hint, Schema: h.schema, ZeroThreshold: h.zeroThreshold, Count: h.countF, Sum: h.sum,
			PositiveSpans: h.positive, PositiveBuckets: h.positiveCs,
			NegativeSpans: h.negative, NegativeBuckets: h.negativeCs, CustomValues: h.custom,
		}
		if h.zeroIsFloat {
			f.ZeroCount = h.zeroCountF
		}
		return series.Histogram{T: h.t, Float: f}
	}
	i := &histogram.Histogram{
		CounterResetHint: hint, Schema: h.schema, ZeroThreshold: h.zeroThreshold, Count: h.count, Sum: h.sum,
		PositiveSpans: h.positive, PositiveBuckets: h.positiveDs,
		NegativeSpans: h.negative, NegativeBuckets: h.negativeDs, CustomValues: h.custom,
	}
	if !h.zeroIsFloat {
		i.ZeroCount = h.zeroCount
	}
	return series.Histogram{T: h.t, Int: i}
}

// check says what is wrong with the histogram, "" for nothing: what Prometheus looks at, and what it leaves out.
func (h *histogramFields) check(x series.Histogram, v version) string {
	err := validate(x)
	switch {
	case err == nil && h.hint > uint64(histogram.GaugeType):
		err = fmt.Errorf("its reset hint is %d, at most %d is known", h.hint, histogram.GaugeType)
	case err == nil && v == v1 && h.schema == histogram.CustomBucketsSchema && len(h.custom) == 0 && !value.IsStaleNaN(h.sum):
		// A sender of 1.0 drops them; with 2.0 the one bucket up to +Inf needs none.
		err = errNoBounds
	case err == nil && !(h.zeroThreshold >= 0):
		err = fmt.Errorf("its zero threshold is %v", h.zeroThreshold)
	case err == nil && x.Int != nil && observations(h.positiveDs)+observations(h.negativeDs)+float64(h.zeroCount) >= 1<<64:
		err = errObservations
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf("the native histogram at %s: %v", stamp(x.T), err)
}

var (
	errNoBounds     = fmt.Errorf("it has custom buckets (schema %d) and no bounds for them (custom_values)", histogram.CustomBucketsSchema)
	errObservations = errors.New("its buckets have more observations than can be counted")
)

func validate(x series.Histogram) error {
	if x.Int != nil {
		return x.Int.Validate()
	}
	return x.Float.Validate()
}

// observations is how many there are in buckets, roughly.
func observations(deltas []int64) (sum float64) {
	count := int64(0)
	for _, delta := range deltas {
		count += delta
		sum += float64(count)
	}
	return sum
}

// checkedHistogram is a histogram of a series as it is stored, or why it is not.
type checkedHistogram struct {
	series.Histogram
	size   int // as it came
	reason string
}
