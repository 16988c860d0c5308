package crash

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// write is one request.
type write struct {
	tracks []*track
	series []prompb.TimeSeries // of each track
	body   []byte
}

func (w *write) add(k *track, samples []prompb.Sample) {
	if len(samples) > 0 {
		w.tracks = append(w.tracks, k)
		w.series = append(w.series, prompb.TimeSeries{Labels: k.labels, Samples: samples})
	}
}

func (w *write) samples() (n int) {
	for _, s := range w.series {
		n += len(s.Samples)
	}
	return n
}

// encode makes the body, once.
func (w *write) encode() {
	if w.body != nil {
		return
	}
	var raw []byte
	for _, s := range w.series {
		raw = appendField(raw, 1, encodeSeries(s))
	}
	w.body = snappy.Encode(nil, raw)
}

// encodeSeries is a message TimeSeries. Samples are put in by hand, as prompb makes 0 of -0.
func encodeSeries(s prompb.TimeSeries) []byte {
	b, err := (&prompb.TimeSeries{Labels: s.Labels}).Marshal()
	if err != nil {
		panic(fmt.Sprintf("encoding a series: %v", err))
	}
	for _, one := range s.Samples {
		sample := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(one.Value))
		sample = binary.AppendUvarint(append(sample, 2<<3), uint64(one.Timestamp))
		b = appendField(b, 2, sample)
	}
	return b
}

// appendField appends a field that holds a message.
func appendField(b []byte, number byte, message []byte) []byte {
	b = binary.AppendUvarint(append(b, number<<3|2), uint64(len(message)))
	return append(b, message...)
}

func (w *write) acknowledge() {
	for i, k := range w.tracks {
		k.acknowledge(w.series[i].Samples)
	}
}

// answer is what daybook said to a write.
type answer struct {
	status int // 0 where there was no answer
	text   string
	header http.Header
}

func (a answer) ok() bool { return a.status/100 == 2 }

// post sends a request and notes in the ledger when it is acknowledged.
func (w *write) post(client *http.Client, url string) answer {
	w.encode()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url+"/api/v1/write", bytes.NewReader(w.body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	resp, err := client.Do(req)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // the status is what counts
	if resp.StatusCode/100 == 2 {
		w.acknowledge()
	}
	return answer{status: resp.StatusCode, text: string(text), header: resp.Header}
}

// connection is a client with one connection of its own.
func connection() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxConnsPerHost: 1}}
}

// fleet is a number of senders at work.
type fleet struct {
	stop     context.CancelFunc
	done     sync.WaitGroup
	requests atomic.Int64 // acknowledged
	samples  atomic.Int64 // in acknowledged requests
	busy     atomic.Int64 // answered with 503
	refused  chan answer  // whatever must not be

	mu         sync.Mutex
	recent     []*write // for others to send again
	unanswered []*write // the connection ended without an answer
}

// load says what a fleet sends.
type load struct {
	senders   int
	tracks    []*track // shared out among the senders
	late      float64  // the share of requests that come late
	again     float64  // the share of requests that were sent before
	fullSpeed int64    // samples, after which there are pauses, so that the store does not grow without end
	patient   bool     // 503 is no reason to stop, and the request is sent again
}

const (
	seriesPerWrite = 12
	recentWrites   = 64
)

// launchFleet lets senders write to url at full speed until the connection breaks or the fleet is stopped.
func launchFleet(url string, r *rand.Rand, l load) *fleet {
	ctx, stop := context.WithCancel(context.Background())
	f := &fleet{stop: stop, refused: make(chan answer, l.senders)}
	for n := range l.senders {
		var own []*track
		for i := n; i < len(l.tracks); i += l.senders {
			own = append(own, l.tracks[i])
		}
		r := spawn(r)
		f.done.Go(func() { f.send(ctx, url, r, own, l) })
	}
	return f
}

// send is one sender.
func (f *fleet) send(ctx context.Context, url string, r *rand.Rand, own []*track, l load) {
	client := connection()
	defer client.CloseIdleConnections()
	at := 0
	var w *write
	for ctx.Err() == nil {
		if w == nil {
			w = f.compose(r, own, &at, l)
		}
		a := w.post(client, url)
		switch {
		case a.ok():
			f.requests.Add(1)
			f.samples.Add(int64(w.samples()))
			w = nil
		case a.status == http.StatusServiceUnavailable && l.patient:
			f.busy.Add(1)
			nap(ctx, 20*time.Millisecond)
		case a.status == 0:
			f.mu.Lock()
			f.unanswered = append(f.unanswered, w)
			f.mu.Unlock()
			return // killed, or stopping
		case a.status == http.StatusServiceUnavailable:
			return // stopping
		default:
			f.refused <- a
			return
		}
		if f.samples.Load() > l.fullSpeed {
			nap(ctx, 50*time.Millisecond)
		}
	}
}

// compose makes a request: new samples, late ones, or what was sent before, acknowledged or not.
func (f *fleet) compose(r *rand.Rand, own []*track, at *int, l load) *write {
	dice := r.Float64()
	if dice < l.again {
		if w := f.old(r); w != nil {
			return w
		}
	}
	w := new(write)
	for range min(seriesPerWrite, len(own)) {
		k := own[*at%len(own)]
		*at++
		if dice < l.again+l.late {
			w.add(k, k.late(r, 1+r.IntN(3)))
		} else {
			w.add(k, k.forward(r, 1+r.IntN(5)))
		}
	}
	if len(w.tracks) == 0 {
		w.add(own[0], own[0].forward(r, 1))
	}
	w.encode()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) < recentWrites {
		f.recent = append(f.recent, w)
	} else {
		f.recent[r.IntN(recentWrites)] = w
	}
	return w
}

func (f *fleet) old(r *rand.Rand) *write {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) == 0 {
		return nil
	}
	return f.recent[r.IntN(len(f.recent))]
}

// join waits for the senders to end. Refused requests fail the test: nothing that they send is wrong.
func (f *fleet) join(t *testing.T) {
	t.Helper()
	f.stop()
	f.done.Wait()
	select {
	case a := <-f.refused:
		t.Fatalf("a request was answered with status %d: %s", a.status, a.text)
	default:
	}
}

// nap waits, unless ctx ends.
func nap(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func parseValue(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func lines(all []string) string { return "  " + strings.Join(all, "\n  ") }
