package index_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
	"daybook/keys"
)

func named(names ...string) (all []labels.Labels) {
	for _, name := range names {
		all = append(all, labels.FromStrings(model.MetricNameLabel, name))
	}
	return all
}

// history is a catalogue of four months: "always" is in each, the others in one each.
func history() *catalogue {
	return &catalogue{months: map[keys.Month][]labels.Labels{
		present:     named("always", "now"),
		present - 1: named("always", "last"),
		present - 2: named("always", "two", "too"),
		present - 9: named("always", "nine"),
	}}
}

func selected(t testing.TB, x *index.Index, first, last keys.Month) (names []string) {
	t.Helper()
	found, err := x.Select(t.Context(), index.Months{First: first, Last: last})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found {
		names = append(names, s.Labels.Get(model.MetricNameLabel))
	}
	slices.Sort(names)
	return names
}

// TestMonths sees in each range of months the series of these, each once, whatever is in memory.
func TestMonths(t *testing.T) {
	for _, limit := range []int{0, 2, 3, 5, 100} {
		c := history()
		x := open(t, c, present-1, limit)
		if c.reads != 2 || x.Len() != 3 {
			t.Fatalf("at the start %d months with %d series were read, want two with three", c.reads, x.Len())
		}
		for range 2 {
			for _, q := range []struct {
				first, last keys.Month
				want        []string
			}{
				{present, present, []string{"always", "now"}},
				{present + 1, present + 5, nil},
				{present - 2, present - 2, []string{"always", "too", "two"}},
				{present - 9, present - 3, []string{"always", "nine"}},
				{present - 9, present, []string{"always", "last", "nine", "now", "too", "two"}},
				{present - 1, present, []string{"always", "last", "now"}},
				{present - 8, present - 3, nil},
				{index.AllMonths.First, present - 10, nil},
			} {
				if got := selected(t, x, q.first, q.last); !slices.Equal(got, q.want) {
					t.Errorf("limit %d, months %d to %d: %v, want %v", limit, q.first-present, q.last-present, got, q.want)
				}
			}
		}
		if past := x.Len() - 3; past > limit {
			t.Errorf("limit %d: %d series of the past stay in memory", limit, past)
		}
		if limit == 100 && c.reads != 4 {
			t.Errorf("the catalogue was read %d times, want once for each month", c.reads)
		}
	}
}

// TestLabelsOfMonths gives names and values of the months asked for.
func TestLabelsOfMonths(t *testing.T) {
	c := history()
	c.months[present-9] = append(c.months[present-9], labels.FromStrings(model.MetricNameLabel, "m", "old", "x"))
	x := open(t, c, present-1, 0)
	nine := index.Months{First: present - 9, Last: present - 9}
	if names, err := x.LabelNames(t.Context(), nine); err != nil || !slices.Equal(names, []string{model.MetricNameLabel, "old"}) {
		t.Errorf("names %q, error %v", names, err)
	}
	values, err := x.LabelValues(t.Context(), index.Months{First: present - 9, Last: present - 2}, model.MetricNameLabel)
	if err != nil || !slices.Equal(values, []string{"always", "m", "nine", "too", "two"}) {
		t.Errorf("values %q, error %v", values, err)
	}
}

// TestUnlistedStay keeps what is in no catalogue yet, whatever is let go.
func TestUnlistedStay(t *testing.T) {
	c := history()
	x := open(t, c, present-1, 0)
	fresh := addIn(t, x, named("fresh")[0], present-2)
	old := addIn(t, x, named("always")[0], present-2)
	for range 3 {
		if got := selected(t, x, present-2, present-2); !slices.Equal(got, []string{"always", "fresh", "too", "two"}) {
			t.Fatalf("two months ago there were %v", got)
		}
		selected(t, x, present-9, present-9) // lets go of the other
	}
	c.mu.Lock()
	c.months[present-2] = append(c.months[present-2], fresh.Labels)
	c.mu.Unlock()
	fresh.SetListed(present - 2)
	old.SetListed(present - 2)
	for range 2 {
		selected(t, x, present-9, present-9)
		if got := selected(t, x, present-2, present-2); !slices.Equal(got, []string{"always", "fresh", "too", "two"}) {
			t.Fatalf("once listed, there were %v", got)
		}
	}
	if x.Get(fresh.ID) != fresh || x.Get(old.ID) != old {
		t.Error("a series that was added has another entry now")
	}
}

// TestUnwritten knows when no table can have anything of a series in a month.
func TestUnwritten(t *testing.T) {
	x := open(t, history(), present-1, 100)
	s, added, err := x.Add(keys.SeriesID("", named("now")[0]), named("now")[0])
	if err != nil || added {
		t.Fatalf("added %v, error %v", added, err)
	}
	for month, want := range map[keys.Month]bool{present: false, present - 1: true, present + 1: true, present - 2: false} {
		if got := x.Unwritten(s, month); got != want {
			t.Errorf("month %d: %v, want %v", month-present, got, want)
		}
	}
	selected(t, x, present-2, present-2)
	if !x.Unwritten(s, present-2) {
		t.Error("the month is in memory now, and the series is not in it")
	}
	if !x.Kept(present-1) || x.Kept(present-2) {
		t.Error("the last two months are kept")
	}
}

// TestNextMonth lets go of a month when it is no longer one of the last two.
func TestNextMonth(t *testing.T) {
	x := open(t, history(), present-1, 0)
	addIn(t, x, named("now")[0], present+1)
	if x.Kept(present-1) || !x.Kept(present) {
		t.Error("the new month and the one before are kept")
	}
	if got := selected(t, x, present-1, present-1); !slices.Equal(got, []string{"always", "last"}) {
		t.Errorf("the month let go has %v", got)
	}
	if got := selected(t, x, present, present+1); !slices.Equal(got, []string{"always", "now"}) || x.Len() != 2 {
		t.Errorf("of %d series in memory, the last two months have %v", x.Len(), got)
	}
}

// TestCatalogueFails gives the error, and reads again when asked again.
func TestCatalogueFails(t *testing.T) {
	c := history()
	x := open(t, c, present-1, 100)
	c.err = errors.New("away")
	if _, err := x.Select(t.Context(), index.AllMonths); !errors.Is(err, c.err) {
		t.Fatalf("the error is %v", err)
	}
	c.err = nil
	if got := selected(t, x, present-9, present); len(got) != 6 {
		t.Errorf("after the failure there are %v", got)
	}
	if _, err := index.Open(t.Context(), &catalogue{err: errors.New("away")}, present, 0); err == nil {
		t.Error("an index without its catalogue opens")
	}
}

// TestManyAsk has queries of several months at once, while series are added, under a limit that lets go all the time.
func TestManyAsk(t *testing.T) {
	c := history()
	x := open(t, c, present-1, 1)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range 200 {
				m := []keys.Month{present - 9, present - 2, present - 1, present}[(i+n)%4]
				for _, want := range c.months[m] {
					if got := selected(t, x, m, m); !slices.Contains(got, want.Get(model.MetricNameLabel)) {
						t.Errorf("month %d: %v, without %v", m-present, got, want)
						return
					}
				}
				addIn(t, x, named(fmt.Sprintf("new%d_%d", n, i))[0], m)
			}
		})
	}
	all.Wait()
	if got := selected(t, x, present-9, present); len(got) != 800+6 {
		t.Errorf("there are %d series, want 806", len(got))
	}
}
