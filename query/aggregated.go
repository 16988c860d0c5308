package query

import (
	"errors"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"daybook/internal/series"
	"daybook/internal/store"
)

// errHistograms says that there are native histograms among what is to be aggregated: that is left to the engine.
var errHistograms = errors.New("native histograms are aggregated by the engine")

// groupedSelection is a selection whose series are aggregated while they are read.
type groupedSelection struct {
	*selection
	*aggregation
	groups []*group // in the order in which the series come
	of     []*group // of each series
}

// grouped finds the groups of a selection. It gives nil where the engine is to aggregate: where there are no steps, where
// groups are nearly as many as series, and where the engine would refuse so many samples.
func (a *aggregation) grouped(s *selection) *groupedSelection {
	steps := stepsOf(s.plan.span)
	if a == nil || steps == 0 || int64(len(s.found)) > int64(s.reader.cfg.MaxSamples)/steps {
		return nil
	}
	g := &groupedSelection{selection: s, aggregation: a, of: make([]*group, len(s.found))}
	known := map[string]*group{}
	builder, key := labels.NewBuilder(labels.EmptyLabels()), []byte(nil)
	for i, one := range s.found {
		ls := a.labels(builder, one.Labels)
		key = ls.Bytes(key)
		if known[string(key)] == nil {
			if 2*len(g.groups) >= len(s.found) {
				return nil
			}
			found := &group{labels: ls, cells: make([]cell, steps)}
			known[string(key)] = found
			g.groups = append(g.groups, found)
		}
		g.of[i] = known[string(key)]
		g.of[i].series++
	}
	return g
}

// aggregate reads all series and gives the groups, as series with a sample at each step.
func (g *groupedSelection) aggregate() (storage.SeriesSet, error) {
	column := make([]float64, stepsOf(g.plan.span))
	for i := range g.found {
		run, err := g.run(i)
		if err != nil {
			return nil, err
		}
		if len(run.Histograms) > 0 {
			return nil, errHistograms
		}
		atSteps(column, run.Floats, g.plan.span)
		g.add(g.of[i], column)
		g.reader.recycle(run)
	}
	return &groupSet{groupedSelection: g, at: -1}, nil
}

// stepsOf is how many times a span looks at, 0 where it does not look for the newest sample at each.
func stepsOf(p store.Span) int64 {
	if p.Step == 0 || !p.Newest || p.To < p.First {
		return 0
	}
	return int64((p.To-p.First)/p.Step) + 1
}

// atSteps fills a column with the values that a series has at the steps of a span.
func atSteps(column []float64, samples []series.Sample, p store.Span) {
	i, at := 0, p.First
	for n := range column {
		for i < len(samples) && samples[i].T <= at {
			i++
		}
		column[n] = absent
		if i > 0 && samples[i-1].T > at-p.Window {
			column[n] = samples[i-1].V
		}
		at += p.Step
	}
}

// groupSet goes over the groups.
type groupSet struct {
	*groupedSelection
	at int
}

func (s *groupSet) Next() bool                        { s.at++; return s.at < len(s.groups) }
func (s *groupSet) Err() error                        { return nil }
func (s *groupSet) Warnings() annotations.Annotations { return nil }
func (s *groupSet) At() storage.Series                { return &groupSeries{s.groupedSelection, s.groups[s.at]} }

type groupSeries struct {
	*groupedSelection
	group *group
}

func (s *groupSeries) Labels() labels.Labels { return s.group.labels }

// Iterator gives the results of the group.
func (s *groupSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &iterator{at: -1, samples: s.samples(s.group, s.plan.span.First, s.plan.span.Step)}
}
