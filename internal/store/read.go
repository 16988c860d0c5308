package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// reader is how slots of one kind are read.
type reader[T any] struct {
	kind   slot.Kind
	decode func(dst []T, b []byte) ([]T, error)
	join   func(dst []T, base, before int) []T
}

var (
	floats     = reader[series.Sample]{slot.Floats, slot.Decode, slot.Join}
	histograms = reader[series.Histogram]{slot.Histograms, slot.DecodeHistograms, slot.JoinHistograms}
	exemplars  = reader[series.Exemplar]{slot.Exemplars, slot.DecodeExemplars, slot.JoinExemplars}
)

// RingSamples appends to dst the samples of the hours from..to (both included) that the ring of a series holds: one
// point read. A series without a ring has none.
func (s *Store) RingSamples(ctx context.Context, dst []series.Sample, id series.ID, from, to series.Hour) ([]series.Sample, error) {
	return fromRing(ctx, s, floats, dst, id, from, to)
}

// RingHistograms is RingSamples for native histograms.
func (s *Store) RingHistograms(ctx context.Context, dst []series.Histogram, id series.ID, from, to series.Hour) ([]series.Histogram, error) {
	return fromRing(ctx, s, histograms, dst, id, from, to)
}

// RingExemplars is RingSamples for exemplars.
func (s *Store) RingExemplars(ctx context.Context, dst []series.Exemplar, id series.ID, from, to series.Hour) ([]series.Exemplar, error) {
	return fromRing(ctx, s, exemplars, dst, id, from, to)
}

func fromRing[T any](ctx context.Context, s *Store, r reader[T], dst []T, id series.ID, from, to series.Hour) ([]T, error) {
	return again(func() ([]T, error) {
		e, err := s.get(ctx, s.cfg.Tables.Ring(), id, keys.SeriesRow(id), s.ringProject(r.kind, from, to))
		if err != nil {
			return dst, err
		}
		return fromEntity(ctx, s, r, dst, s.cfg.Tables.Ring(), e, from, to)
	})
}

// PageSamples appends to dst the samples of the hours from..to that the page of a day holds: one point read. Others of
// the day may come with them.
func (s *Store) PageSamples(ctx context.Context, dst []series.Sample, id series.ID, day series.Day, from, to series.Hour) ([]series.Sample, error) {
	return fromPage(ctx, s, floats, dst, id, day, from, to)
}

// PageHistograms is PageSamples for native histograms.
func (s *Store) PageHistograms(ctx context.Context, dst []series.Histogram, id series.ID, day series.Day, from, to series.Hour) ([]series.Histogram, error) {
	return fromPage(ctx, s, histograms, dst, id, day, from, to)
}

// PageExemplars is PageSamples for exemplars.
func (s *Store) PageExemplars(ctx context.Context, dst []series.Exemplar, id series.ID, day series.Day, from, to series.Hour) ([]series.Exemplar, error) {
	return fromPage(ctx, s, exemplars, dst, id, day, from, to)
}

func fromPage[T any](ctx context.Context, s *Store, r reader[T], dst []T, id series.ID, day series.Day, from, to series.Hour) ([]T, error) {
	name := s.cfg.Tables.Pages(day)
	return again(func() ([]T, error) {
		e, err := s.get(ctx, name, id, keys.PageRow(id, day), nil)
		if err != nil {
			return dst, err
		}
		return fromEntity(ctx, s, r, dst, name, e, from, to)
	})
}

// attempts is how often a read is done that finds a slot damaged.
const attempts = 3

// again repeats a read that found a slot damaged: a large one lies in several entities, and may have been rewritten
// between the reads of these.
func again[A any](read func() (A, error)) (got A, err error) {
	for range attempts {
		if got, err = read(); !errors.Is(err, ErrDamaged) {
			break
		}
	}
	return got, err
}

// OwnRing gives what this writer has in the ring of a series, of all kinds: a slot for each hour and kind, oldest first.
func (s *Store) OwnRing(ctx context.Context, id series.ID) ([]HourSlot, error) {
	return again(func() ([]HourSlot, error) {
		e, err := s.get(ctx, s.cfg.Tables.Ring(), id, keys.SeriesRow(id), nil)
		if err != nil {
			return nil, err
		}
		return s.ownHours(ctx, s.cfg.Tables.Ring(), e)
	})
}

// OwnPageHour gives this writer's slot of an hour and kind in the page of its day, nil where there is none. The day's
// own slot may hold samples of the hour too.
func (s *Store) OwnPageHour(ctx context.Context, id series.ID, h series.Hour, kind slot.Kind) ([]byte, error) {
	name, property := s.cfg.Tables.Pages(h.Day()), keys.HourProperty(kind, h, s.cfg.Writer)
	return again(func() ([]byte, error) {
		e, err := s.get(ctx, name, id, keys.PageRow(id, h.Day()), []string{property}) // an hour's slot is never split
		if err != nil {
			return nil, err
		}
		data, err := s.wholeValue(ctx, name, e, property)
		if err != nil {
			return nil, fmt.Errorf("reading hour %v of series %v: %w", h.Start().Time(), id, err)
		}
		return data, nil
	})
}

// get is a point read for which a missing entity is an empty one.
func (s *Store) get(ctx context.Context, name string, id series.ID, row keys.Row, project []string) (table.Entity, error) {
	key := s.key(id, row)
	e, err := s.svc.Get(ctx, name, key, project)
	if errors.Is(err, table.ErrNotFound) {
		return table.Entity{Key: key}, nil
	}
	if err != nil {
		return e, fmt.Errorf("reading row %q of table %q: %w", row, name, err)
	}
	return e, nil
}

