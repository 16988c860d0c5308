package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// Run is where what is read of one series goes: ascending, each time once.
type Run struct {
	Floats     []series.Sample
	Histograms []series.Histogram
	Exemplars  []series.Exemplar
}

// Reset empties the run and keeps its memory.
func (r *Run) Reset() {
	clear(r.Histograms)
	clear(r.Exemplars)
	r.Floats, r.Histograms, r.Exemplars = r.Floats[:0], r.Histograms[:0], r.Exemplars[:0]
}

// Join adds what another run has. At equal times what was there stays.
func (r *Run) Join(more *Run) {
	floats, histograms, exemplars := len(r.Floats), len(r.Histograms), len(r.Exemplars)
	r.Floats = slot.Join(append(r.Floats, more.Floats...), 0, floats)
	if len(more.Histograms) > 0 {
		r.Histograms = slot.JoinHistograms(append(r.Histograms, more.Histograms...), 0, histograms)
	}
	if len(more.Exemplars) > 0 {
		r.Exemplars = slot.JoinExemplars(append(r.Exemplars, more.Exemplars...), 0, exemplars)
	}
}

// Group is some series of one bucket, and where to read each of them into.
type Group struct {
	Bucket int
	IDs    []series.ID // for Scan in ascending order
	Into   []*Run
	// Scan reads all rows from the first series to the last in one go. Otherwise each series is read by itself: that
	// is less where the bucket has many other series in between.
	Scan bool
}

// ReadRings adds what the rings hold of the hours from..to and the span wants: a point read for each series, or a scan.
// A series without a ring has nothing.
func (s *Store) ReadRings(ctx context.Context, g Group, from, to series.Hour, span Span) error {
	r := reading{store: s, ctx: ctx, table: s.cfg.Tables.Ring(), from: from, to: to, span: span}
	r.project = s.ringProject(from, to, span)
	if g.Scan {
		return r.scan(g, string(keys.SeriesRow(g.IDs[0])), string(keys.SeriesRow(g.IDs[len(g.IDs)-1])))
	}
	for i, id := range g.IDs {
		if err := r.point(id, keys.SeriesRow(id), g.Into[i]); err != nil {
			return err
		}
	}
	return nil
}

// manyPages is how many days make one range read of a series cheaper than a point read for each.
const manyPages = 3

// ReadPages adds what the pages of the days first..last hold of the hours before until and the span wants. The days lie in
// one month.
func (s *Store) ReadPages(ctx context.Context, g Group, first, last series.Day, until series.Hour, span Span) error {
	span.elsewhere = until.Start()
	r := reading{store: s, ctx: ctx, table: s.cfg.Tables.Pages(first), from: first.FirstHour(), to: min(last.FirstHour()+24, until) - 1, span: span}
	if g.Scan {
		return r.scan(g, string(keys.PageRow(g.IDs[0], last)), string(keys.PageRow(g.IDs[len(g.IDs)-1], first)))
	}
	var days []series.Day
	for d := first; d <= last; d++ {
		if span.WantsDay(d) {
			days = append(days, d)
		}
	}
	for i, id := range g.IDs {
		if err := r.pages(g, i, id, days); err != nil {
			return err
		}
	}
	return nil
}

// pages reads the days of one series.
func (r *reading) pages(g Group, i int, id series.ID, days []series.Day) error {
	n := len(days)
	if n >= manyPages && int(days[n-1]-days[0]) < 2*n {
		one := Group{Bucket: g.Bucket, IDs: g.IDs[i : i+1], Into: g.Into[i : i+1]}
		return r.scan(one, string(keys.PageRow(id, days[n-1])), string(keys.PageRow(id, days[0])))
	}
	for _, d := range days {
		if err := r.point(id, keys.PageRow(id, d), g.Into[i]); err != nil {
			return err
		}
	}
	return nil
}

// reading is one reading of rows of one table.
type reading struct {
	store    *Store
	ctx      context.Context
	table    string
	project  []string
	from, to series.Hour
	span     Span
}

