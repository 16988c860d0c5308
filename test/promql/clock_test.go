package promql

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// asked are queries about the series of TestTheClock. None adds up several series, whose order is open.
var asked = []string{
	`counter`, `counter{i="1"}`, `gauge`, `ended`, `edge`, `{i=~"0|2"}`, `counter offset 1h`, `gauge offset 1d`, `edge offset 1ms`,
	`rate(counter[5m])`, `rate(counter[2h])`, `increase(counter[1d])`, `resets(counter[2d])`, `count_over_time(gauge[26h])`,
	`count_over_time(edge[3h])`, `last_over_time(ended[1d])`, `absent(ended)`, `max by (i) (gauge)`, `count(counter)`,
	`max_over_time(gauge[10m:90s])`, `max_over_time(rate(counter[5m])[1h:7m])`, `timestamp(edge)`, `changes(gauge[90m])`,
	`counter - counter offset 30m`, `quantile_over_time(0.5, gauge[3h])`, `topk(1, counter{i="2"})`, `deriv(gauge[20m])`,
	`native`, `native{i="1"} offset 3h`, `rate(native[10m])`, `increase(native[1d])`, `histogram_quantile(0.7, rate(native[1h]))`,
	`histogram_count(native)`, `count_over_time(native[25h])`, `{__name__=~"native|counter"}`, `last_over_time(native[2h])`,
}

// TestTheClock lets three days go by over an end of a month, with samples coming, flushes, and days being closed. All the
// while daybook must answer what Prometheus's TSDB does with the same samples, whatever the time of day.
func TestTheClock(t *testing.T) {
	begin := time.Date(2026, 11, 28, 9, 30, 0, 0, time.UTC)
	rng := rand.New(rand.NewPCG(seedOf(t), 2))
	sometimes := func(d *database) error { // so that memory has a part
		if rng.IntN(3) == 0 {
			return nil
		}
		return d.flush()
	}
	d := &database{path: filepath.Join(t.TempDir(), "data"), then: sometimes, now: &clock{at: begin}}
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	tsdb := teststorage.New(t)
	t.Cleanup(func() { _ = tsdb.Close() })
	engine := promqlEngine(t)
	w := &walk{rng: rng, counts: make([]float64, 3)}
	asks, found := 0, 0
	for at := begin; at.Before(begin.Add(75 * time.Hour)); at = at.Add(29 * time.Minute) {
		w.append(t, at, at.Add(29*time.Minute), d, tsdb)
		now := d.now.Now()
		if now.Sub(now.Truncate(24*time.Hour)) > time.Hour && rng.IntN(3) == 0 { // as rollup.close_after has it, or later
			if err := d.roller.CloseDays(t.Context(), d.now.day()-1); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(20) == 0 {
			again := []func() error{d.restart, d.replay}[rng.IntN(2)]
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		for range 12 {
			asks++
			if compareOnce(t, rng, d, tsdb, engine, begin, now) {
				found++
			}
		}
	}
	if found < asks*2/3 { // or little would be compared
		t.Errorf("only %d of %d queries found something", found, asks)
	}
}

// seedOf is the seed of what is made up. Another one makes other samples and queries.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("DAYBOOK_PROMQL_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DAYBOOK_PROMQL_SEED: %v", err)
	}
	return seed
}

func promqlEngine(t *testing.T) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser: parser.NewParser(parser.Options{}), NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// walk makes samples, one part of the time after the other.
type walk struct {
	rng    *rand.Rand
	counts []float64
	away   bool
}

// native is a native histogram of two buckets that counts what a counter counts.
func (w *walk) native(i int) *histogram.Histogram {
	n := int64(w.counts[i])
	return &histogram.Histogram{
		Schema: 1, Count: uint64(n), Sum: float64(n) / 2, ZeroThreshold: 0.001,
		PositiveSpans: []histogram.Span{{Offset: int32(i), Length: 2}}, PositiveBuckets: []int64{n / 3, n - 2*(n/3)},
	}
}

// append gives both the samples from..to (to excluded), and puts the clock there or a little later.
func (w *walk) append(t *testing.T, from, to time.Time, d *database, tsdb storage.Storage) {
	t.Helper()
	ours, theirs := d.AppenderV2(t.Context()), tsdb.AppenderV2(t.Context())
	put := func(name string, i int, at time.Time, v float64, h *histogram.Histogram) {
		for _, a := range []storage.AppenderV2{ours, theirs} {
			ls := labels.FromStrings("__name__", name, "i", fmt.Sprint(i))
			if _, err := a.Append(0, ls, 0, at.UnixMilli(), v, h, nil, storage.AppendV2Options{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range w.counts {
		for at := from; at.Before(to); at = at.Add(time.Minute) {
			if w.counts[i] += float64(w.rng.IntN(10)); w.rng.IntN(500) == 0 {
				w.counts[i] = 0
			}
			put("counter", i, at, w.counts[i], nil)
			put("gauge", i, at.Add(time.Duration(i)*time.Millisecond), math.Round(w.rng.NormFloat64()*100)/100, nil)
			put("native", i, at, 0, w.native(i))
		}
	}
	if w.away = w.rng.IntN(5) == 0; !w.away {
		put("ended", 0, from, 1, nil)
		put("ended", 0, to.Add(-time.Minute), math.Float64frombits(value.StaleNaN), nil)
	}
	for hour := from.Truncate(time.Hour); !hour.After(to); hour = hour.Add(time.Hour) {
		for off := -1; off <= 1; off++ {
			if at := hour.Add(time.Duration(off) * time.Millisecond); !at.Before(from) && at.Before(to) {
				put("edge", off+1, at, float64(hour.Hour()), nil)
			}
		}
	}
	for _, a := range []storage.AppenderV2{ours, theirs} {
		if err := a.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	d.now.reach(to.Add(time.Duration(w.rng.IntN(28)) * time.Minute))
}

// compareOnce asks both one question, and tells whether there was anything to answer.
func compareOnce(t *testing.T, rng *rand.Rand, d *database, tsdb storage.Storage, engine *promql.Engine, begin, now time.Time) bool {
	t.Helper()
	expr := asked[rng.IntN(len(asked))]
	back := time.Duration(rng.Int64N(int64(now.Sub(begin)) + int64(time.Hour))).Truncate(time.Millisecond)
	if rng.IntN(2) == 0 {
		back /= 10
	}
	at := now.Add(-back)
	if rng.IntN(3) == 0 {
		at = at.Truncate(time.Hour).Add(time.Duration(rng.IntN(3)-1) * time.Millisecond)
	}
	step := []time.Duration{0, 0, time.Minute, 17 * time.Second, time.Hour, 6 * time.Hour}[rng.IntN(6)]
	end := at.Add(step * time.Duration(rng.IntN(30)))
	var got, want *promql.Result
	var mine, theirs promql.Query
	var err error
	if step == 0 {
		mine, got, err = d.reader.Instant(t.Context(), expr, at)
	} else {
		mine, got, err = d.reader.Range(t.Context(), expr, at, end, step)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if step == 0 {
		theirs, err = engine.NewInstantQuery(t.Context(), tsdb, nil, expr, at)
	} else {
		theirs, err = engine.NewRangeQuery(t.Context(), tsdb, nil, expr, at, end, step)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	want = theirs.Exec(t.Context())
	if v, ok := want.Value.(promql.Vector); ok {
		slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	}
	if got.String() != want.String() {
		t.Fatalf("now %s, %s from %s to %s, step %s\n  daybook:\n%.1500s\n  TSDB:\n%.1500s", now, expr, at, end, step, got, want)
	}
	return want.String() != ""
}
