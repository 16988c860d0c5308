package ingest

import (
	"fmt"
	"math"
	"slices"

	"daybook/internal/series"
	"daybook/internal/slot"
)

// extras is what an hour of a series has beside floats. Most hours have none.
type extras struct {
	histograms run[series.Histogram]
	exemplars  run[series.Exemplar]
}

// run is one kind of an hour, as hourBuffer is it for floats.
type run[E any] struct {
	known  bool          // stored is all that this writer has in the table of the hour
	stored []byte        // as it is in the table
	count  int           // in stored
	last   series.Millis // of stored
	taken  []E           // being flushed, ascending
	tail   []E           // since then, ascending
	came   int           // bytes of tail, as they came
	leaves int           // bytes of taken
}

// beside gives what an hour has beside floats. Where that is nothing yet, the table has nothing either if it had nothing
// at all when the hour began here.
func (b *hourBuffer) beside() *extras {
	if b.extras == nil {
		b.extras = new(extras)
		b.extras.histograms.known, b.extras.exemplars.known = b.fresh, b.fresh
	}
	return b.extras
}

// extrasOf gives what an hour has beside floats, nil for nothing.
func (s *memSeries) extrasOf(b *hourBuffer) *extras {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.extras
}

// appendHistogram takes a histogram that came in so many bytes.
func (s *memSeries) appendHistogram(x series.Histogram, size, limit int, h *head) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.hour(x.T, h)
	r := &b.beside().histograms
	if have, ok := histogramAt(r, x.T); ok {
		if slot.SameHistogram(have, x) {
			return duplicate
		}
		return conflict
	}
	if b.hasFloat(x.T) {
		return conflict
	}
	if r.came+r.leaves+len(r.stored)+size > limit {
		return overfull
	}
	r.insert(x, size, timeOfHistogram)
	h.held.Add(int64(slot.HistogramBytes(x)))
	return taken
}

// appendExemplar takes an exemplar. At one time there may be several; the same again is a duplicate.
func (s *memSeries) appendExemplar(x series.Exemplar, limit int, h *head) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.hour(x.T, h)
	r := &b.beside().exemplars
	if hasExemplar(r, x) {
		return duplicate
	}
	if len(r.tail)+len(r.taken)+r.count >= limit {
		return overfull
	}
	r.insert(x, 0, timeOfExemplar)
	h.held.Add(int64(slot.ExemplarBytes(x)))
	return taken
}

func timeOfSample(x series.Sample) series.Millis       { return x.T }
func timeOfHistogram(x series.Histogram) series.Millis { return x.T }
func timeOfExemplar(x series.Exemplar) series.Millis   { return x.T }

// insert puts x behind all that is not later.
func (r *run[E]) insert(x E, size int, timeOf func(E) series.Millis) {
	r.tail = slices.Insert(r.tail, firstFrom(r.tail, timeOf(x)+1, timeOf), x)
	r.came += size
}

// firstFrom is the number of the first that is at t or later.
func firstFrom[E any](all []E, t series.Millis, timeOf func(E) series.Millis) int {
	if n := len(all); n == 0 || timeOf(all[n-1]) < t {
		return n // as it nearly always is
	}
	i, _ := slices.BinarySearchFunc(all, t, func(x E, t series.Millis) int {
		if timeOf(x) < t {
			return -1
		}
		return 1
	})
	return i
}

// histogramAt finds the histogram at a time.
func histogramAt(r *run[series.Histogram], t series.Millis) (series.Histogram, bool) {
	for _, all := range [][]series.Histogram{r.tail, r.taken, r.decoded(t, slot.DecodeHistograms)} {
		if i := firstFrom(all, t, timeOfHistogram); i < len(all) && all[i].T == t {
			return all[i], true
		}
	}
	return series.Histogram{}, false
}

func hasExemplar(r *run[series.Exemplar], x series.Exemplar) bool {
	for _, all := range [][]series.Exemplar{r.tail, r.taken, r.decoded(x.T, slot.DecodeExemplars)} {
		for i := firstFrom(all, x.T, timeOfExemplar); i < len(all) && all[i].T == x.T; i++ {
			if sameExemplar(all[i], x) {
				return true
			}
		}
	}
	return false
}

