package slot

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"daybook/internal/series"
)

// Most values were decimals with few places before they became float64: 21.37, 4096, 0.005. Encoding "decimal" finds the
// smallest exponent e with which a value is exactly the float64 nearest to integer / 10^e, and writes the integers.
// What is not such a number is an exception: its bits are kept beside, and the integers go on as if it had been the one
// before it.

const (
	maxExponent = 22      // 10^22 is the highest power of ten that is exact in a float64
	maxInt      = 1 << 53 // integers below this are exact in a float64
	staleBits   = 0x7ff0000000000002
)

var powersOfTen = [maxExponent + 1]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
	1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// exception is a run of samples with one and the same value that is no decimal of the slot's exponent.
type exception struct {
	at, n int
	bits  uint64
}

// decimalEncoder finds integers for values.
type decimalEncoder struct {
	exponent   int
	ints       []int64
	steps      []int64 // see fitNear
	exceptions []exception
}

// toInt returns the integer for v where v is a decimal with the exponent of pow.
func toInt(v, pow float64) (int64, bool) {
	k := int64(math.RoundToEven(float64(v * pow)))
	// Division, not multiplication by 10^-e: it is rounded correctly, and the reader does the same. The comparison of bits
	// tells -0 from 0 and fails for NaN.
	exact := math.Float64bits(float64(k)/pow) == math.Float64bits(v)
	return k, exact && uint64(k+maxInt-1) < 2*maxInt-1
}

// fit computes exponent, integers and exceptions. It gives up, returning false, where there are many exceptions.
func (d *decimalEncoder) fit(samples []series.Sample) bool {
	d.exponent = 0
	d.exceptions = d.exceptions[:0]
	d.ints = slices.Grow(d.ints[:0], len(samples))[:len(samples)]
	allowed := 4 + len(samples)/16
	pow := 1.0
	for i := range samples {
		k, ok := toInt(samples[i].V, pow)
		if ok {
			d.ints[i] = k
			continue
		}
		d.misfit(i, samples[i].V)
		if len(d.exceptions) > allowed {
			return false
		}
		pow = powersOfTen[d.exponent]
	}
	d.fillFront()
	return true
}

// misfit raises the exponent, or makes the value an exception where that is cheaper.
func (d *decimalEncoder) misfit(i int, v float64) {
	if !d.goesOn(i, v) {
		if e := exponentOf(v, d.exponent+1); e > 0 {
			// An exception takes about 80 bits, a decimal place 3.3 bits of each sample.
			if (len(d.exceptions)+1)*24 > (e-d.exponent)*i && d.raise(e, i) {
				d.ints[i], _ = toInt(v, powersOfTen[e])
				return
			}
		}
	}
	d.except(i, v)
}

// goesOn tells whether sample i belongs to the last exception.
func (d *decimalEncoder) goesOn(i int, v float64) bool {
	n := len(d.exceptions)
	if n == 0 {
		return false
	}
	last := d.exceptions[n-1]
	return last.at+last.n == i && last.bits == math.Float64bits(v)
}

// except makes sample i an exception.
func (d *decimalEncoder) except(i int, v float64) {
	if d.goesOn(i, v) {
		d.exceptions[len(d.exceptions)-1].n++
	} else {
		d.exceptions = append(d.exceptions, exception{i, 1, math.Float64bits(v)})
	}
	d.ints[i] = 0
	if i > 0 {
		d.ints[i] = d.ints[i-1]
	}
}

// exponentOf returns the smallest exponent of v that is at least from, or 0.
func exponentOf(v float64, from int) int {
	if v == 0 || math.IsNaN(v) {
		return 0
	}
	for e := from; e <= maxExponent; e++ {
		if math.Abs(v*powersOfTen[e]) >= maxInt {
			return 0
		}
		if _, ok := toInt(v, powersOfTen[e]); ok {
			return e
		}
	}
	return 0
}

// raise makes exponent e the exponent of the first n samples, unless one of their integers would become too large.
func (d *decimalEncoder) raise(e, n int) bool {
	factor := int64(1)
	for i := d.exponent; i < e; i++ {
		factor *= 10
		if factor > maxInt {
			factor = maxInt
		}
	}
	limit := (maxInt - 1) / factor
	for _, k := range d.ints[:n] {
		if k > limit || k < -limit {
			return false
		}
	}
	for i := range d.ints[:n] {
		d.ints[i] *= factor
	}
	d.exponent = e
	d.reconsider()
	return true
}

// reconsider drops the exceptions that are none with the new exponent.
func (d *decimalEncoder) reconsider() {
	kept := d.exceptions[:0]
	for _, x := range d.exceptions {
		k, ok := toInt(math.Float64frombits(x.bits), powersOfTen[d.exponent])
		if !ok {
			kept = append(kept, x)
			continue
		}
		for i := x.at; i < x.at+x.n; i++ {
			d.ints[i] = k
		}
	}
	d.exceptions = kept
}

