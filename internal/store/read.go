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

// RingSamples appends to dst the samples of the hours from..to (both included) that the ring of a series holds: one
// point read. A series without a ring has none.
func (s *Store) RingSamples(ctx context.Context, dst []series.Sample, id series.ID, from, to series.Hour) ([]series.Sample, error) {
	return again(func() ([]series.Sample, error) {
		e, err := s.get(ctx, s.cfg.Tables.Ring(), id, keys.SeriesRow(id), s.ringProject(from, to))
		if err != nil {
			return dst, err
		}
		return s.samples(ctx, dst, s.cfg.Tables.Ring(), e, from, to)
	})
}

// PageSamples appends to dst the samples of the hours from..to that the page of a day holds: one point read. Others of
// the day may come with them.
func (s *Store) PageSamples(ctx context.Context, dst []series.Sample, id series.ID, day series.Day, from, to series.Hour) ([]series.Sample, error) {
	name := s.cfg.Tables.Pages(day)
	return again(func() ([]series.Sample, error) {
		e, err := s.get(ctx, name, id, keys.PageRow(id, day), nil)
		if err != nil {
			return dst, err
		}
		return s.samples(ctx, dst, name, e, from, to)
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

// OwnRing gives what this writer has in the ring of a series: a slot for each hour, oldest first.
func (s *Store) OwnRing(ctx context.Context, id series.ID) ([]HourSlot, error) {
	return again(func() ([]HourSlot, error) {
		e, err := s.get(ctx, s.cfg.Tables.Ring(), id, keys.SeriesRow(id), nil)
		if err != nil {
			return nil, err
		}
		return s.ownHours(ctx, s.cfg.Tables.Ring(), e)
	})
}

// OwnPageHour gives this writer's slot of an hour in the page of its day, nil where there is none. The day's own
// slot may hold samples of the hour too.
func (s *Store) OwnPageHour(ctx context.Context, id series.ID, h series.Hour) ([]byte, error) {
	name, property := s.cfg.Tables.Pages(h.Day()), keys.HourProperty(h, s.cfg.Writer)
	return again(func() ([]byte, error) {
		e, err := s.get(ctx, name, id, keys.PageRow(id, h.Day()), []string{property})
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

// ringProject names the slots of the hours, or gives nil where most of them are wanted anyway, or where a writer that
// Open has not seen may have come since.
func (s *Store) ringProject(from, to series.Hour) (project []string) {
	if !s.cfg.Alone || to-from >= keys.RingSlots/2 {
		return nil
	}
	for h := from; h <= to; h++ {
		for _, w := range s.writers {
			project = append(project, keys.RingProperty(h, w))
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

// samples merges the slots of an entity that lie in the hours from..to; others, such as a ring slot of yesterday,
// are passed over. A day's slot comes whole.
func (s *Store) samples(ctx context.Context, dst []series.Sample, name string, e table.Entity, from, to series.Hour) ([]series.Sample, error) {
	slots, err := s.slotsOf(ctx, name, e, all)
	if err != nil {
		return dst, err
	}
	base := len(dst)
	for _, one := range slots {
		if !one.Day && (one.info.Start < from || one.info.Start > to) {
			continue
		}
		before := len(dst)
		if dst, err = slot.Decode(dst, one.data); err != nil {
			return dst, fmt.Errorf("row %q of table %q, property %q: %w", e.Key.Row, name, one.name, err)
		}
		dst = slot.Join(dst, base, before)
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
			own = append(own, HourSlot{one.info.Start, one.data})
		}
	}
	return own, nil
}

// PagesSamples appends to dst the samples of the hours from..to that the pages of the days first..last hold, which lie
// in one month: one range read. Others of these days may come with them.
func (s *Store) PagesSamples(ctx context.Context, dst []series.Sample, id series.ID, first, last series.Day, from, to series.Hour) ([]series.Sample, error) {
	return again(func() ([]series.Sample, error) { return s.pagesSamples(ctx, dst, id, first, last, from, to) })
}

func (s *Store) pagesSamples(ctx context.Context, dst []series.Sample, id series.ID, first, last series.Day, from, to series.Hour) ([]series.Sample, error) {
	name := s.cfg.Tables.Pages(first)
	pages, err := s.pagesBetween(ctx, name, id, first, last)
	if err != nil {
		return dst, err
	}
	base := len(dst)
	for _, e := range slices.Backward(pages) {
		before := len(dst)
		if dst, err = s.samples(ctx, dst, name, e, from, to); err != nil {
			return dst, err
		}
		dst = slot.Join(dst, base, before)
	}
	return dst, nil
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