// decoded gives what is stored, where that may have something at t.
func (r *run[E]) decoded(t series.Millis, decode func([]E, []byte) ([]E, error)) []E {
	if r.count == 0 || t > r.last {
		return nil
	}
	all, err := decode(nil, r.stored)
	if err != nil {
		panic(fmt.Sprintf("ingest: a slot that was encoded or decoded before cannot be decoded: %v", err))
	}
	return all
}

// hasFloat tells whether there is a float at a time.
func (b *hourBuffer) hasFloat(t series.Millis) bool {
	if t > b.last {
		return false
	}
	_, ok := b.at(t)
	return ok
}

// hasHistogram tells, where there are extras, whether there is a histogram at a time.
func (b *hourBuffer) hasHistogram(t series.Millis) bool {
	_, ok := histogramAt(&b.extras.histograms, t)
	return ok
}

// busy tells whether there is something to flush.
func (x *extras) busy() bool {
	return x != nil && len(x.histograms.tail)+len(x.exemplars.tail) > 0
}

// resting tells whether all is in the table.
func (x *extras) resting() bool {
	return x == nil || len(x.histograms.tail)+len(x.histograms.taken)+len(x.exemplars.tail)+len(x.exemplars.taken) == 0
}

func (x *extras) take() {
	if x != nil {
		x.histograms.take()
		x.exemplars.take()
	}
}

func (r *run[E]) take() {
	r.taken, r.tail, r.leaves, r.came = r.tail, nil, r.came, 0
}

// takenCount is how much is being flushed.
func (x *extras) takenCount() int {
	if x == nil {
		return 0
	}
	return len(x.histograms.taken) + len(x.exemplars.taken)
}

// giveBack undoes take.
func (x *extras) giveBack() {
	if x == nil {
		return
	}
	merged, _ := slot.MergeHistograms(x.histograms.taken, x.histograms.tail)
	x.histograms.giveBack(merged)
	x.exemplars.giveBack(slot.MergeExemplars(x.exemplars.taken, x.exemplars.tail))
}

func (r *run[E]) giveBack(merged []E) {
	r.tail, r.taken = merged, nil
	r.came, r.leaves = r.came+r.leaves, 0
}

// settle says that what was taken is in the table.
func (x *extras) settle(h *head) {
	if x == nil {
		return
	}
	for _, one := range x.histograms.taken {
		h.held.Add(-int64(slot.HistogramBytes(one)))
	}
	for _, one := range x.exemplars.taken {
		h.held.Add(-int64(slot.ExemplarBytes(one)))
	}
	x.histograms.taken, x.histograms.leaves = nil, 0
	x.exemplars.taken, x.exemplars.leaves = nil, 0
}

// storedOnes decodes what the table has.
func (r *run[E]) storedOnes(decode func([]E, []byte) ([]E, error)) ([]E, error) {
	if len(r.stored) == 0 {
		return nil, nil
	}
	return decode(nil, r.stored)
}

// without gives those of all that have no time of others; both are ascending.
func without[E, O any](all []E, timeOf func(E) series.Millis, others []O, timeOfOther func(O) series.Millis) []E {
	taken := func(x E) bool {
		i := firstFrom(others, timeOf(x), timeOfOther)
		return i < len(others) && timeOfOther(others[i]) == timeOf(x)
	}
	if !slices.ContainsFunc(all, taken) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), taken)
}

// learn notes what the table has of the hour.
func (r *run[E]) learn(stored []byte, info slot.Info) {
	r.known, r.stored, r.count, r.last = true, stored, info.Count, info.Last
}

// histograms appends what is not in the table yet.
func (s *memSeries) histograms(dst []series.Histogram, from, to series.Millis) []series.Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.hours(from, to) {
		if b.extras != nil {
			r := &b.extras.histograms
			merged, _ := slot.MergeHistograms(r.taken, r.tail)
			dst = append(dst, between(merged, from, to, timeOfHistogram)...)
		}
	}
	return dst
}

// exemplars appends what is not in the table yet.
func (s *memSeries) exemplars(dst []series.Exemplar, from, to series.Millis) []series.Exemplar {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.hours(from, to) {
		if b.extras != nil {
			r := &b.extras.exemplars
			dst = append(dst, between(slot.MergeExemplars(r.taken, r.tail), from, to, timeOfExemplar)...)
		}
	}
	return dst
}

func between[E any](all []E, from, to series.Millis, timeOf func(E) series.Millis) []E {
	all = all[firstFrom(all, from, timeOf):]
	if to == math.MaxInt64 {
		return all
	}
	return all[:firstFrom(all, to+1, timeOf)]
}
