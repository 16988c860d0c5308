package query

import (
	"errors"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
)

func TestSelectors(t *testing.T) {
	w := newWorld(t, midnight, 0)
	for _, good := range []string{"m", `{a="b"}`, `{__name__=~"a|b"}`, `m{a=~".*"}`, `{a=~".+"}`, `{a!=""}`} {
		if sets, err := w.reader.Selectors([]string{good}); err != nil || len(sets) != 1 {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "{}", `{a=""}`, `{a=~".*"}`, `{a!="b"}`, `{a=~"x?"}`, "m[5m]", "m{", "1+1", `rate(m[1m])`} {
		if _, err := w.reader.Selectors([]string{"m", bad}); !errors.Is(err, ErrBadQuery) {
			t.Errorf("%q: the error is %v, want ErrBadQuery", bad, err)
		}
	}
}

func TestSeriesAndLabels(t *testing.T) {
	w := newWorld(t, midnight, 0)
	b, a := w.listed(metric("m", "x", "b")), w.listed(metric("m", "x", "a"))
	w.listed(metric("n", "y", "a"))
	sets, err := w.reader.Selectors([]string{`m{x="b"}`, "m", `{x=~"a|b"}`})
	w.ok(err)
	found, err := w.reader.Series(t.Context(), sets, AlwaysFrom, AlwaysTo)
	w.ok(err)
	if len(found) != 2 || found[0] != a || found[1] != b {
		t.Errorf("the series are %v, want each once, sorted by labels", found)
	}
	names, err := w.reader.LabelNames(t.Context(), sets, AlwaysFrom, AlwaysTo)
	w.ok(err)
	values, err := w.reader.LabelValues(t.Context(), "x", sets, AlwaysFrom, AlwaysTo)
	w.ok(err)
	everyName, err := w.reader.LabelNames(t.Context(), nil, AlwaysFrom, AlwaysTo)
	w.ok(err)
	if !slices.Equal(names, []string{"__name__", "x"}) || !slices.Equal(values, []string{"a", "b"}) || !slices.Equal(everyName, []string{"__name__", "x", "y"}) {
		t.Errorf("names %q, values %q, all names %q", names, values, everyName)
	}
}

// FuzzSelectors wants that no text does harm, and that what is taken selects what a look at each series does.
func FuzzSelectors(f *testing.F) {
	for _, seed := range []string{
		"m", "{}", `{a="b"}`, `m{x=~"a|b",y!="c"}`, `{"my.metric","a.b"=~".+"}`, `{__name__!~"m"}`, `m{x=~"("}`, "m{x=\"\xff\"}",
		`{x=~"(a|b)?c*[^d]{2,3}"}`, "m[5m]", `m{x=""} offset 1h`, `{a="b",a!="b"}`, "\x00", `{x=~".*"}`, `m{x=~"(?i)B"}`,
		`{""=~".+"}`, `{""=""}`, `m{""!="x"}`, `m{""!~".*"}`, `m{""="x"}`,
	} {
		f.Add(seed)
	}
	w := newWorld(f, midnight, 0)
	var all []*index.Series
	for _, ls := range []labels.Labels{metric("m"), metric("m", "x", "b"), metric("m", "x", "bc", "y", "1"), metric("my.metric", "a.b", "x"), labels.FromStrings("a", "b")} {
		all = append(all, w.listed(ls))
	}
	f.Fuzz(func(t *testing.T, text string) {
		sets, err := w.reader.Selectors([]string{text})
		if err != nil {
			if !errors.Is(err, ErrBadQuery) {
				t.Fatalf("%q: the error is %v, want ErrBadQuery", text, err)
			}
			return
		}
		if len(sets) != 1 {
			t.Fatalf("%q: %d sets", text, len(sets))
		}
		found, err := w.reader.Series(t.Context(), sets, AlwaysFrom, AlwaysTo)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for _, one := range all {
			want := !slices.ContainsFunc(sets[0], func(m *labels.Matcher) bool { return !m.Matches(one.Labels.Get(m.Name)) })
			if slices.Contains(found, one) != want {
				t.Errorf("%q and %v: selected is %v", text, one.Labels, !want)
			}
		}
	})
}
