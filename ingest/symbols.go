package ingest

import (
	"encoding/binary"
	"fmt"
	"math"

	"daybook/internal/series"
	"daybook/internal/store"
)

// Tags of io.prometheus.write.v2.Request
// (https://github.com/prometheus/prometheus/blob/main/prompb/io/prometheus/write/v2/types.proto), where they differ from
// those of version 1.0. Samples and histograms are the same messages in both, but for the start timestamps that 2.0 adds.
const (
	tagSymbols      = 4<<3 | wireBytes // of a request
	tagTimeseriesV2 = 5<<3 | wireBytes
	tagRefs         = 1<<3 | wireBytes // of a series, and of an exemplar: packed
	tagRef          = 1<<3 | wireVarint
	tagHistogramsV2 = 3<<3 | wireBytes
	tagExemplarsV2  = 4<<3 | wireBytes
	tagMetadataV2   = 5<<3 | wireBytes
	tagHelpRef      = 3<<3 | wireVarint // of metadata
	tagUnitRef      = 4<<3 | wireVarint
)

// symbols are the texts of a request of version 2.0, which its series refer to by number. Only where they begin is kept:
// a request may have millions of empty ones.
type symbols struct {
	request []byte
	at      []uint32 // of each, where its field begins
	budget  int      // how many bytes of symbols may still be written out
}

// load finds the symbols of a request. Its series may write out so many bytes of them: a few bytes of references can
// name any text again and again.
func (s *symbols) load(request []byte, budget int) error {
	s.request, s.at, s.budget = request, s.at[:0], budget
	for b := request; len(b) > 0; {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		switch f.tag {
		case tagSymbols:
			if len(s.at) == 0 && len(f.data) > 0 {
				return fmt.Errorf("the first symbol is %+q and must be empty: %w", abbreviate(string(f.data[:min(len(f.data), 100)])), ErrMessage)
			}
			s.at = append(s.at, uint32(len(request)-len(b)))
		case tagTimeseries:
			return fmt.Errorf("the message is a prometheus.WriteRequest, and the Content-Type says 2.0: %w", ErrMessage)
		}
		b = rest
	}
	return nil
}

// get gives a symbol.
func (s *symbols) get(ref uint32) (text []byte, ok bool) {
	if int64(ref) >= int64(len(s.at)) {
		return nil, false
	}
	b := s.request[s.at[ref]:]
	if n := b[1]; b[0] == tagSymbols && n < 0x80 { // as nearly all are
		return b[2 : 2+n : 2+n], true
	}
	f, _, err := nextField(b)
	return f.data, err == nil // load has read it
}

