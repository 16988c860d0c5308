package slot

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"daybook/internal/series"
)

const start series.Hour = 498_911 // 2026-11-30T23:00Z

// mustRoundTrip encodes, inspects and decodes, and returns the slot.
func mustRoundTrip(t testing.TB, start series.Hour, samples []series.Sample) []byte {
	t.Helper()
	b := Encode(nil, start, samples)
	if b[0] >= 0x80 {
		t.Fatalf("first byte %#x, want it below 0x80", b[0])
	}
	got, err := Decode(nil, b)
	if err != nil {
		t.Fatalf("Decode: %v\n%x", err, b)
	}
	sameSamples(t, got, samples)
	info, err := Inspect(b)
	if err != nil {
		t.Fatalf("Inspect: %v", err)
	}
	if info.Start != start || info.Count != len(samples) {
		t.Fatalf("Inspect: %+v, want start %d and %d samples", info, start, len(samples))
	}
	if n := len(samples); n > 0 && (info.First != samples[0].T || info.Last != samples[n-1].T) {
		t.Fatalf("Inspect: %+v, want times %d to %d", info, samples[0].T, samples[n-1].T)
	}
	return b
}

// sameSamples compares bit for bit.
func sameSamples(t testing.TB, got, want []series.Sample) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d samples, want %d", len(got), len(want))
	}
	for i, g := range got {
		if w := want[i]; g.T != w.T || math.Float64bits(g.V) != math.Float64bits(w.V) {
			t.Fatalf("sample %d of %d: %v (%#x) at %d, want %v (%#x) at %d",
				i, len(want), g.V, math.Float64bits(g.V), g.T, w.V, math.Float64bits(w.V), w.T)
		}
	}
}

// every returns the values 15 s apart.
func every15s(values ...float64) []series.Sample {
	var samples []series.Sample
	for i, v := range values {
		samples = append(samples, series.Sample{T: start.Start() + series.Millis(i)*interval, V: v})
	}
	return samples
}

var (
	stale = math.Float64frombits(staleBits)
	inf   = math.Inf(1)
	zero  = math.Copysign(0, -1)
)

func TestSpecialValues(t *testing.T) {
	odd := []float64{1.5, inf, -inf, zero, 5e-324, 2.964393875e-314, 18446744073709551615, 1.7976931348623157e308,
		9007199254740993, 2.33, math.NaN(), 1e21}
	nans := []float64{math.Float64frombits(0x7ff8000000000001), math.Float64frombits(0xfff8000000000000),
		math.Float64frombits(0x7ff0000000000001), math.Float64frombits(0xffffffffffffffff), stale}
	for name, values := range map[string][]float64{
		"odd":              odd,
		"nan payloads":     nans,
		"all of them":      append(append([]float64{}, odd...), nans...),
		"stale at the end": {1, 2, 3, 4, 5, 6, stale},
		"stale first":      {stale, 1.25, 1.5, 1.75},
		"only stale":       {stale},
		"two stale":        {stale, stale},
		"zeros":            {0, zero, 0, zero, 0},
		"minus zero":       {zero},
		"places appear":    {1, 2, 3, 4.5, 5.25, 6.125, 7.0625},
		"17 digits":        {0.1 + 0.2, 0.3, 1.1 * 1.1},
		"large integers":   {1<<53 - 1, 1 << 53, 1<<53 + 2, -(1<<53 - 1), -(1 << 53), 1<<52 + 1},
		"too large later":  {9007199254740991, 0.5, 1},
		"tiny":             {1e-22, 2e-22, 3e-22, 1e-15, -1e-15},
		"limits of int64":  {9223372036854775807, -9223372036854775808},
		"powers of two":    {1 << 60, 1 << 61, 1 << 62, 1 << 63},
	} {
		t.Run(name, func(t *testing.T) { mustRoundTrip(t, start, every15s(values...)) })
	}
	for _, v := range append(odd, nans...) {
		long := make([]float64, 300)
		for i := range long {
			long[i] = float64(i) / 4
		}
		long[100] = v
		b := mustRoundTrip(t, start, every15s(long...))
		if info, _ := Inspect(b); info.Encoding != Decimal || len(b) > 80 {
			t.Errorf("one %v among quarters: %d bytes, %v: it should be an exception", v, len(b), info.Encoding)
		}
	}
}

