package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"daybook/internal/series"
	"daybook/internal/store"
)

// part is a message as this package or prompb reads it.
type part struct {
	labels     string
	samples    []series.Sample
	histograms []series.Histogram
	exemplars  []string
	metadata   string
	fault      bool
}

func (p part) String() string {
	s := fmt.Sprintf("%s fault %v", p.labels, p.fault)
	for _, sample := range p.samples {
		s += fmt.Sprintf(" %x@%d", math.Float64bits(sample.V), sample.T)
	}
	for _, h := range p.histograms {
		s += " " + describeHistogram(h)
	}
	return fmt.Sprintf("%s exemplars %q metadata %q", s, p.exemplars, p.metadata)
}

// describeHistogram says all that there is of a histogram, bit for bit.
func describeHistogram(x series.Histogram) string {
	bits := func(all []float64) (s string) {
		for _, v := range all {
			s += fmt.Sprintf("%x,", math.Float64bits(v))
		}
		return s
	}
	if h := x.Float; h != nil {
		return fmt.Sprintf("float@%d{%d %d %x %s %v %s %v %s %s}", x.T, h.CounterResetHint, h.Schema, math.Float64bits(h.Count),
			bits([]float64{h.Sum, h.ZeroThreshold, h.ZeroCount}), h.PositiveSpans, bits(h.PositiveBuckets),
			h.NegativeSpans, bits(h.NegativeBuckets), bits(h.CustomValues))
	}
	h := x.Int
	return fmt.Sprintf("int@%d{%d %d %d %d %s %v %v %v %v %s}", x.T, h.CounterResetHint, h.Schema, h.Count, h.ZeroCount,
		bits([]float64{h.Sum, h.ZeroThreshold}), h.PositiveSpans, h.PositiveBuckets, h.NegativeSpans, h.NegativeBuckets, bits(h.CustomValues))
}

// ours reads a request with this package.
func ours(request []byte) (all []part, err error) {
	var m message
	err = eachSeries(request, &m, func(m *message) error { return addPart(&all, m) })
	return all, err
}

func oursV2(request []byte) (all []part, err error) {
	var m message
	var s symbols
	if err := s.load(request, math.MaxInt); err != nil {
		return nil, err
	}
	err = s.each(&m, func(m *message) error { return addPart(&all, m) })
	return all, err
}

// addPart describes a message.
func addPart(all *[]part, m *message) (err error) {
	p := part{samples: slices.Clone(m.samples), fault: m.fault != ""}
	if p.labels, err = describeFields(m.labels); err != nil {
		return err
	}
	for _, raw := range m.histograms {
		h, err := readHistogram(raw)
		if err != nil {
			return err
		}
		p.histograms = append(p.histograms, h.histogram())
		_ = h.check(h.histogram(), v1) // which must not panic, whatever it is
	}
	for _, e := range m.exemplars {
		fields, err := describeFields(m.fieldsOf(e))
		if err != nil {
			return err
		}
		p.exemplars = append(p.exemplars, fmt.Sprintf("%s %x@%d fault %v", fields, math.Float64bits(e.v), e.t, e.fault != ""))
	}
	if m.metadata.given {
		p.metadata = fmt.Sprintf("%d %q %q %q", m.metadata.kind, m.metadata.family, m.metadata.help, m.metadata.unit)
	}
	*all = append(*all, p)
	return nil
}

func describeFields(fields []byte) (text string, err error) {
	for len(fields) > 0 {
		f, rest, err := nextField(fields)
		if err != nil {
			return "", err
		}
		if f.tag != tagLabels {
			return "", fmt.Errorf("a field with tag %d among the labels", f.tag)
		}
		l, err := readLabel(f.data)
		if err != nil {
			return "", err
		}
		text += fmt.Sprintf("%q=%q ", l.Name, l.Value)
		fields = rest
	}
	return text, nil
}

