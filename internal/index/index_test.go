package index_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/keys"
)

// catalogue is one in memory.
type catalogue struct {
	mu     sync.Mutex
	months map[keys.Month][]labels.Labels
	reads  int
	err    error
}

func (c *catalogue) Months(context.Context) ([]keys.Month, error) {
	return slices.Collect(maps.Keys(c.months)), c.err
}

func (c *catalogue) Catalogue(_ context.Context, month keys.Month, each func(series.ID, labels.Labels) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	for _, ls := range c.months[month] {
		if err := each(keys.SeriesID("", ls), ls); err != nil {
			return err
		}
	}
	return c.err
}

// present is a month; series are added to it unless a test says otherwise.
const present keys.Month = 24322

func open(t testing.TB, c *catalogue, kept keys.Month, limit int) *index.Index {
	t.Helper()
	x, err := index.Open(t.Context(), c, kept, limit)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func empty(t testing.TB) *index.Index {
	t.Helper()
	return open(t, &catalogue{}, present-1, 0)
}

func add(t testing.TB, x *index.Index, ls labels.Labels) *index.Series {
	t.Helper()
	return addIn(t, x, ls, present)
}

func addIn(t testing.TB, x *index.Index, ls labels.Labels, month keys.Month) *index.Series {
	t.Helper()
	s, _, err := x.Add(keys.SeriesID("", ls), ls)
	if err != nil {
		t.Fatal(err)
	}
	x.Enter(s, month)
	return s
}

func byID(a, b *index.Series) int { return a.ID.Compare(b.ID) }

var (
	names  = []string{model.MetricNameLabel, "a", "b", "job", "ünï"}
	values = []string{"", "x", "y", "xy", "x.y", "X", "a\nb", "node", "node_exporter", "1", "😀"}
	// Each stands for a way in which package labels reads an expression: sets, prefixes, suffixes, anchors, no case.
	regexps = []string{
		"", ".*", ".+", "x", "x|y", "x|y|", "x.*", ".*y", ".*o.*", ".+y", "^x$", "^(x|y)$", "(?i)x", "[xy]", "x?", "x*",
		"node(_exporter)?", "nobody", "nobody|x", "a.b", "(?s)a.b", "|", "()", "[^x]", ".", "x|x", "x|", ".{1}",
	}
)

func randomLabels(r *rand.Rand) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, name := range names {
		b.Set(name, values[r.IntN(len(values))])
	}
	return b.Labels()
}

func randomMatcher(r *rand.Rand) *labels.Matcher {
	name := append(names, "nobody_has")[r.IntN(len(names)+1)]
	kind := labels.MatchType(r.IntN(4))
	value := append(values, "nobody")[r.IntN(len(values)+1)]
	if kind == labels.MatchRegexp || kind == labels.MatchNotRegexp {
		value = regexps[r.IntN(len(regexps))]
	}
	return labels.MustNewMatcher(kind, name, value)
}

// TestSelect compares with looking at every series.
func TestSelect(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	x := empty(t)
	var all []*index.Series
	for range 300 {
		ls := randomLabels(r)
		if ls.IsEmpty() || x.Get(keys.SeriesID("", ls)) != nil {
			continue
		}
		all = append(all, add(t, x, ls))
	}
	if x.Len() != len(all) {
		t.Fatalf("the index has %d series, %d were added", x.Len(), len(all))
	}
	for range 3000 {
		var matchers []*labels.Matcher
		for range r.IntN(4) {
			matchers = append(matchers, randomMatcher(r))
		}
		check(t, x, all, matchers)
	}
	for _, name := range append(names, "nobody_has") { // all single ones, which chance may leave out
		for _, kind := range []labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp} {
			for _, value := range slices.Concat(values, regexps) {
				m, err := labels.NewMatcher(kind, name, value)
				if err == nil {
					check(t, x, all, []*labels.Matcher{m})
				}
			}
		}
	}
}

func check(t *testing.T, x *index.Index, all []*index.Series, matchers []*labels.Matcher) {
	t.Helper()
	got, err := x.Select(t.Context(), index.AllMonths, matchers...)
	if err != nil {
		t.Fatal(err)
	}
	wantNames, wantValues := map[string]bool{}, map[string]bool{}
	var want []*index.Series
	for _, s := range all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels.Get(m.Name)) }) {
			want = append(want, s)
			s.Labels.Range(func(l labels.Label) { wantNames[l.Name] = true })
			if v := s.Labels.Get("a"); v != "" {
				wantValues[v] = true
			}
		}
	}
	slices.SortFunc(want, byID)
	if !slices.Equal(got, want) {
		t.Fatalf("%v selects %d series, want %d", matchers, len(got), len(want))
	}
	gotNames, err := x.LabelNames(t.Context(), index.AllMonths, matchers...)
	if err != nil || !slices.Equal(gotNames, slices.Sorted(maps.Keys(wantNames))) {
		t.Fatalf("%v: the label names are %q, want %v (error %v)", matchers, gotNames, wantNames, err)
	}
	gotValues, err := x.LabelValues(t.Context(), index.AllMonths, "a", matchers...)
	if err != nil || !slices.Equal(gotValues, slices.Sorted(maps.Keys(wantValues))) {
		t.Fatalf("%v: the values of a are %q, want %v (error %v)", matchers, gotValues, wantValues, err)
	}
}

func TestLabelsOfNothing(t *testing.T) {
	x := empty(t)
	check(t, x, nil, nil)
	add(t, x, labels.FromStrings(model.MetricNameLabel, "m"))
	got, err := x.LabelValues(t.Context(), index.AllMonths, "nobody_has")
	if err != nil || len(got) != 0 {
		t.Errorf("a label that nobody has has the values %q (error %v)", got, err)
	}
}

