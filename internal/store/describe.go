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

// SlotDescription is what one slot holds. First and Last, of the kind that it is of, are the first and the last.
type SlotDescription struct {
	Property    string
	Bytes       int
	Day         bool // a whole day's; otherwise an hour's
	Info        slot.Info
	First, Last Value
}

// Value is one thing of a slot's kind.
type Value struct {
	Sample    series.Sample
	Histogram series.Histogram
	Exemplar  series.Exemplar
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
		about := SlotDescription{Property: one.name, Bytes: len(one.data), Day: one.Day, Info: one.info}
		if err := about.values(one.data); err != nil {
			return d, fmt.Errorf("row %q of table %q, property %q: %w", e.Key.Row, name, one.name, err)
		}
		d.Slots = append(d.Slots, about)
	}
	return d, nil
}

// values decodes a slot and notes its ends.
func (d *SlotDescription) values(data []byte) (err error) {
	switch d.Info.Kind {
	case slot.Floats:
		d.First.Sample, d.Last.Sample, err = ends(slot.Decode, data)
	case slot.Histograms:
		d.First.Histogram, d.Last.Histogram, err = ends(slot.DecodeHistograms, data)
	case slot.Exemplars:
		d.First.Exemplar, d.Last.Exemplar, err = ends(slot.DecodeExemplars, data)
	}
	return err
}

// ends gives the first and the last of what a slot holds.
func ends[T any](decode func([]T, []byte) ([]T, error), data []byte) (first, last T, err error) {
	all, err := decode(nil, data)
	if err != nil || len(all) == 0 {
		return first, last, err
	}
	return all[0], all[len(all)-1], nil
}

// PagesTable is the name of the table of the pages of a day.
func (s *Store) PagesTable(day series.Day) string { return s.cfg.Tables.Pages(day) }

// RingTable is the name of the table of the rings.
func (s *Store) RingTable() string { return s.cfg.Tables.Ring() }
