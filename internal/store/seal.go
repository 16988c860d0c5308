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

// Seal folds this writer's hours in a page into its day's slot, the densest form: one point read and one write.
func (s *Store) Seal(ctx context.Context, p Page) error {
	bucket := s.Bucket(p.ID)
	s.locks[bucket].Lock()
	defer s.locks[bucket].Unlock()
	name, row := s.cfg.Tables.Pages(p.Day), keys.PageRow(p.ID, p.Day)
	e, err := s.get(ctx, name, p.ID, row, nil)
	if err != nil {
		return err
	}
	group, err := s.sealed(ctx, name, e, p, row)
	if err != nil {
		return fmt.Errorf("sealing the page %s of series %v: %w", p.Day.Time().Format("2006-01-02"), p.ID, err)
	}
	if err := s.transact(ctx, name, s.partition(bucket), group); err != nil {
		return err
	}
	s.unsealed.mu.Lock()
	defer s.unsealed.mu.Unlock()
	delete(s.unsealed.pages, p)
	return nil
}

// sealed gives the operations that replace the page's own hours by one slot; none where there is nothing to fold.
func (s *Store) sealed(ctx context.Context, name string, e table.Entity, p Page, row keys.Row) ([][]table.Operation, error) {
	slots, err := s.slotsOf(ctx, name, e, s.own)
	if err != nil {
		return nil, err
	}
	var samples []series.Sample
	var blank []table.Property
	var remove []table.Operation
	for _, one := range slots {
		before := len(samples)
		if samples, err = slot.Decode(samples, one.data); err != nil {
			return nil, fmt.Errorf("property %q: %w", one.name, err)
		}
		samples = slot.Join(samples, 0, before)
		if !one.Day {
			blank = append(blank, table.Property{Name: one.name, Value: []byte{}})
			remove = append(remove, unspill(row, one.name, e.Property(one.name))...)
		}
	}
	data, ok := daySlot(p.Day, samples)
	if len(blank) == 0 || !ok || len(remove) > table.MaxOperations/2 {
		return nil, nil
	}
	properties, spill := placeValue(row, keys.DayProperty(s.cfg.Writer), data, s.dayInline())
	op := table.Operation{Kind: table.InsertOrReplace, Row: string(row), Properties: properties}
	if !s.cfg.Alone || slices.ContainsFunc(e.Properties, s.foreign) {
		// Another writer may merge its hours at this moment: leave what is its own, and empty what is ours.
		op.Kind, op.Properties = table.InsertOrMerge, slices.Concat(properties, blank)
	}
	return [][]table.Operation{append(append(spill, op), remove...)}, nil
}
