package ingest

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/keys"
)

// memSeries is one series in memory.
type memSeries struct {
	entry     *index.Series
	spellings atomic.Int32

	mu   sync.Mutex
	open *hourBuffer   // the newest hour; it follows the samples, not the clock
	late []*hourBuffer // earlier hours with samples that are not in the table yet

	// What is known of the table. Only flushing changes it.
	fresh    bool        // the kept months of the catalogue did not have the series when this process first saw it
	ringRead bool        // the ring was read, so that top is not below what it holds
	top      series.Hour // the newest hour that may be in the table, noHour for none
	touched  bool        // top was set
	usual    int         // how many samples an hour usually gets between flushes
	idle     int         // flushes in a row that found nothing to do
}

// hourBuffer is one hour of a series.
type hourBuffer struct {
	hour   series.Hour
	known  bool            // stored is all that this writer has in the table of the hour
	fresh  bool            // the table had nothing of the hour, of any kind, when it began here
	stored []byte          // as it is in the table
	count  int             // of samples in stored
	last   series.Millis   // of stored, taken and tail
	taken  []series.Sample // being flushed, ascending
	tail   []series.Sample // since then, ascending
	extras *extras         // what there is beside floats; nil for nothing
}

// outcome is what became of a sample.
type outcome uint8

const (
	taken     outcome = iota
	duplicate         // it was there already, bit for bit
	conflict          // another value was there at the same time
	overfull          // the series has too much in the hour
)

// append takes a sample into the hour it belongs to, which may have so many samples.
func (s *memSeries) append(sample series.Sample, h *head, limit int) outcome {
	s.mu.Lock()
	o := s.appendLocked(sample, h, limit)
	s.mu.Unlock()
	return o
}

func (s *memSeries) appendLocked(sample series.Sample, h *head, limit int) outcome {
	b := s.hour(sample.T, h)
	if b.extras != nil && b.hasHistogram(sample.T) {
		return conflict
	}
	if sample.T <= b.last {
		return b.insert(sample, h, limit)
	}
	if b.full(limit) {
		return overfull
	}
	switch {
	case cap(b.tail) == 0:
		b.tail = h.tails.get(s.usual)
	case len(b.tail) == cap(b.tail):
		b.tail = h.tails.grown(b.tail)
	}
	b.tail = append(b.tail, sample)
	b.last = sample.T
	return taken
}

// hour gives the buffer that a time belongs to.
func (s *memSeries) hour(t series.Millis, h *head) *hourBuffer {
	if b := s.open; b != nil && t >= b.hour.Start() && t < (b.hour+1).Start() {
		return b
	}
	return s.buffer(t.Hour(), h)
}

// buffer gives the buffer of an hour; a newer hour than the open one becomes the open one.
func (s *memSeries) buffer(hour series.Hour, h *head) *hourBuffer {
	if s.open != nil && s.open.hour == hour {
		return s.open
	}
	for _, b := range s.late {
		if b.hour == hour {
			return b
		}
	}
	b := &hourBuffer{hour: hour, last: math.MinInt64}
	b.fresh = s.unwritten(hour, h.index)
	b.known = b.fresh
	h.index.Enter(s.entry, keys.MonthOf(hour.Day()))
	switch {
	case s.open == nil:
		s.open = b
	case hour > s.open.hour:
		s.late = append(s.late, s.open)
		s.open = b
	default:
		s.late = append(s.late, b)
	}
	return b
}

// unwritten tells of an hour that has just begun here that the table has nothing of it: nothing of the series in the
// whole month; or all that it has was written by this process, and nothing as late as this. Of a series of before that
// cannot be said: later hours than the ring's may be in pages alone.
func (s *memSeries) unwritten(hour series.Hour, x *index.Index) bool {
	month := keys.MonthOf(hour.Day())
	return x.Unwritten(s.entry, month) || s.fresh && (!s.touched || hour > s.top) && x.Kept(month)
}

func (b *hourBuffer) full(limit int) bool { return len(b.tail)+len(b.taken)+b.count >= limit }

// insert takes a sample that is not newer than all others of its hour.
func (b *hourBuffer) insert(sample series.Sample, h *head, limit int) outcome {
	if have, ok := b.at(sample.T); ok {
		if math.Float64bits(have) == math.Float64bits(sample.V) {
			return duplicate
		}
		return conflict
	}
	if b.full(limit) {
		return overfull
	}
	if len(b.tail) == cap(b.tail) {
		b.tail = h.tails.grown(b.tail)
	}
	i, _ := search(b.tail, sample.T)
	b.tail = slices.Insert(b.tail, i, sample)
	return taken
}