func TestTimes(t *testing.T) {
	const far = 1 << 52
	for name, times := range map[string][]series.Millis{
		"single":        {start.Start()},
		"two":           {start.Start() + 1, start.Start() + 2},
		"hour's end":    {start.Start(), start.Start() + series.MillisPerHour - 1},
		"one missing":   {0, 15_000, 45_000, 60_000},
		"before 1970":   {-7_200_000, -7_199_999, -1, 5},
		"far":           {-far, -1, 0, far},
		"widest apart":  {-far, far},
		"late in a row": {1, 2, 3, 4, far - 1, far},
	} {
		t.Run(name, func(t *testing.T) {
			var samples []series.Sample
			for i, at := range times {
				samples = append(samples, series.Sample{T: at, V: float64(i)})
			}
			first := times[0].Hour()
			if times[0] == -far {
				first = math.MinInt32
			}
			mustRoundTrip(t, first, samples)
		})
	}
	for _, hour := range []series.Hour{math.MinInt32, -1, 0, 1, math.MaxInt32} {
		mustRoundTrip(t, hour, []series.Sample{{T: hour.Start() + 5, V: 1}, {T: hour.Start() + 9, V: 2}})
		mustRoundTrip(t, hour, nil)
	}
}

func TestShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			for seed := range uint64(30) {
				r := seeded(seed)
				n := 1 + r.IntN(400)
				if seed < 10 {
					n = int(seed) + 1
				}
				hour := series.Hour(r.IntN(1_000_000) - 500_000)
				mustRoundTrip(t, hour, s.make(r, hour, n))
			}
			mustRoundTrip(t, start, s.make(seeded(1), start, 5760))
		})
	}
}

func TestManySamples(t *testing.T) {
	for _, name := range []string{"walk", "bits", "irregular", "sparse"} {
		mustRoundTrip(t, start, shapeNamed(name).make(seeded(2), start, 100_000))
	}
}

