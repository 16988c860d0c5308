package slot

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"

	"daybook/internal/series"
)

// histogramSlot is the parts of a slot of histograms.
type histogramSlot struct {
	Info
	sums []byte // a slot of floats
	body []byte // as appendBody wrote it
}

func openHistograms(b []byte) (s histogramSlot, err error) {
	if err := checkKind(b, Histograms); err != nil {
		return s, err
	}
	p := parser{b: b[1:max(1, len(b)-checkSize)]}
	sums := p.take(p.uvarint())
	if p.err != nil {
		return s, p.err
	}
	h, _, err := readHeader(sums)
	if err != nil {
		return s, fmt.Errorf("sums: %w", err)
	}
	s = histogramSlot{h.Info, sums, p.b}
	s.Kind, s.Packed = Histograms, b[0]&flagPacked != 0
	return s, nil
}

type histogramDecoder struct {
	parser
	unpacked []byte
	samples  []series.Sample
	record   // the one before
	begun    bool
	left     int // of MaxBytes
}

var histogramDecoders = sync.Pool{New: func() any { return new(histogramDecoder) }}

// DecodeHistograms appends the histograms of a slot to dst. Whatever bytes it is given, it returns histograms in strictly
// ascending order of time or an error, and with an error dst as it was. They need not be valid: buckets may disagree with
// spans. Those of one slot may share spans and custom values, which must not be written to.
func DecodeHistograms(dst []series.Histogram, b []byte) ([]series.Histogram, error) {
	s, err := openHistograms(b)
	if err != nil {
		return dst, err
	}
	if err := verify(b); err != nil {
		return dst, err
	}
	d := histogramDecoders.Get().(*histogramDecoder)
	defer d.done()
	body, err := readBody(s.Packed, s.body, d.unpacked)
	if err != nil {
		return dst, err
	}
	if s.Packed {
		d.unpacked = body
	}
	if s.Count > len(body)/minRecord {
		return dst, fmt.Errorf("%w: %d histograms in %d bytes", ErrCorrupt, s.Count, len(body))
	}
	if d.samples, err = Decode(d.samples[:0], s.sums); err != nil {
		return dst, fmt.Errorf("sums: %w", err)
	}
	return d.decode(dst, body)
}

// done keeps no hold of what was decoded.
func (d *histogramDecoder) done() {
	*d = histogramDecoder{
		unpacked: keep(d.unpacked), samples: keep(d.samples), record: record{numbers: keep(d.numbers)},
	}
	histogramDecoders.Put(d)
}

func (d *histogramDecoder) decode(dst []series.Histogram, body []byte) ([]series.Histogram, error) {
	d.parser = parser{b: body}
	d.left = MaxBytes
	all := slices.Grow(dst, len(d.samples))
	for _, s := range d.samples {
		if d.next(); d.err != nil {
			return dst, d.err
		}
		h := series.Histogram{T: s.T}
		if d.kind == integers {
			h.Int = d.toInt(s.V)
		} else {
			h.Float = d.toFloat(s.V)
		}
		all = append(all, h)
	}
	if len(d.b) > 0 {
		return dst, fmt.Errorf("%w: %d bytes too many", ErrCorrupt, len(d.b))
	}
	return all, nil
}

// next reads a record, of which the one before is the base.
func (d *histogramDecoder) next() {
	head := d.byte()
	kind := countKind(head & recordKind)
	afresh := head&recordAfresh != 0
	if kind > fractions || head&^recordKnown != 0 || !afresh && (!d.begun || kind != d.kind) {
		d.fail(fmt.Sprintf("a record begins with %#02x", head))
		return
	}
	d.kind, d.begun = kind, true
	if head&recordHint != 0 {
		d.hint = histogram.CounterResetHint(d.byte())
	}
	if afresh {
		d.readLayout()
	}
	d.left -= d.bytes()
	n := 2 + d.positives + d.negatives
	if d.left < 0 || n > len(d.b) {
		d.fail("it claims more than there can be")
		return
	}
	if afresh {
		d.numbers = slices.Grow(d.numbers[:0], n)[:n]
		clear(d.numbers)
	}
	d.readNumbers()
}

