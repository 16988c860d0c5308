package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/internal/store"
	"daybook/keys"
)

// A flush goes over all buckets in random order and writes the hours of each series that have samples which the table
// has not. It begins with a new segment of the write-ahead log and ends with the removal of the older ones, as all
// that they hold was in the head when it began.

// flushLoop flushes again and again until ctx ends: one round over all buckets takes the configured interval, unless
// the log grows faster.
func (in *Ingester) flushLoop(ctx context.Context) {
	for ctx.Err() == nil {
		start := in.cfg.Now()
		if err := in.round(ctx, in.cfg.FlushInterval); err != nil && ctx.Err() == nil {
			in.metrics.flushFailures.Inc()
			in.cfg.Logger.Error("flushing failed and is tried again; the samples are safe in the write-ahead log", "err", err)
			wait(ctx, retryPause) // however much the log grows: haste does not bring the table back
			continue
		}
		if rest := in.cfg.FlushInterval - in.cfg.Now().Sub(start); rest > 0 {
			in.pause(ctx, rest)
		}
	}
}

const retryPause = 2 * time.Second

// Flush writes everything that is in memory now, at once.
func (in *Ingester) Flush(ctx context.Context) error { return in.round(ctx, 0) }

// round flushes all buckets once, spread over some time.
func (in *Ingester) round(ctx context.Context, over time.Duration) error {
	in.flushing.Lock()
	defer in.flushing.Unlock()
	start := time.Now()
	segment, err := in.log.Rotate()
	if err != nil {
		return err
	}
	buckets := rand.Perm(len(in.head.buckets))
	for _, n := range buckets {
		if over > 0 {
			in.pause(ctx, over/time.Duration(len(buckets)))
		}
		if err := in.flushBucket(ctx, n); err != nil {
			return err
		}
	}
	metadata, err := in.families.write(ctx, in.store, in.cfg.Logger)
	if err != nil {
		return err
	}
	if err := in.store.Sync(ctx); err != nil {
		return err
	}
	in.families.settle(metadata)
	// All that the segments up to this one hold is durable in the table now.
	if err := in.log.Drop(segment); err != nil {
		return err
	}
	in.head.tails.trim()
	in.metrics.flushes.Inc()
	in.metrics.flushSeconds.Observe(time.Since(start).Seconds())
	return nil
}

// hurry tells whether the log has grown so much that a restart would take long. What many series write within an
// interval does not count as much, or they would be flushed without end.
func (in *Ingester) hurry() bool {
	return in.log.Size() >= in.cfg.FlushBytes+int64(in.head.index.Len())*liveBytes || in.head.held.Load() >= hurryHeld
}

// hurryHeld is how much memory histograms and exemplars may take before they are flushed sooner: they compress better
// than floats do, so the log may stay small for long.
const hurryHeld = 64 << 20

// liveBytes is what a series scraped every 15 s adds to the log within two intervals of 5 minutes: 40 samples of some
// 27 bytes.
const liveBytes = 1 << 10

// quiet tells whether nothing has come for a while, so that what is in memory may as well be flushed now.
func (in *Ingester) quiet() bool {
	if in.head.unflushed.Load() <= 0 {
		return false
	}
	select { // only now: what is counted as unflushed has been told of before
	case <-in.grown:
		in.lastGrown = time.Now()
	default:
	}
	return time.Since(in.lastGrown) >= quietAfter
}

const quietAfter = 30 * time.Second

// pause waits, unless ctx ends, the log grows too much, or writes have stopped.
func (in *Ingester) pause(ctx context.Context, d time.Duration) {
	timer, tick := time.NewTimer(d), time.NewTicker(time.Second)
	defer timer.Stop()
	defer tick.Stop()
	for !in.hurry() && !in.quiet() {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-in.grown:
			in.lastGrown = time.Now()
		case <-tick.C:
		}
	}
}

// wait waits, unless ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// flushBatch is how many series are written together: one transaction where each has one hour.
const flushBatch = 100

