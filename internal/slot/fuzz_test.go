package slot

import (
	"encoding/binary"
	"math"
	"testing"

	"daybook/internal/series"
)

// FuzzDecode: whatever the bytes, Decode returns samples in ascending order or an error. As the checksum would stop nearly
// every input, the bytes are tried with a right one too.
func FuzzDecode(f *testing.F) {
	for _, s := range shapes {
		f.Add(Encode(nil, start, s.make(seeded(7), start, 40)))
	}
	for _, samples := range goldenSlots() {
		f.Add(Encode(nil, start, samples))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeAnything(t, b)
		if n := len(b) - checkSize; n > 0 {
			b = binary.LittleEndian.AppendUint16(b[:n:n], check(b[:n]))
			decodeAnything(t, b)
		}
	})
}

func decodeAnything(t *testing.T, b []byte) {
	info, inspectErr := Inspect(b)
	if inspectErr == nil && info.Count > 1<<16 {
		return // legal, but it would make the fuzzer slow
	}
	samples, err := Decode(nil, b)
	if err != nil {
		if samples != nil {
			t.Fatal("samples beside an error")
		}
		return
	}
	if inspectErr != nil {
		t.Fatalf("Decode accepts what Inspect does not: %v", inspectErr)
	}
	if cap(samples) > MaxCount*2 {
		t.Fatalf("%d samples allocated", cap(samples))
	}
	for i := 1; i < len(samples); i++ {
		if samples[i].T <= samples[i-1].T {
			t.Fatalf("times %d and %d are not ascending", samples[i-1].T, samples[i].T)
		}
	}
	if n := len(samples); n != info.Count || n > 0 && (samples[0].T != info.First || samples[n-1].T != info.Last) {
		t.Fatalf("%d samples do not agree with %+v", n, info)
	}
}

// FuzzRoundTrip makes samples of the bytes: 9 each, a step of time and a value.
func FuzzRoundTrip(f *testing.F) {
	f.Add(int32(start), []byte("\x01\x00\x00\x00\x00\x00\x00\xf8\x3f\xff\x00\x00\x00\x00\x00\x00\xf0\x7f"), uint8(0))
	f.Add(int32(-1), []byte("123456789abcdefghi"), uint8(200))
	f.Add(int32(0), binary.LittleEndian.AppendUint64([]byte{9}, staleBits), uint8(2))
	f.Fuzz(func(t *testing.T, hour int32, b []byte, places uint8) {
		h := series.Hour(hour)
		at := h.Start()
		var samples []series.Sample
		for ; len(b) >= 9; b = b[9:] {
			at += 1 + series.Millis(b[0])*series.Millis(b[0])
			bits := binary.LittleEndian.Uint64(b[1:])
			v := math.Float64frombits(bits)
			if places < 8 { // decimals are rare among random bits
				v = float64(int32(bits)) / math.Pow10(int(places))
			}
			samples = append(samples, series.Sample{T: at, V: v})
		}
		mustRoundTrip(t, h, samples)
	})
}
