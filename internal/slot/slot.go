package slot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sync"

	"daybook/internal/series"
)

// ErrCorrupt is returned for bytes that are no slot: cut off, altered, or never written by Encode.
var ErrCorrupt = errors.New("slot is corrupt")

// ErrVersion is returned for a slot of a version that this package does not know, presumably a later one.
var ErrVersion = errors.New("slot has an unknown version")

// MaxCount is how many samples a slot may hold: one each 20 ms for a day. A reader refuses more, since a slot of a few
// bytes may claim any number of equal samples.
const MaxCount = 1<<22 - 1

// Encoding is how a slot writes its values.
type Encoding uint8

// The encodings.
const (
	Decimal Encoding = iota // integers and a power of ten
	XOR                     // differing bits of consecutive values
)

// String gives "decimal" or "xor".
func (e Encoding) String() string {
	switch e {
	case Decimal:
		return "decimal"
	case XOR:
		return "xor"
	}
	return fmt.Sprintf("Encoding(%d)", uint8(e))
}

// Info is what a slot says about itself. First and Last are the times of the first and the last that it holds; where it
// holds nothing they are the start.
type Info struct {
	Kind        Kind
	Start       series.Hour
	Count       int
	Encoding    Encoding // of floats, and of the sums of histograms
	Packed      bool     // histograms and exemplars: their body is compressed
	First, Last series.Millis
}

// The first byte: the version in the high half, flags in the low one.
const (
	version       = 0x10
	versionMask   = 0xf0
	flagXOR       = 1 << 0
	flagIrregular = 1 << 1 // times follow as a sequence; otherwise they are all the same interval apart
	flagsKnown    = flagXOR | flagIrregular
)

// checkSize is the length of the checksum at the end of a slot.
const checkSize = 2

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func check(b []byte) uint16 { return uint16(crc32.Checksum(b, castagnoli)) }

// encoder and decoder are scratch memory.
type encoder struct {
	ints    intEncoder // times, then integers of decimals
	steps   intEncoder // distances from decimals
	decimal decimalEncoder
	times   []int64
}

type decoder struct {
	ints       intDecoder
	portion    [256]int64
	exceptions []exception
}

var (
	encoders = sync.Pool{New: func() any { return new(encoder) }}
	decoders = sync.Pool{New: func() any { return new(decoder) }}
)

// Encode appends to dst the slot of samples, which are in strictly ascending order of time, none before the first
// millisecond of start, and at most MaxCount. The slot may cover any time from there on: an hour and a day are the usual
// ones. It allocates nothing where dst has room for the slot and 10 bytes more. Samples that break these rules make it
// panic or write a slot that Decode refuses.
func Encode(dst []byte, start series.Hour, samples []series.Sample) []byte {
	if len(samples) > MaxCount {
		panic(fmt.Sprintf("slot: %d samples in one slot, at most %d are allowed", len(samples), MaxCount))
	}
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	from := len(dst)
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, zigzag(int64(start)))
	dst = binary.AppendUvarint(dst, uint64(len(samples)))
	if len(samples) > 0 {
		dst = binary.AppendUvarint(dst, uint64(samples[0].T-start.Start()))
		dst = e.appendTimes(dst, from, samples)
		dst = e.appendValues(dst, from, samples)
	}
	return binary.LittleEndian.AppendUint16(dst, check(dst[from:]))
}

// appendTimes writes the times after the first; the first byte of the slot is dst[from].
func (e *encoder) appendTimes(dst []byte, from int, samples []series.Sample) []byte {
	if len(samples) == 1 {
		return dst
	}
	if interval, ok := regular(samples); ok {
		return binary.AppendUvarint(dst, uint64(interval))
	}
	dst[from] |= flagIrregular
	dst = binary.AppendUvarint(dst, uint64(samples[len(samples)-1].T-samples[0].T))
	e.times = slices.Grow(e.times[:0], len(samples))[:len(samples)]
	for i := range samples {
		e.times[i] = int64(samples[i].T)
	}
	e.ints.plan(e.times)
	return e.ints.append(dst)
}

// regular returns the interval where all samples are equally far apart.
func regular(samples []series.Sample) (interval series.Millis, ok bool) {
	interval = samples[1].T - samples[0].T
	prev := samples[0].T
	for i := range samples[1:] {
		t := samples[i+1].T
		if t-prev != interval {
			return 0, false
		}
		prev = t
	}
	return interval, true
}

// appendValues writes the values in the smallest way.
func (e *encoder) appendValues(dst []byte, from int, samples []series.Sample) []byte {
	const (
		// Below this many bits a sample no change of bits is cheaper by xor, so its size need not be known.
		surelySmaller = 12
		// Above this many it is worth to look for decimals that were added up.
		suspicious = 20
	)
	decimal, xor := math.MaxInt, math.MaxInt
	if e.decimal.fit(samples) {
		decimal = e.planDecimal()
	}
	if decimal > surelySmaller*len(samples)/8 {
		xor = (xorBits(samples) + 7) / 8
	}
	if best := min(decimal, xor); best > suspicious*len(samples)/8 {
		if e.decimal.fitNear(samples) && e.planDecimal()+e.planSteps() < best {
			dst = e.appendDecimal(dst, decimalSteps)
			return e.appendSteps(dst)
		}
		if decimal <= xor { // the attempt has overwritten the plan
			e.decimal.fit(samples)
			e.planDecimal()
		}
	}
	if xor < decimal {
		dst[from] |= flagXOR
		return appendXOR(dst, samples, xor)
	}
	return e.appendDecimal(dst, 0)
}

