package index

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/index"

	"daybook/keys"
)

// Months is a range of months, both included.
type Months struct{ First, Last keys.Month }

// AllMonths are all that there are.
var AllMonths = Months{First: math.MinInt32, Last: math.MaxInt32}

// Select gives the series that have samples in the months and that all matchers match, in the order of their ids.
// Without matchers it gives all of the months.
func (x *Index) Select(ctx context.Context, in Months, matchers ...*labels.Matcher) ([]*Series, error) {
	var found []*Series
	periods, err := x.wholes(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, p := range periods {
		if found, err = x.selectFrom(ctx, p, found, matchers); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b *Series) int { return a.ID.Compare(b.ID) })
	return slices.Compact(found), nil
}

// Named is how many series of a metric there are in a month, as far as it is in memory.
func (x *Index) Named(month keys.Month, name string) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.periods[month]; p != nil {
		return p.named[name]
	}
	return 0
}

// wholes gives the periods of the months, which are loaded where they are not in memory.
func (x *Index) wholes(ctx context.Context, in Months) (periods []*period, err error) {
	for _, m := range x.months(in) {
		p, err := x.wholePeriod(ctx, m)
		if err != nil {
			return nil, err
		}
		periods = append(periods, p)
	}
	return periods, nil
}

// months are those of the range that the catalogue or the head has series in, the earliest first.
func (x *Index) months(in Months) (all []keys.Month) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all = slices.AppendSeq(slices.Clone(x.listed), maps.Keys(x.periods))
	all = slices.DeleteFunc(all, func(m keys.Month) bool { return m < in.First || m > in.Last })
	slices.Sort(all)
	return slices.Compact(all)
}

// selectFrom appends the series of a period that all matchers match.
func (x *Index) selectFrom(ctx context.Context, from *period, found []*Series, matchers []*labels.Matcher) ([]*Series, error) {
	// The lists of several labels are looked up one after the other. A series added meanwhile may be in the list of
	// those wanted and not yet in the list of those to take away, so those added from now on are left out.
	x.mu.RLock()
	all := from.byRef
	x.mu.RUnlock()
	p := from.matchingAll(ctx, matchers)
	for n := 0; p.Next() && p.At() <= storage.SeriesRef(len(all)); n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found = append(found, all[p.At()-1])
	}
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("looking up %v: %w", matchers, err)
	}
	return found, nil
}

// matchingAll intersects what the matchers ask for. A matcher that an absent label satisfies too cannot be looked up;
// what it does not match is taken away instead. No series has a label without a name, which in MemPostings stands for all.
func (p *period) matchingAll(ctx context.Context, matchers []*labels.Matcher) index.Postings {
	var want, without []index.Postings
	for _, m := range matchers {
		switch {
		case m.Name == "" && m.Matches(""):
		case m.Name == "":
			return index.EmptyPostings()
		case !m.Matches(""):
			want = append(want, p.matching(ctx, m))
		case m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual || m.Value != ".*":
			without = append(without, p.notMatching(ctx, m))
		}
	}
	if len(want) == 0 {
		want = append(want, p.postings.All())
	}
	found := index.Intersect(want...)
	for _, p := range without {
		found = index.Without(found, p)
	}
	return found
}

// matching are the series whose label has a value that m matches.
func (p *period) matching(ctx context.Context, m *labels.Matcher) index.Postings {
	switch {
	case m.Type == labels.MatchEqual:
		return p.postings.Postings(ctx, m.Name, m.Value)
	case m.Type == labels.MatchNotEqual && m.Value == "", m.Type == labels.MatchRegexp && m.Value == ".+":
		return p.postings.PostingsForAllLabelValues(ctx, m.Name)
	case m.Type == labels.MatchRegexp && len(m.SetMatches()) > 0:
		values := slices.Clone(m.SetMatches())
		slices.Sort(values)
		return p.postings.Postings(ctx, m.Name, slices.Compact(values)...)
	}
	return p.postings.PostingsForLabelMatching(ctx, m.Name, m.Matches)
}

// notMatching are the series whose label has a value that m does not match.
func (p *period) notMatching(ctx context.Context, m *labels.Matcher) index.Postings {
	switch m.Type {
	case labels.MatchNotEqual:
		return p.postings.Postings(ctx, m.Name, m.Value)
	case labels.MatchEqual: // with "", or it would not match the empty string
		return p.postings.PostingsForAllLabelValues(ctx, m.Name)
	}
	return p.postings.PostingsForLabelMatching(ctx, m.Name, func(v string) bool { return !m.Matches(v) })
}
