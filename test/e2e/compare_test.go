package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// How many differences a failed comparison shows.
const differencesShown = 10

// expectEqual fails the test unless got holds the samples of want and no others, bit for bit.
func expectEqual(t *testing.T, when string, got, want samples) {
	t.Helper()
	if want.count() == 0 {
		t.Fatalf("%s: nothing to compare with", when)
	}
	differences, wrong := difference(got, want)
	if wrong > 0 {
		t.Errorf("%s: %d of %d series differ:\n%s", when, wrong, len(want), strings.Join(differences, "\n"))
		return
	}
	t.Logf("%s: %d samples of %d series are equal", when, want.count(), len(want))
}

// difference tells for the first series that differ how they do, and how many differ in all.
func difference(got, want samples) (shown []string, wrong int) {
	keys := maps.Clone(want)
	maps.Copy(keys, got)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		said := seriesDifference(got[key], want[key])
		if said == "" {
			continue
		}
		if wrong++; wrong <= differencesShown {
			shown = append(shown, key+": "+said)
		}
	}
	return shown, wrong
}

// seriesDifference is empty when both have the same points.
func seriesDifference(got, want []point) string {
	for i := range min(len(got), len(want)) {
		if g, w := got[i], want[i]; g.T != w.T || !same(g.V, w.V) {
			return fmt.Sprintf("%d samples for %d, sample %d is %v at %d for %v at %d", len(got), len(want), i, g.V, g.T, w.V, w.T)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d samples for %d, those that both have are equal", len(got), len(want))
	}
	return ""
}
