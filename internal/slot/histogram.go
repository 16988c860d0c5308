package slot

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"

	"daybook/internal/series"
)

// A slot of histograms has a slot of floats in it: the times and the sums. The rest of each histogram is a record of the
// body. It keeps everything exactly as the sender chose it: which buckets are written down at all, how they are grouped
// into spans, and how many numbers there are, whether that agrees with the spans or not. So a span is only ever two
// numbers, however far it reaches.

// countKind is how the numbers of a record are written.
type countKind byte

const (
	integers  countKind = iota // of an integer histogram
	wholes                     // of a float histogram, all of them whole numbers
	fractions                  // of a float histogram, as the bits of float64s
)

// The head of a record: the kind, and these.
const (
	recordKind   = 3
	recordAfresh = 1 << 2 // a layout follows, and the numbers stand for themselves; otherwise they are differences
	recordHint   = 1 << 3 // the counter reset hint follows; otherwise it is the one before
	recordKnown  = recordKind | recordAfresh | recordHint
	// minRecord is the length of the shortest one: head, zero count and count.
	minRecord = 3
)

// layout is what the histograms of a series have in common most of the time.
type layout struct {
	schema             int32
	zeroThreshold      float64
	positive, negative []histogram.Span
	positives          int // how many numbers there are of positive buckets
	negatives          int
	custom             []float64
}

func layoutOf(h series.Histogram) layout {
	if f := h.Float; f != nil {
		return layout{
			f.Schema, f.ZeroThreshold, f.PositiveSpans, f.NegativeSpans, len(f.PositiveBuckets), len(f.NegativeBuckets), f.CustomValues,
		}
	}
	i := h.Int
	return layout{
		i.Schema, i.ZeroThreshold, i.PositiveSpans, i.NegativeSpans, len(i.PositiveBuckets), len(i.NegativeBuckets), i.CustomValues,
	}
}

func (l *layout) same(m *layout) bool {
	return l.schema == m.schema && math.Float64bits(l.zeroThreshold) == math.Float64bits(m.zeroThreshold) &&
		l.positives == m.positives && l.negatives == m.negatives &&
		slices.Equal(l.positive, m.positive) && slices.Equal(l.negative, m.negative) && sameFloats(l.custom, m.custom)
}

// record is a histogram without time and sum.
type record struct {
	layout
	kind countKind
	hint histogram.CounterResetHint
	// numbers are the zero count, the positive and the negative buckets, all of them counts and not differences, and
	// the count of all. Where they are whole numbers the last is less the sum of those before, so mostly 0.
	numbers []uint64
}

func (r *record) setInt(h *histogram.Histogram) {
	r.kind, r.hint = integers, h.CounterResetHint
	r.numbers = append(r.numbers[:0], h.ZeroCount)
	r.numbers = appendSums(r.numbers, h.PositiveBuckets)
	r.numbers = appendSums(r.numbers, h.NegativeBuckets)
	r.numbers = append(r.numbers, h.Count-total(r.numbers))
}

// appendSums turns differences of neighbours into counts.
func appendSums(dst []uint64, deltas []int64) []uint64 {
	sum := uint64(0)
	for _, d := range deltas {
		sum += uint64(d)
		dst = append(dst, sum)
	}
	return dst
}

func total(numbers []uint64) (sum uint64) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

func (r *record) setFloat(h *histogram.FloatHistogram) {
	r.hint = h.CounterResetHint
	r.numbers = append(r.numbers[:0], math.Float64bits(h.ZeroCount))
	for _, v := range h.PositiveBuckets {
		r.numbers = append(r.numbers, math.Float64bits(v))
	}
	for _, v := range h.NegativeBuckets {
		r.numbers = append(r.numbers, math.Float64bits(v))
	}
	r.numbers = append(r.numbers, math.Float64bits(h.Count))
	r.kind = fractions
	for _, bits := range r.numbers {
		if _, ok := wholeNumber(bits); !ok {
			return
		}
	}
	r.kind = wholes
	for i, bits := range r.numbers {
		r.numbers[i], _ = wholeNumber(bits)
	}
	last := len(r.numbers) - 1
	r.numbers[last] -= total(r.numbers[:last])
}

// wholeNumber is the integer that a float64 is exactly, -0 not being one.
func wholeNumber(bits uint64) (n uint64, ok bool) {
	v := math.Float64frombits(bits)
	if a := math.Abs(v); a <= maxInt {
		n = uint64(int64(v))
		return n, math.Float64bits(float64(int64(n))) == bits
	}
	return 0, false
}

type histogramEncoder struct {
	samples   []series.Sample
	sums      []byte
	body      []byte
	now, last record
}

