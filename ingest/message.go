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
	whole      []byte
	labels     []byte // the label fields as they stand, tags included
	samples    []series.Sample
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

// read takes a series apart. Labels stand in one piece, before all else, in what every known sender writes; others cost
// a copy.
func (m *message) read(whole []byte) error {
	m.whole, m.samples, m.histograms, m.exemplars = whole, m.samples[:0], 0, 0
	end := shortLabels(whole)
	m.labels = whole[:end:end]
	for b := whole[end:]; len(b) > 0; {
		start := len(whole) - len(b)
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		here := len(whole) - len(b)
		switch f.tag {
		case tagLabels:
			if end == start {
				m.labels = whole[start-len(m.labels) : here : here]
				end = here
				continue
			}
			m.labels = append(m.labels, whole[start:here]...)
		case tagSamples:
			s, err := readSample(f.data)
			if err != nil {
				return err
			}
			m.samples = append(m.samples, s)
		case tagExemplars:
			m.exemplars++
		case tagHistograms:
			m.histograms++
		}
	}
	return nil
}

// shortLabels is the length of the label fields that b begins with, as far as each is shorter than 128 bytes: nearly
// always all of them. It is what most of the time of reading a message goes into.
func shortLabels(b []byte) int {
	i := 0
	for i+1 < len(b) && b[i] == tagLabels && b[i+1] < 0x80 {
		next := i + 2 + int(b[i+1])
		if next > len(b) {
			break
		}
		i = next
	}
	return i
}

func readSample(b []byte) (s series.Sample, err error) {
	// As every known sender writes it: value, then timestamp.
	if len(b) > 10 && b[0] == tagValue && b[9] == tagTimestamp {
		if t, width := binary.Uvarint(b[10:]); 10+width == len(b) {
			return series.Sample{T: series.Millis(t), V: math.Float64frombits(binary.LittleEndian.Uint64(b[1:]))}, nil
		}
	}
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

// appendWithout writes the series as a field of a request, but without the samples whose numbers are in refused,
// ascending.
func (m *message) appendWithout(request []byte, refused []int) []byte {
	body := append([]byte(nil), m.labels...)
	n := 0
	for b := m.whole; len(b) > 0; {
		f, rest, err := nextField(b)
		if err != nil {
			break // read would not have let it through
		}
		if f.tag == tagSamples {
			if len(refused) > 0 && refused[0] == n {
				refused = refused[1:]
			} else {
				body = append(body, b[:len(b)-len(rest)]...)
			}
			n++
		}
		b = rest
	}
	request = append(request, tagTimeseries)
	request = binary.AppendUvarint(request, uint64(len(body)))
	return append(request, body...)
}
