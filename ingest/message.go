package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"daybook/internal/series"
)

// ErrMessage says that a body is not a remote write request.
var ErrMessage = errors.New("not a remote write 1.0 request")

// Field numbers and wire types of prometheus.WriteRequest
// (https://github.com/prometheus/prometheus/blob/main/prompb/remote.proto and types.proto), as the tag bytes that
// stand before a field.
const (
	tagTimeseries = 1<<3 | wireBytes // of a request
	tagLabels     = 1<<3 | wireBytes // of a series
	tagSamples    = 2<<3 | wireBytes
	tagExemplars  = 3<<3 | wireBytes
	tagHistograms = 4<<3 | wireBytes
	tagValue      = 1<<3 | wireFixed64 // of a sample
	tagTimestamp  = 2<<3 | wireVarint
	tagName       = 1<<3 | wireBytes // of a label
	tagLabelValue = 2<<3 | wireBytes

	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// field is one field of a protobuf message.
type field struct {
	tag  uint64
	data []byte // what wireBytes holds
	n    uint64 // what wireVarint and wireFixed64 hold
}

// nextField reads the field at the beginning of b and gives the rest of b.
func nextField(b []byte) (f field, rest []byte, err error) {
	if f.tag, b, err = nextVarint(b); err != nil {
		return f, nil, err
	}
	switch f.tag & 7 {
	case wireVarint:
		f.n, b, err = nextVarint(b)
		return f, b, err
	case wireBytes:
		var n uint64
		if n, b, err = nextVarint(b); err != nil || n > uint64(len(b)) {
			return f, nil, errCut
		}
		f.data = b[:n:n]
		return f, b[n:], nil
	case wireFixed64:
		if len(b) < 8 {
			return f, nil, errCut
		}
		f.n = binary.LittleEndian.Uint64(b)
		return f, b[8:], nil
	case wireFixed32:
		if len(b) < 4 {
			return f, nil, errCut
		}
		return f, b[4:], nil
	}
	return f, nil, fmt.Errorf("wire type %d: %w", f.tag&7, ErrMessage)
}

var errCut = fmt.Errorf("a field is longer than the message: %w", ErrMessage)

func nextVarint(b []byte) (uint64, []byte, error) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), b[1:], nil
	}
	n, width := binary.Uvarint(b)
	if width <= 0 {
		return 0, nil, errCut
	}
	return n, b[width:], nil
}

// message is one series of a request: views into its bytes.
type message struct {
	labels     []byte // the label fields as they stand, tags included
	samples    []series.Sample
	raw        [][]byte // each sample's field as it stands, to pass on those that were taken
	histograms int
	exemplars  int
}

// eachSeries calls f for every series of a request; f must not keep the message.
func eachSeries(request []byte, m *message, f func(*message) error) error {
	for len(request) > 0 {
		one, rest, err := nextField(request)
		if err != nil {
			return err
		}
		request = rest
		if one.tag != tagTimeseries {
			continue // metadata, or what a later version has
		}
		if err := m.read(one.data); err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// read takes a series apart. Labels stand in one piece in what every known sender writes; others cost a copy.
func (m *message) read(b []byte) error {
	m.labels, m.samples, m.raw, m.histograms, m.exemplars = nil, m.samples[:0], m.raw[:0], 0, 0
	end := 0 // of the labels within whole
	whole := b
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		start := len(whole) - len(b)
		b = rest
		here := len(whole) - len(b)
		switch f.tag {
		case tagLabels:
			switch {
			case m.labels == nil:
				m.labels = whole[start:here:here]
			case end == start:
				m.labels = whole[start-len(m.labels) : here : here]
			default:
				m.labels = append(m.labels, whole[start:here]...)
				continue
			}
			end = here
		case tagSamples:
			s, err := readSample(f.data)
			if err != nil {
				return err
			}
			m.samples = append(m.samples, s)
			m.raw = append(m.raw, whole[start:here])
		case tagExemplars:
			m.exemplars++
		case tagHistograms:
			m.histograms++
		}
	}
	return nil
}

func readSample(b []byte) (s series.Sample, err error) {
	for len(b) > 0 {
		var f field
		if f, b, err = nextField(b); err != nil {
			return s, err
		}
		switch f.tag {
		case tagValue:
			s.V = math.Float64frombits(f.n)
		case tagTimestamp:
			s.T = series.Millis(f.n)
		}
	}
	return s, nil
}

// appendSeries writes a series field of a request with just the given sample fields.
func appendSeries(b, labels []byte, samples [][]byte) []byte {
	n := len(labels)
	for _, s := range samples {
		n += len(s)
	}
	b = append(b, tagTimeseries)
	b = binary.AppendUvarint(b, uint64(n))
	b = append(b, labels...)
	for _, s := range samples {
		b = append(b, s...)
	}
	return b
}
