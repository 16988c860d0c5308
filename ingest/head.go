package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/keys"
)

// head is what is in memory of each series: the hours that are not in the table yet, and the open hour.
type head struct {
	index *index.Index
	store *store.Store
	seed  uint64 // of the hash of label fields, so that no sender can know it
	tails tailPool

	shards  [64]shard  // by id
	spelled [64]spells // by hash of the label fields
	buckets []bucket   // by the store's bucket

	unflushed atomic.Int64 // samples, histograms and exemplars in memory that are not in the table
	held      atomic.Int64 // memory of these histograms and exemplars
}

type shard struct {
	mu   sync.RWMutex
	byID map[series.ID]*memSeries
}

// spells finds a series by a hash of its labels as they stand in a message, so that most messages need no look at
// single labels. A series has as many entries as there are ways in which senders spell its labels.
type spells struct {
	mu sync.RWMutex
	by map[uint64]spell
}

type spell struct {
	check  uint64 // the other half of the hash
	series *memSeries
}

// bucket lists the series of one of the store's buckets.
type bucket struct {
	mu     sync.Mutex
	series []*memSeries
}

func newHead(x *index.Index, s *store.Store, seed uint64) *head {
	h := &head{index: x, store: s, seed: seed, buckets: make([]bucket, s.Buckets())}
	for i := range h.shards {
		h.shards[i].byID = map[series.ID]*memSeries{}
		h.spelled[i].by = map[uint64]spell{}
	}
	return h
}

// find gives the series with these label fields, entering it where it is new. The error is a *Refusal where they are
// not a series' labels.
func (h *head) find(fields []byte) (*memSeries, error) {
	sum := xxh3.Hash128Seed(fields, h.seed)
	spells := &h.spelled[sum.Hi%uint64(len(h.spelled))]
	spells.mu.RLock()
	found, ok := spells.by[sum.Lo]
	spells.mu.RUnlock()
	if ok && found.check == sum.Hi {
		return found.series, nil
	}
	s, err := h.enter(fields)
	if err != nil {
		return nil, err
	}
	if s.spellings.Add(1) <= maxSpellings {
		spells.mu.Lock()
		spells.by[sum.Lo] = spell{sum.Hi, s}
		spells.mu.Unlock()
	}
	return s, nil
}

// maxSpellings bounds what senders that put labels in ever new orders take of the memory.
const maxSpellings = 8

// enter finds or makes a series by its labels.
func (h *head) enter(fields []byte) (*memSeries, error) {
	ls, err := seriesLabels(fields)
	if err != nil {
		return nil, err
	}
	id := keys.SeriesID(h.store.Tenant(), ls)
	shard := h.shard(id)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if s := shard.byID[id]; s != nil && s.entry.Labels.Hash() == ls.Hash() {
		return s, nil
	}
	entry, added, err := h.index.Add(id, ls)
	if errors.Is(err, index.ErrCollision) {
		return nil, &Refusal{Series: ls.String(), Reason: fmt.Sprintf("it cannot be stored beside another series: %v", err)}
	}
	if err != nil {
		return nil, err
	}
	s := &memSeries{entry: entry, fresh: added}
	shard.byID[id] = s
	b := &h.buckets[h.store.Bucket(id)]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.series = append(b.series, s)
	return s, nil
}

func (h *head) shard(id series.ID) *shard {
	return &h.shards[binary.BigEndian.Uint16(id[6:])%uint16(len(h.shards))]
}

// Samples appends to dst the samples of a series from..to (both included) that may not be in the table yet, ascending.
// A reader asks for these first and reads the table then, so that it misses nothing that is flushed in between.
func (h *head) Samples(dst []series.Sample, id series.ID, from, to series.Millis) []series.Sample {
	if s := h.get(id); s != nil {
		return s.samples(dst, from, to)
	}
	return dst
}

// Histograms is Samples for native histograms. They are shared: who changes one copies it first.
func (h *head) Histograms(dst []series.Histogram, id series.ID, from, to series.Millis) []series.Histogram {
	if s := h.get(id); s != nil {
		return s.histograms(dst, from, to)
	}
	return dst
}

// Exemplars is Samples for exemplars, several of which may have one time.
func (h *head) Exemplars(dst []series.Exemplar, id series.ID, from, to series.Millis) []series.Exemplar {
	if s := h.get(id); s != nil {
		return s.exemplars(dst, from, to)
	}
	return dst
}

// get gives a series that was written to since the start; nil where it was not.
func (h *head) get(id series.ID) *memSeries {
	shard := h.shard(id)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.byID[id]
}

// tailPool lends out slices of samples, their capacities powers of two, so that a busy head makes no garbage.
type tailPool struct {
	classes [18]struct {
		mu   sync.Mutex
		free [][]series.Sample
	}
}

const smallestTail = 8

func tailClass(capacity int) (class int) {
	for c := smallestTail; c < capacity; c *= 2 {
		class++
	}
	return class
}

// grown gives a slice with the samples of tail and room for one more.
func (p *tailPool) grown(tail []series.Sample) []series.Sample {
	bigger := p.get(len(tail) + 1)
	bigger = append(bigger, tail...)
	p.put(tail)
	return bigger
}

func (p *tailPool) get(capacity int) []series.Sample {
	n := tailClass(capacity)
	if n >= len(p.classes) {
		return make([]series.Sample, 0, capacity)
	}
	class := &p.classes[n]
	class.mu.Lock()
	defer class.mu.Unlock()
	if last := len(class.free) - 1; last >= 0 {
		tail := class.free[last]
		class.free = class.free[:last]
		return tail
	}
	return make([]series.Sample, 0, smallestTail<<n)
}

func (p *tailPool) put(tail []series.Sample) {
	n := tailClass(cap(tail))
	if cap(tail) == 0 || n >= len(p.classes) || cap(tail) != smallestTail<<n {
		return
	}
	class := &p.classes[n]
	class.mu.Lock()
	defer class.mu.Unlock()
	class.free = append(class.free, tail[:0])
}

// trim lets go of slices that nobody took lately.
func (p *tailPool) trim() {
	for i := range p.classes {
		class := &p.classes[i]
		class.mu.Lock()
		keep := len(class.free) / 2
		clear(class.free[keep:])
		class.free = class.free[:keep]
		class.mu.Unlock()
	}
}