// each calls f for every series of the request; f must not keep the message.
func (s *symbols) each(m *message, f func(*message) error) error {
	for b := s.request; len(b) > 0; {
		one, rest, err := nextField(b)
		if err != nil {
			return err
		}
		b = rest
		if one.tag != tagTimeseriesV2 {
			continue
		}
		if err := s.read(m, one.data); err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// read takes a series apart, and writes its labels and those of its exemplars out as version 1.0 has them.
func (s *symbols) read(m *message, whole []byte) (err error) {
	m.reset()
	m.refs = m.refs[:0]
	for b := whole; len(b) > 0; {
		var f field
		if f, b, err = nextField(b); err != nil {
			return err
		}
		switch f.tag {
		case tagRefs, tagRef:
			m.refs, err = appendRefs(m.refs, f)
		case tagSamples:
			var one series.Sample
			one, err = readSample(f.data)
			m.samples = append(m.samples, one)
		case tagHistogramsV2:
			m.histograms = append(m.histograms, f.data)
		case tagExemplarsV2:
			err = s.readExemplar(m, f.data)
		case tagMetadataV2:
			err = m.readMetadata(f.data)
		}
		if err != nil {
			return err
		}
	}
	if m.spelled, m.fault, err = s.spell(m.spelled[:0], m.refs, store.MaxLabelBytes, longLabels); err != nil {
		return err
	}
	m.labels = m.spelled
	if fault := s.resolve(&m.metadata); m.fault == "" {
		m.fault = fault
	}
	m.metadata.ofSeries(m)
	return nil
}

var longLabels = fmt.Sprintf("its labels take more bytes than are possible, at most %d", store.MaxLabelBytes)

// appendRefs reads references to symbols, packed or one by one.
func appendRefs(refs []uint32, f field) ([]uint32, error) {
	if f.tag == tagRef {
		return append(refs, uint32(f.n)), nil
	}
	for b := f.data; len(b) > 0; {
		n, rest, err := nextVarint(b)
		if err != nil {
			return refs, err
		}
		refs, b = append(refs, uint32(n)), rest
	}
	return refs, nil
}

// spell writes labels out as label fields of version 1.0, just as senders of that write them, so that a series is found
// by the same hash in both. The fault says why they are no labels; what of them can be read is written all the same,
// for the message. No more is written than labels may take, as checkLabels counts; tooLong says what that is.
func (s *symbols) spell(dst []byte, refs []uint32, most int, tooLong string) (fields []byte, fault string, err error) {
	if len(refs)%2 != 0 {
		fault = fmt.Sprintf("its labels have %d references, which must be pairs of name and value", len(refs))
	}
	for i := 0; i+1 < len(refs); i += 2 {
		name, ok := s.get(refs[i])
		value, ok2 := s.get(refs[i+1])
		if !ok || !ok2 {
			fault = s.outOfRange("label", refs[i], refs[i+1])
			continue
		}
		if most -= len(name) + len(value) + labelOverhead; most < 0 {
			return dst, tooLong, nil
		}
		if s.budget -= len(name) + len(value) + labelOverhead; s.budget < 0 {
			return dst, "", fmt.Errorf("the labels of its series, written out, have more bytes than ingest.max_decoded: %w", ErrTooLarge)
		}
		dst = appendLabel(dst, name, value)
	}
	return dst, fault, nil
}

func (s *symbols) outOfRange(what string, refs ...uint32) string {
	for _, ref := range refs {
		if int64(ref) >= int64(len(s.at)) {
			return fmt.Sprintf("its %s reference %d is out of range, there are %d symbols", what, ref, len(s.at))
		}
	}
	return ""
}

// appendLabel writes a label field of version 1.0.
func appendLabel(b, name, value []byte) []byte {
	if n := 4 + len(name) + len(value); n < 0x80 && len(name) > 0 && len(value) > 0 { // as nearly all are
		b = append(b, tagLabels, byte(n), tagName, byte(len(name)))
		b = append(b, name...)
		b = append(b, tagLabelValue, byte(len(value)))
		return append(b, value...)
	}
	n := stringLen(name) + stringLen(value)
	b = append(b, tagLabels)
	b = binary.AppendUvarint(b, uint64(n))
	if len(name) > 0 {
		b = appendBytes(b, tagName, name)
	}
	if len(value) > 0 {
		b = appendBytes(b, tagLabelValue, value)
	}
	return b
}

// stringLen is how many bytes a text takes as a field; an empty one is left out.
func stringLen(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	return 1 + uvarintLen(uint64(len(text))) + len(text)
}

func (s *symbols) readExemplar(m *message, b []byte) (err error) {
	e := exemplar{from: len(m.exemplarLabels)}
	base := len(m.refs) // those of the series may stand in front
	for len(b) > 0 {
		var f field
		if f, b, err = nextField(b); err != nil {
			return err
		}
		switch f.tag {
		case tagRefs, tagRef:
			if m.refs, err = appendRefs(m.refs, f); err != nil {
				return err
			}
		case tagExemplarValue:
			e.v = math.Float64frombits(f.n)
		case tagExemplarTime:
			e.t = series.Millis(f.n)
		}
	}
	m.exemplarLabels, e.fault, err = s.spell(m.exemplarLabels, m.refs[base:], maxExemplarBytes, longExemplar)
	e.to, m.refs = len(m.exemplarLabels), m.refs[:base]
	m.exemplars = append(m.exemplars, e)
	return err
}

// readMetadata reads the metadata of a series, of which a message may have several pieces: the last of a field counts.
func (m *message) readMetadata(b []byte) error {
	for len(b) > 0 {
		f, rest, err := nextField(b)
		if err != nil {
			return err
		}
		switch f.tag {
		case tagMetadataType:
			m.metadata.kind = typeOf(f.n)
		case tagHelpRef:
			m.metadata.helpRef = uint32(f.n)
		case tagUnitRef:
			m.metadata.unitRef = uint32(f.n)
		}
		b = rest
	}
	return nil
}

// resolve finds the texts of metadata. Reference 0 is none, even where there are no symbols.
func (s *symbols) resolve(m *metadata) (fault string) {
	var ok bool
	if m.help, ok = s.get(m.helpRef); !ok && m.helpRef != 0 {
		fault = s.outOfRange("help", m.helpRef)
	}
	if m.unit, ok = s.get(m.unitRef); !ok && m.unitRef != 0 {
		fault = s.outOfRange("unit", m.unitRef)
	}
	return fault
}