// theirs reads a request with prompb: series and metadata apart, as they may stand in any order.
func theirs(request []byte) (all []part, err error) {
	var r prompb.WriteRequest
	if err := r.Unmarshal(request); err != nil {
		return nil, err
	}
	pairs := func(all []prompb.Label) (s string) {
		for _, l := range all {
			s += fmt.Sprintf("%q=%q ", l.Name, l.Value)
		}
		return s
	}
	for _, ts := range r.Timeseries {
		p := part{labels: pairs(ts.Labels)}
		for _, s := range ts.Samples {
			p.samples = append(p.samples, series.Sample{T: series.Millis(s.Timestamp), V: s.Value})
		}
		for _, h := range ts.Histograms {
			if h.IsFloatHistogram() {
				p.histograms = append(p.histograms, series.Histogram{T: series.Millis(h.Timestamp), Float: h.ToFloatHistogram()})
			} else {
				p.histograms = append(p.histograms, series.Histogram{T: series.Millis(h.Timestamp), Int: h.ToIntHistogram()})
			}
		}
		for _, e := range ts.Exemplars {
			p.exemplars = append(p.exemplars, fmt.Sprintf("%s %x@%d fault false", pairs(e.Labels), math.Float64bits(e.Value), e.Timestamp))
		}
		all = append(all, p)
	}
	for _, m := range r.Metadata {
		all = append(all, part{metadata: fmt.Sprintf("%d %q %q %q", typeOf(uint64(m.Type)), m.MetricFamilyName, m.Help, m.Unit)})
	}
	return all, nil
}

// theirsV2 reads a request with the generated code of version 2.0, and resolves its references.
func theirsV2(request []byte) (all []part, err error) {
	var r writev2.Request
	if err := r.Unmarshal(request); err != nil {
		return nil, err
	}
	pairs := func(refs []uint32, most int) (s string, fault bool) {
		fault = len(refs)%2 != 0
		for i := 0; i+1 < len(refs); i += 2 {
			if int(refs[i]) >= len(r.Symbols) || int(refs[i+1]) >= len(r.Symbols) {
				fault = true
				continue
			}
			if most -= len(r.Symbols[refs[i]]) + len(r.Symbols[refs[i+1]]) + labelOverhead; most < 0 {
				return s, true
			}
			s += fmt.Sprintf("%q=%q ", r.Symbols[refs[i]], r.Symbols[refs[i+1]])
		}
		return s, fault
	}
	symbol := func(ref uint32, fault *bool) string {
		if int(ref) >= len(r.Symbols) {
			*fault = *fault || ref != 0
			return ""
		}
		return r.Symbols[ref]
	}
	for _, ts := range r.Timeseries {
		var p part
		p.labels, p.fault = pairs(ts.LabelsRefs, store.MaxLabelBytes)
		for _, s := range ts.Samples {
			p.samples = append(p.samples, series.Sample{T: series.Millis(s.Timestamp), V: s.Value})
		}
		for _, h := range ts.Histograms {
			if h.IsFloatHistogram() {
				p.histograms = append(p.histograms, series.Histogram{T: series.Millis(h.Timestamp), Float: h.ToFloatHistogram()})
			} else {
				p.histograms = append(p.histograms, series.Histogram{T: series.Millis(h.Timestamp), Int: h.ToIntHistogram()})
			}
		}
		for _, e := range ts.Exemplars {
			fields, fault := pairs(e.LabelsRefs, maxExemplarBytes)
			p.exemplars = append(p.exemplars, fmt.Sprintf("%s %x@%d fault %v", fields, math.Float64bits(e.Value), e.Timestamp, fault))
		}
		help, unit := symbol(ts.Metadata.HelpRef, &p.fault), symbol(ts.Metadata.UnitRef, &p.fault)
		if kind := typeOf(uint64(ts.Metadata.Type)); kind != 0 || help != "" || unit != "" {
			p.metadata = fmt.Sprintf("%d %q %q", kind, help, unit)
		}
		all = append(all, p)
	}
	return all, nil
}

// apart puts series before metadata, as theirs does.
func apart(all []part) (sorted []part) {
	for _, metadata := range []bool{false, true} {
		for _, p := range all {
			if (p.metadata != "") == metadata {
				sorted = append(sorted, p)
			}
		}
	}
	return sorted
}

// withoutFamily takes the family out of metadata: the generated code knows none.
func withoutFamily(all []part) []part {
	for i := range all {
		if all[i].metadata != "" {
			var kind int
			var family, help, unit string
			if n, err := fmt.Sscanf(all[i].metadata, "%d %q %q %q", &kind, &family, &help, &unit); n != 4 || err != nil {
				panic(err)
			}
			all[i].metadata = fmt.Sprintf("%d %q %q", kind, help, unit)
		}
	}
	return all
}

