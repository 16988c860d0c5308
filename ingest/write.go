package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/golang/snappy"
)

// Result is what is stored of a request, what was there already included.
type Result struct {
	Samples    int
	Histograms int
	Exemplars  int
}

// version is that of the remote write protocol.
type version uint8

const (
	v1 version = 1
	v2 version = 2
)

// request is the memory that handling one request takes.
type request struct {
	version    version
	decoded    []byte
	symbols    symbols // of version 2.0
	message    message
	histograms []checkedHistogram // of one series
	exemplars  []checkedExemplar
	accepted   []byte // the request without what was refused, built only where something was
	record     []byte // what goes into the log, where that is not the body
	bad        parts  // what of one message was refused
	name       string // of one series, once a refusal has named it
	refused    RefusedError
	result     Result
	leftOut    int   // exemplars beyond the limit
	fresh      int64 // samples, histograms and exemplars that were not there already
	news       int   // metadata that is not in the table
}

// Write takes the body of a remote write 1.0 request, compressed with snappy. The body is not kept. Errors match
// ErrMessage, ErrTooLarge or ErrUnavailable, or are a *RefusedError, after which all but what was refused is stored.
func (in *Ingester) Write(ctx context.Context, body []byte) (Result, error) {
	return in.write(ctx, body, v1)
}

// WriteV2 is Write for remote write 2.0. With a *RefusedError the Result says what is stored all the same; with other
// errors nothing is known to be.
func (in *Ingester) WriteV2(ctx context.Context, body []byte) (Result, error) {
	return in.write(ctx, body, v2)
}

func (in *Ingester) write(ctx context.Context, body []byte, v version) (Result, error) {
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
	if err := r.decode(body, n, v); err != nil {
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
	if r.refused.any() {
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
	if held := in.head.held.Load(); err == nil && held > in.cfg.MaxLogBytes/4 {
		err = fmt.Errorf("%d bytes of histograms and exemplars wait for the table, a quarter of wal.max_size at most", held)
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

func (r *request) decode(body []byte, n int, v version) (err error) {
	r.version = v
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
	clear(r.histograms[:cap(r.histograms)])
	clear(r.exemplars[:cap(r.exemplars)])
	kept := *r
	*r = request{}
	if cap(kept.decoded) <= maxKeptBuffer && cap(kept.record) <= maxKeptBuffer {
		kept.bad.reset()
		r.decoded, r.message, r.record, r.bad = kept.decoded, kept.message, kept.record, kept.bad
		r.symbols.at, r.histograms, r.exemplars = kept.symbols.at, kept.histograms[:0], kept.exemplars[:0]
	}
	in.requests.Put(r)
}

// persist writes what was accepted to the log. What the table is known to have needs none, which only metadata is.
func (in *Ingester) persist(r *request, body []byte) error {
	if r.result == (Result{}) && r.news == 0 {
		return nil
	}
	if err := in.log.Append(r.logged(body)); err != nil {
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
