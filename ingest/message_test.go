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
	"google.golang.org/protobuf/encoding/protowire"

	"daybook/internal/series"
)

// part is a series as this package or prompb reads it.
type part struct {
	labels                string
	samples               []series.Sample
	exemplars, histograms int
}

func (p part) String() string {
	s := fmt.Sprintf("%s exemplars %d histograms %d", p.labels, p.exemplars, p.histograms)
	for _, sample := range p.samples {
		s += fmt.Sprintf(" %x@%d", math.Float64bits(sample.V), sample.T)
	}
	return s
}

// ours reads a request with this package.
func ours(request []byte) (all []part, err error) {
	var m message
	err = eachSeries(request, &m, func(m *message) error {
		p := part{samples: slices.Clone(m.samples), exemplars: m.exemplars, histograms: m.histograms}
		for fields := m.labels; len(fields) > 0; {
			f, rest, err := nextField(fields)
			if err != nil {
				return err
			}
			if f.tag != tagLabels {
				return fmt.Errorf("a field with tag %d among the labels", f.tag)
			}
			l, err := readLabel(f.data)
			if err != nil {
				return err
			}
			p.labels += fmt.Sprintf("%q=%q ", l.Name, l.Value)
			fields = rest
		}
		all = append(all, p)
		return nil
	})
	return all, err
}

// theirs reads a request with prompb.
func theirs(request []byte) (all []part, err error) {
	var r prompb.WriteRequest
	if err := r.Unmarshal(request); err != nil {
		return nil, err
	}
	for _, ts := range r.Timeseries {
		p := part{exemplars: len(ts.Exemplars), histograms: len(ts.Histograms)}
		for _, l := range ts.Labels {
			p.labels += fmt.Sprintf("%q=%q ", l.Name, l.Value)
		}
		for _, s := range ts.Samples {
			p.samples = append(p.samples, series.Sample{T: series.Millis(s.Timestamp), V: s.Value})
		}
		all = append(all, p)
	}
	return all, nil
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
	if fmt.Sprint(got) != fmt.Sprint(want) {
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
		for range rng.IntN(5) {
			fields = append(fields, sample(int64(rng.Uint64()), math.Float64frombits(rng.Uint64())))
		}
		for range rng.IntN(3) {
			fields = append(fields, field2(3, label("trace", "1"), field8(2, 3), fieldN(3, 4)), unknown())
		}
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		}
		request = append(request, field2(1, fields...)...)
		if rng.IntN(4) == 0 {
			request = append(request, unknown()...)
		}
	}
	return request
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

// What is passed on without the samples that were refused reads as the rest.
func TestAppendWithout(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		request := randomRequest(rng)
		var want []part
		var got []byte
		var m message
		err := eachSeries(request, &m, func(m *message) error {
			var refused []int
			p, err := ours(field2(1, m.whole))
			if err != nil {
				return err
			}
			p[0].exemplars, p[0].histograms = 0, 0
			for i := range m.samples {
				if rng.IntN(2) == 0 {
					refused = append(refused, i)
				}
			}
			for _, i := range slices.Backward(refused) {
				p[0].samples = slices.Delete(p[0].samples, i, i+1)
			}
			want = append(want, p[0])
			got = m.appendWithout(got, refused)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		parts, err := ours(got)
		if err != nil || fmt.Sprint(parts) != fmt.Sprint(want) {
			t.Fatalf("%v\ngot  %v\nwant %v", err, parts, want)
		}
	}
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
		if err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
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
