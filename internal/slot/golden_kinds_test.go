package slot

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
)

// readGolden gives the bytes of a file in testdata, which -update writes anew.
func readGolden(t *testing.T, name string, now []byte) []byte {
	t.Helper()
	file := filepath.Join("testdata", name+".hex")
	if *update {
		if err := os.WriteFile(file, []byte(dump(now)), 0o644); err != nil {
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
	return b
}

// sameBytes holds the encoder to what it wrote once, but for packed bodies: another version of zstd may pack differently,
// and reads them all the same.
func sameBytes(t *testing.T, now, then []byte) {
	t.Helper()
	if then[0]&flagPacked == 0 && string(now) != string(then) {
		t.Errorf("now it writes\n%swhere testdata has\n%s", dump(now), dump(then))
	}
}

// TestGoldenHistograms pins the format of histograms; see TestGolden.
func TestGoldenHistograms(t *testing.T) {
	packed := 0
	for name, all := range goldenHistograms() {
		t.Run(name, func(t *testing.T) {
			now := EncodeHistograms(nil, start, all)
			then := readGolden(t, "histograms-"+name, now)
			got, err := DecodeHistograms(nil, then)
			if err != nil {
				t.Fatal(err)
			}
			sameHistograms(t, got, all)
			sameBytes(t, now, then)
			packed += int(then[0] & flagPacked)
		})
	}
	if packed == 0 {
		t.Error("none of them is packed")
	}
}

// goldenHistograms must not depend on a random generator.
func goldenHistograms() map[string][]series.Histogram {
	at := func(i int) series.Millis { return start.Start() + 3_906 + series.Millis(i)*interval }
	first := &histogram.Histogram{
		Schema: 1, ZeroThreshold: 0.001, ZeroCount: 2, Count: 9, Sum: 21.5,
		PositiveSpans: []histogram.Span{{Offset: -3, Length: 2}, {Offset: 4, Length: 1}}, PositiveBuckets: []int64{1, 2, -2},
		NegativeSpans: []histogram.Span{{Offset: 2_000_000_000, Length: 1}}, NegativeBuckets: []int64{2},
	}
	second := first.Copy()
	second.PositiveBuckets, second.Count, second.Sum = []int64{2, 2, -3}, 11, 22.75
	gauge := second.Copy()
	gauge.CounterResetHint = histogram.GaugeType
	float := first.ToFloat(nil)
	fraction := float.Copy()
	fraction.PositiveBuckets[1], fraction.Count = 2.5, 8.5
	custom := &histogram.Histogram{
		Schema: -53, CustomValues: []float64{0.5, 1}, Count: 6, Sum: 9,
		PositiveSpans: []histogram.Span{{Length: 3}}, PositiveBuckets: []int64{1, 1, 1},
	}
	var many []series.Histogram
	growing := first
	for i := range 60 {
		growing = growing.Copy()
		growing.PositiveBuckets[0] += int64(i % 3)
		growing.Count += uint64(i % 3 * 3)
		growing.Sum += float64(i%3) / 4
		many = append(many, series.Histogram{T: at(i), Int: growing})
	}
	return map[string][]series.Histogram{
		"empty":   nil,
		"single":  {{T: at(0), Int: first}},
		"two":     {{T: at(0), Int: first}, {T: at(1), Int: second}},
		"hints":   {{T: at(0), Int: first}, {T: at(1), Int: gauge}, {T: at(2), Int: gauge}},
		"floats":  {{T: at(0), Float: float}, {T: at(1), Float: float}, {T: at(2), Float: fraction}, {T: at(3), Float: fraction}},
		"custom":  {{T: at(0), Int: custom}, {T: at(1), Int: custom}},
		"changes": {{T: at(0), Int: first}, {T: at(1), Float: float}, {T: at(2), Int: custom}, {T: at(3), Int: &histogram.Histogram{Sum: stale}}},
		"many":    many,
	}
}

// TestGoldenExemplars pins the format of exemplars; see TestGolden.
func TestGoldenExemplars(t *testing.T) {
	for name, all := range goldenExemplars() {
		t.Run(name, func(t *testing.T) {
			now := EncodeExemplars(nil, start, all)
			then := readGolden(t, "exemplars-"+name, now)
			got, err := DecodeExemplars(nil, then)
			if err != nil {
				t.Fatal(err)
			}
			sameExemplars(t, got, all)
			sameBytes(t, now, then)
		})
	}
}

func goldenExemplars() map[string][]series.Exemplar {
	one := series.Exemplar{T: start.Start() + 17, V: 0.25, Labels: labels.FromStrings("trace_id", "2f1a")}
	other := series.Exemplar{T: start.Start() + 17, V: stale}
	later := series.Exemplar{T: start.Start() + 15_017, V: -1, Labels: labels.FromStrings("a", "", "é", "x")}
	var many []series.Exemplar
	for i := range 20 {
		later.T += series.Millis(i)
		many = append(many, later)
	}
	return map[string][]series.Exemplar{"empty": nil, "single": {one}, "three": {other, one, later}, "many": many}
}
