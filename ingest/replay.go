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
	n, err := snappy.DecodedLen(j.record)
	if err == nil {
		err = r.decode(j.record, n)
	}
	if err != nil {
		return err
	}
	found, err := in.lookUp(r)
	<-j.turn
	samples := found.samples
	for i, s := range found.series {
		for _, sample := range samples[:found.counts[i]] {
			if s.append(sample, in.head, math.MaxInt) == taken {
				r.fresh++
			}
		}
		samples = samples[found.counts[i]:]
	}
	in.head.unflushed.Add(r.fresh)
	return err
}

// found is what a record holds.
type found struct {
	series  []*memSeries
	counts  []int           // of the samples of each
	samples []series.Sample // those of the first series first
}

// lookUp finds the series of a record in the head, or enters them.
func (in *Ingester) lookUp(r *request) (f found, err error) {
	err = eachSeries(r.decoded, &r.message, func(m *message) error {
		if len(m.samples) == 0 {
			return nil
		}
		s, err := in.head.find(m.labels)
		if _, ok := errors.AsType[*Refusal](err); ok {
			in.cfg.Logger.Error("a series in the write-ahead log cannot be stored", "err", err)
			return nil
		}
		if err != nil {
			return err
		}
		f.series, f.counts = append(f.series, s), append(f.counts, len(m.samples))
		f.samples = append(f.samples, m.samples...)
		return nil
	})
	return f, err
}