func compare(t *testing.T, request []byte) {
	t.Helper()
	want, err := theirs(request)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours(request)
	if err != nil {
		t.Fatalf("%v\n%x", err, request)
	}
	if got = apart(got); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got  %v\nwant %v\n%x", got, want, request)
	}
}

// Building blocks of requests, byte by byte.
func field2(number protowire.Number, data ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), bytes.Join(data, nil))
}
func fieldN(number protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), n)
}
func field8(number protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), n)
}
func field4(number protowire.Number, n uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, number, protowire.Fixed32Type), n)
}
func text(number protowire.Number, s string) []byte { return field2(number, []byte(s)) }
func label(name, value string) []byte               { return field2(1, text(1, name), text(2, value)) }
func sample(t int64, v float64) []byte {
	return field2(2, field8(1, math.Float64bits(v)), fieldN(2, uint64(t)))
}

func unknown() []byte {
	return slices.Concat(fieldN(90, 1<<63), field8(91, 7), text(92, "later"), field4(93, 9))
}

func TestMessages(t *testing.T) {
	name, a := label("__name__", "m"), label("a", "1")
	long, other := label("long", strings.Repeat("x", 40_000)), label("z", strings.Repeat("y", 128))
	for what, request := range map[string][]byte{
		"nothing":                     nil,
		"metadata only":               field2(3, text(2, "m"), text(4, "help")),
		"metadata":                    slices.Concat(field2(3, fieldN(1, 2), text(2, "m"), text(4, "help"), text(5, "bytes")), field2(1, name, sample(1, 2)), field2(3)),
		"metadata of another time":    field2(3, unknown(), fieldN(1, 77), text(2, "m"), text(2, "n"), fieldN(1, 1<<32|3)),
		"a series without anything":   field2(1),
		"labels only":                 field2(1, name, a),
		"usual":                       field2(1, name, a, sample(1, 2)),
		"two series":                  slices.Concat(field2(1, name, sample(1, 2)), field2(1, a, sample(3, 4))),
		"samples first":               field2(1, sample(1, 2), name, a),
		"labels after samples":        field2(1, name, sample(1, 2), a, sample(3, 4), other),
		"labels around exemplars":     field2(1, name, text(3, ""), a, text(3, ""), other, sample(1, 2)),
		"long labels":                 field2(1, name, long, a, other, sample(1, 2)),
		"a long label first":          field2(1, long, name, sample(1, 2)),
		"a long label in between":     field2(1, name, sample(1, 2), long, a),
		"an empty label":              field2(1, field2(1), name, sample(1, 2)),
		"127 bytes":                   field2(1, label("x", strings.Repeat("y", 122)), name, sample(1, 2)),
		"value before name":           field2(1, field2(1, text(2, "m"), text(1, "__name__")), sample(1, 2)),
		"a name twice":                field2(1, field2(1, text(1, "no"), text(1, "__name__"), text(2, "m")), sample(1, 2)),
		"time before value":           field2(1, name, field2(2, fieldN(2, 5), field8(1, 6))),
		"no value":                    field2(1, name, field2(2, fieldN(2, 5))),
		"no time":                     field2(1, name, field2(2, field8(1, 6))),
		"an empty sample":             field2(1, name, field2(2)),
		"two times":                   field2(1, name, field2(2, field8(1, 6), fieldN(2, 5), fieldN(2, 7))),
		"two values":                  field2(1, name, field2(2, field8(1, 6), fieldN(2, 5), field8(1, 9))),
		"a negative time":             field2(1, name, sample(-1, 1), sample(math.MinInt64, 1), sample(math.MaxInt64, 1)),
		"special values":              field2(1, name, sample(1, math.Inf(-1)), sample(2, math.Copysign(0, -1)), sample(3, math.Float64frombits(0x7ff0000000000002))),
		"unknown fields of a request": slices.Concat(unknown(), field2(1, name, sample(1, 2)), unknown()),
		"unknown fields of a series":  field2(1, unknown(), name, unknown(), a, unknown(), sample(1, 2), unknown()),
		"unknown fields of a label":   field2(1, field2(1, unknown(), text(1, "__name__"), unknown(), text(2, "m"), unknown()), sample(1, 2)),
		"unknown fields of a sample":  field2(1, name, field2(2, unknown(), field8(1, 6), unknown(), fieldN(2, 5), unknown())),
		"exemplars and histograms":    field2(1, name, sample(1, 2), text(3, ""), text(4, ""), text(3, "")),
		"an exemplar":                 field2(1, name, field2(3, label("trace", "1"), field8(2, 3), fieldN(3, 4))),
		"an exemplar in other order":  field2(1, field2(3, fieldN(3, 4), label("a", "1"), unknown(), field8(2, 3), label("b", "2")), name),
		"histograms":                  field2(1, name, field2(4, histogramFieldsOf(rand.New(rand.NewPCG(1, 2)))...), field2(4, fieldN(1, 3))),
		"lengths longer than need be": append([]byte{tagTimeseries, 0x80 | 15, 0x80, 0x00}, slices.Concat(label("__name__", "m"))...),
	} {
		t.Run(what, func(t *testing.T) { compare(t, request) })
	}
}

