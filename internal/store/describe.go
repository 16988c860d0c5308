package store

import (
	"context"
	"fmt"
	"slices"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// Description is what an entity of a series holds.
type Description struct {
	Table string
	Key   table.Key
	Slots []SlotDescription
}

// SlotDescription is what one slot holds.
type SlotDescription struct {
	Property    string
	Bytes       int
	Day         bool // a whole day's; otherwise an hour's
	Info        slot.Info
	First, Last series.Sample
}

// Describe gives the ring of a series and all its pages, the newest first.
func (s *Store) Describe(ctx context.Context, id series.ID) ([]Description, error) {
	ring, err := s.get(ctx, s.cfg.Tables.Ring(), id, keys.SeriesRow(id), nil)
	if err != nil {
		return nil, err
	}
	first, err := s.describe(ctx, s.cfg.Tables.Ring(), ring)
	if err != nil {
		return nil, err
	}
	all := []Description{first}
	names, err := s.svc.Tables(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	for _, name := range slices.Backward(names) {
		if !s.cfg.Tables.IsPages(name) {
			continue
		}
		pages, err := s.pagesBetween(ctx, name, id, keys.FirstDay, keys.LastDay)
		if err != nil {
			return nil, err
		}
		for _, e := range pages {
			d, err := s.describe(ctx, name, e)
			if err != nil {
				return nil, err
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func (s *Store) describe(ctx context.Context, name string, e table.Entity) (Description, error) {
	d := Description{Table: name, Key: e.Key}
	slots, err := s.slotsOf(ctx, name, e, all)
	if err != nil {
		return d, err
	}
	for _, one := range slots {
		samples, err := slot.Decode(nil, one.data)
		if err != nil {
			return d, fmt.Errorf("row %q of table %q, property %q: %w", e.Key.Row, name, one.name, err)
		}
		about := SlotDescription{Property: one.name, Bytes: len(one.data), Day: one.Day, Info: one.info}
		if len(samples) > 0 {
			about.First, about.Last = samples[0], samples[len(samples)-1]
		}
		d.Slots = append(d.Slots, about)
	}
	return d, nil
}

// PagesTable is the name of the table of the pages of a day.
func (s *Store) PagesTable(day series.Day) string { return s.cfg.Tables.Pages(day) }

// RingTable is the name of the table of the rings.
func (s *Store) RingTable() string { return s.cfg.Tables.Ring() }
