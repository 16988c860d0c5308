package ingest

import (
	"context"
	"fmt"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
)

// learn reads what the table has of hours that may be there already: from the ring, once for each series, and from
// the page of a day that is closed.
func (s *memSeries) learn(ctx context.Context, from *store.Store, hours []*hourBuffer) error {
	var ring []store.HourSlot
	var err error
	if !s.fresh && !s.ringRead || s.anyUnknown(hours) {
		if ring, err = from.OwnRing(ctx, s.entry.ID); err != nil {
			return err
		}
		s.learnTop(ring)
	}
	for _, b := range hours {
		for _, kind := range s.unknown(b, ring) {
			stored, err := ownHour(ctx, from, s.entry.ID, b.hour, kind, ring)
			if err != nil {
				return err
			}
			s.mu.Lock()
			b.learn(kind, stored)
			s.mu.Unlock()
		}
	}
	return nil
}

func (s *memSeries) anyUnknown(hours []*hourBuffer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range hours {
		for _, kind := range series.Kinds {
			if b.lacks(kind, false) {
				return true
			}
		}
	}
	return false
}

// unknown lists the kinds of an hour that must be known before it is written.
func (s *memSeries) unknown(b *hourBuffer, ring []store.HourSlot) (kinds []slot.Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ringSlot(ring, b.hour, slot.Histograms) != nil {
		b.beside() // what came as floats must not stand beside them
	}
	for _, kind := range series.Kinds {
		if b.lacks(kind, ringSlot(ring, b.hour, kind) != nil) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// lacks tells whether a kind must be known before the hour is written and is not: because some of it is to be written,
// or because of what must not have its times. That floats have those of histograms in a page is found when histograms
// come next, or by the reader: looking for it would cost every series that has none a point read.
func (b *hourBuffer) lacks(kind slot.Kind, inRing bool) bool {
	x := b.extras
	switch kind {
	case slot.Histograms:
		return x != nil && !x.histograms.known && (inRing || len(x.histograms.taken) > 0)
	case slot.Exemplars:
		return x != nil && !x.exemplars.known && len(x.exemplars.taken) > 0
	}
	return !b.known && (len(b.taken) > 0 || x != nil && len(x.histograms.taken) > 0)
}

// ringSlot finds a slot among those of a ring.
func ringSlot(ring []store.HourSlot, hour series.Hour, kind slot.Kind) []byte {
	for _, one := range ring {
		if one.Hour == hour && one.Kind == kind {
			return one.Data
		}
	}
	return nil
}

// ownHour gives all that this writer has in the table of an hour: what is in the ring, and what the page has. Before its
// day is closed a page may have late hours too.
func ownHour(ctx context.Context, from *store.Store, id series.ID, h series.Hour, kind slot.Kind, ring []store.HourSlot) ([]byte, error) {
	page, err := from.OwnPageHour(ctx, id, h, kind)
	if err != nil {
		return nil, err
	}
	var slots [][]byte
	for _, one := range [][]byte{ringSlot(ring, h, kind), page} {
		if len(one) > 0 {
			slots = append(slots, one)
		}
	}
	all, err := slot.Fold(h, slots...) // which decodes them: what is in memory is known to be good
	if err != nil {
		return nil, fmt.Errorf("ring and page of series %v, hour %v: %w", id, h.Start().Time(), err)
	}
	return all, nil
}

// learnTop notes which hour is the newest in the ring.
func (s *memSeries) learnTop(ring []store.HourSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ringRead = true
	for _, one := range ring {
		if !s.touched || one.Hour > s.top {
			s.top, s.touched = one.Hour, true
		}
	}
}
