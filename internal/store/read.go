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

// Ring gives what the ring of a series holds of the hours from..to (both included), of all kinds: one point read. A
// series without a ring has nothing.
func (s *Store) Ring(ctx context.Context, id series.ID, from, to series.Hour) (Run, error) {
	return s.bothKinds(id, hours(from, to), func(g Group, span Span) error { return s.ReadRings(ctx, g, from, to, span) })
}

// Pages gives what the pages of the days first..last, which lie in one month, hold of the hours from..to, of all kinds.
func (s *Store) Pages(ctx context.Context, id series.ID, first, last series.Day, from, to series.Hour) (Run, error) {
	return s.bothKinds(id, hours(from, to), func(g Group, span Span) error { return s.ReadPages(ctx, g, first, last, last.FirstHour()+24, span) })
}

// bothKinds reads samples, and then exemplars, of one series.
func (s *Store) bothKinds(id series.ID, span Span, read func(Group, Span) error) (run Run, err error) {
	g := Group{Bucket: s.Bucket(id), IDs: []series.ID{id}, Into: []*Run{&run}}
	if err = read(g, span); err == nil {
		span.Exemplars = true
		err = read(g, span)
	}
	return run, err
}

// hours is the span of whole hours, both included.
func hours(from, to series.Hour) Span { return Span{From: from.Start(), To: (to + 1).Start() - 1} }

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

// ringProject names the slots of the hours that a span wants, or gives nil where most of them are wanted anyway, or
// where a writer that Open has not seen may have come since.
func (s *Store) ringProject(from, to series.Hour, span Span) (project []string) {
	if !s.cfg.Alone {
		return nil
	}
	hours := 0
	for h := from; h <= to; h++ {
		if !span.wantsHour(h) {
			continue
		}
		if hours++; hours > keys.RingSlots/2 {
			return nil
		}
		for _, w := range s.writers {
			for _, kind := range span.kinds() {
				project = append(project, keys.RingProperty(kind, h, w))
			}
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
