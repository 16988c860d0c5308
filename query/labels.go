package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/keys"
)

// ErrBadQuery says that what was asked cannot be understood.
var ErrBadQuery = errors.New("bad query")

// ErrTooMuch says that a query would take more than the configuration allows.
var ErrTooMuch = errors.New("the query is too large")

const metricName = model.MetricNameLabel

// Selectors parses match[] parameters. Each must have a matcher that does not match the empty string, as otherwise it
// selects everything.
func (r *Reader) Selectors(selectors []string) ([][]*labels.Matcher, error) {
	sets, err := r.parser.ParseMetricSelectors(selectors)
	if err != nil {
		return nil, fmt.Errorf("%w: invalid parameter \"match[]\": %w", ErrBadQuery, err)
	}
	for i, set := range sets {
		if !slices.ContainsFunc(set, func(m *labels.Matcher) bool { return !m.Matches("") }) {
			return nil, fmt.Errorf("%w: invalid parameter \"match[]\": %s must contain at least one non-empty matcher", ErrBadQuery, selectors[i])
		}
	}
	return sets, nil
}

// Series gives the series that any of the matcher sets matches, sorted by labels. Those of the months from..to count,
// whether they have samples just then or not.
func (r *Reader) Series(ctx context.Context, sets [][]*labels.Matcher, from, to series.Millis) ([]*index.Series, error) {
	var all []*index.Series
	for _, set := range sets {
		found, err := r.index.Select(ctx, r.within(from, to), set...)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b *index.Series) int { return labels.Compare(a.Labels, b.Labels) })
	return slices.Compact(all), nil
}

// LabelNames gives the names of the labels of the series that any of the sets matches, sorted; of all series where
// there is no set.
func (r *Reader) LabelNames(ctx context.Context, sets [][]*labels.Matcher, from, to series.Millis) ([]string, error) {
	return union(sets, func(set []*labels.Matcher) ([]string, error) {
		return r.index.LabelNames(ctx, r.within(from, to), set...)
	})
}

// LabelValues gives the values of a label; see LabelNames.
func (r *Reader) LabelValues(ctx context.Context, name string, sets [][]*labels.Matcher, from, to series.Millis) ([]string, error) {
	return union(sets, func(set []*labels.Matcher) ([]string, error) {
		return r.index.LabelValues(ctx, r.within(from, to), name, set...)
	})
}

// Always is all of time.
const (
	AlwaysFrom series.Millis = math.MinInt64
	AlwaysTo   series.Millis = math.MaxInt64
)

// Cardinality counts the series of this month, and names what most of them have; so many of each kind.
func (r *Reader) Cardinality(most int) index.Cardinality {
	return r.index.Cardinality(keys.MonthOf(series.MillisOf(r.cfg.Now()).Day()), most)
}

func union(sets [][]*labels.Matcher, get func([]*labels.Matcher) ([]string, error)) ([]string, error) {
	if len(sets) == 0 {
		return get(nil)
	}
	var all []string
	for _, set := range sets {
		values, err := get(set)
		if err != nil {
			return nil, err
		}
		all = append(all, values...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
