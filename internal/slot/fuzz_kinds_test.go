package slot

import (
	"encoding/binary"
	"testing"

	"daybook/internal/series"
)

// FuzzDecodeHistograms: whatever the bytes, DecodeHistograms returns histograms in ascending order or an error, and what
// it returns is encoded and decoded to the same. As with FuzzDecode the bytes are tried with a right checksum too.
func FuzzDecodeHistograms(f *testing.F) {
	for _, s := range stories {
		for _, n := range []int{1, 3, 30} {
			f.Add(EncodeHistograms(nil, start, s.tell(seeded(7), n)))
		}
	}
	for _, all := range goldenHistograms() {
		f.Add(EncodeHistograms(nil, start, all))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeAnyHistograms(t, b)
		if n := len(b) - checkSize; n > 0 {
			b = binary.LittleEndian.AppendUint16(b[:n:n], check(b[:n]))
			decodeAnyHistograms(t, withRightSums(b))
		}
	})
}

// withRightSums gives the slot of floats inside a slot of histograms a right checksum, too.
func withRightSums(b []byte) []byte {
	s, err := openHistograms(b)
	if err != nil || len(s.sums) < checkSize {
		return b
	}
	n := len(s.sums) - checkSize
	binary.LittleEndian.PutUint16(s.sums[n:], check(s.sums[:n])) // which lies in b
	n = len(b) - checkSize
	return binary.LittleEndian.AppendUint16(b[:n:n], check(b[:n]))
}

func decodeAnyHistograms(t *testing.T, b []byte) {
	info, inspectErr := Inspect(b)
	if inspectErr == nil && info.Count > 1<<12 {
		return // legal, but it would make the fuzzer slow
	}
	all, err := DecodeHistograms(nil, b)
	if err != nil {
		if all != nil {
			t.Fatal("histograms beside an error")
		}
		return
	}
	if inspectErr != nil || info.Kind != Histograms || info.Count != len(all) {
		t.Fatalf("%d histograms do not agree with %+v (%v)", len(all), info, inspectErr)
	}
	for i := 1; i < len(all); i++ {
		if all[i].T <= all[i-1].T {
			t.Fatalf("times %d and %d are not ascending", all[i-1].T, all[i].T)
		}
	}
	again, err := DecodeHistograms(nil, EncodeHistograms(nil, info.Start, all))
	if err != nil {
		t.Fatalf("encoded again: %v", err)
	}
	sameHistograms(t, again, all)
}

// FuzzDecodeExemplars is FuzzDecodeHistograms for exemplars.
func FuzzDecodeExemplars(f *testing.F) {
	for _, n := range []int{1, 3, 30} {
		f.Add(EncodeExemplars(nil, start, someExemplars(seeded(7), n)))
	}
	for _, all := range goldenExemplars() {
		f.Add(EncodeExemplars(nil, start, all))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeAnyExemplars(t, b)
		if n := len(b) - checkSize; n > 0 {
			decodeAnyExemplars(t, binary.LittleEndian.AppendUint16(b[:n:n], check(b[:n])))
		}
	})
}

func decodeAnyExemplars(t *testing.T, b []byte) {
	info, inspectErr := Inspect(b)
	if inspectErr == nil && info.Count > 1<<12 {
		return // legal, but it would make the fuzzer slow
	}
	all, err := DecodeExemplars(nil, b)
	if err != nil {
		if all != nil {
			t.Fatal("exemplars beside an error")
		}
		return
	}
	if inspectErr != nil || info.Kind != Exemplars || info.Count != len(all) {
		t.Fatalf("%d exemplars do not agree with %+v (%v)", len(all), info, inspectErr)
	}
	before := series.Exemplar{T: info.First}
	for _, x := range all {
		if x.T < before.T {
			t.Fatalf("times %d and %d are not ascending", before.T, x.T)
		}
		before = x
	}
	again, err := DecodeExemplars(nil, EncodeExemplars(nil, info.Start, all))
	if err != nil {
		t.Fatalf("encoded again: %v", err)
	}
	sameExemplars(t, again, all)
}