// ringProject names the slots of a kind and of the hours, or gives nil where most of them are wanted anyway, or where a writer that
// Open has not seen may have come since.
func (s *Store) ringProject(kind slot.Kind, from, to series.Hour) (project []string) {
	if !s.cfg.Alone || to-from >= keys.RingSlots/2 {
		return nil
	}
	for h := from; h <= to; h++ {
		for _, w := range s.writers {
			project = append(project, keys.RingProperty(kind, h, w))
		}
	}
	return project
}

// stored is a slot as it lies in an entity.
type stored struct {
	keys.Property
	name string
	data []byte
	info slot.Info
}

// all is for slotsOf: every slot.
func all(keys.Property) bool { return true }

// own tells whether a property is this writer's.
func (s *Store) own(p keys.Property) bool { return p.Writer == s.cfg.Writer }

// foreign tells whether a property holds another writer's slot.
func (s *Store) foreign(p table.Property) bool {
	property, ok := keys.ParseProperty(p.Name)
	return ok && !s.own(property)
}

// slotsOf lists the wanted slots of an entity in the order in which their samples count: days before hours, and what
// began earlier first.
func (s *Store) slotsOf(ctx context.Context, name string, e table.Entity, want func(keys.Property) bool) ([]stored, error) {
	var found []stored
	for _, p := range e.Properties {
		property, ok := keys.ParseProperty(p.Name)
		if !ok || property.Part > 0 || len(p.Value) == 0 || !want(property) {
			continue
		}
		data, err := s.wholeValue(ctx, name, e, p.Name)
		if err != nil {
			return nil, fmt.Errorf("row %q of table %q: %w", e.Key.Row, name, err)
		}
		info, err := slot.Inspect(data)
		if err == nil && info.Kind != property.Kind {
			err = fmt.Errorf("%w: %v", slot.ErrKind, info.Kind)
		}
		if err != nil {
			return nil, fmt.Errorf("row %q of table %q, property %q: %w", e.Key.Row, name, p.Name, err)
		}
		found = append(found, stored{property, p.Name, data, info})
	}
	slices.SortStableFunc(found, func(a, b stored) int {
		if a.Day != b.Day {
			if a.Day {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.info.Start, b.info.Start)
	})
	return found, nil
}

// fromEntity merges the slots of an entity that lie in the hours from..to; others, such as a ring slot of yesterday,
// are passed over. A day's slot comes whole.
func fromEntity[T any](ctx context.Context, s *Store, r reader[T], dst []T, name string, e table.Entity, from, to series.Hour) ([]T, error) {
	slots, err := s.slotsOf(ctx, name, e, func(p keys.Property) bool { return p.Kind == r.kind })
	if err != nil {
		return dst, err
	}
	base := len(dst)
	for _, one := range slots {
		if !one.Day && (one.info.Start < from || one.info.Start > to) {
			continue
		}
		before := len(dst)
		if dst, err = r.decode(dst, one.data); err != nil {
			return dst, fmt.Errorf("row %q of table %q, property %q: %w", e.Key.Row, name, one.name, err)
		}
		dst = r.join(dst, base, before)
	}
	return dst, nil
}

func (s *Store) ownHours(ctx context.Context, name string, e table.Entity) ([]HourSlot, error) {
	slots, err := s.slotsOf(ctx, name, e, s.own)
	if err != nil {
		return nil, err
	}
	var own []HourSlot
	for _, one := range slots {
		if !one.Day {
			own = append(own, HourSlot{one.info.Start, one.Kind, one.data})
		}
	}
	return own, nil
}

// PagesSamples appends to dst the samples of the hours from..to that the pages of the days first..last hold, which lie
// in one month: one range read. Others of these days may come with them.
func (s *Store) PagesSamples(ctx context.Context, dst []series.Sample, id series.ID, first, last series.Day, from, to series.Hour) ([]series.Sample, error) {
	return fromPages(ctx, s, floats, dst, id, first, last, from, to)
}

// PagesHistograms is PagesSamples for native histograms.
func (s *Store) PagesHistograms(ctx context.Context, dst []series.Histogram, id series.ID, first, last series.Day, from, to series.Hour) ([]series.Histogram, error) {
	return fromPages(ctx, s, histograms, dst, id, first, last, from, to)
}

// PagesExemplars is PagesSamples for exemplars.
func (s *Store) PagesExemplars(ctx context.Context, dst []series.Exemplar, id series.ID, first, last series.Day, from, to series.Hour) ([]series.Exemplar, error) {
	return fromPages(ctx, s, exemplars, dst, id, first, last, from, to)
}

func fromPages[T any](ctx context.Context, s *Store, r reader[T], dst []T, id series.ID, first, last series.Day, from, to series.Hour) ([]T, error) {
	name := s.cfg.Tables.Pages(first)
	return again(func() ([]T, error) {
		pages, err := s.pagesBetween(ctx, name, id, first, last)
		if err != nil {
			return dst, err
		}
		all := dst
		for _, e := range slices.Backward(pages) {
			before := len(all)
			if all, err = fromEntity(ctx, s, r, all, name, e, from, to); err != nil {
				return dst, err
			}
			all = r.join(all, len(dst), before)
		}
		return all, nil
	})
}

// pagesBetween reads a series' pages in one table, the newest first.
func (s *Store) pagesBetween(ctx context.Context, name string, id series.ID, first, last series.Day) (pages []table.Entity, err error) {
	q := table.Query{
		Partition: s.partition(s.Bucket(id)),
		From:      string(keys.PageRow(id, last)),
		To:        string(keys.PageRow(id, first)) + "-", // behind the row, before what is spilled from it
	}
	err = s.query(ctx, name, q, func(e table.Entity) error {
		if len(e.Key.Row) == len(q.From) { // otherwise it is a piece of a large slot
			pages = append(pages, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading pages of series %v: %w", id, err)
	}
	return pages, nil
}
