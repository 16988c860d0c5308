package slot

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"

	"daybook/internal/series"
)

func mustRoundTripHistograms(t testing.TB, start series.Hour, all []series.Histogram) []byte {
	t.Helper()
	b := EncodeHistograms(nil, start, all)
	if b[0] >= 0x80 {
		t.Fatalf("first byte %#x, want it below 0x80", b[0])
	}
	got, err := DecodeHistograms(nil, b)
	if err != nil {
		t.Fatalf("DecodeHistograms: %v\n%x", err, b)
	}
	sameHistograms(t, got, all)
	info, err := Inspect(b)
	if err != nil {
		t.Fatalf("Inspect: %v", err)
	}
	if info.Kind != Histograms || info.Start != start || info.Count != len(all) {
		t.Fatalf("Inspect: %+v, want %d histograms from hour %d", info, len(all), start)
	}
	if n := len(all); n > 0 && (info.First != all[0].T || info.Last != all[n-1].T) {
		t.Fatalf("Inspect: %+v, want times %d to %d", info, all[0].T, all[n-1].T)
	}
	return b
}

func TestHistogramsRoundTrip(t *testing.T) {
	mustRoundTripHistograms(t, start, nil)
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(40) {
				for _, n := range []int{1, 2, 3, 50} {
					mustRoundTripHistograms(t, start, s.tell(seeded(seed), n))
				}
			}
		})
	}
}

// TestHistogramsAppend wants what was there before left alone, by encoding, by decoding, and by failing.
func TestHistogramsAppend(t *testing.T) {
	all := stories[0].tell(seeded(1), 20)
	front := EncodeHistograms([]byte("front"), start, all)
	b := EncodeHistograms(nil, start, all)
	if string(front) != "front"+string(b) {
		t.Error("a slot behind other bytes is not the same slot")
	}
	before := stories[1].tell(seeded(2), 3)
	got, err := DecodeHistograms(before[:2:3], b)
	if err != nil {
		t.Fatal(err)
	}
	sameHistograms(t, got, append(before[:2:2], all...))
	for cut := range len(b) {
		if got, err := DecodeHistograms(before[:2:3], b[:cut]); err == nil || len(got) != 2 {
			t.Fatalf("cut to %d bytes: %d histograms, error %v", cut, len(got)-2, err)
		}
	}
}

