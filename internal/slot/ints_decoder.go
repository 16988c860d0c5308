package slot

import "fmt"

// intDecoder reads one sequence in portions.
type intDecoder struct {
	model
	table table
	r     bitReader
	x     int64 // the last number returned (plain: the first of the sequence)
	diff  int64 // deltaDelta: the last difference, in steps
	zeros int   // what remains of a run
}

// begin reads model and table from b; the sequence begins with first.
func (d *intDecoder) begin(b []byte, first int64) error {
	rest, err := d.model.read(b)
	if err != nil {
		return err
	}
	d.r = bitReader{b: rest}
	d.x, d.diff, d.zeros = first, d.base, 0
	return d.table.read(&d.r, d.fineness)
}

// end returns what follows the sequence.
func (d *intDecoder) end() ([]byte, error) {
	n, ok := d.r.end()
	if !ok || d.zeros != 0 {
		return nil, fmt.Errorf("%w: a sequence ends early", ErrCorrupt)
	}
	return d.r.b[n:], nil
}

// read returns the next len(out) numbers.
func (d *intDecoder) read(out []int64) {
	d.readResiduals(out)
	x, step, base := d.x, d.step, d.base
	switch d.order {
	case plain:
		for i, r := range out {
			out[i] = x + (r+base)*step
		}
		return
	case delta:
		for i, r := range out {
			x += (r + base) * step
			out[i] = x
		}
	case deltaDelta:
		diff := d.diff
		for i, r := range out {
			diff += r
			x += diff * step
			out[i] = x
		}
		d.diff = diff
	}
	d.x = x
}

func (d *intDecoder) readResiduals(out []int64) {
	i := d.fillZeros(out, 0)
	b, pos, t := d.r.b, d.r.pos, &d.table
	shift := 63 - t.longest
	var signMask uint64 // all ones where the lowest bit is a sign
	if d.signed {
		signMask = ^uint64(0)
	}
	for i < len(out) {
		w := window(b, pos)
		e := t.entries[w>>1>>(shift&63)&(1<<maxCode-1)]
		used := uint(e & 0xff)
		codeLen := uint(e >> 8 & 0xff)
		sym := e >> 16
		var place uint64
		if used <= 57 {
			place = top(w<<(codeLen&63), used-codeLen)
		} else {
			far := bitReader{b, pos + codeLen}
			place = far.takeLong(used - codeLen)
		}
		pos += used
		u := t.starts[sym] + place
		if sym <= maxRunBits {
			d.zeros = int(u)
			i = d.fillZeros(out, i)
			continue
		}
		sign := -(u & 1) & signMask
		out[i] = int64(u>>(signMask&1) ^ sign)
		i++
	}
	d.r.pos = pos
}

// fillZeros writes what it can of the current run to out[i:] and returns where it ended.
func (d *intDecoder) fillZeros(out []int64, i int) int {
	n := min(d.zeros, len(out)-i)
	clear(out[i : i+n])
	d.zeros -= n
	return i + n
}
