package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestSameAnswers gives a real Prometheus and daybook the same remote write stream, and asks both the same queries.
// They must give the same JSON, with daybook's samples in pages, in rings and in memory, and once more after a restart.
//
// Everything is compared exactly, but for two things that Prometheus leaves open: the order of an instant vector which
// the query does not sort, or of equal values where it does, and the order in which several series are summed (sum, avg, stddev, stdvar), for which floats
// may be a relative 1e-12 apart.
func TestSameAnswers(t *testing.T) {
	seed := seedOf(t)
	s := makeStream(seed, time.Now().Truncate(time.Second))
	t.Logf("DAYBOOK_E2E_SEED=%d, %d samples of %d series from %s to %s", seed, s.count(), len(s.series), s.begin.Format(time.RFC3339), s.end.Format(time.RFC3339))
	d := startDaybook(t, "1h")
	p := startReceiver(t)
	pair := pair{got: d.api, want: p.api}

	recent := s.end.Add(-25 * time.Minute).UnixMilli()
	pair.feed(t, s, s.begin.UnixMilli(), recent)
	d.restart(t) // which flushes: all of this is in pages and rings now
	pair.feed(t, s, recent, s.end.UnixMilli())

	asked := s.questions(rand.New(rand.NewPCG(seed, 5)))
	for _, when := range []string{"in memory and in the table", "in the table"} {
		t.Run(when, func(t *testing.T) {
			pair.compare(t, asked)
			pair.compareLists(t, s)
		})
		if t.Failed() {
			return
		}
		d.restart(t)
	}
}

// seedOf is the seed of what is made up: another one asks other queries of other samples.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("DAYBOOK_E2E_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DAYBOOK_E2E_SEED: %v", err)
	}
	return seed
}

// startReceiver starts a Prometheus that scrapes nothing and takes remote write, samples out of order too.
func startReceiver(t *testing.T) *prometheus {
	t.Helper()
	address := freeAddress(t)
	p := &prometheus{api: api("http://" + address)}
	p.config = writeFile(t, "prometheus.yml", "storage:\n  tsdb:\n    out_of_order_time_window: 30d\n")
	p.process = start(t, "prometheus", prometheusPeer.build(t),
		"--config.file="+p.config,
		"--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address,
		"--web.enable-remote-write-receiver",
	)
	eventually(t, 30*time.Second, "Prometheus is ready", func() error {
		if err := p.running(); err != nil {
			t.Fatal(err)
		}
		return p.ready()
	})
	return p
}

// pair is a daybook and the Prometheus that it must be like.
type pair struct{ got, want api }

// feed sends the part of the stream from..to (to excluded) to both, in order of time and in both versions of remote write
// in turn, and what comes late at the end.
func (p pair) feed(t *testing.T, s *stream, from, to int64) {
	t.Helper()
	var live, late []*made
	for _, m := range s.series {
		if m.late {
			late = append(late, m)
		} else {
			live = append(live, m)
		}
	}
	const window = 20 * 60 * 1000
	for i, at := 0, from; at < to; i, at = i+1, at+window {
		[]version{version1, version2}[i%2].send(t, live, at, min(at+window, to), p.got, p.want)
	}
	version2.send(t, late, from, to, p.got, p.want)
}

// question is a query with when it is evaluated: at start, or from start to end.
type question struct {
	expr             string
	start, end, step int64 // milliseconds; step 0 for one instant
}

func (q question) String() string {
	if q.step == 0 {
		return fmt.Sprintf("%s\n  at %s", q.expr, seconds(q.start))
	}
	return fmt.Sprintf("%s\n  from %s to %s, step %s", q.expr, seconds(q.start), seconds(q.end), seconds(q.step))
}

// ask sends the question to a server.
func (q question) ask(t *testing.T, of api) answer {
	if q.step == 0 {
		return of.ask(t, "/api/v1/query", url.Values{"query": {q.expr}, "time": {seconds(q.start)}})
	}
	return of.ask(t, "/api/v1/query_range", url.Values{
		"query": {q.expr}, "start": {seconds(q.start)}, "end": {seconds(q.end)}, "step": {seconds(q.step)},
	})
}

// seconds writes milliseconds as a time of the API.
func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// questions are all queries, each at a few instants and over a range. The instants are those where something begins or
// ends: days, hours, series, the ring, the lookback.
func (s *stream) questions(rng *rand.Rand) (all []question) {
	exprs := slices.Concat(s.filled(written), s.filled(refused))
	exprs = append(exprs, (&generator{rng, floatSelectors, s}).generate(800)...)
	instants := s.instants(rng)
	for _, expr := range exprs {
		for range 4 {
			all = append(all, question{expr: expr, start: instants[rng.IntN(len(instants))]})
		}
		start := instants[rng.IntN(len(instants))]
		step := []int64{15_000, 17_000, 60_000, 61_001, 300_000, 3_600_000, 1, 999}[rng.IntN(8)]
		all = append(all, question{expr: expr, start: start, end: start + step*int64(rng.IntN(60)), step: step})
	}
	return all
}

