package crash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/prompb"
)

// ledger is what was sent and what of it must be there.
type ledger struct {
	tracks []*track
	byKey  map[string]*track
}

// track is one series in the ledger. Its samples go on at next, in steps.
type track struct {
	n      int
	labels []prompb.Label
	key    string // labels as a query names them

	mu   sync.Mutex
	sent []sent // sorted by time
	next int64  // ms
	cap  int64  // ms; next comes near and never beyond
	step int64  // ms
}

// sent is a sample that was sent at least once.
type sent struct {
	t    int64
	v    float64
	must bool // it was acknowledged, or was there after a restart
}

// newLedger makes series of a metric whose samples begin at a time.
func newLedger() *ledger { return &ledger{byKey: map[string]*track{}} }

func (l *ledger) add(metric string, n int, from, until time.Time, step time.Duration) (added []*track) {
	for range n {
		k := &track{n: len(l.tracks), next: from.UnixMilli(), cap: until.UnixMilli(), step: step.Milliseconds()}
		k.labels = []prompb.Label{
			{Name: "__name__", Value: metric},
			{Name: "instance", Value: fmt.Sprintf("host-%d:9100", k.n%7)},
			{Name: "series", Value: fmt.Sprintf("%05d", k.n)},
		}
		k.key = keyOf(map[string]string{"__name__": metric, "instance": k.labels[1].Value, "series": k.labels[2].Value})
		l.tracks, l.byKey[k.key] = append(l.tracks, k), k
		added = append(added, k)
	}
	return added
}

func keyOf(labels map[string]string) string {
	return fmt.Sprintf("%s{instance=%q,series=%q}", labels["__name__"], labels["instance"], labels["series"])
}

// forward notes the next n samples of a series as sent.
func (k *track) forward(r *rand.Rand, n int) (samples []prompb.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range n {
		step := min(k.step-k.step/10+r.Int64N(k.step/5+1), (k.cap-k.next)/100)
		k.next += max(1, step)
		samples = append(samples, k.note(k.next))
	}
	return samples
}

// late notes up to n samples at times between those sent, in ascending order.
func (k *track) late(r *rand.Rand, n int) (samples []prompb.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sent) == 0 {
		return nil
	}
	first := k.sent[0].t
	for range n {
		if t := first + r.Int64N(k.next-first+1); !k.has(t) {
			samples = append(samples, k.note(t))
		}
	}
	slices.SortFunc(samples, func(a, b prompb.Sample) int { return int(a.Timestamp - b.Timestamp) })
	return samples
}

// at notes one sample at a time.
func (k *track) at(t time.Time) prompb.Sample {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = max(k.next, t.UnixMilli())
	return k.note(t.UnixMilli())
}

func (k *track) has(t int64) bool {
	_, ok := k.search(t)
	return ok
}

func (k *track) note(t int64) prompb.Sample {
	i, ok := k.search(t)
	if !ok {
		k.sent = slices.Insert(k.sent, i, sent{t: t, v: valueAt(k.n, t)})
	}
	return prompb.Sample{Timestamp: t, Value: k.sent[i].v}
}

func (k *track) search(t int64) (int, bool) {
	if n := len(k.sent); n == 0 || k.sent[n-1].t < t {
		return n, false
	}
	return slices.BinarySearchFunc(k.sent, t, func(s sent, t int64) int { return int(s.t - t) })
}

// acknowledge notes that the samples must be there from now on.
func (k *track) acknowledge(samples []prompb.Sample) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range samples {
		i, _ := k.search(s.Timestamp)
		k.sent[i].must = true
	}
}

// valueAt gives a series' value at a time: always the same, and of each kind that encodings tell apart. All NaN are
// the same one, as JSON shows no other.
func valueAt(n int, t int64) float64 {
	h := rand.New(rand.NewPCG(uint64(n), uint64(t)))
	switch n % 5 {
	case 0:
		return float64(t / 1000 * int64(n+1)) // counts
	case 1:
		return math.Round(10_000*h.Float64()) / 100 // two decimals
	case 2:
		return math.Ldexp(h.Float64()-0.5, h.IntN(600)-300)
	case 3:
		return float64(h.IntN(3))
	}
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64, math.MaxFloat64, 1e-310}
	return special[h.IntN(len(special))]
}

// forget empties the ledger, for a store that was removed.
func (l *ledger) forget() {
	for _, k := range l.tracks {
		k.mu.Lock()
		k.sent = nil
		k.mu.Unlock()
	}
}

// counts says how many samples were sent, and how many must be there.
func (l *ledger) counts() (all, must int) {
	for _, k := range l.tracks {
		k.mu.Lock()
		all += len(k.sent)
		for _, s := range k.sent {
			if s.must {
				must++
			}
		}
		k.mu.Unlock()
	}
	return all, must
}
