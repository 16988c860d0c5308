package store

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/table"
	"daybook/keys"
)

// Page is the page of one day of a series.
type Page struct {
	ID  series.ID
	Day series.Day
}

// unsealed remembers which pages have hours that could be folded into their day's slot. It is lost with the process;
// such pages stay in hours, which reads as well and takes more room.
type unsealed struct {
	mu    sync.Mutex
	pages map[Page]series.Millis // when the page was last written
}

func (u *unsealed) add(p Page, now series.Millis) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pages == nil {
		u.pages = map[Page]series.Millis{}
	}
	u.pages[p] = now
}

// Unsealed gives at most max pages of closed days that were last written before a time.
func (s *Store) Unsealed(before series.Millis, max int) (pages []Page) {
	s.unsealed.mu.Lock()
	defer s.unsealed.mu.Unlock()
	for p, at := range s.unsealed.pages {
		if len(pages) == max {
			break
		}
		if at < before && p.Day <= s.Closed() {
			pages = append(pages, p)
		}
	}
	return pages
}

// Seal folds this writer's hours in a page into their day's slots, the densest form: one point read and one write, or
// one write for each kind where they are too large for one.
func (s *Store) Seal(ctx context.Context, p Page) error {
	bucket := s.Bucket(p.ID)
	s.locks[bucket].Lock()
	defer s.locks[bucket].Unlock()
	name, row := s.cfg.Tables.Pages(p.Day), keys.PageRow(p.ID, p.Day)
	e, err := s.get(ctx, name, p.ID, row, nil)
	if err != nil {
		return err
	}
	sealed, err := s.seal(ctx, name, e, p)
	if err != nil {
		return fmt.Errorf("sealing the page %s of series %v: %w", p.Day.Time().Format("2006-01-02"), p.ID, err)
	}
	if err := s.transact(ctx, name, s.partition(bucket), s.sealOperations(e, row, sealed)); err != nil {
		return err
	}
	s.unsealed.mu.Lock()
	defer s.unsealed.mu.Unlock()
	delete(s.unsealed.pages, p)
	return nil
}

// sealedKind is what becomes of this writer's slots of one kind in a page.
type sealedKind struct {
	day    []table.Property  // the day's slot
	spill  []table.Operation // its rows where it is spilled
	hours  []table.Property  // the hours that are in it now, emptied
	remove []table.Operation // their rows where they were spilled
	left   bool              // it is too large for that, and stays in hours
	done   bool              // there is nothing to do: no hours, or they stay
}

// seal folds each kind that the page has of this writer.
func (s *Store) seal(ctx context.Context, name string, e table.Entity, p Page) (all []sealedKind, err error) {
	for _, kind := range series.Kinds {
		slots, err := s.slotsOf(ctx, name, e, func(p keys.Property) bool { return p.Kind == kind && s.own(p) })
		if err != nil {
			return nil, err
		}
		if len(slots) == 0 {
			continue
		}
		one, err := s.sealKind(e, p, kind, slots)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", kind, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *Store) sealKind(e table.Entity, p Page, kind slot.Kind, slots []stored) (one sealedKind, err error) {
	row := keys.PageRow(p.ID, p.Day)
	var parts [][]byte
	for _, have := range slots {
		parts = append(parts, have.data)
		if !have.Day {
			one.hours = append(one.hours, table.Property{Name: have.name, Value: []byte{}})
			one.remove = append(one.remove, unspill(row, have.name, e.Property(have.name))...)
		}
	}
	data, fits, err := daySlot(p.Day, parts)
	if err != nil {
		return one, err
	}
	one.left = !fits || len(one.remove) > table.MaxOperations/2
	one.done = len(one.hours) == 0 || one.left
	one.day, one.spill = placeValue(row, keys.DayProperty(kind, s.cfg.Writer), data, s.inline(kind).day)
	return one, nil
}

// sealOperations gives the groups of operations that write a sealed page. Where nothing in it is another writer's, or
// stays in hours, the page is replaced and no empty property is left.
func (s *Store) sealOperations(e table.Entity, row keys.Row, kinds []sealedKind) (groups [][]table.Operation) {
	todo := slices.ContainsFunc(kinds, func(k sealedKind) bool { return !k.done })
	if !todo {
		return nil
	}
	// Another writer may merge its hours at any moment: what is its own must be left, and ours emptied.
	replace := s.cfg.Alone && !slices.ContainsFunc(e.Properties, s.foreign) &&
		!slices.ContainsFunc(kinds, func(k sealedKind) bool { return k.left })
	if replace {
		if whole := replacement(row, kinds); s.fits(e.Key.Partition, whole) {
			return [][]table.Operation{whole}
		}
	}
	var small []table.Property
	for _, k := range kinds {
		switch {
		case k.done:
		case len(k.spill)+len(k.remove) == 0:
			small = slices.Concat(small, k.day, k.hours)
		default:
			base := table.Operation{Kind: table.InsertOrMerge, Row: string(row), Properties: slices.Concat(k.day, k.hours)}
			groups = append(groups, append(append(k.spill, base), k.remove...))
		}
	}
	if len(small) > 0 {
		groups = append(groups, []table.Operation{{Kind: table.InsertOrMerge, Row: string(row), Properties: small}})
	}
	return groups
}

// replacement is the transaction that replaces the page by what all its kinds are folded into.
func replacement(row keys.Row, kinds []sealedKind) []table.Operation {
	base := table.Operation{Kind: table.InsertOrReplace, Row: string(row)}
	var spill, remove []table.Operation
	for _, k := range kinds {
		base.Properties = append(base.Properties, k.day...)
		spill, remove = append(spill, k.spill...), append(remove, k.remove...)
	}
	return slices.Concat(spill, []table.Operation{base}, remove)
}

// fits tells whether operations may go in one transaction.
func (s *Store) fits(partition string, ops []table.Operation) bool {
	size := 0
	for _, op := range ops {
		size += table.OperationSize(partition, op)
	}
	return len(ops) <= table.MaxOperations && size <= table.MaxTransaction
}
