package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"

	"daybook/internal/series"
)

// ErrMessage says that a body is not a remote write request.
var ErrMessage = errors.New("not a remote write request")

// Field numbers and wire types of prometheus.WriteRequest
// (https://github.com/prometheus/prometheus/blob/main/prompb/remote.proto and types.proto), as the tag bytes that
// stand before a field.
const (
	tagTimeseries = 1<<3 | wireBytes // of a request
	tagMetadata   = 3<<3 | wireBytes
	tagLabels     = 1<<3 | wireBytes // of a series, and of an exemplar
	tagSamples    = 2<<3 | wireBytes
	tagExemplars  = 3<<3 | wireBytes
	tagHistograms = 4<<3 | wireBytes
	tagValue      = 1<<3 | wireFixed64 // of a sample
	tagTimestamp  = 2<<3 | wireVarint
	tagName       = 1<<3 | wireBytes // of a label
	tagLabelValue = 2<<3 | wireBytes

	tagExemplarValue = 2<<3 | wireFixed64 // of an exemplar, in both versions
	tagExemplarTime  = 3<<3 | wireVarint

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

// message is one series of a request, or the metadata of one metric family, in the form that both versions of remote
// write have in common: views into the request and into memory of the message's own, good until the next one is read.
type message struct {
	labels     []byte // label fields as they stand in a request of version 1.0, tags included
	samples    []series.Sample
	histograms [][]byte // as they stand in either version
	exemplars  []exemplar
	metadata   metadata
	noSeries   bool   // it has metadata only
	fault      string // why nothing of it can be stored, "" for no reason

	exemplarLabels []byte   // what exemplars have their label fields in
	spelled        []byte   // what labels lies in, where it is made of symbols
	refs           []uint32 // scratch: references to symbols
}

// exemplar is one exemplar of a series.
type exemplar struct {
	t        series.Millis
	v        float64
	from, to int    // where in exemplarLabels its label fields are
	fault    string // why it cannot be stored, "" for no reason
}

func (m *message) reset() {
	m.labels, m.samples, m.histograms, m.exemplars = nil, m.samples[:0], m.histograms[:0], m.exemplars[:0]
	m.metadata, m.noSeries, m.fault = metadata{}, false, ""
	m.exemplarLabels = m.exemplarLabels[:0]
}

// fieldsOf gives the label fields of an exemplar.
func (m *message) fieldsOf(e exemplar) []byte { return m.exemplarLabels[e.from:e.to:e.to] }

// eachSeries calls f for every series of a request of version 1.0, and for the metadata of every family; f must not keep
// the message.
func eachSeries(request []byte, m *message, f func(*message) error) error {
	for len(request) > 0 {
		one, rest, err := nextField(request)
		if err != nil {
			return err
		}
		request = rest
		switch one.tag {
		case tagTimeseries:
			err = m.read(one.data)
		case tagMetadata:
			err = m.readFamily(one.data)
		case tagTimeseriesV2:
			return fmt.Errorf("the message is an io.prometheus.write.v2.Request, and the Content-Type does not say so: %w", ErrMessage)
		default:
			continue // what a later version has
		}
		if err != nil {
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
	m.reset()
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
			if err := m.readExemplar(f.data); err != nil {
				return err
			}
		case tagHistograms:
			m.histograms = append(m.histograms, f.data)
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

// readSample reads a sample of either version; 2.0's start timestamp is passed over.
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

// readExemplar reads an exemplar of version 1.0.
func (m *message) readExemplar(b []byte) error {
	e := exemplar{from: len(m.exemplarLabels)}
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		switch f.tag {
		case tagLabels:
			m.exemplarLabels = append(m.exemplarLabels, b[:len(b)-len(rest)]...)
		case tagExemplarValue:
			e.v = math.Float64frombits(f.n)
		case tagExemplarTime:
			e.t = series.Millis(f.n)
		}
		b = rest
	}
	e.to = len(m.exemplarLabels)
	m.exemplars = append(m.exemplars, e)
	return nil
}

// readFamily reads the metadata of a family as version 1.0 has it.
func (m *message) readFamily(b []byte) error {
	m.reset()
	m.noSeries, m.metadata.given = true, true
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		m.metadata.set(f)
		b = rest
	}
	return nil
}

// parts are the numbers of samples, histograms and exemplars of a message, ascending.
type parts struct {
	samples, histograms, exemplars []int
	metadata                       bool
	whole                          bool // all of it
}

func (p *parts) reset() {
	*p = parts{samples: p.samples[:0], histograms: p.histograms[:0], exemplars: p.exemplars[:0]}
}

func (p *parts) any() bool {
	return p.whole || p.metadata || len(p.samples)+len(p.histograms)+len(p.exemplars) > 0
}

// appendWithout writes the message as fields of a request of version 1.0, whichever it came in, without some parts.
func (m *message) appendWithout(request []byte, bad *parts) []byte {
	if bad.whole {
		return request
	}
	if m.metadata.given && !bad.metadata {
		request = m.metadata.append(request)
	}
	body := append([]byte(nil), m.labels...)
	empty := len(body)
	for s := range remaining(m.samples, bad.samples) {
		body = appendSample(body, s)
	}
	for h := range remaining(m.histograms, bad.histograms) {
		body = appendBytes(body, tagHistograms, h)
	}
	for e := range remaining(m.exemplars, bad.exemplars) {
		body = m.appendExemplar(body, e)
	}
	if len(body) == empty {
		return request
	}
	return appendBytes(request, tagTimeseries, body)
}

// remaining goes over all but those whose numbers are in without.
func remaining[E any](all []E, without []int) iter.Seq[E] {
	return func(yield func(E) bool) {
		for i, one := range all {
			if len(without) > 0 && without[0] == i {
				without = without[1:]
			} else if !yield(one) {
				return
			}
		}
	}
}

func appendBytes(b []byte, tag byte, data []byte) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(data)))
	return append(b, data...)
}

func appendSample(b []byte, s series.Sample) []byte {
	time := uint64(s.T)
	b = append(b, tagSamples, byte(1+8+1+uvarintLen(time)), tagValue)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.V))
	b = append(b, tagTimestamp)
	return binary.AppendUvarint(b, time)
}

func (m *message) appendExemplar(b []byte, e exemplar) []byte {
	fields, time := m.fieldsOf(e), uint64(e.t)
	b = append(b, tagExemplars)
	b = binary.AppendUvarint(b, uint64(len(fields)+1+8+1+uvarintLen(time)))
	b = append(b, fields...)
	b = append(b, tagExemplarValue)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.v))
	b = append(b, tagExemplarTime)
	return binary.AppendUvarint(b, time)
}

// uvarintLen is how many bytes a varint takes.
func uvarintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
