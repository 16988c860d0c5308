package e2e

import (
	"encoding/json"
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
// Everything is compared exactly, but for what Prometheus leaves open: the order of an instant vector which the query
// does not sort, or of equal values where it does; which of 0 and -0 is the least or the greatest; and the order in which
// several series are summed (sum, avg, stddev, stdvar), for which floats may be a relative 1e-12 apart.
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
	p.config = writeFile(t, "prometheus.yml", "storage:\n  tsdb:\n    out_of_order_time_window: 90d\n")
	p.process = start(t, "prometheus", prometheusPeer.build(t),
		"--config.file="+p.config,
		"--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address,
		"--web.enable-remote-write-receiver",
		"--storage.tsdb.min-block-duration=90d", // or it would make a block of each two hours of the backfill
		"--storage.tsdb.max-block-duration=90d",
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

// window is how much of the stream is in one request, in milliseconds.
const window = 20 * 60 * 1000

// feed sends the part of the stream from..to (to excluded) to both, in order of time and in both versions of remote write
// in turn, then what comes late, and then, to daybook, the last part again.
func (p pair) feed(t *testing.T, s *stream, from, to int64) {
	t.Helper()
	var live, strays, late []*made
	for _, m := range s.series {
		switch {
		case m.late:
			late = append(late, m)
		case m.strays:
			strays = append(strays, m)
		default:
			live = append(live, m)
		}
	}
	all := append(slices.Clone(strays), live...)
	slices.SortFunc(all, func(a, b *made) int { return slices.Compare(a.labels, b.labels) })
	var astray []int64
	for i, at := 0, from; at < to; i, at = i+1, at+window {
		version := []version{version1, version2}[i%2]
		if i%5 == 2 {
			version.send(t, live, at, min(at+window, to), p.got, p.want)
			astray = append(astray, at)
			continue
		}
		version.send(t, all, at, min(at+window, to), p.got, p.want)
	}
	for _, at := range astray {
		version1.send(t, strays, at, min(at+window, to), p.got, p.want)
	}
	if from == s.begin.UnixMilli() {
		from -= historyLength.Milliseconds()
	}
	version2.send(t, late, from, to, p.got, p.want)
	version1.send(t, live, to-window, to, p.got) // Prometheus would refuse some histograms
}

// question is a query with when it is evaluated: at start, or from start to end.
type question struct {
	expr             string
	start, end, step int64  // milliseconds; step 0 for one instant
	lookback         string // empty for the usual one
}

func (q question) String() string {
	if q.step == 0 {
		return fmt.Sprintf("%s\n  at %s, lookback %s", q.expr, seconds(q.start), q.lookback)
	}
	return fmt.Sprintf("%s\n  from %s to %s, step %s, lookback %s", q.expr, seconds(q.start), seconds(q.end), seconds(q.step), q.lookback)
}

// ask sends the question to a server.
func (q question) ask(t *testing.T, of api) answer {
	form := url.Values{"query": {q.expr}}
	if q.lookback != "" {
		form.Set("lookback_delta", q.lookback)
	}
	if q.step == 0 {
		form.Set("time", seconds(q.start))
		return of.ask(t, "/api/v1/query", form)
	}
	form.Set("start", seconds(q.start))
	form.Set("end", seconds(q.end))
	form.Set("step", seconds(q.step))
	return of.ask(t, "/api/v1/query_range", form)
}

// seconds writes milliseconds as a time of the API.
func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// questions are all queries, each at a few instants and over a range. The instants are those where something begins or
// ends: days, hours, series, the ring, the lookback.
func (s *stream) questions(rng *rand.Rand) (all []question) {
	exprs := slices.Concat(s.filled(written), s.filled(writtenForHistograms), s.filled(refused))
	exprs = append(exprs, (&generator{rng, floatSelectors, s}).generate(800)...)
	instants := s.instants(rng)
	for _, expr := range exprs {
		for i := range 4 {
			q := question{expr: expr, start: instants[rng.IntN(len(instants))]}
			if i == 3 {
				q.lookback = []string{"1m", "1h", "0.001", "26h"}[rng.IntN(4)]
			}
			all = append(all, q)
		}
		start := instants[rng.IntN(len(instants))]
		step := []int64{15_000, 17_000, 60_000, 61_001, 300_000, 3_600_000, 1, 999, 24 * 3_600_000}[rng.IntN(9)]
		q := question{expr: expr, start: start, end: start + step*int64(rng.IntN(60)), step: step}
		if rng.IntN(6) == 0 {
			q.lookback = []string{"30s", "20m", "2h"}[rng.IntN(3)]
		}
		all = append(all, q)
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
	for range 10 {
		all = append(all, begin-rng.Int64N(historyLength.Milliseconds()))
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
			c.zeros = c.zeros || a.Op == parser.MIN || a.Op == parser.MAX
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

// compareLists asks both for series, label names and label values: of all times, where the lists must be the same, and
// of the stream's last two days. Of a part of the time a server may list what has samples at other times only, so there
// daybook must list what has samples then, and nothing that is not in the list of all times.
func (p pair) compareLists(t *testing.T, s *stream) {
	t.Helper()
	selectors := [][]string{
		nil, {`load`}, {`{host="alpha"}`}, {`load`, `cores`, `{host=~"a.+"}`}, {`job_up{instance!~"i0.*"}`}, {`nothing`},
		{`{__name__=~".+"}`}, {`{nobody="",host!=""}`}, {`{"utf8.näme"}`}, {`{"with.dot"!=""}`}, {`history_total`},
		{`edge`, `edge`}, {`{__name__!="load",host=~"alpha|gamma"}`},
	}
	paths := map[string]string{"/api/v1/series": "", "/api/v1/labels": ""} // the label whose values it lists
	for _, name := range []string{"__name__", "host", "le", "instance", "age", "with.dot", "emoji", "nobody", "bad-name"} {
		paths["/api/v1/label/"+url.PathEscape(name)+"/values"] = name
	}
	paths["/api/v1/label/U__with_2e_dot/values"] = "with.dot"
	for _, set := range selectors {
		present := p.present(t, s, set)
		for path, label := range paths {
			form := url.Values{"match[]": set}
			got, want := p.got.get(t, path, form), p.want.get(t, path, form)
			if path == "/api/v1/series" && set == nil {
				if said := (comparison{}).difference(got, want); said != "" {
					t.Errorf("%s: %s", path, said)
				}
				continue
			}
			p.list(t, path, form, itemsOf(t, want), itemsOf(t, want))
			form["start"], form["end"] = []string{seconds(s.begin.UnixMilli())}, []string{seconds(s.end.UnixMilli())}
			p.list(t, path, form, listed(t, path, label, present), itemsOf(t, want))
		}
	}
}

// list asks daybook for a list, which must have what is in least, and nothing that is not in most.
func (p pair) list(t *testing.T, path string, form url.Values, least, most map[string]bool) {
	t.Helper()
	got := itemsOf(t, p.got.get(t, path, form))
	for item := range least {
		if !got[item] {
			t.Errorf("%s?%s\n  %s is missing", path, form.Encode(), item)
		}
	}
	for item := range got {
		if !most[item] {
			t.Errorf("%s?%s\n  %s is one too many", path, form.Encode(), item)
		}
	}
}

// present asks Prometheus which of the selected series have samples within the stream's last two days.
func (p pair) present(t *testing.T, s *stream, set []string) (all []map[string]string) {
	t.Helper()
	if set == nil {
		set = []string{`{__name__=~".+"}`}
	}
	for _, one := range set {
		expr := fmt.Sprintf("last_over_time(%s[%dms])", one, streamLength.Milliseconds())
		var data struct {
			Result []struct{ Metric map[string]string }
		}
		res, err := client.PostForm(string(p.want)+"/api/v1/query", url.Values{"query": {expr}, "time": {seconds(s.end.UnixMilli())}})
		decode(t, expr, res, err, &data)
		for _, item := range data.Result {
			all = append(all, item.Metric)
		}
	}
	return all
}

// listed is what a path lists of some series.
func listed(t *testing.T, path, label string, series []map[string]string) map[string]bool {
	t.Helper()
	items := map[string]bool{}
	add := func(item any) { items[textOf(t, item)] = true }
	for _, labels := range series {
		switch {
		case path == "/api/v1/series":
			add(labels)
		case path == "/api/v1/labels":
			for name := range labels {
				add(name)
			}
		case labels[label] != "":
			add(labels[label])
		}
	}
	return items
}

// itemsOf gives the items of a list as text. None may be there twice.
func itemsOf(t *testing.T, a answer) map[string]bool {
	t.Helper()
	list, ok := a.Data.([]any)
	if !ok {
		t.Fatalf("this is no list: %.300s", a.body)
	}
	items := map[string]bool{}
	for _, item := range list {
		text := textOf(t, item)
		if items[text] {
			t.Errorf("%s is listed twice", text)
		}
		items[text] = true
	}
	return items
}

func textOf(t *testing.T, item any) string {
	t.Helper()
	text, err := json.Marshal(item) // labels sorted by name
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
