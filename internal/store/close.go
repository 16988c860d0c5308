package store

import (
	"context"
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
		name := s.cfg.Tables.Pages(d)
		samples, err := s.closedBefore(ctx, name, id, d)
		if err != nil {
			return pages, err
		}
		group, err := s.pageOf(ctx, Page{id, d}, samples, slots)
		if err != nil {
			return pages, fmt.Errorf("series %v: %w", id, err)
		}
		groups[name] = append(groups[name], group...)
		pages++
	}
	return pages, nil
}

// closedBefore is what this writer's slot of a day holds already, where the day was closed once and opened again.
func (s *Store) closedBefore(ctx context.Context, name string, id series.ID, day series.Day) ([]series.Sample, error) {
	if day > s.highest {
		return nil, nil
	}
	e, err := s.get(ctx, name, id, keys.PageRow(id, day), nil)
	if err != nil {
		return nil, err
	}
	data, err := s.wholeValue(ctx, name, e, keys.DayProperty(s.cfg.Writer))
	if err != nil || data == nil {
		return nil, err
	}
	return slot.Decode(nil, data)
}

// pageOf folds hours into the slot of their day, which holds samples already. A day too large for one transaction
// stays in hours.
func (s *Store) pageOf(ctx context.Context, p Page, samples []series.Sample, hours []HourSlot) ([][]table.Operation, error) {
	for _, h := range hours {
		before := len(samples)
		var err error
		if samples, err = slot.Decode(samples, h.Data); err != nil {
			return nil, fmt.Errorf("hour %v: %w", h.Hour.Start().Time(), err)
		}
		samples = slot.Join(samples, 0, before)
	}
	page := entity{row: keys.PageRow(p.ID, p.Day)}
	data, ok := daySlot(p.Day, samples)
	if !ok {
		return s.hoursOf(ctx, p, page, hours)
	}
	page.add(keys.DayProperty(s.cfg.Writer), data, s.dayInline())
	return page.groups(), nil
}

// daySlot encodes a day, if it is not too large for that.
func daySlot(day series.Day, samples []series.Sample) (data []byte, ok bool) {
	if len(samples) > slot.MaxCount {
		return nil, false
	}
	data = slot.Encode(nil, day.FirstHour(), samples)
	return data, len(data) <= maxSlot
}

// hoursOf writes hours of a day as they are. The page may have one already with more in it than the ring, as late
// samples went to the page only: that is kept.
func (s *Store) hoursOf(ctx context.Context, p Page, page entity, hours []HourSlot) ([][]table.Operation, error) {
	name := s.cfg.Tables.Pages(p.Day)
	e, err := s.get(ctx, name, p.ID, page.row, nil)
	if err != nil {
		return nil, err
	}
	for _, h := range hours {
		property := keys.HourProperty(h.Hour, s.cfg.Writer)
		have, err := s.wholeValue(ctx, name, e, property)
		if err != nil {
			return nil, err
		}
		if h.Data, err = union(h.Hour, have, h.Data); err != nil {
			return nil, fmt.Errorf("hour %v: %w", h.Hour.Start().Time(), err)
		}
		page.add(property, h.Data, s.hourInline())
	}
	return page.groups(), nil
}

// union is the slot of the samples of two slots of an hour, the first of which may be missing.
func union(hour series.Hour, first, second []byte) ([]byte, error) {
	if len(first) == 0 {
		return second, nil
	}
	samples, err := slot.Decode(nil, first)
	if err != nil {
		return nil, err
	}
	before := len(samples)
	if samples, err = slot.Decode(samples, second); err != nil {
		return nil, err
	}
	return slot.Encode(nil, hour, slot.Join(samples, 0, before)), nil
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