// TestHistogramLayouts checks that a layout that goes on is written once, and empty slices come back as nil.
func TestHistogramLayouts(t *testing.T) {
	one := stories[0].tell(seeded(3), 1)
	var same []series.Histogram
	for i := range 100 {
		same = append(same, series.Histogram{T: one[0].T + series.Millis(i)*interval, Int: one[0].Int})
	}
	if a, b := len(EncodeHistograms(nil, start, one)), len(EncodeHistograms(nil, start, same)); b > a+40 {
		t.Errorf("one histogram takes %d bytes, the same a hundred times %d", a, b)
	}
	empty := []series.Histogram{{T: start.Start(), Int: &histogram.Histogram{
		PositiveSpans: []histogram.Span{}, NegativeSpans: []histogram.Span{}, PositiveBuckets: []int64{}, NegativeBuckets: []int64{}, CustomValues: []float64{},
	}}}
	got, err := DecodeHistograms(nil, EncodeHistograms(nil, start, empty))
	if err != nil {
		t.Fatal(err)
	}
	if h := got[0].Int; h.PositiveSpans != nil || h.NegativeSpans != nil || h.PositiveBuckets != nil || h.NegativeBuckets != nil || h.CustomValues != nil {
		t.Errorf("empty slices come back as %#v", h)
	}
	if !SameHistogram(got[0], empty[0]) {
		t.Error("an empty slice is not the same as none")
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestSpansAreNotExpanded stores spans that promise billions of buckets.
func TestSpansAreNotExpanded(t *testing.T) {
	h := series.Histogram{T: start.Start(), Int: &histogram.Histogram{
		Schema: 3, Count: 3, Sum: 1, PositiveBuckets: []int64{3},
		PositiveSpans: []histogram.Span{{Offset: 2_000_000_000, Length: 1}, {Offset: 2_000_000_000, Length: 4_000_000_000}},
	}}
	var b []byte
	used := allocated(func() { b = mustRoundTripHistograms(t, start, []series.Histogram{h}) })
	if len(b) > 80 || used > 4<<20 { // encoder and decoder, where the pools have none
		t.Errorf("it takes %d bytes, and %d to encode and decode", len(b), used)
	}
}

// rawHistograms makes a slot of n histograms with a body of one's own.
func rawHistograms(n int, body []byte) []byte {
	samples := make([]series.Sample, n)
	for i := range samples {
		samples[i].T = start.Start() + series.Millis(i)
	}
	sums := Encode(nil, start, samples)
	b := binary.AppendUvarint([]byte{versionHistograms}, uint64(len(sums)))
	b = append(b, sums...)
	b = appendBody(b, 0, body)
	return binary.LittleEndian.AppendUint16(b, check(b))
}

// TestHistogramClaims decodes slots that claim more than they have: that is an error, and takes little memory.
func TestHistogramClaims(t *testing.T) {
	layout := append([]byte{recordAfresh, 0}, make([]byte, 8)...) // an integer histogram, schema 0, threshold 0
	claim := func(more ...byte) []byte { return append(layout[:len(layout):len(layout)], more...) }
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x7f}
	good := claim(0, 0, 0, 0, 0, 0, 0)
	if got, err := DecodeHistograms(nil, rawHistograms(1, good)); err != nil || len(got) != 1 {
		t.Fatalf("a record by hand: %d histograms, error %v", len(got), err)
	}
	for name, b := range map[string][]byte{
		"positive spans":       rawHistograms(1, claim(huge...)),
		"negative spans":       rawHistograms(1, claim(append([]byte{0}, huge...)...)),
		"positive buckets":     rawHistograms(1, claim(append([]byte{0, 0}, huge...)...)),
		"negative buckets":     rawHistograms(1, claim(append([]byte{0, 0, 0}, huge...)...)),
		"both":                 rawHistograms(1, claim(0, 0, 3, 3, 0, 0, 0, 0)),
		"custom values":        rawHistograms(1, claim(append([]byte{0, 0, 0, 0}, huge...)...)),
		"histograms":           rawHistograms(1_000_000, good),
		"no layout":            rawHistograms(1, []byte{0, 0, 0}),
		"kind 3":               rawHistograms(1, []byte{3 | recordAfresh, 0, 0}),
		"unknown bit":          rawHistograms(1, append([]byte{recordAfresh | 16}, good[1:]...)),
		"another kind":         rawHistograms(2, append(good[:len(good):len(good)], byte(wholes), 0, 0)),
		"one less":             rawHistograms(2, good),
		"one more":             rawHistograms(1, append(good[:len(good):len(good)], 0, 0, 0)),
		"offset over 32 bits":  rawHistograms(1, claim(append([]byte{1}, append(huge, 0, 0, 0, 0, 0, 0)...)...)),
		"schema over 32 bits":  rawHistograms(1, append(append([]byte{recordAfresh}, huge...), good[2:]...)),
		"float with 9 bytes":   rawHistograms(1, append([]byte{recordAfresh | byte(fractions)}, append(good[1:len(good)-2:len(good)-2], 0x09, 0)...)),
		"zeros before nothing": rawHistograms(1, append([]byte{recordAfresh | byte(fractions)}, append(good[1:len(good)-2:len(good)-2], 0x10, 0)...)),
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			used := allocated(func() { _, err = DecodeHistograms(nil, b) })
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("the error is %v, want ErrCorrupt", err)
			}
			if used > 4<<20 {
				t.Errorf("%d bytes are allocated for %d", used, len(b))
			}
		})
	}
}

// TestPackedClaims decodes a slot of few bytes with a body of many: up to MaxBytes it is read, beyond it is refused.
func TestPackedClaims(t *testing.T) {
	one := append([]byte{recordAfresh, 0}, make([]byte, 8)...)
	one = append(one, 0, 0, 0, 0, 0, 0, 0)
	const n = 100_000
	b := rawHistograms(n, slices.Concat(one, make([]byte, (n-1)*minRecord)))
	if len(b) > 200 {
		t.Fatalf("%d bytes are not few", len(b))
	}
	if got, err := DecodeHistograms(nil, b); err != nil || len(got) != n {
		t.Fatalf("%d of %d histograms, error %v", len(got), n, err)
	}
	const more = MaxBytes/256 + 1
	b = rawHistograms(more, append(one[:len(one):len(one)], make([]byte, (more-1)*minRecord)...))
	if _, err := DecodeHistograms(nil, b); !errors.Is(err, ErrCorrupt) {
		t.Errorf("histograms of more than MaxBytes: the error is %v", err)
	}
	b = rawHistograms(1, append(one[:len(one):len(one)], make([]byte, MaxBytes)...))
	var err error
	used := allocated(func() { _, err = DecodeHistograms(nil, b) })
	if !errors.Is(err, ErrCorrupt) || used > 4<<20 {
		t.Errorf("a body of more than MaxBytes: %d bytes are allocated, the error is %v", used, err)
	}
}

