package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"

	"daybook/ingest"
	"daybook/internal/series"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// batch is the samples of one request, in the order in which they stand in it.
type batch []struct {
	metric string
	series.Sample
}

func (b *batch) add(metric string, t series.Millis, v float64) {
	*b = append(*b, struct {
		metric string
		series.Sample
	}{metric, series.Sample{T: floatTime(t), V: v}})
}

// send writes a batch, and compares what becomes of it with what should.
func (r *run) send(b batch) error {
	now := r.now.millis()
	newest, oldest := now+10*60_000, now-series.Millis(retention.Milliseconds())
	var request []prompb.TimeSeries
	conflicts, outside := 0, 0
	for _, s := range b {
		if n := len(request); n == 0 || request[n-1].Labels[0].Value != s.metric {
			request = append(request, metric(s.metric))
		}
		ts := &request[len(request)-1]
		ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: int64(s.T), Value: s.V})
		have, known := r.truth[s.metric][s.T]
		switch {
		case s.T > newest || s.T < oldest:
			outside++
		case known && have != math.Float64bits(s.V):
			conflicts++
			r.contested[contest{s.metric, s.T}] = true
		case r.contested[contest{s.metric, s.T}]:
			conflicts++
		default:
			r.truth[s.metric][s.T] = math.Float64bits(s.V)
		}
	}
	r.note += fmt.Sprintf("%d samples%s", len(b), b.span())
	_, err := r.write(request...)
	refused := 0
	if re := (*ingest.RefusedError)(nil); errors.As(err, &re) {
		refused, err = re.Samples, nil
	}
	if err != nil {
		return err
	}
	// A conflict is refused where the first value is in memory, and left out later where it is not. Until then the
	// first value itself is refused, should it be sent again.
	if refused < outside || refused > outside+conflicts {
		return fmt.Errorf("%d of %d samples refused; %d are out of bounds, %d have another value", refused, len(b), outside, conflicts)
	}
	return nil
}

func (b batch) span() (s string) {
	for i := 0; i < len(b); {
		j := i
		for j < len(b) && b[j].metric == b[i].metric {
			j++
		}
		first, last := b[i], b[j-1]
		s += fmt.Sprintf(", %s %s..%s", first.metric, first.T.Time().Format("01-02 15:04:05"), last.T.Time().Format("01-02 15:04:05"))
		i = j
	}
	return s
}

// some gives one or more metrics, and fresh a value that no sample had yet.
func some(rng *rand.Rand) []string {
	picked := slices.Clone(metrics)
	rng.Shuffle(len(picked), func(i, j int) { picked[i], picked[j] = picked[j], picked[i] })
	return picked[:1+rng.IntN(len(picked))]
}

func (r *run) fresh() float64 { r.value++; return r.value }

// live is what a Prometheus sends: the last few scrapes.
func (r *run) live(rng *rand.Rand) error {
	var b batch
	for _, m := range some(rng) {
		n := 1 + rng.IntN(8)
		for i := range n {
			b.add(m, r.now.millis()-series.Millis((n-1-i)*15_000), r.fresh())
		}
	}
	return r.send(b)
}

// history goes on with what came before now, in order of time.
func (r *run) history(rng *rand.Rand) error {
	var b batch
	for _, m := range some(rng) {
		step := series.Millis(1+rng.IntN(30)) * 60_000
		for range 1 + rng.IntN(30) {
			if r.cursor[m] += step; r.cursor[m] < r.now.millis() {
				b.add(m, r.cursor[m], r.fresh())
			}
		}
		if rng.IntN(8) == 0 { // another sender, with older things
			r.cursor[m] -= series.Millis(rng.IntN(10)) * series.MillisPerDay
		}
	}
	return r.send(b)
}

// late comes minutes to days after its time, in any order.
func (r *run) late(rng *rand.Rand) error {
	scale := []series.Millis{5 * 60_000, series.MillisPerHour, 5 * series.MillisPerHour, 30 * series.MillisPerHour, 10 * series.MillisPerDay}
	var b batch
	for _, m := range some(rng) {
		within := int64(scale[rng.IntN(len(scale))])
		for range 1 + rng.IntN(5) {
			b.add(m, r.now.millis()-series.Millis(rng.Int64N(within)), r.fresh())
		}
	}
	return r.send(b)
}

