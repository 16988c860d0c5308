package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// A slot's value lies in one of three ways, told by its first byte (a slot's own first byte is below 0x80):
//
//	slot…                                       whole in its property
//	f1  length  slot…  | slot… | …              split: goes on in the properties name_1, name_2, …
//	f2  length  crc32c                          spilled: the slot is in rows of its own, see keys.SpillRow,
//	                                            in their properties v, v_1, v_2, …
//
// length is a varint and counts the slot's bytes, so that parts left from a longer value before are not read. Base
// and spilled rows are written in one transaction.
const (
	splitMark = 0xf1
	spillMark = 0xf2

	spillRowBytes = 14 * table.MaxValue

	// MaxSlot is how many bytes a slot may have: it fits in a transaction, in base64.
	MaxSlot = 2_900_000
)

// ErrDamaged says that a stored slot cannot be put together.
var ErrDamaged = errors.New("the stored slot is damaged")

const spillProperty = "v"

// limits says how long slots of a kind may be: longer ones are spilled.
type limits struct {
	ring int // an hour's in the ring
	hour int // an hour's in a page, which is there until it is folded into the day's
	day  int
}

// inlineLimits, by kind. In the ring of 26 hours, or in a page of a day with 24 late hours, all kinds together take up to
// 676 and 672 KiB. Where several writers share an entity each takes half as much, so two always fit in 1 MiB: also where
// the first was alone when it wrote.
var inlineLimits = [...]limits{
	slot.Floats:     {ring: 10 << 10, hour: 4 << 10, day: 160 << 10},
	slot.Histograms: {ring: 12 << 10, hour: 4 << 10, day: 192 << 10},
	slot.Exemplars:  {ring: 4 << 10, hour: 2 << 10, day: 80 << 10},
}

func (s *Store) inline(kind slot.Kind) limits {
	l, n := inlineLimits[kind], s.share()
	return limits{l.ring / n, l.hour / n, l.day / n}
}

func (s *Store) share() int {
	if s.cfg.Alone && len(s.writers) == 1 {
		return 1
	}
	return 2
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// placeValue gives the properties that hold a slot in the entity at row, and the operations for its spilled rows.
func placeValue(row keys.Row, property string, data []byte, inline int) ([]table.Property, []table.Operation) {
	if len(data) <= min(inline, table.MaxValue) {
		return []table.Property{{Name: property, Value: data}}, nil
	}
	if len(data) <= inline {
		framed := append(binary.AppendUvarint([]byte{splitMark}, uint64(len(data))), data...)
		return parts(property, framed), nil
	}
	stub := binary.AppendUvarint([]byte{spillMark}, uint64(len(data)))
	stub = binary.LittleEndian.AppendUint32(stub, crc32.Checksum(data, castagnoli))
	var ops []table.Operation
	for n := 0; len(data) > 0; n++ {
		take := min(len(data), spillRowBytes)
		ops = append(ops, table.Operation{
			Kind: table.InsertOrReplace, Row: string(keys.SpillRow(row, property, n)),
			Properties: parts(spillProperty, data[:take]),
		})
		data = data[take:]
	}
	return []table.Property{{Name: property, Value: stub}}, ops
}

func parts(property string, data []byte) (properties []table.Property) {
	for n := 0; len(data) > 0; n++ {
		take := min(len(data), table.MaxValue)
		properties = append(properties, table.Property{Name: keys.PartProperty(property, n), Value: data[:take]})
		data = data[take:]
	}
	return properties
}

// wholeValue puts the slot in a property of e together again. A property that is missing or empty gives nil.
func (s *Store) wholeValue(ctx context.Context, name string, e table.Entity, property string) ([]byte, error) {
	first := e.Property(property)
	if len(first) == 0 || first[0] < 0x80 {
		return first, nil
	}
	length, width := binary.Uvarint(first[1:])
	if width <= 0 || length > table.MaxTransaction {
		return nil, fmt.Errorf("property %q: no length: %w", property, ErrDamaged)
	}
	switch rest := first[1+width:]; first[0] {
	case splitMark:
		return join(e, property, rest, int(length))
	case spillMark:
		return s.spilled(ctx, name, e.Key, property, int(length), rest)
	}
	return nil, fmt.Errorf("property %q begins with %#02x: %w", property, first[0], ErrDamaged)
}

// join appends the further parts of a property to its first until there are length bytes.
func join(e table.Entity, property string, first []byte, length int) ([]byte, error) {
	data := append(make([]byte, 0, length), first...)
	for n := 1; len(data) < length; n++ {
		part := e.Property(keys.PartProperty(property, n))
		if len(part) == 0 {
			return nil, fmt.Errorf("property %q: part %d of %d bytes is missing: %w", property, n, length, ErrDamaged)
		}
		data = append(data, part...)
	}
	return data[:length], nil
}

func (s *Store) spilled(ctx context.Context, name string, key table.Key, property string, length int, sum []byte) ([]byte, error) {
	data := make([]byte, 0, length)
	for n := 0; len(data) < length; n++ {
		row := keys.SpillRow(keys.Row(key.Row), property, n)
		e, err := s.svc.Get(ctx, name, table.Key{Partition: key.Partition, Row: string(row)}, nil)
		if errors.Is(err, table.ErrNotFound) {
			return nil, fmt.Errorf("row %q of a large slot is missing: %w", row, ErrDamaged)
		}
		if err != nil {
			return nil, fmt.Errorf("reading row %q of a large slot: %w", row, err)
		}
		piece, err := join(e, spillProperty, e.Property(spillProperty), min(length-len(data), spillRowBytes))
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", row, err)
		}
		data = append(data, piece...)
	}
	if len(sum) != 4 || crc32.Checksum(data, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("property %q: the checksum of its rows is wrong: %w", property, ErrDamaged)
	}
	return data, nil
}

// unspill gives the operations that remove the rows of a spilled value.
func unspill(row keys.Row, property string, first []byte) (ops []table.Operation) {
	if len(first) == 0 || first[0] != spillMark {
		return nil
	}
	length, _ := binary.Uvarint(first[1:])
	for n := 0; n*spillRowBytes < int(length); n++ {
		ops = append(ops, table.Operation{Kind: table.Delete, Row: string(keys.SpillRow(row, property, n))})
	}
	return ops
}
