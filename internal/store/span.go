package store

import (
	"math"

	"daybook/internal/series"
	"daybook/internal/slot"
)

// Span says which samples of a range of time are wanted: all of them, or those that lie shortly before some evenly
// spaced times, which is what a PromQL query of many steps looks at.
type Span struct {
	From, To series.Millis // both included

	// With a Step, only the samples of t-Window < T <= t are wanted, for the times t = First, First+Step, ... up to To.
	First, Step, Window series.Millis
	Newest              bool // of those only the newest before each t

	Exemplars bool // the exemplars of this time are wanted, and no samples

	elsewhere series.Millis // what lies from there on is read elsewhere; 0 for nothing. Steps go on to To
}

// kinds are the slots that hold what is wanted.
func (p Span) kinds() []slot.Kind {
	if p.Exemplars {
		return exemplarKinds
	}
	return sampleKinds
}

var (
	sampleKinds   = []slot.Kind{slot.Floats, slot.Histograms}
	exemplarKinds = []slot.Kind{slot.Exemplars}
)

// Once is a Step for a single time.
const Once = series.Millis(math.MaxInt64 / 4)

// Wants tells whether anything between two times (both included) is wanted.
func (p Span) Wants(from, to series.Millis) bool {
	from, to = max(from, p.From), min(to, p.To)
	if from > to {
		return false
	}
	if p.Step == 0 {
		return true
	}
	t := p.after(from)
	return t <= p.To && t-p.Window < to
}

// wantsHour is Wants for a whole hour.
func (p Span) wantsHour(h series.Hour) bool { return p.Wants(h.Start(), (h+1).Start()-1) }

// WantsDay is Wants for a whole day.
func (p Span) WantsDay(d series.Day) bool { return p.Wants(d.Start(), (d+1).Start()-1) }

// after is the first of the evenly spaced times that is not before t.
func (p Span) after(t series.Millis) series.Millis {
	if t <= p.First {
		return p.First
	}
	return p.First + (t-p.First+p.Step-1)/p.Step*p.Step
}

// Keep removes from samples[from:], which are in ascending order, what is not wanted.
func (p Span) Keep(samples []series.Sample, from int) []series.Sample {
	return keep(p, samples, from, func(s *series.Sample) series.Millis { return s.T })
}

// KeepHistograms is Keep for native histograms.
func (p Span) KeepHistograms(all []series.Histogram, from int) []series.Histogram {
	return keep(p, all, from, func(h *series.Histogram) series.Millis { return h.T })
}

// KeepExemplars is Keep for exemplars.
func (p Span) KeepExemplars(all []series.Exemplar, from int) []series.Exemplar {
	return keep(p, all, from, func(e *series.Exemplar) series.Millis { return e.T })
}

func keep[T any](p Span, all []T, from int, at func(*T) series.Millis) []T {
	n := len(all)
	for n > from && (at(&all[n-1]) > p.To || p.elsewhere != 0 && at(&all[n-1]) >= p.elsewhere) {
		n--
	}
	if p.Step > 0 {
		return keepSteps(p, all[:n], from, at)
	}
	first := from
	for first < n && at(&all[first]) < p.From {
		first++
	}
	if first == from {
		return all[:n]
	}
	return all[:from+copy(all[from:], all[first:n])]
}

// keepSteps removes what lies before no step.
func keepSteps[T any](p Span, all []T, from int, at func(*T) series.Millis) []T {
	i, n := from, len(all)
	for i < n && at(&all[i]) < p.From {
		i++
	}
	kept := from
	end := series.Millis(math.MinInt64) // the step before
	for between := 1; i < n; {
		if t := at(&all[i]); t > end+p.Step {
			end = p.after(t)
		} else {
			end += p.Step
		}
		if end > p.To {
			break
		}
		last := lastUpTo(all, i, min(i+between, n)-1, end, at)
		between = last + 1 - i
		if p.Newest {
			i = last
		}
		for ; i <= last; i++ {
			if at(&all[i]) > end-p.Window {
				all[kept] = all[i]
				kept++
			}
		}
	}
	return all[:kept]
}

// lastUpTo finds the last that is not after end, which all[first] is not, searching around a guess.
func lastUpTo[T any](all []T, first, guess int, end series.Millis, at func(*T) series.Millis) int {
	for guess > first && at(&all[guess]) > end {
		guess--
	}
	for guess+1 < len(all) && at(&all[guess+1]) <= end {
		guess++
	}
	return guess
}