// TestAnswersAreTheCallers lets a caller overwrite what it got.
func TestAnswersAreTheCallers(t *testing.T) {
	x := empty(t)
	add(t, x, labels.FromStrings(model.MetricNameLabel, "m", "a", "1"))
	for range 2 {
		found, _ := x.Select(t.Context(), index.AllMonths)
		names, _ := x.LabelNames(t.Context(), index.AllMonths)
		values, _ := x.LabelValues(t.Context(), index.AllMonths, "a")
		if len(found) != 1 || found[0] == nil || !slices.Equal(names, []string{model.MetricNameLabel, "a"}) || !slices.Equal(values, []string{"1"}) {
			t.Fatalf("the index gives %v, %q and %q", found, names, values)
		}
		found[0], names[0], values[0] = nil, "changed", "changed"
	}
}

// TestCollision gives two label sets one id.
func TestCollision(t *testing.T) {
	x := empty(t)
	id := series.ID{1}
	one, two := labels.FromStrings(model.MetricNameLabel, "one"), labels.FromStrings(model.MetricNameLabel, "two")
	first, added, err := x.Add(id, one)
	if err != nil || !added {
		t.Fatalf("a new series: added %v, error %v", added, err)
	}
	again, added, err := x.Add(id, one)
	if err != nil || added || again != first {
		t.Fatalf("the same series: added %v, error %v", added, err)
	}
	_, _, err = x.Add(id, two)
	if !errors.Is(err, index.ErrCollision) {
		t.Fatalf("another series with its id: %v, want ErrCollision", err)
	}
	for _, part := range []string{one.String(), two.String(), id.String()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message does not say %s: %v", part, err)
		}
	}
	x.Enter(first, present)
	check(t, x, []*index.Series{first}, nil)
	if x.Get(id) != first || x.Get(series.ID{2}) != nil {
		t.Error("the ids are mixed up")
	}
}

func TestListed(t *testing.T) {
	x := empty(t)
	s := add(t, x, labels.FromStrings(model.MetricNameLabel, "m"))
	x.Enter(s, 24310)
	for _, m := range []keys.Month{24322, 24310, 24322} {
		if s.Listed(m) {
			continue
		}
		if s.SetListed(m); !s.In(m) {
			t.Errorf("not in %v", m)
		}
	}
	for _, m := range []keys.Month{24309, 24310, 24311, 24322} {
		if want := m == 24310 || m == 24322; s.Listed(m) != want {
			t.Errorf("listed in %v: %v", m, !want)
		}
	}
}

func TestSelectStops(t *testing.T) {
	x := empty(t)
	add(t, x, labels.FromStrings(model.MetricNameLabel, "m"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Select(ctx, index.AllMonths); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestAddWhileSelecting wants no series in an answer that the matchers do not match, and none left out that was there
// before, while others are added.
func TestAddWhileSelecting(t *testing.T) {
	const before, during = 100, 3000
	named := func(i int) labels.Labels {
		return labels.FromStrings(model.MetricNameLabel, "m", "i", fmt.Sprint(i), "odd", fmt.Sprint(i%2 == 1))
	}
	x := empty(t)
	for i := range before {
		add(t, x, named(i))
	}
	var adding sync.WaitGroup
	done := make(chan struct{})
	for part := range 2 {
		adding.Go(func() {
			for i := before + part; i < before+during; i += 2 {
				add(t, x, named(i)).SetListed(24322)
			}
		})
	}
	go func() { adding.Wait(); close(done) }()
	even := []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchNotEqual, "odd", "true"),
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "m"),
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		found, err := x.Select(t.Context(), index.AllMonths, even...)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) < before/2 {
			t.Fatalf("%d series, %d were there before", len(found), before/2)
		}
		for _, s := range found {
			if s.Labels.Get("odd") != "false" {
				t.Fatalf("%v does not match %v", s.Labels, even)
			}
			s.Listed(24322)
		}
		if _, err := x.LabelValues(t.Context(), index.AllMonths, "i"); err != nil {
			t.Fatal(err)
		}
	}
	if x.Len() != before+during {
		t.Errorf("%d series, want %d", x.Len(), before+during)
	}
}

func TestCardinality(t *testing.T) {
	x := empty(t)
	if got := x.Cardinality(present, 5); got.Series != 0 || got.LabelPairs != 0 || len(got.Metrics) != 0 || len(got.Pairs) != 0 {
		t.Errorf("of nothing: %+v", got)
	}
	add(t, x, labels.FromStrings(model.MetricNameLabel, "few", "job", "b"))
	for i := range 3 {
		add(t, x, labels.FromStrings(model.MetricNameLabel, "many", "i", fmt.Sprint(i), "job", "a"))
	}
	got := x.Cardinality(present, 3)
	if got.Series != 4 || got.LabelPairs != 7 {
		t.Errorf("%d series, %d pairs", got.Series, got.LabelPairs)
	}
	for what, c := range map[string]struct{ got, want []index.Count }{
		"metrics":      {got.Metrics, []index.Count{{Name: "many", Count: 3}, {Name: "few", Count: 1}}},
		"label values": {got.LabelValues, []index.Count{{Name: "i", Count: 3}, {Name: model.MetricNameLabel, Count: 2}, {Name: "job", Count: 2}}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if pairs := got.Pairs; len(pairs) != 3 || !slices.Equal(pairs[:2], []index.Count{{Name: "__name__=many", Count: 3}, {Name: "job=a", Count: 3}}) {
		t.Errorf("pairs: %v", pairs)
	}
	for _, c := range got.LabelBytes {
		if c.Count == 0 {
			t.Errorf("%s takes no memory", c.Name)
		}
	}
}