func TestTooManyHistograms(t *testing.T) {
	wide := &histogram.Histogram{PositiveBuckets: make([]int64, MaxBytes/10)}
	defer func() {
		if recover() == nil {
			t.Error("more than MaxBytes is encoded")
		}
	}()
	EncodeHistograms(nil, start, []series.Histogram{{T: start.Start(), Int: wide}})
}

// TestHistogramBytes holds the bound to what histograms take.
func TestHistogramBytes(t *testing.T) {
	for _, s := range stories {
		for seed := range uint64(20) {
			one := s.tell(seeded(seed), 1)
			b := EncodeHistograms(nil, start, one)
			if n := HistogramBytes(one[0]); len(b) > n {
				t.Errorf("%s: a histogram takes %d bytes and %d were promised", s.name, len(b), n)
			}
		}
	}
}

// TestDamagedHistograms flips every bit.
func TestDamagedHistograms(t *testing.T) {
	for _, s := range stories {
		b := EncodeHistograms(nil, start, s.tell(seeded(4), 5))
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			got, err := DecodeHistograms(nil, b)
			if err == nil {
				t.Errorf("%s: no error with bit %d flipped", s.name, i)
			} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrKind) {
				t.Errorf("%s: bit %d flipped: error %v", s.name, i, err)
			}
			if got != nil {
				t.Errorf("%s: histograms beside an error", s.name)
			}
			Inspect(b)
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

func TestSameHistogram(t *testing.T) {
	whole := func() series.Histogram {
		return series.Histogram{T: 5, Int: &histogram.Histogram{
			CounterResetHint: 1, Schema: 2, ZeroThreshold: 0.1, ZeroCount: 3, Count: 9, Sum: 4.5,
			PositiveSpans: []histogram.Span{{Offset: 1, Length: 2}}, NegativeSpans: []histogram.Span{{Offset: 3, Length: 1}},
			PositiveBuckets: []int64{1, 2}, NegativeBuckets: []int64{3}, CustomValues: []float64{1},
		}}
	}
	float := func() series.Histogram {
		h := whole()
		f := h.Int.ToFloat(nil)
		f.CustomValues = []float64{1}
		return series.Histogram{T: 5, Float: f}
	}
	if !SameHistogram(whole(), whole()) || !SameHistogram(float(), float()) || !SameHistogram(series.Histogram{}, series.Histogram{}) {
		t.Error("a histogram is not the same as itself")
	}
	if SameHistogram(whole(), float()) || SameHistogram(float(), whole()) || SameHistogram(whole(), series.Histogram{T: 5}) {
		t.Error("histograms of different kinds are the same")
	}
	for name, change := range map[string]func(h *series.Histogram){
		"time":             func(h *series.Histogram) { h.T++ },
		"hint":             func(h *series.Histogram) { h.Int.CounterResetHint++ },
		"schema":           func(h *series.Histogram) { h.Int.Schema++ },
		"threshold":        func(h *series.Histogram) { h.Int.ZeroThreshold++ },
		"zeros":            func(h *series.Histogram) { h.Int.ZeroCount++ },
		"count":            func(h *series.Histogram) { h.Int.Count++ },
		"sum":              func(h *series.Histogram) { h.Int.Sum = stale },
		"offset":           func(h *series.Histogram) { h.Int.PositiveSpans[0].Offset++ },
		"length":           func(h *series.Histogram) { h.Int.NegativeSpans[0].Length++ },
		"span":             func(h *series.Histogram) { h.Int.NegativeSpans = nil },
		"positive bucket":  func(h *series.Histogram) { h.Int.PositiveBuckets[1]++ },
		"negative bucket":  func(h *series.Histogram) { h.Int.NegativeBuckets[0]++ },
		"negative buckets": func(h *series.Histogram) { h.Int.NegativeBuckets = nil },
		"custom value":     func(h *series.Histogram) { h.Int.CustomValues[0] = zero },
	} {
		h := whole()
		if change(&h); SameHistogram(h, whole()) || SameHistogram(whole(), h) {
			t.Errorf("with another %s it is the same", name)
		}
	}
	for name, change := range map[string]func(h *histogram.FloatHistogram){
		"hint":            func(h *histogram.FloatHistogram) { h.CounterResetHint++ },
		"zeros":           func(h *histogram.FloatHistogram) { h.ZeroCount = math.NaN() },
		"count":           func(h *histogram.FloatHistogram) { h.Count++ },
		"sum":             func(h *histogram.FloatHistogram) { h.Sum = stale },
		"positive bucket": func(h *histogram.FloatHistogram) { h.PositiveBuckets[1]++ },
		"negative bucket": func(h *histogram.FloatHistogram) { h.NegativeBuckets[0] = stale },
		"custom values":   func(h *histogram.FloatHistogram) { h.CustomValues = nil },
		"schema":          func(h *histogram.FloatHistogram) { h.Schema-- },
	} {
		h := float()
		if change(h.Float); SameHistogram(h, float()) {
			t.Errorf("with another %s a float histogram is the same", name)
		}
	}
}

// TestMergeHistograms compares with a map and a sort, and Union and JoinHistograms with that.
func TestMergeHistograms(t *testing.T) {
	for seed := range uint64(100) {
		r := seeded(seed)
		random := func() (all []series.Histogram) {
			at := start.Start()
			for range r.IntN(20) {
				at += 1 + series.Millis(r.IntN(3))
				all = append(all, series.Histogram{T: at, Int: &histogram.Histogram{Count: uint64(r.IntN(2))}})
			}
			return all
		}
		first, second := random(), random()
		byTime := map[series.Millis]series.Histogram{}
		conflicts := 0
		for _, h := range second {
			byTime[h.T] = h
		}
		for _, h := range first {
			if have, both := byTime[h.T]; both && have.Int.Count != h.Int.Count {
				conflicts++
			}
			byTime[h.T] = h
		}
		var want []series.Histogram
		for at := start.Start(); len(want) < len(byTime); at++ {
			if h, ok := byTime[at]; ok {
				want = append(want, h)
			}
		}
		got, n := MergeHistograms(first, second)
		sameHistograms(t, got, want)
		if n != conflicts {
			t.Errorf("seed %d: %d conflicts, want %d", seed, n, conflicts)
		}
		front := stories[0].tell(seeded(9), 2)
		joined := JoinHistograms(append(append(front[:2:2], first...), second...), 2, 2+len(first))
		sameHistograms(t, joined, append(front[:2:2], want...))
		union, err := Union(start, EncodeHistograms(nil, start, first), EncodeHistograms(nil, start, second))
		if err != nil {
			t.Fatal(err)
		}
		got, err = DecodeHistograms(nil, union)
		if err != nil {
			t.Fatal(err)
		}
		sameHistograms(t, got, want)
	}
}

// TestFold folds slots of all kinds, the first of a time staying, and refuses to mix them.
func TestFold(t *testing.T) {
	hours := []series.Hour{start - 2, start - 1, start - 1}
	var floats, histograms, exemplars [][]byte
	for i, h := range hours {
		v := float64(i)
		floats = append(floats, Encode(nil, h, []series.Sample{{T: h.Start(), V: v}}))
		histograms = append(histograms, EncodeHistograms(nil, h, []series.Histogram{{T: h.Start(), Int: &histogram.Histogram{Sum: v}}}))
		exemplars = append(exemplars, EncodeExemplars(nil, h, []series.Exemplar{{T: h.Start(), V: v}}))
	}
	for kind, c := range map[Kind]struct {
		slots [][]byte
		want  int
	}{Floats: {floats, 2}, Histograms: {histograms, 2}, Exemplars: {exemplars, 3}} {
		b, err := Fold(start-5, c.slots...)
		if err != nil {
			t.Fatalf("%v: %v", kind, err)
		}
		info, err := Inspect(b)
		if err != nil || info.Kind != kind || info.Start != start-5 || info.Count != c.want || info.Last != hours[2].Start() {
			t.Errorf("%v: folded to %+v, error %v", kind, info, err)
		}
		if same, err := Union(start, nil, c.slots[0]); err != nil || &same[0] != &c.slots[0][0] {
			t.Errorf("%v: the union with nothing is not the slot itself, error %v", kind, err)
		}
		for other, mixed := range map[Kind][][]byte{Floats: floats, Histograms: histograms, Exemplars: exemplars} {
			if _, err := Union(start-5, c.slots[0], mixed[1]); (err == nil) != (kind == other) || err != nil && !errors.Is(err, ErrKind) {
				t.Errorf("%v and %v: the error is %v", kind, other, err)
			}
		}
		if _, err := Fold(start, c.slots[0], c.slots[1][:3]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: a slot cut short gives %v", kind, err)
		}
	}
	if b, err := Fold(start); b != nil || err != nil {
		t.Errorf("nothing is folded to %x, error %v", b, err)
	}
	if _, err := Union(start, []byte{0x70}, floats[0]); !errors.Is(err, ErrVersion) {
		t.Errorf("an unknown version gives %v", err)
	}
}

// TestFoldTooLarge folds what one slot cannot hold.
func TestFoldTooLarge(t *testing.T) {
	var slots [][]byte
	for i := range 2 {
		wide := &histogram.Histogram{PositiveBuckets: make([]int64, MaxBytes/10*2/3)}
		slots = append(slots, EncodeHistograms(nil, start, []series.Histogram{{T: start.Start() + series.Millis(i), Int: wide}}))
	}
	if _, err := Fold(start, slots...); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the error is %v, want ErrTooLarge", err)
	}
}
