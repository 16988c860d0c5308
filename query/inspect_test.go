package query

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
)

var update = flag.Bool("update", false, "rewrite the files in testdata with what Inspect prints now")

// TestInspect compares what is printed of a series in ring, pages and memory.
func TestInspect(t *testing.T) {
	w := newWorld(t, midnight.Add(-time.Hour), series.MillisOf(midnight).Day()-2)
	hundredths := func(x float64) float64 { return float64(int(x)%977) / 100 }
	all := steps(midnight.Add(-3*time.Hour), midnight.Add(-time.Hour), 15*time.Second, hundredths)
	w.load(metric("cpu", "mode", "idle"), all)
	w.load(metric("cpu", "mode", "user"), steps(midnight.Add(-50*time.Hour), midnight.Add(-48*time.Hour), time.Minute, hundredths))
	w.now = midnight.Add(90 * time.Minute)
	w.closeDays(series.MillisOf(midnight).Day() - 1)
	entry := w.load(metric("cpu", "mode", "idle"), steps(midnight.Add(time.Hour), w.now, 15*time.Second, hundredths))
	w.head.samples[entry.ID] = steps(w.now, w.now.Add(time.Minute), 15*time.Second, hundredths)
	w.listed(metric("cpu", "mode", "never"))
	w.loadKinds(metric("latency"), series.MillisOf(w.now).Hour())

	var text strings.Builder
	for _, selector := range []string{`cpu`, `cpu{mode="nobody"}`} {
		w.ok(w.reader.Inspect(t.Context(), &text, selector))
		fmt.Fprintln(&text, "--")
	}
	w.ok(Inspect(t.Context(), &text, w.store, w.index, `{mode="user"}`))
	w.ok(Inspect(t.Context(), &text, w.store, w.index, `latency`))
	const file = "testdata/inspect.golden"
	if *update {
		w.ok(os.WriteFile(file, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	w.ok(err)
	if text.String() != string(want) {
		t.Errorf("%s has\n%s\nand now it is\n%s", file, want, text.String())
	}
}

// loadKinds writes an hour of a series with native histograms and exemplars, and one with a stale marker and no exemplar.
func (w *world) loadKinds(ls labels.Labels, h series.Hour) {
	w.Helper()
	first := &histogram.Histogram{
		Schema: 3, Count: 6, Sum: 1.5, PositiveSpans: []histogram.Span{{Offset: -2, Length: 3}}, PositiveBuckets: []int64{1, 1, 1},
	}
	stale := &histogram.FloatHistogram{Sum: math.Float64frombits(value.StaleNaN)}
	at := (h - 1).Start()
	write := store.Write{ID: w.listed(ls).ID, Top: h, Slots: []store.HourSlot{
		{Hour: h - 1, Kind: slot.Histograms, Data: slot.EncodeHistograms(nil, h-1, []series.Histogram{{T: at, Int: first}, {T: at + 15_000, Int: first}})},
		{Hour: h - 1, Kind: slot.Exemplars, Data: slot.EncodeExemplars(nil, h-1, []series.Exemplar{
			{T: at + 1, V: 0.25, Labels: labels.FromStrings("trace_id", "2f1a")}, {T: at + 15_000, V: 0.5},
		})},
		{Hour: h, Kind: slot.Histograms, Data: slot.EncodeHistograms(nil, h, []series.Histogram{
			{T: h.Start(), Float: first.ToFloat(nil)}, {T: h.Start() + 15_000, Float: stale},
		})},
	}}
	w.ok(w.store.WriteHours(w.Context(), w.store.Bucket(write.ID), series.MillisOf(w.now), []store.Write{write}))
}

func TestInspectMany(t *testing.T) {
	w := newWorld(t, midnight, series.MillisOf(midnight).Day()-1)
	for i := range maxInspected + 3 {
		w.listed(metric("m", "i", fmt.Sprint(i)))
	}
	var text strings.Builder
	w.ok(w.reader.Inspect(t.Context(), &text, "m"))
	if !strings.Contains(text.String(), "13 series match") || !strings.HasSuffix(text.String(), "\n3 more are not shown.\n") {
		t.Errorf("it prints\n%s", text.String())
	}
	if err := w.reader.Inspect(t.Context(), &text, "m{"); !errors.Is(err, ErrBadQuery) {
		t.Errorf("a bad selector gives %v", err)
	}
	if err := w.reader.Inspect(t.Context(), full{}, "m"); !errors.Is(err, errFull) {
		t.Errorf("a reader that is gone gives %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