var histogramEncoders = sync.Pool{New: func() any { return new(histogramEncoder) }}

// EncodeHistograms appends to dst the slot of histograms, which are in strictly ascending order of time, none before the
// first millisecond of start, and of at most MaxBytes. As with Encode, others make it panic or write a slot that
// DecodeHistograms refuses.
func EncodeHistograms(dst []byte, start series.Hour, all []series.Histogram) []byte {
	if !histogramsFit(all) {
		panic(fmt.Sprintf("slot: %d histograms of more than %d bytes in one slot", len(all), MaxBytes))
	}
	e := histogramEncoders.Get().(*histogramEncoder)
	defer e.done()
	for i := range all {
		e.add(&all[i], i == 0)
	}
	from := len(dst)
	e.sums = Encode(e.sums[:0], start, e.samples)
	dst = binary.AppendUvarint(append(dst, versionHistograms), uint64(len(e.sums)))
	dst = append(dst, e.sums...)
	dst = appendBody(dst, from, e.body)
	return binary.LittleEndian.AppendUint16(dst, check(dst[from:]))
}

// done keeps no hold of what was encoded.
func (e *histogramEncoder) done() {
	e.samples, e.body = keep(e.samples), keep(e.body)
	e.now.layout, e.last.layout = layout{}, layout{}
	e.now.numbers, e.last.numbers = keep(e.now.numbers), keep(e.last.numbers)
	histogramEncoders.Put(e)
}

func (e *histogramEncoder) add(h *series.Histogram, first bool) {
	e.now, e.last = e.last, e.now
	e.now.layout = layoutOf(*h)
	sum := 0.0
	if h.Float != nil {
		e.now.setFloat(h.Float)
		sum = h.Float.Sum
	} else {
		e.now.setInt(h.Int)
		sum = h.Int.Sum
	}
	e.samples = append(e.samples, series.Sample{T: h.T, V: sum})
	head := byte(e.now.kind)
	afresh := first || e.now.kind != e.last.kind || !e.now.same(&e.last.layout)
	if afresh {
		head |= recordAfresh
	}
	if first && e.now.hint != 0 || !first && e.now.hint != e.last.hint {
		head |= recordHint
	}
	e.body = append(e.body, head)
	if head&recordHint != 0 {
		e.body = append(e.body, byte(e.now.hint))
	}
	if afresh {
		e.body = e.now.append(e.body)
	}
	e.addNumbers(afresh)
}

func (e *histogramEncoder) addNumbers(afresh bool) {
	for i, n := range e.now.numbers {
		before := uint64(0)
		if !afresh {
			before = e.last.numbers[i]
		}
		if e.now.kind == fractions {
			e.body = appendBits(e.body, n^before)
			continue
		}
		e.body = binary.AppendUvarint(e.body, zigzag(int64(n-before)))
	}
}

func (l *layout) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, zigzag(int64(l.schema)))
	dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(l.zeroThreshold))
	for _, spans := range [][]histogram.Span{l.positive, l.negative} {
		dst = binary.AppendUvarint(dst, uint64(len(spans)))
		for _, s := range spans {
			dst = binary.AppendUvarint(dst, zigzag(int64(s.Offset)))
			dst = binary.AppendUvarint(dst, uint64(s.Length))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(l.positives))
	dst = binary.AppendUvarint(dst, uint64(l.negatives))
	dst = binary.AppendUvarint(dst, uint64(len(l.custom)))
	for _, v := range l.custom {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
	}
	return dst
}

// appendBits writes the bytes of x that are not zero in a row: a byte tells how many zeros stand before them and how
// many they are.
func appendBits(dst []byte, x uint64) []byte {
	if x == 0 {
		return append(dst, 0)
	}
	lead := leadingZeroBytes(x)
	n := 8 - lead - trailingZeroBytes(x)
	dst = append(dst, byte(lead<<4|n))
	for i := range n {
		dst = append(dst, byte(x>>(8*(7-lead-i))))
	}
	return dst
}

// HistogramBytes is how much of MaxBytes a histogram takes: a bound for its memory and for its part of a slot.
func HistogramBytes(h series.Histogram) int {
	l := layoutOf(h)
	return l.bytes()
}

// What a histogram takes of MaxBytes, and each number, span and custom value of it.
const (
	histogramBytes = 256
	numberBytes    = 10
)

func (l *layout) bytes() int {
	return histogramBytes + numberBytes*(l.positives+l.negatives+len(l.positive)+len(l.negative)+len(l.custom))
}

func histogramsFit(all []series.Histogram) bool {
	n := 0
	for i := range all {
		n += HistogramBytes(all[i])
	}
	return n <= MaxBytes
}