// instants are times worth asking about.
func (s *stream) instants(rng *rand.Rand) (all []int64) {
	const minute, hour, day = 60_000, 3_600_000, 24 * 3_600_000
	begin, end, midnight := s.begin.UnixMilli(), s.end.UnixMilli(), s.midnight()
	around := func(t int64, offsets ...int64) {
		for _, off := range offsets {
			all = append(all, t+off)
		}
	}
	lookback := []int64{-1, 0, 1, 30_000, 5*minute - 1, 5 * minute, 5*minute + 1}
	around(midnight, lookback...)
	around(midnight-day, lookback...)
	around(begin, lookback...)
	around(end, lookback...)
	around(end, -25*minute-1, -25*minute, -10*minute)
	around((end-day)/hour*hour, lookback...) // the ring's first hour
	around((end-day)/hour*hour-hour, lookback...)
	for range 20 {
		around((begin+rng.Int64N(end-begin))/hour*hour, -1, 0, 1, 5*minute)
		all = append(all, begin+rng.Int64N(end-begin))
	}
	for _, m := range s.series {
		if n := len(m.values); m.values[n-1].at < end-10*minute { // it ended
			around(m.values[n-1].at, lookback[rng.IntN(len(lookback))], 0)
		}
	}
	return all
}

// compare asks both the same questions, a few at a time.
func (p pair) compare(t *testing.T, asked []question) {
	t.Helper()
	var next, succeeded, wrong atomic.Int64
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(asked) && wrong.Load() < differencesShown; i = next.Add(1) - 1 {
				q := asked[i]
				got, want := q.ask(t, p.got), q.ask(t, p.want)
				if said := comparisonOf(q.expr).difference(got, want); said != "" {
					wrong.Add(1)
					t.Errorf("%s\n  %s\n  daybook:    %.1500s\n  Prometheus: %.1500s", q, said, got.body, want.body)
				}
				if want.Status == "success" {
					succeeded.Add(1)
				}
			}
		})
	}
	group.Wait()
	// Most queries must give something, or little would be compared.
	if n := succeeded.Load(); int(n) < len(asked)*2/3 && !t.Failed() {
		t.Errorf("only %d of %d queries could be evaluated", n, len(asked))
	}
	t.Logf("%d queries, %d of them without an error, give the same", len(asked), succeeded.Load())
}

// comparisonOf says how the answers to a query may differ.
func comparisonOf(expr string) (c comparison) {
	root, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		return c
	}
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		if a, ok := node.(*parser.AggregateExpr); ok {
			c.summed = c.summed || a.Op == parser.SUM || a.Op == parser.AVG || a.Op == parser.STDDEV || a.Op == parser.STDVAR
		}
		return nil
	})
	switch e := root.(type) {
	case *parser.Call:
		c.ordered = strings.HasPrefix(e.Func.Name, "sort")
	case *parser.AggregateExpr:
		c.ordered = (e.Op == parser.TOPK || e.Op == parser.BOTTOMK) && len(e.Grouping) == 0 && !e.Without
	}
	return c
}

// compareLists asks both for series, label names and label values.
func (p pair) compareLists(t *testing.T, s *stream) {
	t.Helper()
	selectors := [][]string{
		nil, {`load`}, {`{host="alpha"}`}, {`load`, `cores`, `{host=~"a.+"}`}, {`job_up{instance!~"i0.*"}`}, {`nothing`},
		{`{__name__=~".+"}`}, {`{nobody="",host!=""}`}, {`{"utf8.näme"}`}, {`{"with.dot"!=""}`},
		{`edge`, `edge`}, {`{__name__!="load",host=~"alpha|gamma"}`},
	}
	paths := []string{"/api/v1/series", "/api/v1/labels"}
	for _, name := range []string{"__name__", "host", "le", "instance", "with.dot", "U__with_2e_dot", "U__with_20_space", "emoji", "nobody", "bad-name"} {
		paths = append(paths, "/api/v1/label/"+url.PathEscape(name)+"/values")
	}
	whole := url.Values{"start": {seconds(s.begin.UnixMilli())}, "end": {seconds(s.end.UnixMilli())}}
	for _, path := range paths {
		for _, set := range selectors {
			for _, span := range []url.Values{{}, whole} {
				form := url.Values{"match[]": set, "start": span["start"], "end": span["end"]}
				got, want := p.got.get(t, path, form), p.want.get(t, path, form)
				if said := (comparison{}).difference(got, want); said != "" {
					t.Errorf("%s?%s\n  %s\n  daybook:    %.1500s\n  Prometheus: %.1500s", path, form.Encode(), said, got.body, want.body)
				}
			}
		}
	}
}
