package query

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"daybook/internal/series"
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

	var text strings.Builder
	for _, selector := range []string{`cpu`, `cpu{mode="nobody"}`} {
		w.ok(w.reader.Inspect(t.Context(), &text, selector))
		fmt.Fprintln(&text, "--")
	}
	w.ok(Inspect(t.Context(), &text, w.store, w.index, `{mode="user"}`))
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
