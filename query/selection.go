package query

import (
	"context"
	"slices"
	"sort"
	"sync"

	"daybook/internal/index"
	"daybook/internal/store"
)

// selection is what a selector found. Its series are read a batch at a time, some batches ahead of the one that is asked
// for and several at once, so that reading goes on while the engine evaluates, and a query has no more in memory than
// these batches.
type selection struct {
	fetch
	ctx     context.Context
	found   []*index.Series
	batches []*batch

	mu    sync.Mutex
	begun int // batches that are read, or being read
}

// batch is the series found[first:end].
type batch struct {
	first, end int
	done       chan struct{} // closed when it is read
	runs       []*store.Run  // nil where it was given out
	err        error
}

const (
	batchSeries = 32  // at most, in a batch
	batchRows   = 128 // at most, unless one series alone has more
)

// split makes the batches.
func (s *selection) split() {
	rows := int64(0)
	var b *batch
	for i := range s.found {
		n := s.plan.rows(s.found[i : i+1])
		if b == nil || i-b.first == batchSeries || rows+n > batchRows {
			b, rows = &batch{first: i, done: make(chan struct{})}, 0
			s.batches = append(s.batches, b)
		}
		b.end = i + 1
		rows += n
	}
}

// run gives what was read of series i. It is the caller's, who gives it to recycle when it is done with it.
func (s *selection) run(i int) (*store.Run, error) {
	n := sort.Search(len(s.batches), func(n int) bool { return s.batches[n].end > i })
	b := s.batches[n]
	s.begin(n)
	select {
	case <-b.done:
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	if b.err != nil {
		return nil, b.err
	}
	s.mu.Lock()
	run := b.runs[i-b.first]
	b.runs[i-b.first] = nil
	s.mu.Unlock()
	if run != nil {
		return run, nil
	}
	again, err := s.read(s.ctx, s.found[i:i+1]) // it was given out before
	if err != nil {
		return nil, err
	}
	return again[0], nil
}

// begin sees to it that batch n is read, and some behind it.
func (s *selection) begin(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for end := min(n+1+cap(s.reader.reads), len(s.batches)); s.begun < end; s.begun++ {
		b := s.batches[s.begun]
		if len(s.batches) == 1 {
			s.fill(b)
			continue
		}
		go func() {
			select {
			case s.reader.reads <- struct{}{}:
				defer func() { <-s.reader.reads }()
				s.fill(b)
			case <-s.ctx.Done(): // nobody waits for it
			}
		}()
	}
}

func (s *selection) fill(b *batch) {
	defer close(b.done)
	b.runs, b.err = s.read(s.ctx, s.found[b.first:b.end])
	b.runs = slices.Clip(b.runs)
}
