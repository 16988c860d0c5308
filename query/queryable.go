package query

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
)

// queryable is the storage that the PromQL engine sees in one query.
type queryable struct {
	*Reader
	// steps says that selectors are looked at the query's own steps and at no other times, so that what lies between
	// need not be read. With a subquery it is not so.
	steps    bool
	lookback time.Duration
	explain  *Explanation // nil where nobody asked for one
	// around has for each selector, in the order in which the engine asks for them, the aggregation around it; nil where
	// none is to be done beforehand.
	around []*aggregation
}

// Querier implements storage.Queryable.
func (q queryable) Querier(mint, maxt int64) (storage.Querier, error) {
	return &querier{queryable: q, from: series.Millis(mint), to: series.Millis(maxt)}, nil
}

type querier struct {
	queryable
	from, to series.Millis
	rows     atomic.Int64 // read so far
	asked    atomic.Int64 // selectors
}

// Select implements storage.Querier. What is not to be sorted comes in the order of its rows.
func (q *querier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	span := q.span(hints)
	found, err := q.index.Select(ctx, q.within(span.From, span.To), matchers...)
	if err != nil {
		return storage.ErrSeriesSet(storageError(ctx, err))
	}
	plan := q.plan(span)
	rows := plan.rows(found)
	if q.rows.Add(rows) > q.cfg.MaxRows {
		return storage.ErrSeriesSet(q.tooManyRows(q.rows.Load()))
	}
	s := q.selection(ctx, plan, found, sorted)
	grouped := q.nextAggregation(hints).grouped(s)
	q.explain.add(matchers, s, rows, grouped)
	if grouped == nil {
		return &seriesSet{selection: s, at: -1}
	}
	set, err := grouped.aggregate()
	switch {
	case errors.Is(err, errHistograms):
		return &seriesSet{selection: q.selection(ctx, plan, found, sorted), at: -1}
	case err != nil:
		return storage.ErrSeriesSet(storageError(ctx, err))
	}
	return set
}

// selection prepares the reading of what was found.
func (q *querier) selection(ctx context.Context, p plan, found []*index.Series, sorted bool) *selection {
	s := &selection{fetch: fetch{reader: q.Reader, plan: p}, ctx: ctx, found: found}
	if sorted {
		slices.SortFunc(found, func(a, b *index.Series) int { return labels.Compare(a.Labels, b.Labels) })
	} else {
		s.inRowOrder()
	}
	s.split()
	return s
}

// nextAggregation gives the aggregation around the selector that is asked for now.
func (q *querier) nextAggregation(hints *storage.SelectHints) *aggregation {
	n := int(q.asked.Add(1)) - 1
	if n >= len(q.around) || q.around[n] == nil || hints == nil || hints.Func != q.around[n].op.String() {
		return nil
	}
	return q.around[n]
}

// span is what a selector wants to see.
func (q *querier) span(hints *storage.SelectHints) store.Span {
	p := store.Span{From: q.from, To: q.to}
	if hints == nil {
		return p
	}
	p.From, p.To = max(p.From, series.Millis(hints.Start)), min(p.To, series.Millis(hints.End))
	step, window := series.Millis(hints.Step), series.Millis(hints.Range)
	if !q.steps || window >= step && step > 0 && window > 0 {
		return p
	}
	if step <= 0 {
		step = store.Once
	}
	if p.Newest = window == 0; p.Newest {
		window = series.Millis(q.lookback.Milliseconds())
	}
	p.First, p.Step, p.Window = series.Millis(hints.Start)+window-1, step, window
	return p
}

// inRowOrder sorts what was found as its rows are: those of a partition together, and in it those of a metric.
func (s *selection) inRowOrder() {
	bucket := s.reader.store.Bucket
	slices.SortFunc(s.found, func(a, b *index.Series) int {
		if n := bucket(a.ID) - bucket(b.ID); n != 0 {
			return n
		}
		return a.ID.Compare(b.ID)
	})
	s.chosen = map[uint32]int{}
	for _, one := range s.found {
		s.chosen[metricHash(one.ID)]++
	}
}

// LabelValues implements storage.Querier.
func (q *querier) LabelValues(ctx context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values, err := q.index.LabelValues(ctx, q.within(q.from, q.to), name, matchers...)
	return values, nil, err
}

// LabelNames implements storage.Querier.
func (q *querier) LabelNames(ctx context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, err := q.index.LabelNames(ctx, q.within(q.from, q.to), matchers...)
	return names, nil, err
}

// Close implements storage.Querier.
func (q *querier) Close() error { return nil }

// seriesSet goes over what was found.
type seriesSet struct {
	*selection
	at int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.found) }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
func (s *seriesSet) At() storage.Series                { return &selected{s.selection, s.at} }

type selected struct {
	*selection
	at int
}

func (s *selected) Labels() labels.Labels { return s.found[s.at].Labels }

// Iterator gives the samples of the series. An iterator handed in gives its memory back.
func (s *selected) Iterator(old chunkenc.Iterator) chunkenc.Iterator {
	it := new(iterator)
	switch old := old.(type) {
	case *iterator:
		it = old
		s.reader.recycle(old.run)
	case *mixed:
		s.reader.recycle(old.run)
	}
	run, err := s.run(s.at)
	if err == nil && len(run.Histograms) > 0 {
		return newMixed(run)
	}
	it.reset(run, storageError(s.ctx, err))
	return it
}

// storageError marks what the table could not do.
func storageError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return tableError{err}
}

// tableError is a failure of the table: to the engine and its callers a promql.ErrStorage, which by itself would hide
// what failed.
type tableError struct{ err error }

func (e tableError) Error() string   { return e.err.Error() }
func (e tableError) Unwrap() []error { return []error{promql.ErrStorage{Err: e.err}, e.err} }
