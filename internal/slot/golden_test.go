package slot

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daybook/internal/series"
)

var update = flag.Bool("update", false, "rewrite the files in testdata with the bytes that Encode writes now")

// TestGolden pins the format: slots written by earlier versions must be read for ever, so a file may be added here, but a
// file that changes means a new version byte.
func TestGolden(t *testing.T) {
	for name, samples := range goldenSlots() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", name+".hex")
			if *update {
				if err := os.WriteFile(file, []byte(dump(Encode(nil, start, samples))), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(nil, b)
			if err != nil {
				t.Fatalf("Decode of %s: %v", file, err)
			}
			sameSamples(t, got, samples)
			if now := dump(Encode(nil, start, samples)); now != string(text) {
				t.Errorf("Encode now writes\n%swhere %s has\n%s", now, file, text)
			}
		})
	}
}

// goldenSlots must not depend on a random generator.
func goldenSlots() map[string][]series.Sample {
	var walk, pages, rare, odd, hundredths, sums []series.Sample
	sum := 0.0
	state, units := uint32(1), 2137
	for i := range 240 {
		state = state*1664525 + 1013904223
		noise := int(state>>24) + int(state>>16&0xff) - 255
		units += noise
		at := start.Start() + 3_906 + series.Millis(i)*interval
		walk = append(walk, series.Sample{T: at, V: float64(units) / 100})
		pages = append(pages, series.Sample{T: at, V: float64(units) * 4096})
		rare = append(rare, series.Sample{T: at + series.Millis(state>>31), V: float64(i / 50)})
		odd = append(odd, series.Sample{T: at, V: float64(units) / 7})
		sum += float64(1_000_000+noise) / 1e9
		sums = append(sums, series.Sample{T: at, V: sum})
		hundredths = append(hundredths, series.Sample{T: at, V: float64(i*1500+noise%8) / 100})
	}
	return map[string][]series.Sample{
		"empty":      nil,
		"single":     every15s(21.5),
		"example":    every15s(20, 20, 20, 20.5, 21, 20.5, 20.5, 20, 20, 20, 20, stale),
		"constant":   every15s(make([]float64, 240)...),
		"special":    every15s(1.5, inf, -inf, zero, 5e-324, math.Float64frombits(0x7ff8000000000001), 2.33, 1e21),
		"stale":      append(walk[:20:20], series.Sample{T: walk[20].T, V: stale}),
		"walk":       walk,
		"pages":      pages,
		"rare":       rare,
		"odd":        odd[:40],
		"hundredths": hundredths,
		"sums":       sums,
	}
}

// dump writes bytes as lines of 32.
func dump(b []byte) string {
	var s strings.Builder
	for len(b) > 0 {
		n := min(len(b), 32)
		fmt.Fprintf(&s, "%x\n", b[:n])
		b = b[n:]
	}
	return s.String()
}
