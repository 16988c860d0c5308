package slot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"daybook/internal/series"
)

// Kind is what a slot holds.
type Kind = series.Kind

// The kinds, by which slots differ in their first byte.
const (
	Floats     = series.Floats
	Histograms = series.Histograms
	Exemplars  = series.Exemplars
)

// ErrKind is returned where a slot of one kind is read as one of another.
var ErrKind = errors.New("slot is of another kind")

// ErrTooLarge is returned where there is more than one slot may hold: MaxCount samples, or MaxBytes of histograms or
// exemplars.
var ErrTooLarge = errors.New("more than one slot may hold")

// MaxBytes is how much memory the histograms of a slot may take, as HistogramBytes counts, or its exemplars, as
// ExemplarBytes does. It is as much as MaxCount samples take. A reader refuses more, since a compressed slot of a few
// bytes may claim anything.
const MaxBytes = 64 << 20

// The first byte of the other kinds: the version in the high half, one flag in the low one.
const (
	versionHistograms = 0x20
	versionExemplars  = 0x30
	flagPacked        = 1 << 0 // the body is compressed
)

// kindOf tells what a slot holds.
func kindOf(b []byte) (Kind, error) {
	if len(b) == 0 {
		return 0, fmt.Errorf("%w: no bytes", ErrCorrupt)
	}
	switch b[0] & versionMask {
	case version:
		return Floats, nil
	case versionHistograms:
		return Histograms, nil
	case versionExemplars:
		return Exemplars, nil
	}
	return 0, fmt.Errorf("%w: %#02x", ErrVersion, b[0])
}

// checkKind wants a slot of histograms or of exemplars, with no flags but those known.
func checkKind(b []byte, want Kind) error {
	kind, err := kindOf(b)
	if err != nil {
		return err
	}
	if kind != want {
		return fmt.Errorf("%w: %v where %v were expected", ErrKind, kind, want)
	}
	if b[0]&^(versionMask|flagPacked) != 0 {
		return fmt.Errorf("%w: %#02x", ErrVersion, b[0])
	}
	return nil
}

// verify compares the checksum at the end of a slot.
func verify(b []byte) error {
	if n := len(b) - checkSize; n < 0 || check(b[:n]) != binary.LittleEndian.Uint16(b[n:]) {
		return fmt.Errorf("%w: its checksum is wrong", ErrCorrupt)
	}
	return nil
}

// Inspect reads what a slot says about itself without decoding it, and without verifying its checksum.
func Inspect(b []byte) (Info, error) {
	kind, err := kindOf(b)
	if err != nil {
		return Info{}, err
	}
	switch kind {
	case Histograms:
		h, err := openHistograms(b)
		return h.Info, err
	case Exemplars:
		x, err := openExemplars(b)
		return x.Info, err
	}
	h, _, err := readHeader(b)
	return h.Info, err
}

// Fold gives the slot of all that slots of one kind hold. At a time that several of them have, what the first of these
// has stays. With ErrTooLarge they are too much for one slot, and as they were.
func Fold(start series.Hour, slots ...[]byte) ([]byte, error) {
	if len(slots) == 0 {
		return nil, nil
	}
	kind, err := kindOf(slots[0])
	if err != nil {
		return nil, err
	}
	switch kind {
	case Histograms:
		return fold(start, slots, histogramCodec)
	case Exemplars:
		return fold(start, slots, exemplarCodec)
	}
	return fold(start, slots, floatCodec)
}

// Union is Fold of two slots, of which the first may be missing.
func Union(start series.Hour, first, second []byte) ([]byte, error) {
	if len(first) == 0 {
		return second, nil
	}
	return Fold(start, first, second)
}

// codec is what differs between the kinds.
type codec[T any] struct {
	decode func(dst []T, b []byte) ([]T, error)
	join   func(dst []T, base, before int) []T
	fits   func(all []T) bool
	encode func(dst []byte, start series.Hour, all []T) []byte
}

var (
	floatCodec = codec[series.Sample]{
		Decode, Join, func(all []series.Sample) bool { return len(all) <= MaxCount }, Encode,
	}
	histogramCodec = codec[series.Histogram]{DecodeHistograms, JoinHistograms, histogramsFit, EncodeHistograms}
	exemplarCodec  = codec[series.Exemplar]{DecodeExemplars, JoinExemplars, exemplarsFit, EncodeExemplars}
)

func fold[T any](start series.Hour, slots [][]byte, c codec[T]) ([]byte, error) {
	var all []T
	for _, b := range slots {
		before := len(all)
		var err error
		if all, err = c.decode(all, b); err != nil {
			return nil, fmt.Errorf("the slot that begins with %s: %w", beginning(b), err)
		}
		all = c.join(all, 0, before)
	}
	if !c.fits(all) {
		return nil, ErrTooLarge
	}
	return c.encode(nil, start, all), nil
}

// beginning says with which hour a slot begins, for messages.
func beginning(b []byte) string {
	info, err := Inspect(b)
	if err != nil {
		return "an unknown hour"
	}
	return "hour " + info.Start.Start().Time().Format("2006-01-02T15Z")
}
