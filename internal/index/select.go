package index

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/index"
)

// Select gives the series that all matchers match, in the order in which they were added. Without matchers it gives
// all series.
func (x *Index) Select(ctx context.Context, matchers ...*labels.Matcher) ([]*Series, error) {
	// The lists of several labels are looked up one after the other. A series added meanwhile may be in the list of
	// those wanted and not yet in the list of those to take away, so those added from now on are left out.
	last := storage.SeriesRef(x.Len())
	p := x.postingsFor(ctx, matchers)
	var found []*Series
	for p.Next() && p.At() <= last {
		if len(found)%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found = append(found, x.at(p.At()))
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("looking up %v: %w", matchers, err)
	}
	return found, nil
}

// postingsFor intersects what the matchers ask for. A matcher that an absent label satisfies too cannot be looked up;
// what it does not match is taken away instead.
func (x *Index) postingsFor(ctx context.Context, matchers []*labels.Matcher) index.Postings {
	var want, without []index.Postings
	for _, m := range matchers {
		switch {
		case !m.Matches(""):
			want = append(want, x.matching(ctx, m))
		case m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual || m.Value != ".*":
			without = append(without, x.notMatching(ctx, m))
		}
	}
	if len(want) == 0 {
		want = append(want, x.postings.All())
	}
	found := index.Intersect(want...)
	for _, p := range without {
		found = index.Without(found, p)
	}
	return found
}

// matching are the series whose label has a value that m matches.
func (x *Index) matching(ctx context.Context, m *labels.Matcher) index.Postings {
	switch {
	case m.Type == labels.MatchEqual:
		return x.postings.Postings(ctx, m.Name, m.Value)
	case m.Type == labels.MatchNotEqual && m.Value == "", m.Type == labels.MatchRegexp && m.Value == ".+":
		return x.postings.PostingsForAllLabelValues(ctx, m.Name)
	case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0:
		values := slices.Clone(m.SetMatches())
		slices.Sort(values)
		return x.postings.Postings(ctx, m.Name, slices.Compact(values)...)
	}
	return x.postings.PostingsForLabelMatching(ctx, m.Name, m.Matches)
}

// notMatching are the series whose label has a value that m does not match.
func (x *Index) notMatching(ctx context.Context, m *labels.Matcher) index.Postings {
	switch m.Type {
	case labels.MatchNotEqual:
		return x.postings.Postings(ctx, m.Name, m.Value)
	case labels.MatchEqual: // with "", or it would not match the empty string
		return x.postings.PostingsForAllLabelValues(ctx, m.Name)
	}
	return x.postings.PostingsForLabelMatching(ctx, m.Name, func(v string) bool { return !m.Matches(v) })
}

// LabelNames gives the names of the labels that the matched series have, sorted.
func (x *Index) LabelNames(ctx context.Context, matchers ...*labels.Matcher) ([]string, error) {
	if len(matchers) == 0 {
		names := x.postings.LabelNames()
		slices.Sort(names)
		return names, nil
	}
	return x.collect(ctx, matchers, func(s *Series, add func(string)) {
		s.Labels.Range(func(l labels.Label) { add(l.Name) })
	})
}

// LabelValues gives the values that a label has in the matched series, sorted.
func (x *Index) LabelValues(ctx context.Context, name string, matchers ...*labels.Matcher) ([]string, error) {
	if len(matchers) == 0 {
		values := slices.Clone(x.postings.LabelValues(ctx, name, nil))
		slices.Sort(values)
		return values, nil
	}
	return x.collect(ctx, matchers, func(s *Series, add func(string)) {
		if v := s.Labels.Get(name); v != "" {
			add(v)
		}
	})
}

func (x *Index) collect(ctx context.Context, matchers []*labels.Matcher, from func(*Series, func(string))) ([]string, error) {
	found, err := x.Select(ctx, matchers...)
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
