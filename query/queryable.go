package query

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"daybook/internal/index"
	"daybook/internal/series"
)

// queryable is the storage that the PromQL engine sees.
type queryable struct{ *Reader }

// Querier implements storage.Queryable.
func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return querier{q.Reader, series.Millis(mint), series.Millis(maxt)}, nil
}

type querier struct {
	reader   *Reader
	from, to series.Millis
}

// Select implements storage.Querier. Samples are read when a series is iterated over, so that a query has no more of
// them in memory than the engine asks for.
func (q querier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found, err := q.reader.index.Select(ctx, matchers...)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	slices.SortFunc(found, func(a, b *index.Series) int { return labels.Compare(a.Labels, b.Labels) })
	set := &seriesSet{ctx: ctx, reader: q.reader, found: found, at: -1, from: q.from, to: q.to}
	if hints != nil {
		set.from, set.to = max(set.from, series.Millis(hints.Start)), min(set.to, series.Millis(hints.End))
	}
	return set
}

// LabelValues implements storage.Querier.
func (q querier) LabelValues(ctx context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values, err := q.reader.index.LabelValues(ctx, name, matchers...)
	return values, nil, err
}

// LabelNames implements storage.Querier.
func (q querier) LabelNames(ctx context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, err := q.reader.index.LabelNames(ctx, matchers...)
	return names, nil, err
}

// Close implements storage.Querier.
func (q querier) Close() error { return nil }

// seriesSet gives the series that were selected, sorted by labels.
type seriesSet struct {
	ctx      context.Context
	reader   *Reader
	found    []*index.Series
	at       int
	from, to series.Millis
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.found) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
func (s *seriesSet) At() storage.Series                { return &selected{s, s.found[s.at]} }

type selected struct {
	set   *seriesSet
	entry *index.Series
}

func (s *selected) Labels() labels.Labels { return s.entry.Labels }

// Iterator reads the series. An iterator handed in lends its memory.
func (s *selected) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	it, ok := old.(*iterator)
	if !ok {
		it = new(iterator)
	}
	it.at = -1
	it.samples, it.err = s.set.reader.samples(s.set.ctx, it.samples[:0], s.entry.ID, s.set.from, s.set.to)
	if it.err != nil && s.set.ctx.Err() == nil {
		it.err = tableError{it.err}
	}
	return it
}

// tableError is a failure of the table: to the engine and its callers a promql.ErrStorage, which by itself would hide
// what failed.
type tableError struct{ err error }

func (e tableError) Error() string   { return e.err.Error() }
func (e tableError) Unwrap() []error { return []error{promql.ErrStorage{Err: e.err}, e.err} }