// point reads one row.
func (r *reading) point(id series.ID, row keys.Row, into *Run) error {
	_, err := again(func() (struct{}, error) {
		e, err := r.store.get(r.ctx, r.table, id, row, r.project)
		if err == nil {
			err = r.decode(e, into)
		}
		return struct{}{}, err
	})
	return err
}

// scan reads the rows from..to (both included), and passes over those of series that are not in the group.
func (r *reading) scan(g Group, from, to string) error {
	q := table.Query{Partition: r.store.partition(g.Bucket), From: from, To: to + "-", Project: r.project}
	at := 0
	var entities []table.Entity // of the series at, the newest day first
	err := r.store.query(r.ctx, r.table, q, func(e table.Entity) error {
		id, ok := keys.OwnerOf(keys.Row(e.Key.Row))
		if !ok {
			return nil // a piece of a large slot
		}
		n, found := slices.BinarySearchFunc(g.IDs[at:], id, series.ID.Compare)
		if n > 0 {
			if err := r.settle(g, at, entities); err != nil {
				return err
			}
			at, entities = at+n, entities[:0]
		}
		if found {
			entities = append(entities, e)
		}
		return nil
	})
	if err == nil {
		err = r.settle(g, at, entities)
	}
	if err != nil {
		return fmt.Errorf("reading rows %q to %q of table %q: %w", from, to, r.table, err)
	}
	return nil
}

// settle decodes the entities that were read of one series. One that was rewritten meanwhile is read again.
func (r *reading) settle(g Group, at int, entities []table.Entity) error {
	for _, e := range slices.Backward(entities) {
		err := r.decode(e, g.Into[at])
		if errors.Is(err, ErrDamaged) {
			err = r.point(g.IDs[at], keys.Row(e.Key.Row), g.Into[at])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decode adds to a run what is wanted of an entity's slots; with an error it adds nothing. Slots whose hour is not asked
// for, such as one of yesterday in a ring, are passed over.
func (r *reading) decode(e table.Entity, into *Run) error {
	kinds := r.span.kinds()
	slots, err := r.store.slotsOf(r.ctx, r.table, e, func(p keys.Property) bool { return slices.Contains(kinds, p.Kind) })
	if err != nil {
		return err
	}
	floats, histograms, exemplars := len(into.Floats), len(into.Histograms), len(into.Exemplars)
	decoded := 0
	for _, one := range slots {
		if !one.Day && (one.info.Start < r.from || one.info.Start > r.to) || !r.span.Wants(one.info.First, one.info.Last) {
			continue
		}
		decoded++
		if err := r.add(into, one, floats, histograms, exemplars); err != nil {
			into.Floats, into.Histograms, into.Exemplars = into.Floats[:floats], into.Histograms[:histograms], into.Exemplars[:exemplars]
			return fmt.Errorf("row %q of table %q, property %q: %w", e.Key.Row, r.table, one.name, err)
		}
	}
	table.CountSlots(r.ctx, decoded)
	into.Floats = slot.Join(into.Floats, 0, floats)
	into.Histograms = slot.JoinHistograms(into.Histograms, 0, histograms)
	into.Exemplars = slot.JoinExemplars(into.Exemplars, 0, exemplars)
	return nil
}

// add decodes a slot and merges it with what came from the same entity, which begins at the given places.
func (r *reading) add(into *Run, one stored, floats, histograms, exemplars int) (err error) {
	switch one.Kind {
	case slot.Floats:
		before := len(into.Floats)
		if into.Floats, err = slot.Decode(into.Floats, one.data); err == nil {
			into.Floats = slot.Join(r.span.Keep(into.Floats, before), floats, before)
		}
	case slot.Histograms:
		before := len(into.Histograms)
		if into.Histograms, err = slot.DecodeHistograms(into.Histograms, one.data); err == nil {
			into.Histograms = slot.JoinHistograms(r.span.KeepHistograms(into.Histograms, before), histograms, before)
		}
	case slot.Exemplars:
		before := len(into.Exemplars)
		if into.Exemplars, err = slot.DecodeExemplars(into.Exemplars, one.data); err == nil {
			into.Exemplars = slot.JoinExemplars(r.span.KeepExemplars(into.Exemplars, before), exemplars, before)
		}
	}
	return err
}
