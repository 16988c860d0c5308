package slot

import (
	"math/bits"
	"slices"
)

// intEncoder writes sequences of integers. It is scratch memory: plan, then write, then the next sequence.
type intEncoder struct {
	model
	diffs     []int64 // x[i+1] - x[i], divided by step
	residuals []uint64
	span      struct{ min, max, minDiff int64 } // of (x - x[0]) / step, and of diffs
	counts    [symbolCount]uint32               // by symbol; zero between uses
	fine      []tally                           // of the greatest fineness, ascending by symbol
	tallies   []tally                           // of the fineness chosen
	coarse    []tally
	huffman   huffman
	table     [maxTableBytes]byte
	tableBits uint
	single    bool // nothing to write
	bits      int  // size of table and residuals
}

// plan finds the model and the codes for x and returns the size of everything in bytes. A single number needs
// nothing more.
func (e *intEncoder) plan(x []int64) int {
	e.single = len(x) == 1
	if e.single {
		return 0
	}
	e.differences(x)
	e.divide()
	e.chooseOrder()
	e.residuals = e.residuals[:0]
	e.fillResiduals()
	e.countSymbols()
	e.chooseFineness()
	e.huffman.build(e.tallies)
	e.measure()
	return 1 + uvarintLen(uint64(e.step)) + uvarintLen(zigzag(e.base)) + (e.bits+7)/8
}

// differences fills diffs and finds their greatest common divisor.
func (e *intEncoder) differences(x []int64) {
	e.diffs = slices.Grow(e.diffs[:0], len(x)-1)[:len(x)-1]
	step := uint64(0)
	prev := x[0]
	for i, v := range x[1:] {
		d := v - prev
		prev = v
		e.diffs[i] = d
		if step != 1 && d != 0 {
			step = gcd(step, d)
		}
	}
	e.step = int64(step)
	if e.step <= 0 { // all alike; or 1<<63, which is not worth an int64's sign
		e.step = 1
	}
}

// gcd returns the greatest common divisor of a and |d|; that of 0 and d is |d|.
func gcd(a uint64, d int64) uint64 {
	b := uint64(d)
	if d < 0 {
		b = -b
	}
	for a != 0 {
		if (a|b)>>32 == 0 { // the short division is several times quicker
			a, b = uint64(uint32(b)%uint32(a)), a
		} else {
			a, b = b%a, a
		}
	}
	return b
}

// divide divides the differences by step and finds what range they and the numbers cover.
func (e *intEncoder) divide() {
	if e.step > 1 {
		for i, d := range e.diffs {
			if d != 0 {
				e.diffs[i] = d / e.step
			}
		}
	}
	y, lo, hi, lowest := int64(0), int64(0), int64(0), e.diffs[0]
	for _, d := range e.diffs {
		y += d
		lo, hi, lowest = min(lo, y), max(hi, y), min(lowest, d)
	}
	e.span.min, e.span.max, e.span.minDiff = lo, hi, lowest
}

// middles returns about the medians of the numbers and of the differences, from a few of them. Where most are equal it is
// nearly always exactly that value, which makes most residuals zero.
func (e *intEncoder) middles(x0, d0 *[15]int64) (ofNumbers, ofDiffs int64) {
	n := 0
	stride := max(1, len(e.diffs)/len(d0))
	y, next := int64(0), stride/2
	for i, d := range e.diffs {
		y += d
		if i == next && n < len(d0) {
			x0[n], d0[n] = y, d
			n++
			next += stride
		}
	}
	slices.Sort(x0[:n])
	slices.Sort(d0[:n])
	ofNumbers, ofDiffs = x0[n/2], d0[n/2]
	if lo, hi := d0[n/4], d0[n*3/4]; lo < 0 && hi > 0 && ofDiffs < hi/4 && ofDiffs > lo/4 {
		ofDiffs = 0 // a base so small in so wide a distribution saves less than it takes
	}
	return ofNumbers, ofDiffs
}

// chooseOrder estimates what each order would cost, from the entropy of octaves, and keeps the best with its base.
func (e *intEncoder) chooseOrder() {
	var x0, d0 [15]int64
	midX, midD := e.middles(&x0, &d0)
	minD := e.span.minDiff
	var asPlain, asDelta, asRise, asDelta2 octaves
	y, prev := int64(0), e.diffs[0]
	for _, d := range e.diffs {
		y += d
		asPlain[bits.Len64(zigzag(y-midX))&127]++
		asDelta[bits.Len64(zigzag(d-midD))&127]++
		asRise[bits.Len64(uint64(d-minD))&127]++
		asDelta2[bits.Len64(zigzag(d-prev))&127]++
		prev = d
	}
	e.order, e.base, e.signed = delta, minD, false
	best := asRise.cost()
	consider := func(o order, base int64, cost float64) {
		if cost < best {
			best = cost
			e.order, e.base, e.signed = o, base, true
		}
	}
	if midD != minD {
		consider(delta, midD, asDelta.cost())
	}
	consider(deltaDelta, e.diffs[0], asDelta2.cost())
	if midX == e.span.min { // most numbers are the lowest: peaks upwards need no sign
		consider(plain, midX, asPlain.cost()-float64(len(e.diffs)-int(asPlain[0])))
		e.signed = e.signed && e.order != plain
		return
	}
	consider(plain, midX, asPlain.cost())
}

// octaves counts numbers by their length in bits.
type octaves [128]uint32

// cost estimates the size in bits. A zero counts as a symbol, not as part of a run; for runs that are not clustered the
// difference is small.
func (o *octaves) cost() float64 {
	total, sum := uint32(0), 0.0
	for l, n := range o[:65] {
		if n > 0 {
			total += n
			sum += float64(n)*float64(max(l-1, 0)) - countBits(n)
		}
	}
	return sum + countBits(total)
}

