package slot

import (
	"encoding/binary"
	"fmt"
)

// order is what of a sequence of integers is written.
type order uint8

const (
	plain      order = iota // each number less the first
	delta                   // each number less its predecessor
	deltaDelta              // each difference less the difference before it
)

// model is the shape that was found best for a sequence: what is written is the residuals
//
//	plain        (x[i] - x[0]) / step - base
//	delta        (x[i] - x[i-1]) / step - base
//	deltaDelta   (x[i] - x[i-1]) / step - (x[i-1] - x[i-2]) / step, where base is the first difference
//
// for i >= 1. All arithmetic is modulo 1<<64, so any int64 comes back.
type model struct {
	order    order
	fineness uint
	signed   bool  // residuals are zigzagged; otherwise none is below zero
	step     int64 // the greatest common divisor of all differences, at least 1
	base     int64
}

// Bits of the byte that tells the model.
const (
	modelSigned = 1 << 4
	modelStep   = 1 << 5
	modelBase   = 1 << 6
)

func (m *model) head() byte {
	head := byte(m.order) | byte(m.fineness)<<2
	if m.signed {
		head |= modelSigned
	}
	if m.step != 1 {
		head |= modelStep
	}
	if m.base != 0 {
		head |= modelBase
	}
	return head
}

func (m *model) append(dst []byte) []byte {
	dst = append(dst, m.head())
	if m.step != 1 {
		dst = binary.AppendUvarint(dst, uint64(m.step))
	}
	if m.base != 0 {
		dst = binary.AppendUvarint(dst, zigzag(m.base))
	}
	return dst
}

// readModel reads what append wrote and returns the rest.
func (m *model) read(b []byte) (rest []byte, err error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: a sequence is missing", ErrCorrupt)
	}
	head := b[0]
	*m = model{order: order(head & 3), fineness: uint(head >> 2 & 3), signed: head&modelSigned != 0, step: 1}
	if m.order > deltaDelta || m.fineness > maxFineness || head >= modelBase<<1 {
		return nil, fmt.Errorf("%w: model %#x", ErrCorrupt, head)
	}
	p := parser{b: b[1:]}
	if head&modelStep != 0 {
		m.step = int64(p.uvarint())
	}
	if head&modelBase != 0 {
		m.base = unzigzag(p.uvarint())
	}
	return p.b, p.err
}
