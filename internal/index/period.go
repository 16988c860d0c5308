package index

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/index"

	"daybook/internal/series"
	"daybook/keys"
)

// period is the series of one month. What it holds is guarded by the index's lock; the postings guard themselves.
type period struct {
	month    keys.Month
	byRef    []*Series      // what stands at n has the reference n+1 in the postings; it only grows
	named    map[string]int // how many there are of a metric
	postings *index.MemPostings

	whole bool                 // all that the catalogue has is here
	have  map[*Series]struct{} // while it is not: what is here already
	users int                  // who is reading the catalogue into it, or waits for that
	asked int64                // when, by the index's clock

	loading sync.Mutex // held while the catalogue is read, so that it is read once
}

// period gives a month's period, made where there is none. What is kept was read at the start, as far as there was any.
func (x *Index) period(m keys.Month) *period {
	p := x.periods[m]
	if p == nil {
		p = &period{month: m, named: map[string]int{}, postings: index.NewMemPostings(), whole: true}
		if m < x.kept {
			p.expect()
		}
		x.periods[m] = p
	}
	return p
}

// expect says that the catalogue is still to be read.
func (p *period) expect() { p.whole, p.have = false, map[*Series]struct{}{} }

// put adds a series that no row of the catalogue may bring again.
func (p *period) put(s *Series) {
	p.add(s)
	if p.have != nil {
		p.have[s] = struct{}{}
	}
}

func (p *period) add(s *Series) {
	s.holders++
	p.byRef = append(p.byRef, s)
	p.named[s.Labels.Get(model.MetricNameLabel)]++
	p.postings.Add(storage.SeriesRef(len(p.byRef)), s.Labels)
}

// wholePeriod gives the period of a month with all that the catalogue has of it.
func (x *Index) wholePeriod(ctx context.Context, m keys.Month) (*period, error) {
	p, whole := x.ask(m)
	defer x.leave(p)
	if whole {
		return p, nil
	}
	p.loading.Lock()
	defer p.loading.Unlock()
	x.mu.RLock()
	whole = p.whole // somebody else may have loaded it while this one waited
	x.mu.RUnlock()
	if whole {
		return p, nil
	}
	if err := x.catalogue.Catalogue(ctx, m, func(id series.ID, ls labels.Labels) error { return x.list(p, id, ls) }); err != nil {
		return nil, fmt.Errorf("reading which series there are in %v: %w", m, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	p.whole, p.have = true, nil
	return p, nil
}

// ask gives a period that stays until leave.
func (x *Index) ask(m keys.Month) (p *period, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p = x.period(m)
	x.clock++
	p.asked = x.clock
	p.users++
	return p, p.whole
}

func (x *Index) leave(p *period) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.users--; p.users == 0 {
		x.trim()
	}
}

// list enters what the catalogue has into a period.
func (x *Index) list(p *period, id series.ID, ls labels.Labels) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, _, err := x.known(id, ls)
	if err != nil {
		return err
	}
	s.enter(p.month)
	s.SetListed(p.month)
	if _, ok := p.have[s]; !ok {
		p.add(s)
	}
	return nil
}

// trim lets go of months before the kept ones, the one first that was not asked for the longest time, until the limit is
// kept. What is not listed in the catalogue yet stays.
func (x *Index) trim() {
	var past []*period
	total := 0
	for m, p := range x.periods {
		if m < x.kept {
			past = append(past, p)
			total += len(p.byRef)
		}
	}
	past = slices.DeleteFunc(past, func(p *period) bool { return p.users > 0 })
	slices.SortFunc(past, func(a, b *period) int { return int(a.asked - b.asked) })
	for _, p := range past {
		if total <= x.limit {
			return
		}
		total -= len(p.byRef)
		x.letGo(p)
	}
}

func (x *Index) letGo(p *period) {
	delete(x.periods, p.month)
	for _, s := range p.byRef {
		if s.holders--; !s.Listed(p.month) {
			x.period(p.month).put(s)
		} else if s.holders == 0 {
			delete(x.byID, s.ID)
		}
	}
}
