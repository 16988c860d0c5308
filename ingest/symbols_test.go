package ingest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"daybook/internal/store"
)

func compareV2(t *testing.T, request []byte) {
	t.Helper()
	want, err := theirsV2(request)
	if err != nil {
		t.Fatal(err)
	}
	got, err := oursV2(request)
	if err != nil {
		t.Fatalf("%v\n%x", err, request)
	}
	if got = withoutFamily(got); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got  %v\nwant %v\n%x", got, want, request)
	}
}

// withSymbols puts symbols before the series of a request.
func withSymbols(all []string, series ...[]byte) (request []byte) {
	for _, s := range all {
		request = append(request, text(4, s)...)
	}
	for _, s := range series {
		request = append(request, field2(5, s)...)
	}
	return request
}

// refs are references, packed.
func refs(number protowire.Number, all ...uint64) []byte {
	var packed []byte
	for _, ref := range all {
		packed = protowire.AppendVarint(packed, ref)
	}
	return field2(number, packed)
}

func TestMessagesV2(t *testing.T) {
	symbols := []string{"", "__name__", "m", "a", "1", "Help.", "bytes", strings.Repeat("x", 200)}
	usual := slices.Concat(refs(1, 1, 2, 3, 4), sample(1, 2))
	for what, request := range map[string][]byte{
		"nothing":                     nil,
		"symbols only":                withSymbols(symbols),
		"usual":                       withSymbols(symbols, usual),
		"a series without anything":   withSymbols(symbols, nil),
		"symbols behind the series":   slices.Concat(withSymbols(nil, usual), withSymbols(symbols)),
		"symbols on both sides":       slices.Concat(withSymbols(symbols[:3]), withSymbols(nil, usual), withSymbols(symbols[3:])),
		"references one by one":       withSymbols(symbols, slices.Concat(fieldN(1, 1), fieldN(1, 2), sample(1, 2), fieldN(1, 3), fieldN(1, 7))),
		"references in pieces":        withSymbols(symbols, slices.Concat(refs(1, 1, 2, 3), sample(1, 2), refs(1, 4), fieldN(1, 3), refs(1, 7))),
		"no references":               withSymbols(symbols, slices.Concat(refs(1), sample(1, 2))),
		"empty names and values":      withSymbols(symbols, slices.Concat(refs(1, 1, 2, 0, 0, 3, 0, 0, 3), sample(1, 2))),
		"a long value":                withSymbols(symbols, slices.Concat(refs(1, 1, 7, 7, 7), sample(1, 2))),
		"an odd number of references": withSymbols(symbols, slices.Concat(refs(1, 1, 2, 3), sample(1, 2)), usual),
		"a reference out of range":    withSymbols(symbols, slices.Concat(refs(1, 1, 8), sample(1, 2)), usual),
		"the largest reference":       withSymbols(symbols, slices.Concat(refs(1, 1, math.MaxUint32), sample(1, 2)), usual),
		"a reference of 33 bits":      withSymbols(symbols, slices.Concat(refs(1, 1<<32|1, 2), sample(1, 2))),
		"no symbols":                  withSymbols(nil, slices.Concat(refs(1, 1, 2), sample(1, 2))),
		"metadata":                    withSymbols(symbols, slices.Concat(usual, field2(5, fieldN(1, 1), fieldN(3, 5), fieldN(4, 6)))),
		"metadata in pieces":          withSymbols(symbols, slices.Concat(field2(5, fieldN(1, 1)), usual, field2(5, fieldN(3, 5))), usual),
		"metadata of nothing":         withSymbols(symbols, slices.Concat(usual, field2(5, fieldN(1, 0), fieldN(3, 0)))),
		"help out of range":           withSymbols(symbols, slices.Concat(usual, field2(5, fieldN(3, 99))), usual),
		"unit out of range":           withSymbols(symbols, slices.Concat(usual, field2(5, fieldN(4, 99))), usual),
		"an exemplar":                 withSymbols(symbols, slices.Concat(usual, field2(4, refs(1, 3, 4), field8(2, 3), fieldN(3, 4)))),
		"exemplars before the labels": withSymbols(symbols, slices.Concat(fieldN(1, 1), field2(4, refs(1, 3, 4), fieldN(1, 3), fieldN(1, 7)), fieldN(1, 2), sample(1, 2))),
		"an exemplar out of range":    withSymbols(symbols, slices.Concat(usual, field2(4, refs(1, 3, 99), field8(2, 3)), field2(4, refs(1, 3, 4)))),
		"an odd exemplar":             withSymbols(symbols, slices.Concat(usual, field2(4, refs(1, 3)))),
		"start timestamps":            withSymbols(symbols, slices.Concat(refs(1, 1, 2), field2(2, field8(1, 7), fieldN(2, 8), fieldN(3, 9)), field2(3, fieldN(1, 1), fieldN(15, 8), fieldN(17, 9)))),
		"histograms":                  withSymbols(symbols, slices.Concat(refs(1, 1, 2), field2(3, histogramFieldsOf(rand.New(rand.NewPCG(1, 2)))...))),
		"unknown fields":              slices.Concat(unknown(), withSymbols(symbols, slices.Concat(unknown(), usual, unknown(), field2(4, unknown()), field2(5, unknown()))), unknown()),
	} {
		t.Run(what, func(t *testing.T) { compareV2(t, request) })
	}
}

