package slot

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
)

// exemplarCoder is scratch memory.
type exemplarCoder struct {
	body    []byte
	builder labels.ScratchBuilder
	left    int // of MaxBytes
}

var exemplarCoders = sync.Pool{New: func() any { return new(exemplarCoder) }}

func (c *exemplarCoder) done() {
	c.body = keep(c.body)
	c.builder = labels.ScratchBuilder{}
	exemplarCoders.Put(c)
}

// minExemplar is the length of the shortest one in a body: its time, its value, and that it has no labels.
const minExemplar = 3

// EncodeExemplars appends to dst the slot of exemplars, which are in ascending order of time, none before the first
// millisecond of start, and of at most MaxBytes. As with Encode, others make it panic or write a slot that
// DecodeExemplars refuses.
func EncodeExemplars(dst []byte, start series.Hour, all []series.Exemplar) []byte {
	if !exemplarsFit(all) {
		panic(fmt.Sprintf("slot: %d exemplars of more than %d bytes in one slot", len(all), MaxBytes))
	}
	c := exemplarCoders.Get().(*exemplarCoder)
	defer c.done()
	from := len(dst)
	dst = binary.AppendUvarint(append(dst, versionExemplars), zigzag(int64(start)))
	dst = binary.AppendUvarint(dst, uint64(len(all)))
	if n := len(all); n > 0 {
		dst = binary.AppendUvarint(dst, uint64(all[0].T-start.Start()))
		dst = binary.AppendUvarint(dst, uint64(all[n-1].T-all[0].T))
		c.encode(all)
	}
	dst = appendBody(dst, from, c.body)
	return binary.LittleEndian.AppendUint16(dst, check(dst[from:]))
}

func (c *exemplarCoder) encode(all []series.Exemplar) {
	before := series.Exemplar{T: all[0].T}
	for _, x := range all {
		c.body = binary.AppendUvarint(c.body, uint64(x.T-before.T))
		c.body = appendBits(c.body, math.Float64bits(x.V)^math.Float64bits(before.V))
		c.body = binary.AppendUvarint(c.body, uint64(x.Labels.Len()))
		x.Labels.Range(func(l labels.Label) {
			c.body = appendText(c.body, l.Name)
			c.body = appendText(c.body, l.Value)
		})
		before = x
	}
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// exemplarSlot is the parts of a slot of exemplars.
type exemplarSlot struct {
	Info
	body []byte // as appendBody wrote it
}

func openExemplars(b []byte) (s exemplarSlot, err error) {
	if err := checkKind(b, Exemplars); err != nil {
		return s, err
	}
	p := parser{b: b[1:max(1, len(b)-checkSize)]}
	begin, count := unzigzag(p.uvarint()), p.uvarint()
	s.Kind, s.Start, s.Count = Exemplars, series.Hour(begin), int(min(count, MaxCount))
	if int64(s.Start) != begin || count > MaxCount {
		return exemplarSlot{}, fmt.Errorf("%w: %d exemplars from hour %d", ErrCorrupt, count, begin)
	}
	s.First = s.Start.Start()
	s.Last = s.First
	if count > 0 {
		s.First += series.Millis(p.uvarint())
		s.Last = s.First + series.Millis(p.uvarint())
	}
	if p.err == nil && (s.First < s.Start.Start() || s.Last < s.First) {
		p.fail("its times are out of range")
	}
	if p.err != nil {
		return exemplarSlot{}, p.err
	}
	s.Packed, s.body = b[0]&flagPacked != 0, p.b
	return s, nil
}

// DecodeExemplars appends the exemplars of a slot to dst. Whatever bytes it is given, it returns exemplars in ascending
// order of time or an error, and with an error dst as it was.
func DecodeExemplars(dst []series.Exemplar, b []byte) ([]series.Exemplar, error) {
	s, err := openExemplars(b)
	if err != nil {
		return dst, err
	}
	if err := verify(b); err != nil {
		return dst, err
	}
	c := exemplarCoders.Get().(*exemplarCoder)
	defer c.done()
	body, err := readBody(s.Packed, s.body, c.body)
	if err != nil {
		return dst, err
	}
	if s.Packed {
		c.body = body
	}
	if s.Count > len(body)/minExemplar {
		return dst, fmt.Errorf("%w: %d exemplars in %d bytes", ErrCorrupt, s.Count, len(body))
	}
	return c.decode(dst, s, body)
}

func (c *exemplarCoder) decode(dst []series.Exemplar, s exemplarSlot, body []byte) ([]series.Exemplar, error) {
	p := parser{b: body}
	c.left = MaxBytes
	before := series.Exemplar{T: s.First}
	all := slices.Grow(dst, s.Count)
	for range s.Count {
		x := series.Exemplar{T: before.T + series.Millis(p.uvarint())}
		x.V = math.Float64frombits(math.Float64bits(before.V) ^ p.floatBits())
		x.Labels = c.labels(&p)
		if x.T < before.T {
			p.fail("its times are not ascending")
		}
		if c.left -= ExemplarBytes(x); c.left < 0 {
			p.fail("it claims more than there can be")
		}
		if p.err != nil {
			return dst, p.err
		}
		all = append(all, x)
		before = x
	}
	if before.T != s.Last || len(p.b) > 0 {
		return dst, fmt.Errorf("%w: %d bytes too many, or its last time is wrong", ErrCorrupt, len(p.b))
	}
	return all, nil
}

// labels reads labels in the order in which they were written.
func (c *exemplarCoder) labels(p *parser) labels.Labels {
	c.builder.Reset()
	n := p.length(2)
	if n > c.left/labelBytes {
		p.fail("it claims more than there can be")
		return labels.EmptyLabels()
	}
	for range n {
		name, value := p.take(p.uvarint()), p.take(p.uvarint())
		if p.err != nil {
			return labels.EmptyLabels()
		}
		c.builder.Add(string(name), string(value))
	}
	return c.builder.Labels()
}

// What an exemplar takes of MaxBytes, and each label of it beside its text.
const (
	exemplarBytes = 64
	labelBytes    = 48
)

// ExemplarBytes is how much of MaxBytes an exemplar takes: a bound for its memory and for its part of a slot.
func ExemplarBytes(x series.Exemplar) int {
	n := exemplarBytes
	x.Labels.Range(func(l labels.Label) { n += labelBytes + len(l.Name) + len(l.Value) })
	return n
}

func exemplarsFit(all []series.Exemplar) bool {
	n := 0
	for i := range all {
		n += ExemplarBytes(all[i])
	}
	return len(all) <= MaxCount && n <= MaxBytes
}

// MergeExemplars gives the exemplars of two runs in order of time, each once. Different ones of one time all stay, in an
// order that does not depend on which run they come from.
func MergeExemplars(first, second []series.Exemplar) []series.Exemplar {
	merged := slices.Concat(first, second)
	slices.SortStableFunc(merged, compareExemplars)
	return slices.CompactFunc(merged, func(a, b series.Exemplar) bool { return compareExemplars(a, b) == 0 })
}

func compareExemplars(a, b series.Exemplar) int {
	return cmp.Or(cmp.Compare(a.T, b.T), cmp.Compare(math.Float64bits(a.V), math.Float64bits(b.V)), labels.Compare(a.Labels, b.Labels))
}

// JoinExemplars is Join for exemplars.
func JoinExemplars(dst []series.Exemplar, base, before int) []series.Exemplar {
	if before == base || before == len(dst) || dst[before].T > dst[before-1].T {
		return dst
	}
	return append(dst[:base], MergeExemplars(dst[base:before], dst[before:])...)
}
