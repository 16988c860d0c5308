// Package index knows in memory which series there are: by id, and by matchers as PromQL defines them. It is filled
// from the catalogue at start and by package ingest afterwards. A series once in it stays.
package index

import (
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/index"

	"daybook/internal/series"
	"daybook/keys"
)

// ErrCollision says that two series have the same id.
var ErrCollision = errors.New("two series have the same id")

// Series is an entry of the index. What it holds does not change, but for the months.
type Series struct {
	ID     series.ID
	Labels labels.Labels

	mu     sync.Mutex
	months []keys.Month
}

// Listed tells whether the series is in the catalogue of a month.
func (s *Series) Listed(m keys.Month) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, have := range s.months {
		if have == m {
			return true
		}
	}
	return false
}

// SetListed notes that the series is in the catalogue of a month.
func (s *Series) SetListed(m keys.Month) {
	if s.Listed(m) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.months = append(s.months, m)
}

// Index is a set of series. Its methods may be called from many goroutines.
type Index struct {
	mu       sync.RWMutex
	byID     map[series.ID]*Series
	byRef    []*Series // what stands at n has the reference n+1 in the postings
	postings *index.MemPostings
}

// New makes an empty index.
func New() *Index {
	return &Index{byID: map[series.ID]*Series{}, postings: index.NewMemPostings()}
}

// Len is how many series there are.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byRef)
}

// Get finds a series by its id; nil where there is none.
func (x *Index) Get(id series.ID) *Series {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byID[id]
}

// Add enters a series, or finds it where it is already; added says which.
func (x *Index) Add(id series.ID, ls labels.Labels) (s *Series, added bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s = x.byID[id]; s != nil {
		if !labels.Equal(s.Labels, ls) {
			return nil, false, fmt.Errorf("%s and %s, id %v: %w", s.Labels, ls, id, ErrCollision)
		}
		return s, false, nil
	}
	s = &Series{ID: id, Labels: ls}
	x.byID[id] = s
	x.byRef = append(x.byRef, s)
	x.postings.Add(storage.SeriesRef(len(x.byRef)), ls)
	return s, true, nil
}

func (x *Index) at(ref storage.SeriesRef) *Series {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byRef[ref-1]
}
