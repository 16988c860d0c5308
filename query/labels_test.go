package query

import (
	"errors"
	"slices"
	"testing"
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
	found, err := w.reader.Series(t.Context(), sets)
	w.ok(err)
	if len(found) != 2 || found[0] != a || found[1] != b {
		t.Errorf("the series are %v, want each once, sorted by labels", found)
	}
	names, err := w.reader.LabelNames(t.Context(), sets)
	w.ok(err)
	values, err := w.reader.LabelValues(t.Context(), "x", sets)
	w.ok(err)
	everyName, err := w.reader.LabelNames(t.Context(), nil)
	w.ok(err)
	if !slices.Equal(names, []string{"__name__", "x"}) || !slices.Equal(values, []string{"a", "b"}) || !slices.Equal(everyName, []string{"__name__", "x", "y"}) {
		t.Errorf("names %q, values %q, all names %q", names, values, everyName)
	}
}