// flushBucket flushes the series of one bucket.
func (in *Ingester) flushBucket(ctx context.Context, n int) error {
	b := &in.head.buckets[n]
	b.mu.Lock()
	all := b.series
	b.mu.Unlock()
	batch := batch{in: in, bucket: n}
	for _, s := range all {
		if !s.busy() {
			s.rest()
			continue
		}
		batch.series = append(batch.series, s)
		if len(batch.series) == flushBatch {
			if err := batch.flush(ctx); err != nil {
				return err
			}
		}
	}
	return batch.flush(ctx)
}

// batch is a number of series of one bucket that are written together.
type batch struct {
	in      *Ingester
	bucket  int
	series  []*memSeries
	hours   [][]*hourBuffer // of each series
	samples []series.Sample // scratch
	merged  []series.Sample // scratch
}

// flush writes the batch and empties it. After an error all is in memory as before.
func (b *batch) flush(ctx context.Context) error {
	if len(b.series) == 0 {
		return nil
	}
	b.hours = b.hours[:0]
	for _, s := range b.series {
		b.hours = append(b.hours, s.take())
	}
	writes, samples, err := b.prepare(ctx)
	if err == nil {
		err = b.write(ctx, writes)
	}
	for i, s := range b.series {
		if err != nil {
			s.giveBack(b.hours[i])
			continue
		}
		s.settle(b.hours[i], writes[i].Slots, b.in.head)
	}
	if err != nil {
		return fmt.Errorf("flushing bucket %d: %w", b.bucket, err)
	}
	b.in.head.unflushed.Add(-int64(samples))
	b.series = b.series[:0]
	return nil
}

// prepare encodes the hours of each series, with what the table has of them already.
func (b *batch) prepare(ctx context.Context) (writes []store.Write, samples int, err error) {
	for i, s := range b.series {
		w := store.Write{ID: s.entry.ID, Top: noHour}
		if err := s.learn(ctx, b.in.store, b.hours[i]); err != nil {
			return nil, 0, err
		}
		if s.touched {
			w.Top = s.top
		}
		if n := len(b.hours[i]); n > 0 {
			w.Top = max(w.Top, b.hours[i][n-1].hour) // with a clock put back, two of them may share a ring slot
		}
		for _, hour := range b.hours[i] {
			beside := s.extrasOf(hour)
			if w.Slots, err = b.encode(w.Slots, s, hour, beside); err != nil {
				return nil, 0, fmt.Errorf("series %v, hour %v: %w", s.entry.ID, hour.hour.Start().Time(), err)
			}
			samples += len(hour.taken) + beside.takenCount()
		}
		writes = append(writes, w)
	}
	return writes, samples, nil
}

// noHour is before every hour that a sample can have.
const noHour = series.Hour(-1 << 30)

// encode appends the slots of an hour: for each kind that something came of, what is stored and what came since. At equal
// times the stored one stays, be it a float or a histogram.
func (b *batch) encode(dst []store.HourSlot, s *memSeries, hour *hourBuffer, beside *extras) ([]store.HourSlot, error) {
	if len(hour.taken) > 0 {
		data, err := b.encodeFloats(s, hour, beside)
		if err != nil {
			return dst, err
		}
		dst = appendSlot(dst, hour.hour, slot.Floats, data)
	}
	if beside == nil {
		return dst, nil
	}
	if len(beside.histograms.taken) > 0 {
		data, err := b.encodeHistograms(s, hour, beside)
		if err != nil {
			return dst, err
		}
		dst = appendSlot(dst, hour.hour, slot.Histograms, data)
	}
	if x := &beside.exemplars; len(x.taken) > 0 {
		stored, err := x.storedOnes(slot.DecodeExemplars)
		if err != nil {
			return dst, err
		}
		dst = appendSlot(dst, hour.hour, slot.Exemplars, slot.EncodeExemplars(nil, hour.hour, slot.MergeExemplars(stored, x.taken)))
	}
	return dst, nil
}

// appendSlot adds a slot, unless there is nothing to write.
func appendSlot(dst []store.HourSlot, hour series.Hour, kind slot.Kind, data []byte) []store.HourSlot {
	if data == nil {
		return dst
	}
	return append(dst, store.HourSlot{Hour: hour, Kind: kind, Data: data})
}

