package ingest

import (
	"errors"
	"fmt"
	"math"

	"github.com/golang/snappy"
	"golang.org/x/sync/errgroup"

	"daybook/ingest/wal"
	"daybook/internal/series"
)

// replay opens the log. Several goroutines take its records apart, but samples go into the head in the order of the
// records: the log may hold two values for a time where the first had left memory when the second came, and after a
// crash the table may have neither.
func (in *Ingester) replay() (records int, err error) {
	const readers = 4
	work := make(chan job, readers)
	var group errgroup.Group
	for range readers {
		group.Go(func() error {
			var err error
			for j := range work {
				err = errors.Join(err, in.again(j))
			}
			return err
		})
	}
	turn := make(chan struct{})
	close(turn) // it is the first record's
	in.log, err = wal.Open(wal.Config{
		Dir: in.cfg.Dir, SegmentBytes: segmentBytes, MaxBytes: in.cfg.MaxLogBytes, Logger: in.cfg.Logger,
	}, func(record []byte) error {
		done := make(chan struct{})
		work <- job{record, turn, done}
		turn = done
		records++
		return nil
	})
	close(work)
	if err := errors.Join(err, group.Wait()); err != nil {
		return records, fmt.Errorf("reading the write-ahead log back: %w", err)
	}
	return records, nil
}

// job is a record that is to be taken into the head.
type job struct {
	record []byte
	turn   <-chan struct{} // closed when all records before it are in the head
	done   chan<- struct{} // to be closed when it is itself
}

// again takes a record of the log into the head. All of it was accepted once, so nothing is refused now: neither what
// is too old by now nor what a limit allowed then.
func (in *Ingester) again(j job) error {
	defer close(j.done)
	r := in.requests.Get().(*request)
	defer in.recycle(r)
	body, v := bodyOf(j.record)
	n, err := snappy.DecodedLen(body)
	if err == nil {
		err = r.decode(body, n, v)
	}
	if err != nil {
		return err
	}
	found, err := in.lookUp(r)
	<-j.turn
	var begin stretch
	for i, s := range found.series {
		in.putBack(r, s, found, begin, found.ends[i])
		begin = found.ends[i]
	}
	for i := range found.metadata {
		in.families.put(found.metadata[i])
	}
	in.head.unflushed.Add(r.fresh)
	return err
}

// found is what a record holds.
type found struct {
	series     []*memSeries
	ends       []stretch // where what is of each ends
	samples    []series.Sample
	histograms []checkedHistogram
	exemplars  []series.Exemplar
	metadata   []series.Metadata
}

// stretch is how many samples, histograms and exemplars there are up to somewhere.
type stretch struct{ samples, histograms, exemplars int }

// putBack takes what a record holds of a series, which lies between from and to.
func (in *Ingester) putBack(r *request, s *memSeries, f found, from, to stretch) {
	for _, sample := range f.samples[from.samples:to.samples] {
		r.count(s.append(sample, in.head, math.MaxInt))
	}
	for _, c := range f.histograms[from.histograms:to.histograms] {
		r.count(s.appendHistogram(c.Histogram, c.size, math.MaxInt, in.head))
	}
	for _, x := range f.exemplars[from.exemplars:to.exemplars] {
		r.count(s.appendExemplar(x, math.MaxInt, in.head))
	}
}

// count counts what was not there already.
func (r *request) count(o outcome) {
	if o == taken {
		r.fresh++
	}
}

// lookUp reads a record, and finds its series in the head or enters them.
func (in *Ingester) lookUp(r *request) (f found, err error) {
	err = r.each(math.MaxInt, func(m *message) error {
		if m.metadata.given {
			f.metadata = append(f.metadata, m.metadata.copied())
		}
		if len(m.samples)+len(m.histograms)+len(m.exemplars) == 0 {
			return nil
		}
		if m.fault != "" { // which was not accepted, so it should not be there
			in.cfg.Logger.Error("a series in the write-ahead log cannot be stored", "err", &Refusal{Series: nameOf(m.labels), Reason: m.fault})
			return nil
		}
		s, err := in.head.find(m.labels)
		if _, ok := errors.AsType[*Refusal](err); ok {
			in.cfg.Logger.Error("a series in the write-ahead log cannot be stored", "err", err)
			return nil
		}
		if err == nil {
			err = f.add(m)
		}
		if err != nil {
			return err
		}
		f.series = append(f.series, s)
		f.ends = append(f.ends, stretch{len(f.samples), len(f.histograms), len(f.exemplars)})
		return nil
	})
	return f, err
}

// add reads what a message has of a series.
func (f *found) add(m *message) error {
	f.samples = append(f.samples, m.samples...)
	for _, raw := range m.histograms {
		fields, err := readHistogram(raw)
		if err != nil {
			return err
		}
		f.histograms = append(f.histograms, checkedHistogram{Histogram: fields.histogram(), size: len(raw)})
	}
	for _, e := range m.exemplars {
		ls, _, err := exemplarLabels(m.fieldsOf(e))
		if err != nil {
			return err
		}
		f.exemplars = append(f.exemplars, series.Exemplar{T: e.t, V: e.v, Labels: ls})
	}
	return nil
}
