package store_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"daybook/internal/series"
	"daybook/internal/store"
)

// wanted says of one time what a span says, in the plainest way.
func wanted(p store.Span, t series.Millis) bool {
	if t < p.From || t > p.To {
		return false
	}
	if p.Step == 0 {
		return true
	}
	for at := p.First; at <= p.To; at += p.Step {
		if t > at-p.Window && t <= at {
			return true
		}
	}
	return false
}

func randomSpan(r *rand.Rand) store.Span {
	p := store.Span{From: series.Millis(r.IntN(50) - 25)}
	p.To = p.From + series.Millis(r.IntN(60))
	switch r.IntN(3) {
	case 0:
		return p
	case 1:
		p.Step = series.Millis(1 + r.IntN(20))
	case 2:
		p.Step = store.Once
	}
	p.Window = series.Millis(1 + r.IntN(25))
	p.First = p.From + p.Window - 1
	p.Newest = r.IntN(2) == 0
	return p
}

// TestSpan compares with looking at each time.
func TestSpan(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		p := randomSpan(r)
		var samples []series.Sample
		for at := series.Millis(-40); at < 60; at++ {
			if r.IntN(3) > 0 {
				samples = append(samples, series.Sample{T: at, V: float64(at)})
			}
		}
		var want []series.Sample
		for _, s := range samples {
			if wanted(p, s.T) {
				want = append(want, s)
			}
		}
		before := []series.Sample{{T: -100}, {T: -99}}
		got := p.Keep(slices.Concat(before, samples), len(before))
		if !slices.Equal(got[:2], before) {
			t.Fatalf("%+v touched what stood before", p)
		}
		checkKept(t, p, got[2:], want)
		from := series.Millis(r.IntN(100) - 50)
		to := from + series.Millis(r.IntN(20))
		any := false
		for at := from; at <= to; at++ {
			any = any || wanted(p, at)
		}
		if got := p.Wants(from, to); got != any {
			t.Fatalf("%+v wants something of %d to %d: %v, want %v", p, from, to, got, any)
		}
	}
}

// checkKept wants all that is wanted, or with Newest what counts for each time, and nothing else.
func checkKept(t *testing.T, p store.Span, got, want []series.Sample) {
	t.Helper()
	if !p.Newest {
		if !slices.Equal(got, want) {
			t.Fatalf("%+v keeps %v, want %v", p, got, want)
		}
		return
	}
	newest := func(all []series.Sample, at series.Millis) (s series.Sample) {
		for _, one := range all {
			if one.T <= at && one.T > at-p.Window {
				s = one
			}
		}
		return s
	}
	for at := p.First; at <= p.To; at += p.Step {
		if newest(got, at) != newest(want, at) {
			t.Fatalf("%+v keeps %v: at %d that is %v, want %v", p, got, at, newest(got, at), newest(want, at))
		}
	}
	for _, s := range got {
		if !slices.Contains(want, s) {
			t.Fatalf("%+v keeps %v, which is not wanted", p, s)
		}
	}
	if steps := int((p.To-p.From)/p.Step) + 2; len(got) > steps {
		t.Fatalf("%+v keeps %d samples for %d steps", p, len(got), steps)
	}
}

// Pages are read of the hours before the ring's only; the steps behind them still look back into those.
func TestPagesUntil(t *testing.T) {
	const day, until = series.Day(100), series.Hour(100*24 + 10)
	s := open(t, inMemory(t), writer("a"), day)
	id, _ := named("x")
	now := (day + 1).Start()
	var want []series.Sample
	for h := day.FirstHour() + 8; h < day.FirstHour()+12; h++ {
		samples := every(h, 60)
		ok(t, put(s, now, id, h, samples))
		if h < until {
			want = append(want, samples...)
		}
	}
	ok(t, closeDays(t.Context(), s, day))
	last := want[len(want)-1]
	for _, c := range []struct {
		what string
		span store.Span
		want []series.Sample
	}{
		{"all", store.Span{From: day.Start(), To: now}, want},
		{"the newest before a step in the ring's hours", store.Span{
			From: last.T - 10, To: now, First: until.Start() + 5, Step: store.Once, Window: until.Start() + 5 - last.T + 1, Newest: true,
		}, want[len(want)-1:]},
	} {
		var run store.Run
		g := store.Group{Bucket: s.Bucket(id), IDs: []series.ID{id}, Into: []*store.Run{&run}}
		ok(t, s.ReadPages(t.Context(), g, day, day, until, c.span))
		same(t, c.what, run.Floats, c.want)
	}
}
