package index

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
)

// LabelNames gives the names of the labels that the matched series of the months have, sorted.
func (x *Index) LabelNames(ctx context.Context, in Months, matchers ...*labels.Matcher) ([]string, error) {
	if len(matchers) == 0 {
		return x.union(ctx, in, func(p *period) []string { return p.postings.LabelNames() })
	}
	return x.collect(ctx, in, matchers, func(s *Series, add func(string)) {
		s.Labels.Range(func(l labels.Label) { add(l.Name) })
	})
}

// LabelValues gives the values that a label has in the matched series of the months, sorted.
func (x *Index) LabelValues(ctx context.Context, in Months, name string, matchers ...*labels.Matcher) ([]string, error) {
	if len(matchers) == 0 {
		return x.union(ctx, in, func(p *period) []string { return p.postings.LabelValues(ctx, name, nil) })
	}
	return x.collect(ctx, in, matchers, func(s *Series, add func(string)) {
		if v := s.Labels.Get(name); v != "" {
			add(v)
		}
	})
}

// union puts what the periods of the months have together, each once.
func (x *Index) union(ctx context.Context, in Months, of func(*period) []string) ([]string, error) {
	periods, err := x.wholes(ctx, in)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range periods {
		all = append(all, of(p)...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (x *Index) collect(ctx context.Context, in Months, matchers []*labels.Matcher, from func(*Series, func(string))) ([]string, error) {
	found, err := x.Select(ctx, in, matchers...)
	if err != nil {
		return nil, err
	}
	seen := map[string]struct{}{}
	for _, s := range found {
		from(s, func(v string) { seen[v] = struct{}{} })
	}
	all := make([]string, 0, len(seen))
	for v := range seen {
		all = append(all, v)
	}
	slices.Sort(all)
	return all, nil
}
