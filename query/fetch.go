package query

import (
	"context"
	"encoding/binary"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/keys"
)

// fetch is the reading of the series of one selector.
type fetch struct {
	reader *Reader
	plan   plan
	chosen map[uint32]int // how many series of a metric are selected, by the metric's hash; nil where that is not known
}

// read gives what the plan wants of some series, which stand in the order of their rows or in any other. The head is
// asked before the table, see Head, and rings before pages: what is overwritten there while this runs is in a page by
// then.
func (f *fetch) read(ctx context.Context, found []*index.Series) ([]*store.Run, error) {
	r := f.reader
	fresh, rings, all := r.runs(len(found)), r.runs(0), r.runs(len(found))
	defer r.recycle(fresh...)
	for i, s := range found {
		r.fresh(fresh[i], s.ID, f.plan.span)
	}
	if f.plan.ring {
		if rings = all; len(f.plan.months) > 0 {
			rings = r.runs(len(found))
			defer r.recycle(rings...)
		}
		if err := f.rings(ctx, found, rings); err != nil {
			return nil, err
		}
	}
	for _, month := range f.plan.months {
		if err := f.pages(ctx, found, all, month); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if f.plan.ring && len(f.plan.months) > 0 {
			all[i].Join(rings[i])
		}
		all[i].Join(fresh[i])
	}
	return all, nil
}

// fresh gives what is in memory.
func (r *Reader) fresh(into *store.Run, id series.ID, span store.Span) {
	if span.Exemplars {
		into.Exemplars = r.head.Exemplars(into.Exemplars, id, span.From, span.To)
		return
	}
	into.Floats = span.Keep(r.head.Samples(into.Floats, id, span.From, span.To), 0)
	into.Histograms = span.KeepHistograms(r.head.Histograms(into.Histograms, id, span.From, span.To), 0)
}

func (f *fetch) rings(ctx context.Context, found []*index.Series, into []*store.Run) error {
	return f.groups(found, into, func(g store.Group, metric string) error {
		g.Scan = f.scans(g, metric)
		return f.reader.store.ReadRings(ctx, g, f.plan.from, f.plan.to, f.plan.span)
	})
}

// scans tells whether rings are to be scanned: their table has all series of late.
func (f *fetch) scans(g store.Group, metric string) bool {
	return f.most(g, keys.MonthOf(f.plan.to.Day()), metric)
}

// pages reads the pages of a month of those series that have any.
func (f *fetch) pages(ctx context.Context, found []*index.Series, into []*store.Run, month pages) error {
	var some []*index.Series
	var runs []*store.Run
	for i, s := range found {
		if s.In(month.month) {
			some, runs = append(some, s), append(runs, into[i])
		}
	}
	return f.groups(some, runs, func(g store.Group, metric string) error {
		g.Scan = 2*month.days >= month.written && f.most(g, month.month, metric)
		return f.reader.store.ReadPages(ctx, g, month.first, month.last, f.plan.until, f.plan.span)
	})
}

// groups calls each for runs of series that are of one metric and lie in one bucket.
func (f *fetch) groups(found []*index.Series, into []*store.Run, each func(g store.Group, metric string) error) error {
	var g store.Group
	for i, s := range found {
		g.Bucket = f.reader.store.Bucket(s.ID)
		g.IDs, g.Into = append(g.IDs, s.ID), append(g.Into, into[i])
		if i+1 < len(found) && f.reader.store.Bucket(found[i+1].ID) == g.Bucket && metricHash(found[i+1].ID) == metricHash(s.ID) {
			continue
		}
		if err := each(g, s.Labels.Get(metricName)); err != nil {
			return err
		}
		g.IDs, g.Into = g.IDs[:0], g.Into[:0]
	}
	return nil
}

// most tells whether a scan over the rows of a metric in a bucket gives mostly rows of the group.
func (f *fetch) most(g store.Group, month keys.Month, metric string) bool {
	return len(g.IDs) > 1 && f.chosen != nil && 2*f.chosen[metricHash(g.IDs[0])] >= f.reader.index.Named(month, metric)
}

func metricHash(id series.ID) uint32 { return binary.BigEndian.Uint32(id[:]) }

// runs lends memory for reading some series.
func (r *Reader) runs(n int) []*store.Run {
	all := make([]*store.Run, n)
	for i := range all {
		all[i] = r.spare.Get().(*store.Run)
	}
	return all
}

// recycle takes memory back that nobody uses any more.
func (r *Reader) recycle(runs ...*store.Run) {
	for _, run := range runs {
		if run != nil { // it could not be read
			run.Reset()
			r.spare.Put(run)
		}
	}
}