func TestMessagesCut(t *testing.T) {
	request := slices.Concat(
		field2(1, label("__name__", "m"), sample(1, 2), label("long", strings.Repeat("x", 200)), unknown()),
		field2(1, label("__name__", "n"), sample(-1, 2)))
	first := 0
	if _, rest, err := nextField(request); err == nil {
		first = len(request) - len(rest)
	}
	for size := range request {
		_, err := ours(request[:size])
		if whole := size == 0 || size == first; whole != (err == nil) {
			t.Errorf("cut to %d bytes: %v", size, err)
		} else if !whole && !errors.Is(err, ErrMessage) {
			t.Errorf("cut to %d bytes: %v", size, err)
		}
	}
	for what, bad := range map[string][]byte{
		"a group":                 {0x0b, 0x0c},
		"wire type 7":             {0x0f},
		"a varint without an end": bytes.Repeat([]byte{0x80}, 12),
		"a huge length":           {tagTimeseries, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"a sample cut":            field2(1, label("__name__", "m"), field2(2, []byte{tagValue, 1, 2})),
	} {
		if _, err := ours(bad); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// randomRequest has series with fields in any order.
func randomRequest(rng *rand.Rand) (request []byte) {
	for range rng.IntN(5) {
		var fields [][]byte
		for range rng.IntN(5) {
			fields = append(fields, label(randomText(rng), randomText(rng)))
		}
		fields = append(fields, randomSamples(rng)...)
		for range rng.IntN(3) {
			fields = append(fields, field2(3, label("trace", randomText(rng)), field8(2, rng.Uint64()), fieldN(3, rng.Uint64())), unknown())
		}
		for range rng.IntN(3) {
			fields = append(fields, field2(4, histogramFieldsOf(rng)...))
		}
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		}
		request = append(request, field2(1, fields...)...)
		if rng.IntN(4) == 0 {
			request = append(request, unknown()...)
		}
		if rng.IntN(4) == 0 {
			request = append(request, field2(3, fieldN(1, rng.Uint64N(10)), text(2, randomText(rng)), text(4, randomText(rng)), text(5, randomText(rng)))...)
		}
	}
	return request
}

func randomSamples(rng *rand.Rand) (fields [][]byte) {
	for range rng.IntN(5) {
		fields = append(fields, sample(int64(rng.Uint64()), math.Float64frombits(rng.Uint64())))
	}
	return fields
}

// histogramFieldsOf makes the fields of a histogram, which need not be one that is good.
func histogramFieldsOf(rng *rand.Rand) (fields [][]byte) {
	number := func() []byte { return protowire.AppendVarint(nil, rng.Uint64()>>rng.IntN(64)) }
	double := func() []byte { return protowire.AppendFixed64(nil, rng.Uint64()) }
	for range 1 + rng.IntN(20) {
		n := protowire.Number(1 + rng.IntN(17))
		switch n {
		case 2, 3, 5, 7:
			fields = append(fields, field8(n, rng.Uint64()))
		case 8, 11:
			fields = append(fields, field2(n, fieldN(1, rng.Uint64()>>rng.IntN(64)), fieldN(2, rng.Uint64()>>rng.IntN(64))))
		case 9, 12:
			fields = append(fields, repeated(rng, n, protowire.VarintType, number))
		case 10, 13, 16:
			fields = append(fields, repeated(rng, n, protowire.Fixed64Type, double))
		default:
			fields = append(fields, fieldN(n, rng.Uint64()>>rng.IntN(64)))
		}
	}
	return fields
}

// repeated makes a list, packed or one by one.
func repeated(rng *rand.Rand, number protowire.Number, kind protowire.Type, one func() []byte) (field []byte) {
	packed := rng.IntN(3) > 0
	for range rng.IntN(6) {
		if !packed {
			field = protowire.AppendTag(field, number, kind)
		}
		field = append(field, one()...)
	}
	if packed {
		return field2(number, field)
	}
	return field
}

func randomText(rng *rand.Rand) string {
	b := make([]byte, []int{0, 1, 8, 60, 126, 127, 128, 300}[rng.IntN(8)])
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

// For any request that prompb can read, this package reads the same.
func TestMessagesAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		compare(t, randomRequest(rng))
	}
}

// What is passed on without the parts that were refused reads as the rest, whichever version it came in.
func TestAppendWithout(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 3000 {
		var want []part
		var got []byte
		pass := func(m *message) error {
			if m.fault != "" {
				return nil
			}
			for i := range m.exemplars {
				m.exemplars[i].fault = "" // those which have one are refused
			}
			var bad parts
			var left []part
			err := addPart(&left, m)
			if err != nil {
				return err
			}
			p := &left[0]
			p.samples, bad.samples = some(rng, p.samples)
			p.histograms, bad.histograms = some(rng, p.histograms)
			p.exemplars, bad.exemplars = some(rng, p.exemplars)
			if bad.metadata = rng.IntN(4) == 0; bad.metadata {
				p.metadata = ""
			}
			if bad.whole = rng.IntN(10) == 0; !bad.whole {
				if p.metadata != "" {
					want = append(want, part{metadata: p.metadata})
				}
				p.metadata = ""
				if len(p.samples)+len(p.histograms)+len(p.exemplars) > 0 {
					want = append(want, *p)
				}
			}
			got = m.appendWithout(got, &bad)
			return nil
		}
		r := request{version: v1, decoded: randomRequest(rng)}
		if i%2 == 0 {
			r = request{version: v2, decoded: randomRequestV2(rng)}
		}
		if err := r.each(math.MaxInt, pass); err != nil {
			t.Fatal(err)
		}
		found, err := ours(got)
		if err != nil || fmt.Sprint(found) != fmt.Sprint(want) {
			t.Fatalf("%v\ngot  %v\nwant %v", err, found, want)
		}
	}
}

// some leaves out about half, and says which.
func some[E any](rng *rand.Rand, all []E) (left []E, without []int) {
	for i, one := range all {
		if rng.IntN(2) == 0 {
			without = append(without, i)
		} else {
			left = append(left, one)
		}
	}
	return left, without
}

// Nothing makes the parser panic, and what prompb can read it reads alike, unless it is of a kind that no sender
// writes: groups, which it refuses.
func FuzzMessage(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f.Add(randomRequest(rng))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		got, err := ours(request)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("not a message: %v", err)
			}
			return
		}
		want, err := theirs(request)
		if got = apart(got); err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}

// Labels of any bytes are either a series' labels or refused with valid UTF-8.
func FuzzLabels(f *testing.F) {
	f.Add(slices.Concat(label("__name__", "m"), label("a", "1")))
	f.Add(slices.Concat(label("b", "x\xff"), label("", "1")))
	f.Fuzz(func(t *testing.T, fields []byte) {
		ls, err := seriesLabels(fields)
		var refusal *Refusal
		switch {
		case errors.As(err, &refusal):
			if text := refusal.Error(); !utf8.ValidString(text) || len(text) > 8000 {
				t.Fatalf("refused with %q", text)
			}
		case err != nil:
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
		case !ls.IsValid(model.UTF8Validation) || ls.IsEmpty():
			t.Fatalf("accepted %v", ls)
		}
	})
}
