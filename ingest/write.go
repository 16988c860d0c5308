package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/golang/snappy"

	"daybook/internal/series"
)

// Result is what became of a request.
type Result struct {
	Samples    int // stored, those that were there already included
	Exemplars  int // that came; none is stored
	Histograms int // that came; none is stored
}

// request is the memory that handling one request takes.
type request struct {
	decoded  []byte
	message  message
	accepted []byte // the request without what was refused, built only where something was
	bad      []int  // the numbers of the samples of one series that were refused
	name     string // of one series, once a refusal has named it
	refused  RefusedError
	result   Result
	fresh    int64 // samples that were not there already
}

// Write takes the body of a remote write 1.0 request, compressed with snappy. The body is not kept. Errors match
// ErrMessage, ErrTooLarge or ErrUnavailable, or are a *RefusedError, after which all but the refused samples are stored.
func (in *Ingester) Write(ctx context.Context, body []byte) (Result, error) {
	if err := in.ready(); err != nil {
		return Result{}, err
	}
	n, err := in.decodedLen(body)
	if err != nil {
		return Result{}, err
	}
	if err := in.inFlight.acquire(ctx, int64(n)); err != nil {
		if errors.Is(err, ErrUnavailable) {
			in.metrics.unavailable.Inc()
		}
		return Result{}, err
	}
	defer in.inFlight.release(int64(n))
	r := in.requests.Get().(*request)
	defer in.recycle(r)
	if err := r.decode(body, n); err != nil {
		return Result{}, err
	}
	if err = in.take(r); err == nil {
		err = in.persist(r, body)
	}
	in.head.unflushed.Add(r.fresh) // after the flush loop was told that the log has grown; see quiet
	if err != nil {
		return Result{}, err
	}
	in.metrics.count(r)
	if r.refused.Samples > 0 || len(r.refused.Refusals) > 0 {
		refused := r.refused
		return r.result, &refused
	}
	return r.result, nil
}

// ready refuses before anything is taken apart or kept in memory, so that nothing piles up that cannot be logged.
func (in *Ingester) ready() error {
	err := in.log.Ready()
	if err == nil && in.cfg.FreeDisk != nil {
		err = in.cfg.FreeDisk()
	}
	if err != nil {
		in.metrics.unavailable.Inc()
		return errors.Join(ErrUnavailable, err)
	}
	return nil
}

// decodedLen checks what the body says of its length before any memory is taken for it.
func (in *Ingester) decodedLen(body []byte) (int, error) {
	if len(body) > in.cfg.MaxBody {
		return 0, fmt.Errorf("%d bytes, at most %d are taken: %w", len(body), in.cfg.MaxBody, ErrTooLarge)
	}
	n, err := snappy.DecodedLen(body)
	if err != nil {
		return 0, fmt.Errorf("the body is not compressed with snappy (block format): %w: %w", err, ErrMessage)
	}
	if n > in.cfg.MaxDecoded {
		return 0, fmt.Errorf("%d bytes decompressed, at most %d are taken: %w", n, in.cfg.MaxDecoded, ErrTooLarge)
	}
	return n, nil
}

func (r *request) decode(body []byte, n int) (err error) {
	if cap(r.decoded) < n {
		r.decoded = make([]byte, n+n/8)
	}
	r.decoded, err = snappy.Decode(r.decoded[:cap(r.decoded)], body)
	if err != nil {
		return fmt.Errorf("the body is not compressed with snappy (block format): %w: %w", err, ErrMessage)
	}
	return nil
}

const maxKeptBuffer = 4 << 20

func (in *Ingester) recycle(r *request) {
	if cap(r.decoded) > maxKeptBuffer {
		r.decoded = nil
	}
	r.accepted, r.refused, r.result, r.fresh = nil, RefusedError{}, Result{}, 0
	in.requests.Put(r)
}

// take puts the samples into the head.
func (in *Ingester) take(r *request) error {
	b := in.bounds()
	before := 0 // series of the request handled so far
	return eachSeries(r.decoded, &r.message, func(m *message) error {
		defer func() { before++ }()
		refusedBefore := r.refused.Samples
		r.bad, r.name = r.bad[:0], ""
		r.result.Exemplars += m.exemplars
		r.result.Histograms += m.histograms
		if err := in.takeSeries(r, m, b); err != nil {
			return err
		}
		if r.refused.Samples > refusedBefore && r.accepted == nil {
			r.accepted = in.acceptedSoFar(r, before)
		}
		if r.accepted != nil && len(r.bad) < len(m.samples) {
			r.accepted = m.appendWithout(r.accepted, r.bad)
		}
		return nil
	})
}

