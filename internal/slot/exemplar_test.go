package slot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
)

func mustRoundTripExemplars(t testing.TB, start series.Hour, all []series.Exemplar) []byte {
	t.Helper()
	b := EncodeExemplars(nil, start, all)
	if b[0] >= 0x80 {
		t.Fatalf("first byte %#x, want it below 0x80", b[0])
	}
	got, err := DecodeExemplars(nil, b)
	if err != nil {
		t.Fatalf("DecodeExemplars: %v\n%x", err, b)
	}
	sameExemplars(t, got, all)
	info, err := Inspect(b)
	if err != nil {
		t.Fatalf("Inspect: %v", err)
	}
	if info.Kind != Exemplars || info.Start != start || info.Count != len(all) {
		t.Fatalf("Inspect: %+v, want %d exemplars from hour %d", info, len(all), start)
	}
	if n := len(all); n > 0 && (info.First != all[0].T || info.Last != all[n-1].T) {
		t.Fatalf("Inspect: %+v, want times %d to %d", info, all[0].T, all[n-1].T)
	}
	return b
}

func TestExemplarsRoundTrip(t *testing.T) {
	for seed := range uint64(100) {
		for _, n := range []int{0, 1, 2, 40} {
			mustRoundTripExemplars(t, start, someExemplars(seeded(seed), n))
		}
	}
	long := series.Exemplar{T: start.Start(), V: 1, Labels: labels.FromStrings("long", strings.Repeat("x", 100_000))}
	mustRoundTripExemplars(t, start, []series.Exemplar{long, long})
}

// TestExemplarLabels keeps labels that are in no order, and one twice, as they were sent.
func TestExemplarLabels(t *testing.T) {
	b := labels.NewScratchBuilder(3)
	for _, l := range []string{"z", "a", "z"} {
		b.Add(l, l+l)
	}
	mustRoundTripExemplars(t, start, []series.Exemplar{{T: start.Start() + 7, V: stale, Labels: b.Labels()}})
}

// TestTracesAreSmall holds the size of exemplars to little more than that of their traces.
func TestTracesAreSmall(t *testing.T) {
	r := seeded(1)
	var all []series.Exemplar
	for i := range 240 {
		trace := labels.FromStrings("span_id", fmt.Sprintf("%016x", r.Uint64()), "trace_id", fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()))
		all = append(all, series.Exemplar{T: start.Start() + series.Millis(i)*interval, V: r.Float64(), Labels: trace})
	}
	if n := len(mustRoundTripExemplars(t, start, all)); n > 240*46 { // 24 bytes of ids, 7 of the value, 3 of the time
		t.Errorf("%d bytes an exemplar", n/240)
	}
}

func rawExemplars(n int, last series.Millis, body []byte) []byte {
	b := binary.AppendUvarint([]byte{versionExemplars}, zigzag(int64(start)))
	b = binary.AppendUvarint(b, uint64(n))
	if n > 0 {
		b = binary.AppendUvarint(binary.AppendUvarint(b, 0), uint64(last))
	}
	b = appendBody(b, 0, body)
	return binary.LittleEndian.AppendUint16(b, check(b))
}

// TestExemplarClaims decodes slots that claim more than they have.
func TestExemplarClaims(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x7f}
	if got, err := DecodeExemplars(nil, rawExemplars(2, 5, []byte{0, 0, 0, 5, 0, 0})); err != nil || len(got) != 2 {
		t.Fatalf("two by hand: %d exemplars, error %v", len(got), err)
	}
	for name, b := range map[string][]byte{
		"exemplars":       rawExemplars(1_000_000, 0, []byte{0, 0, 0}),
		"labels":          rawExemplars(1, 0, append([]byte{0, 0}, huge...)),
		"a name":          rawExemplars(1, 0, append(append([]byte{0, 0, 1}, huge...), 0)),
		"a value":         rawExemplars(1, 0, append([]byte{0, 0, 1, 1, 'a'}, huge...)),
		"another last":    rawExemplars(1, 5, []byte{0, 0, 0}),
		"more":            rawExemplars(1, 0, []byte{0, 0, 0, 0}),
		"before the one":  rawExemplars(2, 5, append(binary.AppendUvarint([]byte{0, 0, 0}, math.MaxUint64), 0, 0)),
		"last too late":   rawExemplars(1, -1, []byte{0, 0, 0}),
		"too many labels": rawExemplars(1, 0, append([]byte{0, 0}, append(binary.AppendUvarint(nil, 2_000_000), make([]byte, 4_000_000)...)...)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeExemplars(nil, b)
			if !errors.Is(err, ErrCorrupt) || got != nil {
				t.Errorf("%d exemplars, the error is %v, want ErrCorrupt", len(got), err)
			}
		})
	}
}

