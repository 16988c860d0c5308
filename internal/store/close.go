package store

import (
	"context"
	"errors"
	"fmt"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// Closing says that the days up to and including day are about to be closed: from now on what is written for them
// goes to their pages as well.
func (s *Store) Closing(day series.Day) {
	for {
		old := s.closing.Load()
		if int32(day) <= old || s.closing.CompareAndSwap(old, int32(day)) {
			return
		}
	}
}

// CloseBucket writes the pages of all series of a bucket for the days after Closed up to day, from what is in their
// rings, and says how many it wrote. Closing must have been called for the day. It may be repeated: no ring slot of
// these days is overwritten before SetClosed.
func (s *Store) CloseBucket(ctx context.Context, bucket int, day series.Day) (pages int, err error) {
	s.locks[bucket].Lock()
	defer s.locks[bucket].Unlock()
	groups := map[string][][]table.Operation{}
	write := func() error {
		for name, g := range groups {
			if err := s.transact(ctx, name, s.partition(bucket), g); err != nil {
				return err
			}
		}
		clear(groups)
		return nil
	}
	pending := 0
	err = s.rows(ctx, s.cfg.Tables.Ring(), bucket, nil, func(e table.Entity) error {
		if !keys.IsSeriesRow(keys.Row(e.Key.Row)) {
			return nil
		}
		n, err := s.closeRing(ctx, e, day, groups)
		pages += n
		if pending += n; err == nil && pending >= table.MaxOperations {
			pending = 0
			err = write()
		}
		return err
	})
	if err == nil {
		err = write()
	}
	if err != nil {
		return pages, fmt.Errorf("closing bucket %d up to %s: %w", bucket, day.Time().Format("2006-01-02"), err)
	}
	return pages, nil
}

// closeRing adds the operations that write one series' pages.
func (s *Store) closeRing(ctx context.Context, ring table.Entity, day series.Day, groups map[string][][]table.Operation) (pages int, err error) {
	id, err := keys.SeriesOf(keys.Row(ring.Key.Row))
	if err != nil {
		return 0, err
	}
	hours, err := s.ownHours(ctx, s.cfg.Tables.Ring(), ring)
	if err != nil {
		return 0, err
	}
	byDay := map[series.Day][]HourSlot{}
	for _, h := range hours {
		if d := h.Hour.Day(); d > s.Closed() && d <= day {
			byDay[d] = append(byDay[d], h)
		}
	}
	for d, slots := range byDay {
		group, err := s.pageOf(ctx, Page{id, d}, slots)
		if err != nil {
			return pages, fmt.Errorf("series %v: %w", id, err)
		}
		name := s.cfg.Tables.Pages(d)
		groups[name] = append(groups[name], group...)
		pages++
	}
	return pages, nil
}

// pageOf gives the operations that write the ring's hours of a day to its page: each kind folded into the slot of the
// day. What that slot holds already, where the day was closed once and opened again, stays in it.
func (s *Store) pageOf(ctx context.Context, p Page, hours []HourSlot) ([][]table.Operation, error) {
	have, err := s.closedBefore(ctx, p)
	if err != nil {
		return nil, err
	}
	page := entity{row: keys.PageRow(p.ID, p.Day)}
	for _, kind := range series.Kinds {
		var some []HourSlot
		for _, h := range hours {
			if h.Kind == kind {
				some = append(some, h)
			}
		}
		if err := s.foldInto(ctx, &page, p, kind, have, some); err != nil {
			return nil, err
		}
	}
	return page.groups(), nil
}

// closedBefore is the page as it is, of a day that was closed once and opened again, and otherwise empty.
func (s *Store) closedBefore(ctx context.Context, p Page) (table.Entity, error) {
	if p.Day > s.highest {
		return table.Entity{}, nil
	}
	return s.get(ctx, s.cfg.Tables.Pages(p.Day), p.ID, keys.PageRow(p.ID, p.Day), nil)
}

// foldInto adds the day's slot of one kind to the page. A day too large for one slot stays in hours.
func (s *Store) foldInto(ctx context.Context, page *entity, p Page, kind slot.Kind, have table.Entity, hours []HourSlot) error {
	if len(hours) == 0 {
		return nil
	}
	property := keys.DayProperty(kind, s.cfg.Writer)
	before, err := s.wholeValue(ctx, s.cfg.Tables.Pages(p.Day), have, property)
	if err != nil {
		return err
	}
	var slots [][]byte
	if len(before) > 0 {
		slots = append(slots, before)
	}
	for _, h := range hours {
		slots = append(slots, h.Data)
	}
	data, fits, err := daySlot(p.Day, slots)
	if err != nil {
		return err
	}
	if !fits {
		return s.keepHours(ctx, page, p, hours)
	}
	page.add(property, data, s.inline(kind).day)
	return nil
}

// daySlot folds slots of one kind into that of a day; fits is false where it is too large for that.
func daySlot(day series.Day, slots [][]byte) (data []byte, fits bool, err error) {
	data, err = slot.Fold(day.FirstHour(), slots...)
	if errors.Is(err, slot.ErrTooLarge) {
		return nil, false, nil
	}
	return data, len(data) <= MaxSlot, err
}

// keepHours adds hours of a day to the page as they are. The page may have one already with more in it than the ring,
// as what came late went to the page only: that is kept.
func (s *Store) keepHours(ctx context.Context, page *entity, p Page, hours []HourSlot) error {
	name := s.cfg.Tables.Pages(p.Day)
	e, err := s.get(ctx, name, p.ID, page.row, nil)
	if err != nil {
		return err
	}
	for _, h := range hours {
		property := keys.HourProperty(h.Kind, h.Hour, s.cfg.Writer)
		have, err := s.wholeValue(ctx, name, e, property)
		if err != nil {
			return err
		}
		if h.Data, err = slot.Union(h.Hour, have, h.Data); err != nil {
			return fmt.Errorf("hour %v: %w", h.Hour.Start().Time(), err)
		}
		page.add(property, h.Data, s.inline(h.Kind).hour)
	}
	return nil
}

// SetClosed writes down that the days up to day are closed. All buckets must have been closed up to it.
func (s *Store) SetClosed(ctx context.Context, day series.Day) error {
	if day <= s.Closed() {
		return nil
	}
	// From here on ring slots of these days may be overwritten. The service keeps the order of what is written, so
	// no crash leaves this mark without the pages.
	if err := s.putClosed(ctx, day); err != nil {
		return fmt.Errorf("writing down that %s is closed: %w", day.Time().Format("2006-01-02"), err)
	}
	s.closed.Store(int32(day))
	return nil
}
