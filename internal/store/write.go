package store

import (
	"context"
	"fmt"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// HourSlot is what a series has of one kind in one hour, encoded.
type HourSlot struct {
	Hour series.Hour
	Kind slot.Kind
	Data []byte // of package slot
}

// Write is what is to be written of one series.
type Write struct {
	ID    series.ID
	Slots []HourSlot
	Top   series.Hour // the newest hour that the series' ring may hold; hours that it would lose go to pages only
}

// WriteHours writes hours of series of one bucket to where they belong: the ring, their pages, or both. Each kind of an
// hour is written by itself: what is not given stays. It may be repeated. On ErrDayOpen nothing was written: close the days before now's first.
func (s *Store) WriteHours(ctx context.Context, bucket int, now series.Millis, writes []Write) error {
	s.locks[bucket].Lock()
	defer s.locks[bucket].Unlock()
	p := placement{store: s, now: now.Hour(), pages: map[string][][]table.Operation{}}
	for _, w := range writes {
		if err := p.add(w); err != nil {
			return err
		}
	}
	partition := s.partition(bucket)
	for name, groups := range p.pages {
		if err := s.transact(ctx, name, partition, groups); err != nil {
			return err
		}
	}
	if err := s.transact(ctx, s.cfg.Tables.Ring(), partition, p.ring); err != nil {
		return err
	}
	for _, page := range p.touched {
		s.unsealed.add(page, now)
	}
	return nil
}

// placement sorts slots into groups of operations. Pages are written before the ring, so that no crash leaves the
// ring ahead of them.
type placement struct {
	store   *Store
	now     series.Hour
	ring    [][]table.Operation
	pages   map[string][][]table.Operation
	touched []Page
}

func (p *placement) add(w Write) error {
	ring := entity{row: keys.SeriesRow(w.ID)}
	pages := map[series.Day]*entity{}
	for _, one := range w.Slots {
		inRing, inPage, err := p.store.place(one.Hour, p.now, w.Top)
		if err != nil {
			return fmt.Errorf("series %v, hour %v: %w", w.ID, one.Hour.Start().Time(), err)
		}
		limits := p.store.inline(one.Kind)
		if inRing {
			ring.add(keys.RingProperty(one.Kind, one.Hour, p.store.cfg.Writer), one.Data, limits.ring)
		}
		if inPage {
			day := one.Hour.Day()
			if pages[day] == nil {
				pages[day] = &entity{row: keys.PageRow(w.ID, day)}
				p.touched = append(p.touched, Page{w.ID, day})
			}
			pages[day].add(keys.HourProperty(one.Kind, one.Hour, p.store.cfg.Writer), one.Data, limits.hour)
		}
	}
	p.ring = append(p.ring, ring.groups()...)
	for day, page := range pages {
		name := p.store.cfg.Tables.Pages(day)
		p.pages[name] = append(p.pages[name], page.groups()...)
	}
	return nil
}

// place says where an hour's slot goes. In the ring are the last 24 h and what clocks ahead have begun, as far as the
// day that gives way can be closed.
func (s *Store) place(h, now, top series.Hour) (ring, page bool, err error) {
	ring = h >= now-(keys.RingSlots-2) && h > top-keys.RingSlots && (h-keys.RingSlots).Day() < now.Day()
	page = !ring || h.Day() <= series.Day(s.closing.Load())
	if ring && (h-keys.RingSlots).Day() > s.Closed() {
		return false, false, fmt.Errorf("day %v: %w", (h - keys.RingSlots).Day().Time().Format("2006-01-02"), ErrDayOpen)
	}
	return ring, page, nil
}

// entity collects the slots to be merged into one entity.
type entity struct {
	row        keys.Row
	properties []table.Property
	large      [][]table.Operation // a spilled slot goes in a transaction of its own
}

// add adds a slot, which is spilled where it is longer than inline.
func (e *entity) add(property string, data []byte, inline int) {
	properties, spill := placeValue(e.row, property, data, inline)
	if spill == nil {
		e.properties = append(e.properties, properties...)
		return
	}
	base := table.Operation{Kind: table.InsertOrMerge, Row: string(e.row), Properties: properties}
	e.large = append(e.large, append(spill, base))
}

func (e *entity) groups() [][]table.Operation {
	groups := e.large
	if len(e.properties) > 0 {
		groups = append(groups, []table.Operation{{Kind: table.InsertOrMerge, Row: string(e.row), Properties: e.properties}})
	}
	return groups
}
