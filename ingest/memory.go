package ingest

import (
	"math"

	"daybook/internal/series"
)

// Memory says what of the samples is in memory.
type Memory struct {
	Hours       int           // of a series each
	First, Last series.Millis // the begin of the first such hour and the end of the last
}

// Memory goes over all series that were written to since the start. Where nothing is in memory, First is after Last.
func (in *Ingester) Memory() Memory {
	m := Memory{First: math.MaxInt64, Last: math.MinInt64}
	for i := range in.head.shards {
		shard := &in.head.shards[i]
		shard.mu.RLock()
		for _, s := range shard.byID {
			s.count(&m)
		}
		shard.mu.RUnlock()
	}
	return m
}

func (s *memSeries) count(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		m.add(s.open.hour)
	}
	for _, b := range s.late {
		m.add(b.hour)
	}
}

func (m *Memory) add(h series.Hour) {
	m.Hours++
	m.First, m.Last = min(m.First, h.Start()), max(m.Last, (h+1).Start()-1)
}
