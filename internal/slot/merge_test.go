package slot

import (
	"math"
	"slices"
	"testing"

	"daybook/internal/series"
)

// run makes samples of pairs of time and value.
func run(pairs ...float64) []series.Sample {
	var samples []series.Sample
	for i := 0; i < len(pairs); i += 2 {
		samples = append(samples, series.Sample{T: series.Millis(pairs[i]), V: pairs[i+1]})
	}
	return samples
}

func TestMerge(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		first, second, want []series.Sample
		conflicts           int
	}{
		"nothing":          {nil, nil, nil, 0},
		"only first":       {run(1, 1, 2, 2), nil, run(1, 1, 2, 2), 0},
		"only second":      {nil, run(1, 1, 2, 2), run(1, 1, 2, 2), 0},
		"one after other":  {run(1, 1, 2, 2), run(3, 3, 4, 4), run(1, 1, 2, 2, 3, 3, 4, 4), 0},
		"one before other": {run(3, 3, 4, 4), run(1, 1, 2, 2), run(1, 1, 2, 2, 3, 3, 4, 4), 0},
		"interleaved":      {run(1, 1, 4, 4, 5, 5), run(2, 2, 3, 3, 6, 6), run(1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6), 0},
		"the same again":   {run(1, 1, 2, nan), run(1, 1, 2, nan), run(1, 1, 2, nan), 0},
		"first stays":      {run(1, 1, 2, 2), run(1, 7, 2, 2, 3, 3), run(1, 1, 2, 2, 3, 3), 1},
		"bits count":       {run(1, 0, 2, nan), run(1, zero, 2, stale), run(1, 0, 2, nan), 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, conflicts := Merge(run(0, 9), c.first, c.second)
			sameSamples(t, got, append(run(0, 9), c.want...))
			if conflicts != c.conflicts {
				t.Errorf("%d conflicts, want %d", conflicts, c.conflicts)
			}
		})
	}
}

// TestMergeModel compares with a map and a sort.
func TestMergeModel(t *testing.T) {
	for seed := range uint64(200) {
		r := seeded(seed)
		random := func() (samples []series.Sample) {
			at := series.Millis(0)
			for range r.IntN(30) {
				at += 1 + series.Millis(r.IntN(3))
				samples = append(samples, series.Sample{T: at, V: float64(r.IntN(2))})
			}
			return samples
		}
		first, second := random(), random()
		byTime := map[series.Millis]float64{}
		for _, s := range first {
			byTime[s.T] = s.V
		}
		wantConflicts := 0
		for _, s := range second {
			if v, ok := byTime[s.T]; !ok {
				byTime[s.T] = s.V
			} else if v != s.V {
				wantConflicts++
			}
		}
		var want []series.Sample
		for at, v := range byTime {
			want = append(want, series.Sample{T: at, V: v})
		}
		slices.SortFunc(want, func(a, b series.Sample) int { return int(a.T - b.T) })
		got, conflicts := Merge(nil, first, second)
		sameSamples(t, got, want)
		if conflicts != wantConflicts {
			t.Errorf("seed %d: %d conflicts, want %d", seed, conflicts, wantConflicts)
		}
	}
}

func TestJoin(t *testing.T) {
	at := func(times ...series.Millis) (s []series.Sample) {
		for _, tm := range times {
			s = append(s, series.Sample{T: tm, V: float64(len(s))})
		}
		return s
	}
	for _, c := range []struct {
		name             string
		kept, old, added []series.Sample
		want             []series.Millis
	}{
		{"nothing before", nil, nil, at(1, 2), []series.Millis{1, 2}},
		{"nothing added", nil, at(1, 2), nil, []series.Millis{1, 2}},
		{"later", nil, at(1, 2), at(3), []series.Millis{1, 2, 3}},
		{"earlier", at(9), at(3, 4), at(1, 2), []series.Millis{9, 1, 2, 3, 4}},
		{"mixed, one twice", at(9), at(1, 3, 5), at(2, 3, 6), []series.Millis{9, 1, 2, 3, 5, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := append(append(append([]series.Sample(nil), c.kept...), c.old...), c.added...)
			got := Join(dst, len(c.kept), len(c.kept)+len(c.old))
			var times []series.Millis
			for _, s := range got {
				times = append(times, s.T)
				if s.T == 3 && len(c.old) == 3 && s.V != 1 {
					t.Errorf("the first value of 3 does not stay: %v", got)
				}
			}
			if !slices.Equal(times, c.want) {
				t.Errorf("times %v, want %v", times, c.want)
			}
		})
	}
}