func TestTooManyExemplars(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("more than MaxBytes is encoded")
		}
	}()
	EncodeExemplars(nil, start, []series.Exemplar{{T: start.Start(), Labels: labels.FromStrings("a", strings.Repeat("x", MaxBytes))}})
}

// TestExemplarBytes holds the bound to what exemplars take.
func TestExemplarBytes(t *testing.T) {
	for seed := range uint64(50) {
		one := someExemplars(seeded(seed), 1)
		b := EncodeExemplars(nil, start, one)
		if n := ExemplarBytes(one[0]); len(b) > n {
			t.Errorf("an exemplar takes %d bytes and %d were promised: %v", len(b), n, one)
		}
	}
}

func TestDamagedExemplars(t *testing.T) {
	for seed := range uint64(5) {
		b := EncodeExemplars(nil, start, someExemplars(seeded(seed), 6))
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			got, err := DecodeExemplars(nil, b)
			if err == nil || got != nil {
				t.Errorf("no error with bit %d flipped, or %d exemplars beside one", i, len(got))
			} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrKind) {
				t.Errorf("bit %d flipped: error %v", i, err)
			}
			Inspect(b)
			b[i/8] ^= 1 << (i % 8)
		}
		for cut := range len(b) {
			if _, err := DecodeExemplars(nil, b[:cut]); err == nil {
				t.Errorf("no error when cut to %d bytes", cut)
			}
		}
	}
}

// TestMergeExemplars wants all that are different, once, in order of time, whatever comes first.
func TestMergeExemplars(t *testing.T) {
	for seed := range uint64(100) {
		r := seeded(seed)
		random := func() (all []series.Exemplar) {
			at := start.Start()
			for range r.IntN(12) {
				at += series.Millis(r.IntN(2))
				all = append(all, series.Exemplar{T: at, V: float64(r.IntN(2)), Labels: labels.FromStrings("id", fmt.Sprint(r.IntN(2)))})
			}
			return all
		}
		first, second := random(), random()
		want := map[string]bool{}
		for _, x := range slices.Concat(first, second) {
			want[fmt.Sprint(x)] = true
		}
		got := MergeExemplars(first, second)
		for i, x := range got {
			if !want[fmt.Sprint(x)] {
				t.Errorf("seed %d: %v is there twice, or was never", seed, x)
			}
			delete(want, fmt.Sprint(x))
			if i > 0 && x.T < got[i-1].T {
				t.Errorf("seed %d: %v comes after %v", seed, x, got[i-1])
			}
		}
		if len(want) > 0 {
			t.Errorf("seed %d: %v are missing", seed, want)
		}
		sameExemplars(t, MergeExemplars(second, first), got)
	}
	bits := []series.Exemplar{{T: 1, V: 0}, {T: 1, V: zero}, {T: 1, V: stale}, {T: 1, V: math.NaN()}}
	if got := MergeExemplars(bits, bits); len(got) != len(bits) {
		t.Errorf("%d exemplars that differ in bits are %d", len(bits), len(got))
	}
}

func TestJoinExemplars(t *testing.T) {
	at := func(times ...series.Millis) (all []series.Exemplar) {
		for _, tm := range times {
			all = append(all, series.Exemplar{T: tm})
		}
		return all
	}
	for name, c := range map[string]struct{ old, added, want []series.Exemplar }{
		"nothing before":        {nil, at(1, 2), at(1, 2)},
		"nothing added":         {at(1, 2), nil, at(1, 2)},
		"later":                 {at(1, 2), at(3, 3), at(1, 2, 3, 3)},
		"earlier, and one same": {at(3, 4), at(1, 4), at(1, 3, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			got := JoinExemplars(slices.Concat(at(9), c.old, c.added), 1, 1+len(c.old))
			sameExemplars(t, got, slices.Concat(at(9), c.want))
		})
	}
}