// TestAnyIntegers: the coder of integers is exact for any int64, also where differences overflow.
func TestAnyIntegers(t *testing.T) {
	for seed := range uint64(300) {
		r := seeded(seed)
		x := make([]int64, 2+r.IntN(300))
		width := r.IntN(64)
		for i := range x {
			x[i] = int64(r.Uint64()) >> width
		}
		var e intEncoder
		size := e.plan(x)
		b := e.append(nil)
		if len(b) > size+1 || len(b) < size-3 {
			t.Errorf("planned %d bytes, wrote %d", size, len(b))
		}
		var d intDecoder
		if err := d.begin(b, x[0]); err != nil {
			t.Fatal(err)
		}
		got := make([]int64, len(x)-1)
		cut := r.IntN(len(got) + 1)
		d.read(got[:cut])
		d.read(got[cut:])
		rest, err := d.end()
		if err != nil || len(rest) > 0 {
			t.Fatalf("%d bytes left, %v", len(rest), err)
		}
		for i, v := range got {
			if v != x[i+1] {
				t.Fatalf("seed %d: number %d is %d, want %d", seed, i, v, x[i+1])
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		shape string
		n     int
		limit float64 // bytes a sample
	}{
		{"walk", 240, 1.25},
		{"walk", 5760, 1.13},
		{"constant", 5760, 40. / 5760},
		{"nan", 5760, 40. / 5760},
		{"pages", 5760, 0.7},
		{"sparse", 5760, 0.1},
		{"sums", 5760, 4},
		{"doubles", 5760, 8.1},
		{"bits", 5760, 8.3},
	} {
		b := mustRoundTrip(t, start, shapeNamed(c.shape).make(seeded(3), start, c.n))
		if got := float64(len(b)) / float64(c.n); got > c.limit {
			t.Errorf("%s of %d samples: %.3f bytes a sample, want at most %.3f", c.shape, c.n, got, c.limit)
		}
	}
}

func TestDamage(t *testing.T) {
	for _, s := range shapes {
		b := Encode(nil, start, s.make(seeded(4), start, 60))
		for n := range b {
			if _, err := Decode(nil, b[:n]); err == nil {
				t.Errorf("%s: no error with %d of %d bytes", s.name, n, len(b))
			}
			Inspect(b[:n])
		}
		if _, err := Decode(nil, append(b[:len(b):len(b)], 0)); err == nil {
			t.Errorf("%s: no error with a byte too many", s.name)
		}
		for i := range 8 * len(b) {
			b[i/8] ^= 1 << (i % 8)
			got, err := Decode(nil, b)
			if err == nil {
				t.Errorf("%s: no error with bit %d flipped", s.name, i)
			} else if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrKind) {
				t.Errorf("%s: bit %d flipped: error %v is neither ErrCorrupt nor ErrVersion nor ErrKind", s.name, i, err)
			}
			if got != nil {
				t.Errorf("%s: samples beside an error", s.name)
			}
			Inspect(b)
			b[i/8] ^= 1 << (i % 8)
		}
	}
}

func TestVersion(t *testing.T) {
	b := Encode(nil, start, every15s(1, 2, 3))
	for _, first := range []byte{0x00, 0x40, 0x18, 0x7f, 0x80, 0xf0, 0xff} {
		b[0] = first
		if _, err := Decode(nil, b); !errors.Is(err, ErrVersion) {
			t.Errorf("first byte %#x: %v, want ErrVersion", first, err)
		}
		if _, err := Inspect(b); !errors.Is(err, ErrVersion) {
			t.Errorf("Inspect, first byte %#x: %v, want ErrVersion", first, err)
		}
	}
}

func TestAppends(t *testing.T) {
	samples := every15s(1, 2.5, 4)
	b := Encode([]byte("head"), start, samples)
	if !strings.HasPrefix(string(b), "head") {
		t.Fatal("Encode has overwritten what dst held")
	}
	before := []series.Sample{{T: 1, V: 2}}
	got, err := Decode(before, b[4:])
	if err != nil {
		t.Fatal(err)
	}
	sameSamples(t, got, append(before[:1:1], samples...))
	b[len(b)-1]++
	if got, err = Decode(before, b[4:]); err == nil {
		t.Fatal("no error for a wrong checksum")
	}
	sameSamples(t, got, before)
}

func TestEncodingString(t *testing.T) {
	for e, want := range map[Encoding]string{Decimal: "decimal", XOR: "xor", 7: "Encoding(7)"} {
		if got := fmt.Sprint(e); got != want {
			t.Errorf("%d: %s, want %s", uint8(e), got, want)
		}
	}
}

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("with the race detector a sync.Pool drops items at random")
	}
	for _, s := range shapes {
		samples := s.make(seeded(5), start, 500)
		b := Encode(nil, start, samples)
		buf := make([]byte, 0, len(b)+10)
		if n := testing.AllocsPerRun(50, func() { Encode(buf, start, samples) }); n >= 1 {
			t.Errorf("%s: Encode allocates %v times", s.name, n)
		}
		out := make([]series.Sample, 0, len(samples))
		if n := testing.AllocsPerRun(50, func() { Decode(out, b) }); n >= 1 {
			t.Errorf("%s: Decode allocates %v times", s.name, n)
		}
		if n := testing.AllocsPerRun(50, func() { Inspect(b) }); n >= 1 {
			t.Errorf("%s: Inspect allocates %v times", s.name, n)
		}
	}
}