// acceptedSoFar is the request up to its n-th series, of which nothing was refused.
func (in *Ingester) acceptedSoFar(r *request, n int) []byte {
	accepted := make([]byte, 0, len(r.decoded))
	var m message
	_ = eachSeries(r.decoded, &m, func(m *message) error { // it was read without an error before
		if n > 0 && len(m.samples) > 0 {
			accepted = m.appendWithout(accepted, nil)
		}
		n--
		return nil
	})
	return accepted
}

// takeSeries puts the samples of one series into the head, and notes what it refuses.
func (in *Ingester) takeSeries(r *request, m *message, b bounds) error {
	if m.histograms > 0 {
		r.refused.add(Refusal{r.nameOf(m), "native histograms are not stored yet: send_native_histograms must be off", m.histograms})
	}
	if !slices.ContainsFunc(m.samples, b.hold) {
		return r.refuseAll(m, b) // what has nothing to store does not become a series
	}
	s, err := in.head.find(m.labels)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.refuse(m, *refusal)
		return nil
	}
	if err != nil {
		return err
	}
	for i, sample := range m.samples {
		if reason := in.takeSample(r, s, sample, b); reason != "" {
			r.refused.add(Refusal{r.nameOf(m), reason, 1})
			r.bad = append(r.bad, i)
			continue
		}
		r.result.Samples++
	}
	return nil
}

// refuse refuses all samples of a series for one reason.
func (r *request) refuse(m *message, why Refusal) {
	why.Count = len(m.samples)
	r.refused.add(why)
	for i := range m.samples {
		r.bad = append(r.bad, i)
	}
}

// refuseAll refuses a series none of whose samples is within the bounds; it may have no samples at all.
func (r *request) refuseAll(m *message, b bounds) error {
	_, err := seriesLabels(m.labels)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		r.refuse(m, *refusal)
		return nil
	}
	for i, sample := range m.samples {
		r.refused.add(Refusal{r.nameOf(m), b.reason(sample.T), 1})
		r.bad = append(r.bad, i)
	}
	return err
}

// takeSample puts a sample into the head, or says why not.
func (in *Ingester) takeSample(r *request, s *memSeries, sample series.Sample, b bounds) (reason string) {
	if !b.hold(sample) {
		return b.reason(sample.T)
	}
	switch s.append(sample, in.head, in.cfg.MaxPerHour) {
	case taken:
		r.fresh++
	case conflict:
		return fmt.Sprintf("another value is stored for timestamp %s already", stamp(sample.T))
	case overfull:
		return fmt.Sprintf("more than %d samples of one series within an hour (ingest.max_samples_per_hour)", in.cfg.MaxPerHour)
	}
	return ""
}

func (in *Ingester) bounds() bounds {
	now := series.MillisOf(in.cfg.Now())
	b := bounds{now: now, newest: now + series.Millis(Future.Milliseconds()), oldest: earliest, retention: in.cfg.Retention}
	if in.cfg.Retention > 0 {
		b.oldest = max(earliest, now-series.Millis(in.cfg.Retention.Milliseconds()))
	}
	return b
}

// nameOf is how a refusal names a series, whatever its labels are.
func (r *request) nameOf(m *message) string {
	if r.name == "" {
		r.name = nameOf(m.labels)
	}
	return r.name
}

// persist writes what was accepted to the log.
func (in *Ingester) persist(r *request, body []byte) error {
	if r.result.Samples == 0 {
		return nil
	}
	if r.accepted != nil {
		body = snappy.Encode(nil, r.accepted)
	}
	if err := in.log.Append(body); err != nil {
		in.metrics.unavailable.Inc()
		return errors.Join(ErrUnavailable, err)
	}
	select {
	case in.grown <- struct{}{}:
	default:
	}
	return nil
}

// inFlight bounds the bytes of the requests that are handled at the same time.
type inFlight struct {
	mu   sync.Mutex
	free int64
	all  int64
}

func newInFlight(bytes int64) *inFlight { return &inFlight{free: bytes, all: bytes} }

// acquire takes n bytes, or says that there is too much going on.
func (f *inFlight) acquire(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > f.free && f.free < f.all {
		return fmt.Errorf("%d bytes of requests are being handled (ingest.max_in_flight): %w", f.all-f.free, ErrUnavailable)
	}
	f.free -= n
	return nil
}

func (f *inFlight) release(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free += n
}
