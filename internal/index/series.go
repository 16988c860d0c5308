package index

import (
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/keys"
)

// Series is an entry of the index. What it holds does not change, but for the months.
type Series struct {
	ID     series.ID
	Labels labels.Labels

	holders int // months in memory that have it, and the head; guarded by the index's lock

	mu     sync.Mutex
	months []month // in which it has samples; what was once noted stays true
}

type month struct {
	keys.Month
	listed bool
}

// In tells whether the series has samples in a month. It is known of months that were in memory since the series was.
func (s *Series) In(m keys.Month) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at(m) >= 0
}

// Listed tells whether the series is in the catalogue of a month: see In.
func (s *Series) Listed(m keys.Month) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.at(m)
	return i >= 0 && s.months[i].listed
}

// SetListed notes that a series which has samples in a month is in its catalogue.
func (s *Series) SetListed(m keys.Month) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.at(m); i >= 0 {
		s.months[i].listed = true
	}
}

func (s *Series) at(m keys.Month) int {
	for i := range s.months {
		if s.months[i].Month == m {
			return i
		}
	}
	return -1
}

// enter notes a month, and says whether it is new.
func (s *Series) enter(m keys.Month) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at(m) >= 0 {
		return false
	}
	s.months = append(s.months, month{Month: m})
	return true
}