// A message of the one version in the place of the other is told from one without anything in it.
func TestWrongVersion(t *testing.T) {
	first, second := field2(1, label("__name__", "m"), sample(1, 2)), withSymbols([]string{"", "__name__", "m"}, slices.Concat(refs(1, 1, 2), sample(1, 2)))
	if all, err := ours(second); !errors.Is(err, ErrMessage) {
		t.Errorf("2.0 read as 1.0: %v, %v", all, err)
	}
	if all, err := oursV2(first); !errors.Is(err, ErrMessage) {
		t.Errorf("1.0 read as 2.0: %v, %v", all, err)
	}
}

func TestFirstSymbol(t *testing.T) {
	for _, first := range []string{"__name__", " ", "\xff", strings.Repeat("x", 1<<20)} {
		request := withSymbols([]string{first, "", "__name__", "m"}, slices.Concat(refs(1, 2, 3), sample(1, 2)))
		if all, err := oursV2(request); !errors.Is(err, ErrMessage) || len(all) > 0 || len(err.Error()) > 500 {
			t.Errorf("%.10q: %d series, %v", first, len(all), err)
		}
	}
}

func TestMessagesCutV2(t *testing.T) {
	whole := withSymbols([]string{"", "__name__", "m"}, slices.Concat(refs(1, 1, 2), sample(-1, 2), field2(4, refs(1, 1, 2)), field2(5, fieldN(1, 1)), unknown()))
	for size := range whole {
		if _, err := oursV2(whole[:size]); err != nil && !errors.Is(err, ErrMessage) {
			t.Errorf("cut to %d bytes: %v", size, err)
		}
	}
	for what, bad := range map[string][]byte{
		"references cut":               withSymbols(nil, field2(1, []byte{0x80})),
		"references of an exemplar":    withSymbols(nil, field2(4, field2(1, []byte{0x80}))),
		"a sample cut":                 withSymbols(nil, field2(2, []byte{tagValue, 1, 2})),
		"metadata cut":                 withSymbols(nil, field2(5, []byte{tagHelpRef})),
		"deltas cut":                   withSymbols(nil, field2(3, field2(9, []byte{0x80}))),
		"counts that are no doubles":   withSymbols(nil, field2(3, field2(10, []byte{1, 2, 3}))),
		"a span cut":                   withSymbols(nil, field2(3, field2(8, []byte{tagSpanOffset}))),
		"a histogram of wire type 7":   withSymbols(nil, field2(3, []byte{0x0f})),
		"a symbol longer than the end": {tagSymbols, 5, 'x'},
	} {
		if _, err := oursV2(bad); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A few bytes of references may name a long symbol again and again: no more is written out than labels may have, and
// than a request may.
func TestSymbolsWrittenOut(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	var many []uint64
	for range 100_000 {
		many = append(many, 1, 1)
	}
	request := withSymbols([]string{"", long}, slices.Concat(refs(1, many...), field2(4, refs(1, many...))))
	var m message
	var s symbols
	if err := s.load(request, math.MaxInt); err != nil {
		t.Fatal(err)
	}
	err := s.each(&m, func(m *message) error {
		if len(m.labels) > store.MaxLabelBytes || !strings.Contains(m.fault, "at most 61440") {
			t.Errorf("%d bytes of labels, %q", len(m.labels), m.fault)
		}
		if len(m.exemplarLabels) > maxExemplarBytes || m.exemplars[0].fault != longExemplar {
			t.Errorf("%d bytes of an exemplar's labels, %q", len(m.exemplarLabels), m.exemplars[0].fault)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	one := slices.Concat(refs(1, 1, 1), sample(1, 2))
	request = withSymbols([]string{"", long}, slices.Repeat([][]byte{one}, 1000)...)
	if err := s.load(request, 1<<20); err != nil {
		t.Fatal(err)
	}
	read := 0
	err = s.each(&m, func(*message) error { read++; return nil })
	if !errors.Is(err, ErrTooLarge) || read > 1<<20/len(long)/2 {
		t.Errorf("%d series of 20 KiB of labels, %v", read, err)
	}
}

// Both versions' way to write labels is the same, so that a series is found by the same hash.
func TestSameSpelling(t *testing.T) {
	texts := []string{"", "__name__", "m", "a", "é", strings.Repeat("x", 300)}
	request := withSymbols(texts, refs(1, 1, 2, 3, 0, 3, 4, 5, 5))
	want := slices.Concat(label("__name__", "m"), field2(1, text(1, "a")), label("a", "é"), label(texts[5], texts[5]))
	var m message
	var s symbols
	if err := s.load(request, math.MaxInt); err != nil {
		t.Fatal(err)
	}
	err := s.each(&m, func(m *message) error {
		if string(m.labels) != string(want) {
			t.Errorf("%x instead of %x", m.labels, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// randomRequestV2 has series with fields in any order; most references are good.
func randomRequestV2(rng *rand.Rand) []byte {
	all := []string{""}
	for range rng.IntN(6) {
		all = append(all, randomText(rng))
	}
	ref := func() uint64 {
		if rng.IntN(40) == 0 {
			return rng.Uint64()
		}
		return rng.Uint64N(uint64(len(all)))
	}
	some := func() (fields [][]byte) {
		for n := 2 * rng.IntN(4); n > 0 && rng.IntN(40) > 0; n-- {
			if rng.IntN(3) == 0 {
				fields = append(fields, fieldN(1, ref()))
			} else {
				fields = append(fields, refs(1, ref()))
			}
		}
		return fields
	}
	var series [][]byte
	for range rng.IntN(5) {
		fields := append(some(), randomSamples(rng)...)
		for range rng.IntN(3) {
			fields = append(fields, field2(4, append(some(), field8(2, rng.Uint64()), fieldN(3, rng.Uint64()))...), unknown())
		}
		for range rng.IntN(3) {
			fields = append(fields, field2(3, histogramFieldsOf(rng)...))
		}
		if rng.IntN(2) == 0 {
			fields = append(fields, field2(5, fieldN(1, rng.Uint64N(10)), fieldN(3, ref()), fieldN(4, ref())))
		}
		if rng.IntN(2) == 0 {
			rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		}
		series = append(series, slices.Concat(fields...))
	}
	return withSymbols(all, series...)
}

// For any request that the generated code can read, this package reads the same.
func TestMessagesAgreeV2(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		compareV2(t, randomRequestV2(rng))
	}
}

// FuzzMessageV2 is FuzzMessage for version 2.0.
func FuzzMessageV2(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f.Add(randomRequestV2(rng))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		got, err := oursV2(request)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("not a message: %v", err)
			}
			return
		}
		want, err := theirsV2(request)
		if got = withoutFamily(got); err == nil && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got  %v\nwant %v", got, want)
		}
	})
}