// edges are the first and last milliseconds of hours, those which share a slot of the ring too, and clocks ahead.
func (r *run) edges(rng *rand.Rand) error {
	var b batch
	hour := r.now.millis().Hour() - series.Hour(rng.IntN(3))*keys.RingSlots/2
	m := metrics[rng.IntN(len(metrics))]
	for _, h := range []series.Hour{hour - keys.RingSlots, hour - keys.RingSlots + 1, hour - 24, hour - 23, hour, hour + 1} {
		for _, t := range []series.Millis{h.Start() - 1, h.Start(), h.Start() + 1} {
			if rng.IntN(3) > 0 && t <= r.now.millis()+10*60_000 {
				b.add(m, t, r.fresh())
			}
		}
	}
	b.add(m, r.now.millis()+10*60_000, r.fresh())
	return r.send(b)
}

// known picks samples that are there.
func (r *run) known(rng *rand.Rand, n int) (b batch) {
	for range n {
		m := metrics[rng.IntN(len(metrics))]
		times := make([]series.Millis, 0, len(r.truth[m]))
		for t := range r.truth[m] {
			times = append(times, t)
		}
		slices.Sort(times)
		if len(times) > 0 {
			// Mostly of late, where things move.
			t := times[len(times)-1-int(float64(len(times))*math.Pow(rng.Float64(), 3))]
			b.add(m, t, math.Float64frombits(r.truth[m][t]))
		}
	}
	return b
}

// again resends.
func (r *run) again(rng *rand.Rand) error { return r.send(r.known(rng, 1+rng.IntN(10))) }

// conflict sends other values for times that have one.
func (r *run) conflict(rng *rand.Rand) error {
	b := r.known(rng, 1+rng.IntN(4))
	for i := range b {
		b[i].V = r.fresh()
	}
	return r.send(b)
}

// refused has samples out of bounds among good ones.
func (r *run) refused(rng *rand.Rand) error {
	var b batch
	for _, m := range some(rng) {
		b.add(m, r.now.millis()-series.Millis(rng.IntN(60_000)), r.fresh())
		b.add(m, r.now.millis()+10*60_000+1, r.fresh())
		b.add(m, r.now.millis()-series.Millis(retention.Milliseconds())-1, r.fresh())
	}
	return r.send(b)
}

func (r *run) flush(*rand.Rand) error { return r.world.flush() }

func (r *run) move(d time.Duration) error {
	r.note += d.String() + " "
	r.now.add(d)
	if now := r.now.Now(); now.After(r.latest) {
		r.latest = now
	}
	return nil
}

func (r *run) minutes(rng *rand.Rand) error {
	return r.move(time.Duration(1+rng.IntN(90)) * time.Minute)
}
func (r *run) hours(rng *rand.Rand) error { return r.move(time.Duration(1+rng.IntN(12)) * time.Hour) }
func (r *run) days(rng *rand.Rand) error {
	return r.move(time.Duration(20+rng.IntN(40)) * time.Hour)
}

// back is a clock that is put right; rarely one that was wrong by days.
func (r *run) back(rng *rand.Rand) error {
	if rng.IntN(8) == 0 {
		r.trust = r.latest.Add(26 * time.Hour)
		return r.move(-time.Duration(1+rng.IntN(60)) * time.Hour)
	}
	return r.move(-time.Duration(1+rng.IntN(50)) * time.Minute)
}

func (r *run) close(*rand.Rand) error {
	return r.roller.CloseDays(context.Background(), r.now.day()-1)
}

func (r *run) seal(*rand.Rand) error {
	_ = r.move(2 * time.Minute) // or nothing is due
	return r.roller.Seal(context.Background())
}

func (r *run) restart(*rand.Rand) error { return r.world.restart() }

func (r *run) crash(rng *rand.Rand) error {
	if err := r.crashNow(rng); err != nil {
		return err
	}
	return r.check(nil)
}

// work is one of the things that write to the table.
func (r *run) work(rng *rand.Rand) func(*rand.Rand) error {
	n := rng.IntN(5)
	switch n {
	case 0:
		r.note += "close "
		return r.close
	case 1:
		r.note += "seal "
		return r.seal
	}
	r.note += "flush "
	return r.flush
}

// strike picks a call of the table.
func strike(rng *rand.Rand) tabletest.Fault {
	f := tabletest.Fault{Method: tabletest.Transact, Call: 1 + rng.IntN(6), Effect: tabletest.FailBefore}
	switch rng.IntN(8) {
	case 0:
		f.Method, f.Call = tabletest.Sync, 1
	case 1:
		f.Method = tabletest.Get
	case 2:
		f.Method, f.Call = tabletest.Query, 1+rng.IntN(20)
	}
	return f
}