// fillResiduals computes the residuals of the model chosen.
func (e *intEncoder) fillResiduals() {
	e.residuals = slices.Grow(e.residuals, len(e.diffs))[:len(e.diffs)]
	out := e.residuals
	switch {
	case e.order == plain:
		y := -e.base
		for i, d := range e.diffs {
			y += d
			out[i] = zigzag(y)
		}
		if !e.signed {
			for i, u := range out {
				out[i] = uint64(unzigzag(u))
			}
		}
	case e.order == deltaDelta:
		prev := e.base
		for i, d := range e.diffs {
			out[i] = zigzag(d - prev)
			prev = d
		}
	case e.signed:
		for i, d := range e.diffs {
			out[i] = zigzag(d - e.base)
		}
	default:
		for i, d := range e.diffs {
			out[i] = uint64(d - e.base)
		}
	}
}

// countSymbols fills fine with the symbols at the greatest fineness.
func (e *intEncoder) countSymbols() {
	h := &e.counts
	run := uint(0)
	for _, u := range e.residuals {
		if u == 0 {
			run++
			continue
		}
		if run > 0 {
			h[bits.Len(run)-1]++
			run = 0
		}
		class, _ := classOf(u, maxFineness)
		h[firstClass+class]++
	}
	if run > 0 {
		h[bits.Len(run)-1]++
	}
	fine := e.fine[:0]
	for sym, n := range h {
		if n > 0 {
			fine = append(fine, tally{uint16(sym), uint16(symbolWidth(sym, maxFineness)), n})
			h[sym] = 0
		}
	}
	e.fine = fine
}

// tally is how often a symbol occurs; width plain bits follow it.
type tally struct {
	sym, width uint16
	n          uint32
}

// chooseFineness weighs the size of the table against that of what is written with it.
func (e *intEncoder) chooseFineness() {
	e.fineness = maxFineness
	best := tallyCost(e.fine, maxFineness)
	e.tallies = append(e.tallies[:0], e.fine...)
	for f := maxFineness - 1; f >= 0; f-- {
		e.coarse = coarsen(e.coarse[:0], e.fine, uint(f))
		if cost := tallyCost(e.coarse, uint(f)); cost <= best {
			best, e.fineness = cost, uint(f)
			e.tallies, e.coarse = e.coarse, e.tallies
		}
	}
}

// coarsen adds up the classes of fine, which is of the greatest fineness, and appends the sums to out.
func coarsen(out, fine []tally, fineness uint) []tally {
	for _, t := range fine {
		if t.sym > firstClass {
			u, _ := classStart(uint(t.sym-firstClass), maxFineness)
			class, width := classOf(u, fineness)
			t.sym, t.width = uint16(firstClass+class), uint16(width)
		}
		if last := len(out) - 1; last >= 0 && out[last].sym == t.sym {
			out[last].n += t.n
		} else {
			out = append(out, t)
		}
	}
	return out
}

// tallyCost estimates table and symbols in bits.
func tallyCost(tallies []tally, fineness uint) float64 {
	const bitsPerEntry = 2.5 // of the table, by experience
	total, sum := uint32(0), 0.0
	for _, t := range tallies {
		total += t.n
		sum += float64(t.n)*float64(t.width) - countBits(t.n)
	}
	return sum + countBits(total) + bitsPerEntry*float64(len(tallies)) + 2*float64(fineness)
}

// symbolWidth is how many plain bits follow a symbol.
func symbolWidth(sym int, fineness uint) uint {
	if sym <= maxRunBits {
		return uint(sym)
	}
	_, width := classStart(uint(sym-firstClass), fineness)
	return width
}

// measure computes the exact size.
func (e *intEncoder) measure() {
	w := bitWriter{b: e.table[:]}
	putTable(&w, &e.huffman, e.fineness)
	e.tableBits = uint(w.pos)*8 + w.n
	e.bits = int(e.tableBits)
	for _, t := range e.tallies {
		e.bits += int(t.n) * int(uint16(e.huffman.lens[t.sym])+t.width)
	}
}

// append writes the sequence that was planned, except its first number.
func (e *intEncoder) append(dst []byte) []byte {
	if e.single {
		return dst
	}
	dst = e.model.append(dst)
	n := len(dst)
	dst = slices.Grow(dst, (e.bits+7)/8+slack)
	w := bitWriter{b: dst[n:cap(dst)]}
	whole := e.tableBits / 8
	for _, v := range e.table[:whole] {
		w.put(uint64(v), 8)
	}
	w.put(uint64(e.table[whole]>>(8-e.tableBits%8)), e.tableBits%8)
	e.writeResiduals(&w)
	return dst[:n+w.end()]
}

func (e *intEncoder) writeResiduals(w *bitWriter) {
	run := uint(0)
	fineness := e.fineness
	for _, u := range e.residuals {
		if u == 0 {
			run++
			continue
		}
		if run > 0 {
			e.writeRun(w, run)
			run = 0
		}
		class, width := classOf(u, fineness)
		c := e.huffman.codes[firstClass+class]
		place := u & (1<<(width&63) - 1)
		if width <= 56-maxCode {
			w.put(uint64(c.bits)<<width|place, uint(c.len)+width)
		} else {
			w.put(uint64(c.bits), uint(c.len))
			w.putLong(place, width)
		}
	}
	if run > 0 {
		e.writeRun(w, run)
	}
}

func (e *intEncoder) writeRun(w *bitWriter, run uint) {
	width := uint(bits.Len(run)) - 1
	c := e.huffman.codes[width]
	w.put(uint64(c.bits)<<width|uint64(run-1<<width), uint(c.len)+width)
}

// uvarintLen is the size of v as a varint.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