func (d *histogramDecoder) readLayout() {
	schema := unzigzag(d.uvarint())
	if int64(int32(schema)) != schema {
		d.fail("its schema is out of range")
	}
	d.schema = int32(schema)
	d.zeroThreshold = math.Float64frombits(d.uint64())
	d.positive = d.spans()
	d.negative = d.spans()
	d.positives = d.claim(1) // each number takes a byte or more
	d.negatives = d.claim(1)
	d.custom = make([]float64, d.claim(8))
	for i := range d.custom {
		d.custom[i] = math.Float64frombits(d.uint64())
	}
}

// claim reads how many things follow, of at least size bytes each, which may be taken memory for.
func (d *histogramDecoder) claim(size int) int {
	n := d.length(size)
	if n > d.left/numberBytes {
		d.fail("it claims more than there can be")
		return 0
	}
	return n
}

// length reads how many things follow, of at least size bytes each.
func (p *parser) length(size int) int {
	n := p.uvarint()
	if n > uint64(len(p.b)/size) {
		p.fail("it ends early")
		return 0
	}
	return int(n)
}

func (d *histogramDecoder) spans() []histogram.Span {
	spans := make([]histogram.Span, d.claim(2))
	for i := range spans {
		offset, length := unzigzag(d.uvarint()), d.uvarint()
		spans[i] = histogram.Span{Offset: int32(offset), Length: uint32(length)}
		if int64(spans[i].Offset) != offset || uint64(spans[i].Length) != length {
			d.fail("a span is out of range")
		}
	}
	return spans
}

func (d *histogramDecoder) readNumbers() {
	for i := range d.numbers {
		if d.kind == fractions {
			d.numbers[i] ^= d.floatBits()
			continue
		}
		d.numbers[i] += uint64(unzigzag(d.uvarint()))
	}
}

// floatBits reads what appendBits wrote.
func (p *parser) floatBits() (x uint64) {
	head := p.byte()
	lead, n := int(head>>4), int(head&15)
	if lead+n > 8 || n == 0 && lead != 0 {
		p.fail("bytes of a float64 are out of range")
		return 0
	}
	for i, c := range p.take(uint64(n)) {
		x |= uint64(c) << (8 * (7 - lead - i))
	}
	return x
}

func leadingZeroBytes(x uint64) int  { return bits.LeadingZeros64(x) / 8 }
func trailingZeroBytes(x uint64) int { return bits.TrailingZeros64(x) / 8 }

// toInt makes a histogram of the record. An empty slice is nil, as it mostly was.
func (d *histogramDecoder) toInt(sum float64) *histogram.Histogram {
	last := len(d.numbers) - 1
	buckets := make([]int64, last-1)
	positive, negative := buckets[:d.positives:d.positives], buckets[d.positives:]
	differences(positive, d.numbers[1:])
	differences(negative, d.numbers[1+d.positives:])
	return &histogram.Histogram{
		CounterResetHint: d.hint, Schema: d.schema, ZeroThreshold: d.zeroThreshold, Sum: sum,
		ZeroCount: d.numbers[0], Count: d.numbers[last] + total(d.numbers[:last]),
		PositiveSpans: orNil(d.positive), NegativeSpans: orNil(d.negative),
		PositiveBuckets: orNil(positive), NegativeBuckets: orNil(negative), CustomValues: orNil(d.custom),
	}
}

// differences is the reverse of appendSums.
func differences(deltas []int64, counts []uint64) {
	before := uint64(0)
	for i := range deltas {
		deltas[i] = int64(counts[i] - before)
		before = counts[i]
	}
}

func (d *histogramDecoder) toFloat(sum float64) *histogram.FloatHistogram {
	last := len(d.numbers) - 1
	buckets := make([]float64, last-1)
	positive, negative := buckets[:d.positives:d.positives], buckets[d.positives:]
	for i := range buckets {
		buckets[i] = d.float(d.numbers[1+i])
	}
	count := d.numbers[last]
	if d.kind == wholes {
		count += total(d.numbers[:last])
	}
	return &histogram.FloatHistogram{
		CounterResetHint: d.hint, Schema: d.schema, ZeroThreshold: d.zeroThreshold, Sum: sum,
		ZeroCount: d.float(d.numbers[0]), Count: d.float(count),
		PositiveSpans: orNil(d.positive), NegativeSpans: orNil(d.negative),
		PositiveBuckets: orNil(positive), NegativeBuckets: orNil(negative), CustomValues: orNil(d.custom),
	}
}

func (d *histogramDecoder) float(n uint64) float64 {
	if d.kind == wholes {
		return float64(int64(n))
	}
	return math.Float64frombits(n)
}

func orNil[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
