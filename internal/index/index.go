// Package index knows in memory which series there are: by id, and by matchers as PromQL defines them, month by month.
// It is filled from the catalogue: the present month and the one before at the start, an earlier month when a query
// asks for it. Package ingest adds what is new.
//
// Months from the one before the newest on stay in memory. Of earlier ones those stay that were asked for last, as
// long as they have no more series together than a limit: so memory follows the series that are active, not all that
// ever were. A series has one *Series as long as anything holds it: a month in memory, or the head.
package index

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/keys"
)

// ErrCollision says that two series have the same id.
var ErrCollision = errors.New("two series have the same id")

// Catalogue is where it is written which series there are.
type Catalogue interface {
	// Months lists the months that have series.
	Months(ctx context.Context) ([]keys.Month, error)
	// Catalogue calls each for every series of a month.
	Catalogue(ctx context.Context, month keys.Month, each func(series.ID, labels.Labels) error) error
}

// Index is a set of series. Its methods may be called from many goroutines.
type Index struct {
	catalogue Catalogue
	limit     int // series of months before kept, together

	mu      sync.RWMutex
	byID    map[series.ID]*Series
	periods map[keys.Month]*period
	listed  []keys.Month // that the catalogue had when the index was opened
	kept    keys.Month   // this month and later ones stay
	clock   int64        // counts the questions, to know which month was asked for last
}

// Open reads the months of the catalogue from kept on, which stay in memory. Earlier ones are read when they are asked for,
// and stay as long as they have at most limit series together.
func Open(ctx context.Context, c Catalogue, kept keys.Month, limit int) (*Index, error) {
	listed, err := c.Months(ctx)
	if err != nil {
		return nil, err
	}
	x := &Index{
		catalogue: c, limit: limit, kept: kept, listed: listed,
		byID: map[series.ID]*Series{}, periods: map[keys.Month]*period{},
	}
	for _, m := range listed {
		if m < kept {
			continue
		}
		x.period(m).expect()
		if _, err := x.wholePeriod(ctx, m); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Len is how many series are in memory.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Get finds a series by its id; nil where none is in memory.
func (x *Index) Get(id series.ID) *Series {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byID[id]
}

// Add finds a series, or makes it; added says that nothing in memory had it. It stays in memory, whatever becomes of its
// months. Those are entered by Enter.
func (x *Index) Add(id series.ID, ls labels.Labels) (s *Series, added bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s, added, err = x.known(id, ls); err == nil {
		s.holders++
	}
	return s, added, err
}

// known finds a series by its id, or makes it.
func (x *Index) known(id series.ID, ls labels.Labels) (s *Series, added bool, err error) {
	s = x.byID[id]
	if s == nil {
		s = &Series{ID: id, Labels: ls}
		x.byID[id] = s
		return s, true, nil
	}
	if !labels.Equal(s.Labels, ls) {
		return nil, false, fmt.Errorf("%s and %s, id %v: %w", s.Labels, ls, id, ErrCollision)
	}
	return s, false, nil
}

// Enter notes that a series has samples in a month, whether the catalogue lists them or not.
func (x *Index) Enter(s *Series, month keys.Month) {
	if s.In(month) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s.enter(month) {
		x.period(month).put(s)
	}
	if month-1 > x.kept {
		x.kept = month - 1
		x.trim()
	}
}

// Unwritten tells whether the catalogue has nothing of a series in a month: then no table has.
func (x *Index) Unwritten(s *Series, month keys.Month) bool { return !s.In(month) && x.whole(month) }

// Kept tells whether a month stays in memory, and was read before any series was added.
func (x *Index) Kept(month keys.Month) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return month >= x.kept
}

func (x *Index) whole(month keys.Month) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.periods[month]; p != nil {
		return p.whole
	}
	return month >= x.kept
}