// encodeFloats gives the slot of an hour's floats, nil where none is left of what came.
func (b *batch) encodeFloats(s *memSeries, hour *hourBuffer, beside *extras) ([]byte, error) {
	all, conflicts := hour.taken, 0
	if beside != nil && beside.histograms.count > 0 {
		stored, err := beside.histograms.storedOnes(slot.DecodeHistograms)
		if err != nil {
			return nil, err
		}
		all = without(all, timeOfSample, stored, timeOfHistogram)
		conflicts = len(hour.taken) - len(all)
	}
	if len(hour.stored) > 0 {
		var err error
		if b.samples, err = slot.Decode(b.samples[:0], hour.stored); err != nil {
			return nil, err
		}
		var more int
		b.merged, more = slot.Merge(b.merged[:0], b.samples, all)
		all, conflicts = b.merged, conflicts+more
	}
	b.leftOut(s, hour, conflicts)
	if len(all) == 0 {
		return nil, nil
	}
	return slot.Encode(make([]byte, 0, 2*len(all)+64), hour.hour, all), nil
}

// encodeHistograms gives the slot of an hour's histograms, nil where none is left of what came.
func (b *batch) encodeHistograms(s *memSeries, hour *hourBuffer, beside *extras) ([]byte, error) {
	all, conflicts := beside.histograms.taken, 0
	if hour.count > 0 {
		floats, err := slot.Decode(nil, hour.stored)
		if err != nil {
			return nil, err
		}
		all = without(all, timeOfHistogram, floats, timeOfSample)
		conflicts = len(beside.histograms.taken) - len(all)
	}
	stored, err := beside.histograms.storedOnes(slot.DecodeHistograms)
	if err != nil {
		return nil, err
	}
	all, more := slot.MergeHistograms(stored, all)
	b.leftOut(s, hour, conflicts+more)
	if len(all) == 0 {
		return nil, nil
	}
	return slot.EncodeHistograms(nil, hour.hour, all), nil
}

// leftOut says of samples and histograms that another one is stored for their time.
func (b *batch) leftOut(s *memSeries, hour *hourBuffer, conflicts int) {
	if conflicts > 0 {
		b.in.metrics.lateConflicts.Add(float64(conflicts))
		b.in.cfg.Logger.Warn("samples with the time of a stored one and another value were left out; the first value stays",
			"series", s.entry.Labels.String(), "hour", hour.hour.Start().Time(), "samples", conflicts)
	}
}

// write lists the series in the catalogue and writes their hours. Where ring slots are still needed the days that
// they hold are closed first.
func (b *batch) write(ctx context.Context, writes []store.Write) error {
	if err := b.list(ctx); err != nil {
		return err
	}
	now := series.MillisOf(b.in.cfg.Now())
	err := b.in.store.WriteHours(ctx, b.bucket, now, writes)
	if !errors.Is(err, store.ErrDayOpen) {
		return err
	}
	b.in.cfg.Logger.Info("closing past days before the ring is written", slog.Any("reason", err))
	if err := b.in.cfg.CloseDays(ctx, now.Day()-1); err != nil {
		return err
	}
	return b.in.store.WriteHours(ctx, b.bucket, now, writes)
}

// list enters the series into the catalogue of each month that they have samples in.
func (b *batch) list(ctx context.Context) error {
	missing := map[keys.Month][]store.Listed{}
	for i, s := range b.series {
		last := keys.Month(-1)
		for _, hour := range b.hours[i] {
			month := keys.MonthOf(hour.hour.Day())
			if month != last && !s.entry.Listed(month) {
				missing[month] = append(missing[month], store.Listed{ID: s.entry.ID, Labels: s.entry.Labels})
			}
			last = month
		}
	}
	for month, entries := range missing {
		if err := b.in.store.List(ctx, b.bucket, month, entries); err != nil {
			return err
		}
	}
	for i, s := range b.series {
		for _, hour := range b.hours[i] {
			s.entry.SetListed(keys.MonthOf(hour.hour.Day()))
		}
	}
	return nil
}