// at finds the value at a time.
func (b *hourBuffer) at(t series.Millis) (float64, bool) {
	for _, run := range [][]series.Sample{b.tail, b.taken} {
		if i, ok := search(run, t); ok {
			return run[i].V, true
		}
	}
	if b.count == 0 {
		return 0, false
	}
	samples, err := slot.Decode(nil, b.stored)
	if err != nil {
		panic(fmt.Sprintf("ingest: a slot that was encoded or decoded before cannot be decoded: %v", err))
	}
	if i, ok := search(samples, t); ok {
		return samples[i].V, true
	}
	return 0, false
}

func search(samples []series.Sample, t series.Millis) (int, bool) {
	return slices.BinarySearchFunc(samples, t, func(s series.Sample, t series.Millis) int {
		switch {
		case s.T < t:
			return -1
		case s.T > t:
			return 1
		}
		return 0
	})
}

// samples appends what is not in the table yet.
func (s *memSeries) samples(dst []series.Sample, from, to series.Millis) []series.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := len(dst)
	for _, b := range s.hours(from, to) {
		before := len(dst)
		dst = append(dst, b.taken...)
		if len(b.taken) == 0 || len(b.tail) == 0 || b.tail[0].T > b.taken[len(b.taken)-1].T {
			dst = append(dst, b.tail...)
		} else {
			merged, _ := slot.Merge(nil, b.taken, b.tail)
			dst = append(dst[:before], merged...)
		}
	}
	keep := slices.DeleteFunc(dst[base:], func(x series.Sample) bool { return x.T < from || x.T > to })
	return dst[:base+len(keep)]
}

// hours lists the hours in memory that overlap from..to, the oldest first.
func (s *memSeries) hours(from, to series.Millis) []*hourBuffer {
	hours := slices.Clone(s.late)
	slices.SortFunc(hours, byHour)
	if s.open != nil {
		hours = append(hours, s.open)
	}
	return slices.DeleteFunc(hours, func(b *hourBuffer) bool {
		return (b.hour+1).Start() <= from || b.hour.Start() > to
	})
}

func byHour(a, b *hourBuffer) int { return int(a.hour) - int(b.hour) }

// busy tells whether there is something to flush.
func (s *memSeries) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open != nil && s.open.busy() || slices.ContainsFunc(s.late, (*hourBuffer).busy)
}

func (b *hourBuffer) busy() bool { return len(b.tail) > 0 || b.extras.busy() }

// resting tells whether all is in the table.
func (b *hourBuffer) resting() bool {
	return len(b.tail) == 0 && len(b.taken) == 0 && b.extras.resting()
}

// take moves the tails aside for flushing and gives their buffers, oldest hour first.
func (s *memSeries) take() (hours []*hourBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = 0
	if s.open != nil {
		s.usual = max(1, len(s.open.tail), s.usual/2)
	}
	for _, b := range s.late {
		hours = b.take(hours)
	}
	if s.open != nil {
		hours = s.open.take(hours)
	}
	slices.SortFunc(hours, byHour)
	return hours
}

func (b *hourBuffer) take(hours []*hourBuffer) []*hourBuffer {
	if !b.busy() {
		return hours
	}
	b.taken, b.tail = b.tail, nil
	b.extras.take()
	return append(hours, b)
}

// giveBack undoes take, for what could not be written.
func (s *memSeries) giveBack(hours []*hourBuffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range hours {
		b.tail, _ = slot.Merge(nil, b.taken, b.tail)
		b.taken = nil
		b.extras.giveBack()
	}
}

// settle says that hours were written as slots, in the order of hours, and lets go of hours that are over.
func (s *memSeries) settle(hours []*hourBuffer, written []store.HourSlot, h *head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range hours {
		for len(written) > 0 && written[0].Hour == b.hour {
			b.learn(written[0].Kind, written[0].Data)
			if !s.touched || b.hour > s.top {
				s.top, s.touched = b.hour, true
			}
			written = written[1:]
		}
		h.tails.put(b.taken)
		b.taken = nil
		b.extras.settle(h)
	}
	s.late = slices.DeleteFunc(s.late, (*hourBuffer).resting)
}

// learn notes what the table has of the hour; no data is nothing.
func (b *hourBuffer) learn(kind slot.Kind, data []byte) {
	var info slot.Info
	if len(data) > 0 {
		var err error
		if info, err = slot.Inspect(data); err != nil {
			panic(fmt.Sprintf("ingest: a slot that was encoded or decoded before cannot be read: %v", err))
		}
	}
	switch kind {
	case slot.Histograms:
		b.extras.histograms.learn(data, info)
	case slot.Exemplars:
		b.extras.exemplars.learn(data, info)
	default:
		b.stored, b.count, b.known = data, info.Count, true
		if info.Count > 0 {
			b.last = max(b.last, info.Last)
		}
	}
}

// idleFlushes is after how many flushes without a sample the open hour is let go.
const idleFlushes = 3

// rest notes that a flush found nothing to do, and lets go of the open hour when that has gone on for a while.
func (s *memSeries) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle++; s.idle >= idleFlushes && s.open != nil && s.open.resting() {
		s.open = nil
	}
}