// meanwhile is a write that comes in while something writes to the table; mostly there is none.
func (r *run) meanwhile(rng *rand.Rand) error {
	writes := []func(*run, *rand.Rand) error{(*run).live, (*run).late, (*run).again, (*run).conflict, (*run).others, (*run).othersAgain}
	if n := rng.IntN(10); n < len(writes) {
		r.note += "(meanwhile "
		defer func() { r.note += ") " }()
		return writes[n](r, rng)
	}
	return nil
}

// fail has one call of the table fail, done or not, or just take its time.
func (r *run) fail(rng *rand.Rand) error {
	f := strike(rng)
	f.Effect = []tabletest.Effect{tabletest.FailBefore, tabletest.FailAfter, tabletest.Pass}[rng.IntN(3)]
	var meanwhile error
	f.Struck = func() { meanwhile = r.meanwhile(rng) }
	r.note += fmt.Sprintf("%s %d effect %d in ", f.Method, f.Call, f.Effect)
	r.service.Add(f)
	err := r.work(rng)(rng)
	r.service.Heal()
	if errors.Is(err, tabletest.ErrInjected) {
		err = nil
	}
	return errors.Join(err, meanwhile)
}

// crashAmidst pulls the plug just before or after some call of the table.
func (r *run) crashAmidst(rng *rand.Rand) error {
	f := strike(rng)
	f.Effect = tabletest.Pass
	var im image
	var err error
	f.Struck = func() {
		if err = r.meanwhile(rng); err == nil {
			im, err = r.snapshot(rng)
		}
	}
	r.note += fmt.Sprintf("%s %d in ", f.Method, f.Call)
	r.service.Add(f)
	workErr := r.work(rng)(rng)
	r.service.Heal()
	if im.disk == nil && err == nil {
		im, err = r.snapshot(rng)
	}
	if err := errors.Join(workErr, err); err != nil {
		return err
	}
	if err := r.world.crash(im); err != nil {
		return err
	}
	return r.check(nil)
}

// check compares everything with the truth: what is anywhere, and what a query finds.
func (r *run) check(*rand.Rand) error {
	if n := r.logs.with("DAMAGE"); n > 0 {
		return fmt.Errorf("the log says that it is damaged")
	}
	for _, m := range metrics {
		got, err := r.all(r.id(m))
		if err != nil {
			return err
		}
		if err := same(r.truth[m], got); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	if err := r.checkOthers(); err != nil {
		return err
	}
	if now := r.now.Now(); now.Truncate(time.Hour).Before(r.latest.Truncate(time.Hour)) || now.Before(r.trust) {
		return nil
	}
	return r.query()
}

func same(want map[series.Millis]uint64, got []series.Sample) error {
	for i, s := range got {
		bits, ok := want[s.T]
		switch {
		case !ok:
			return fmt.Errorf("a sample at %s that was never acknowledged: %v", s.T.Time(), s.V)
		case bits != math.Float64bits(s.V):
			return fmt.Errorf("at %s is %v instead of %v", s.T.Time(), s.V, math.Float64frombits(bits))
		case i > 0 && s.T <= got[i-1].T:
			return fmt.Errorf("twice, or out of order: %s", s.T.Time())
		}
	}
	if len(got) == len(want) {
		return nil
	}
	missing := ""
	n := 0
	for t := range want {
		if !slices.ContainsFunc(got, func(s series.Sample) bool { return s.T == t }) {
			n++
			missing = t.Time().Format("2006-01-02 15:04:05.000")
		}
	}
	return fmt.Errorf("%d of %d samples lost, such as %s", n, len(want), missing)
}

// query asks PromQL for all samples.
func (r *run) query() error {
	q, result, err := r.reader.Instant(context.Background(), `{job="test"}[150d]`, r.latest.Add(15*time.Minute))
	if err != nil {
		return err
	}
	defer q.Close()
	if result.Err != nil {
		return result.Err
	}
	found, err := result.Matrix()
	if err != nil {
		return err
	}
	got, natives := map[string][]series.Sample{}, map[string][]promql.HPoint{}
	for _, s := range found {
		name := s.Metric.Get(model.MetricNameLabel)
		for _, p := range s.Floats {
			got[name] = append(got[name], series.Sample{T: series.Millis(p.T), V: p.F})
		}
		natives[name] = s.Histograms
	}
	for _, m := range metrics {
		if err := sameNatives(r.nativesOf(m), natives[m]); err != nil {
			return fmt.Errorf("a query for %s: %w", m, err)
		}
		if err := same(r.truth[m], got[m]); err != nil {
			return fmt.Errorf("a query for %s: %w", m, err)
		}
	}
	return nil
}
