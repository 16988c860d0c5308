package crash

import (
	"math"
	"testing"
	"time"
)

// TestCompare sees that the comparison, on which all other tests stand, finds each kind of wrong.
func TestCompare(t *testing.T) {
	base := time.Now()
	l := newLedger()
	k := l.add("crash_compare", 1, base, base, time.Second)[0] // its values are counts
	for n := range 4 {
		k.at(base.Add(time.Duration(n) * time.Second))
	}
	for i := range 3 {
		k.sent[i].must = true // the last one was never acknowledged
	}
	all := func() (points []point) {
		for _, s := range k.sent {
			points = append(points, point{s.t, s.v})
		}
		return points
	}
	for _, c := range []struct {
		name   string
		change func(p []point) []point
		want   difference
	}{
		{"all there", func(p []point) []point { return p }, difference{}},
		{"without what was not acknowledged", func(p []point) []point { return p[:3] }, difference{}},
		{"the first gone", func(p []point) []point { return p[1:] }, difference{lost: 1}},
		{"one between gone", func(p []point) []point { return append(p[:1], p[2:]...) }, difference{lost: 1}},
		{"all gone", func([]point) []point { return nil }, difference{lost: 3}},
		{"one bit", func(p []point) []point {
			p[1].v = math.Float64frombits(math.Float64bits(p[1].v) ^ 1)
			return p
		}, difference{altered: 1}},
		{"one twice", func(p []point) []point { return append(p, p[3]) }, difference{twice: 1}},
		{"one more", func(p []point) []point { return append(p, point{p[3].t + 1, 0}) }, difference{invented: 1}},
		{"another time", func(p []point) []point { p[0].t++; return p }, difference{lost: 1, invented: 1}},
	} {
		got := l.compare(map[string][]point{k.key: c.change(all())})
		if got.lost != c.want.lost || got.altered != c.want.altered || got.twice != c.want.twice || got.invented != c.want.invented {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := l.compare(map[string][]point{k.key: all(), "another": nil}); got.invented != 1 {
		t.Errorf("a series that was never sent: got %+v", got)
	}
}