// planDecimal returns the size of what appendDecimal will write.
func (e *encoder) planDecimal() int {
	return e.decimal.size() + e.ints.plan(e.decimal.ints)
}

func (e *encoder) appendDecimal(dst []byte, flags byte) []byte {
	dst = e.decimal.append(dst, flags)
	return e.ints.append(dst)
}

// planSteps returns the size of what appendSteps will write.
func (e *encoder) planSteps() int {
	steps := e.decimal.steps
	return uvarintLen(zigzag(steps[0])) + e.steps.plan(steps)
}

func (e *encoder) appendSteps(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, zigzag(e.decimal.steps[0]))
	return e.steps.append(dst)
}

// header is Info and what else is needed to go on.
type header struct {
	Info
	interval  series.Millis
	irregular bool
}

// readHeader returns the header and what follows it, without the checksum.
func readHeader(b []byte) (h header, rest []byte, err error) {
	kind, err := kindOf(b)
	if err != nil {
		return h, nil, err
	}
	if kind != Floats {
		return h, nil, fmt.Errorf("%w: %v where floats were expected", ErrKind, kind)
	}
	if b[0]&^(versionMask|flagsKnown) != 0 {
		return h, nil, fmt.Errorf("%w: %#02x", ErrVersion, b[0])
	}
	h.Encoding = Encoding(b[0] & flagXOR)
	h.irregular = b[0]&flagIrregular != 0
	p := parser{b: b[1:max(1, len(b)-checkSize)]}
	start := unzigzag(p.uvarint())
	count := p.uvarint()
	h.Start = series.Hour(start)
	if int64(h.Start) != start || count > MaxCount {
		return header{}, nil, fmt.Errorf("%w: %d samples from hour %d", ErrCorrupt, count, start)
	}
	h.Count = int(count)
	h.First = h.Start.Start()
	if count > 0 {
		h.First += series.Millis(p.uvarint())
	}
	h.Last = h.First
	h.readSpan(&p)
	if p.err == nil && (h.First < h.Start.Start() || h.Last < h.First) {
		p.fail("its times are out of range")
	}
	if p.err != nil {
		return header{}, nil, p.err
	}
	return h, p.b, nil
}

// readSpan reads how far the last sample is from the first.
func (h *header) readSpan(p *parser) {
	if h.Count <= 1 {
		return
	}
	span := series.Millis(p.uvarint())
	if !h.irregular {
		h.interval = span
		if h.interval <= 0 || h.interval > 1<<62/series.Millis(h.Count) {
			p.fail("its interval is out of range")
			return
		}
		span *= series.Millis(h.Count - 1)
	}
	h.Last += span
}

// Decode appends the samples of a slot to dst. Whatever bytes it is given, it returns samples in strictly ascending order
// of time or an error, and with an error dst as it was. It allocates nothing where dst has room.
func Decode(dst []series.Sample, b []byte) ([]series.Sample, error) {
	h, rest, err := readHeader(b)
	if err != nil {
		return dst, err
	}
	if err := verify(b); err != nil {
		return dst, err
	}
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	n := len(dst)
	all := slices.Grow(dst, h.Count)[:n+h.Count]
	if err := d.decode(&h, all[n:], rest); err != nil {
		return dst, err
	}
	return all, nil
}

// decode fills out.
func (d *decoder) decode(h *header, out []series.Sample, b []byte) (err error) {
	if h.Count > 0 {
		if b, err = d.decodeTimes(h, out, b); err != nil {
			return fmt.Errorf("times: %w", err)
		}
		if h.Encoding == XOR {
			b, err = decodeXOR(out, b)
		} else {
			b, err = d.decodeDecimal(out, b)
		}
		if err != nil {
			return fmt.Errorf("values: %w", err)
		}
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes too many", ErrCorrupt, len(b))
	}
	return nil
}

// decodeTimes fills in the times and returns what follows them.
func (d *decoder) decodeTimes(h *header, out []series.Sample, b []byte) ([]byte, error) {
	out[0].T = h.First
	if !h.irregular {
		for i, t := 1, h.First+h.interval; i < len(out); i, t = i+1, t+h.interval {
			out[i].T = t
		}
		return b, nil
	}
	if len(out) == 1 {
		return nil, fmt.Errorf("%w: a single time is not irregular", ErrCorrupt)
	}
	if err := d.ints.begin(b, int64(h.First)); err != nil {
		return nil, err
	}
	prev, ascending := h.First, true
	for part := out[1:]; len(part) > 0; {
		ints := d.portion[:min(len(part), len(d.portion))]
		d.ints.read(ints)
		for i, v := range ints {
			t := series.Millis(v)
			ascending = ascending && t > prev
			part[i].T = t
			prev = t
		}
		part = part[len(ints):]
	}
	if !ascending || prev != h.Last {
		return nil, fmt.Errorf("%w: not ascending to the last time", ErrCorrupt)
	}
	return d.ints.end()
}

// parser takes bytes from the front of b. After the first failure everything is zero.
type parser struct {
	b   []byte
	err error
}

func (p *parser) fail(why string) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrCorrupt, why)
	}
	p.b = nil
}

func (p *parser) byte() byte {
	if len(p.b) == 0 {
		p.fail("it ends early")
		return 0
	}
	v := p.b[0]
	p.b = p.b[1:]
	return v
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.fail("it ends early")
		return 0
	}
	p.b = p.b[n:]
	return v
}

// take gives the next n bytes.
func (p *parser) take(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.fail("it ends early")
		return nil
	}
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

func (p *parser) uint64() uint64 {
	if len(p.b) < 8 {
		p.fail("it ends early")
		return 0
	}
	v := binary.LittleEndian.Uint64(p.b)
	p.b = p.b[8:]
	return v
}