// fillFront gives exceptions at the very beginning the first integer, as there is none before them.
func (d *decimalEncoder) fillFront() {
	end := 0
	for _, x := range d.exceptions {
		if x.at != end {
			break
		}
		end += x.n
	}
	first := int64(0)
	if end < len(d.ints) {
		first = d.ints[end]
	}
	for i := range d.ints[:end] {
		d.ints[i] = first
	}
}

// Flags beside the exponent in the first byte of decimal values.
const (
	decimalExceptions = 1 << 5
	decimalSteps      = 1 << 6 // distances follow the integers
	exponentMask      = 1<<5 - 1
)

// Flags of an exception.
const (
	exceptionStale = 1 << iota // the value is Prometheus's stale marker and not written
	exceptionRun               // it lasts for more than one sample

	exceptionFlagBits = iota
)

// append writes everything but the integers after the first.
func (d *decimalEncoder) append(dst []byte, flags byte) []byte {
	head := byte(d.exponent) | flags
	if len(d.exceptions) > 0 {
		head |= decimalExceptions
	}
	dst = append(dst, head)
	dst = binary.AppendUvarint(dst, zigzag(d.ints[0]))
	if len(d.exceptions) == 0 {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.exceptions)))
	end := 0
	for _, x := range d.exceptions {
		dst = x.append(dst, end)
		end = x.at + x.n
	}
	return dst
}

// append writes an exception; end is where the one before it ended.
func (x exception) append(dst []byte, end int) []byte {
	head := uint64(x.at-end) << exceptionFlagBits
	if x.bits == staleBits {
		head |= exceptionStale
	}
	if x.n > 1 {
		head |= exceptionRun
	}
	dst = binary.AppendUvarint(dst, head)
	if x.n > 1 {
		dst = binary.AppendUvarint(dst, uint64(x.n-2))
	}
	if x.bits != staleBits {
		dst = binary.LittleEndian.AppendUint64(dst, x.bits)
	}
	return dst
}

// size is about what append will write.
func (d *decimalEncoder) size() int {
	const exceptionSize = 10
	return 1 + uvarintLen(zigzag(d.ints[0])) + exceptionSize*len(d.exceptions)
}

// decodeDecimal reads the values of out and returns what follows them.
func (d *decoder) decodeDecimal(out []series.Sample, b []byte) ([]byte, error) {
	p := parser{b: b}
	head := p.byte()
	first := unzigzag(p.uvarint())
	exponent := head & exponentMask
	if exponent > maxExponent || head >= decimalSteps<<1 {
		return nil, fmt.Errorf("%w: exponent %#x", ErrCorrupt, head)
	}
	d.exceptions = d.exceptions[:0]
	if head&decimalExceptions != 0 {
		d.readExceptions(&p, len(out))
	}
	if p.err != nil {
		return nil, p.err
	}
	pow := powersOfTen[exponent]
	out[0].V = float64(first) / pow
	rest, err := d.readInts(out[1:], p.b, first, func(part []series.Sample, ints []int64) { toValues(part, ints, pow) })
	if err == nil && head&decimalSteps != 0 {
		rest, err = d.addSteps(out, rest)
	}
	if err != nil {
		return nil, err
	}
	d.setExceptions(out)
	return rest, nil
}

// readInts reads the numbers after first in portions, giving each with its part of out to use, and returns what follows.
func (d *decoder) readInts(out []series.Sample, b []byte, first int64, use func([]series.Sample, []int64)) ([]byte, error) {
	if len(out) == 0 {
		return b, nil
	}
	if err := d.ints.begin(b, first); err != nil {
		return nil, err
	}
	for len(out) > 0 {
		ints := d.portion[:min(len(out), len(d.portion))]
		d.ints.read(ints)
		use(out, ints)
		out = out[len(ints):]
	}
	return d.ints.end()
}

func toValues(out []series.Sample, ints []int64, pow float64) {
	out = out[:len(ints)]
	if pow == 1 {
		for i, k := range ints {
			out[i].V = float64(k)
		}
		return
	}
	for i, k := range ints {
		out[i].V = float64(k) / pow
	}
}

// readExceptions reads the exceptions of n samples.
func (d *decoder) readExceptions(p *parser, n int) {
	count := p.uvarint()
	at := uint64(0)
	for range count {
		head := p.uvarint()
		x := exception{n: 1, bits: staleBits}
		if head&exceptionRun != 0 {
			x.n = 2 + int(p.uvarint()&(1<<32-1))
		}
		if head&exceptionStale == 0 {
			x.bits = p.uint64()
		}
		at += head >> exceptionFlagBits
		if p.err != nil {
			return
		}
		if at+uint64(x.n) > uint64(n) {
			p.fail("an exception beyond the last sample")
			return
		}
		x.at = int(at)
		at += uint64(x.n)
		d.exceptions = append(d.exceptions, x)
	}
}

func (d *decoder) setExceptions(out []series.Sample) {
	for _, x := range d.exceptions {
		v := math.Float64frombits(x.bits)
		for i := x.at; i < x.at+x.n; i++ {
			out[i].V = v
		}
	}
}
