package store_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

// awkward are label values that keys, quoting or encodings elsewhere have failed on.
var awkward = []string{
	"'", "''", "/", `\`, "#", "?", "%", "%2F", "\t", "\u0080", "\u0640", "😀", "\x00", "é", "e\u0301", `"`, "\n",
	strings.Repeat("x", 2048), strings.Repeat("ü", store.MaxLabelBytes/4),
}

type entry struct {
	month keys.Month
	store.Listed
}

func catalogue(t testing.TB, s *store.Store) (all []entry) {
	t.Helper()
	months, err := s.Months(t.Context())
	ok(t, err)
	for _, m := range months {
		ok(t, s.Catalogue(t.Context(), m, func(id series.ID, ls labels.Labels) error {
			all = append(all, entry{m, store.Listed{ID: id, Labels: ls}})
			return nil
		}))
	}
	return all
}

func list(t testing.TB, s *store.Store, month keys.Month, all ...labels.Labels) {
	t.Helper()
	buckets := map[int][]store.Listed{}
	for _, ls := range all {
		id := keys.SeriesID(s.Tenant(), ls)
		buckets[s.Bucket(id)] = append(buckets[s.Bucket(id)], store.Listed{ID: id, Labels: ls})
	}
	for b, entries := range buckets {
		ok(t, s.List(t.Context(), b, month, entries))
	}
}

// TestCatalogueKeepsLabels lists series with awkward labels and finds each after a restart.
func TestCatalogueKeepsLabels(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	want := map[string]bool{}
	var all []labels.Labels
	for i, v := range awkward {
		ls := labels.FromStrings(model.MetricNameLabel, "m", "a", v)
		if i%2 == 0 && len(v) < 100 {
			ls = labels.FromStrings(model.MetricNameLabel, "m."+v, "a"+v, v, "z", v+v)
		}
		all = append(all, ls)
		want[ls.String()] = true
	}
	month := keys.MonthOf(today)
	list(t, s, month, all...)
	list(t, s, month, all...) // listing again changes nothing
	got := catalogue(t, open(t, svc, keep, today+1))
	if len(got) != len(all) {
		t.Fatalf("%d entries, %d were listed", len(got), len(all))
	}
	for _, e := range got {
		if !want[e.Labels.String()] || e.ID != keys.SeriesID("", e.Labels) || e.month != month {
			t.Errorf("%v in %v with id %v was never listed", e.Labels, e.month, e.ID)
		}
	}
}

// TestCatalogueOfManyMonths gives the earliest month first, and a tenant only its own.
func TestCatalogueOfManyMonths(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	_, one := named("1")
	_, two := named("2")
	months := []keys.Month{keys.MonthOf(today) - 13, keys.MonthOf(today) - 1, keys.MonthOf(today)}
	for _, m := range months {
		list(t, s, m, one, two)
	}
	acme := keep
	acme.Tenant = "acme"
	list(t, open(t, svc, acme, today), months[0], one)
	var got []keys.Month
	for _, e := range catalogue(t, s) {
		got = append(got, e.month)
	}
	want := []keys.Month{months[0], months[0], months[1], months[1], months[2], months[2]}
	if !slices.Equal(got, want) {
		t.Errorf("the months come as %v, want %v", got, want)
	}
	if got := catalogue(t, open(t, svc, acme, today)); len(got) != 1 || got[0].ID != keys.SeriesID("acme", one) {
		t.Errorf("the tenant's catalogue is %v", got)
	}
}

// TestCatalogueDamaged names the row whose labels cannot be read.
func TestCatalogueDamaged(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	id, ls := named("x")
	list(t, s, keys.MonthOf(today), ls)
	where := key(s, id, keys.SeriesRow(id))
	whole := read(t, svc, "daybookcat202611", where).Property("labels")
	for n := range len(whole) {
		if n == 1 || n == len(whole)-len("\x01i\x01x") { // a version and nothing, or one label less: readable
			continue
		}
		write(t, svc, "daybookcat202611", where, table.InsertOrMerge, table.Property{Name: "labels", Value: whole[:n]})
		err := s.Catalogue(t.Context(), keys.MonthOf(today), func(series.ID, labels.Labels) error { return nil })
		is(t, err, store.ErrCatalogue)
		if !strings.Contains(err.Error(), where.Row) {
			t.Fatalf("cut to %d bytes, the message does not name the row: %v", n, err)
		}
	}
}

// TestCatalogueStops gives the caller's error back.
func TestCatalogueStops(t *testing.T) {
	s := open(t, strict(), keep, today)
	_, ls := named("x")
	list(t, s, keys.MonthOf(today), ls)
	is(t, s.Catalogue(t.Context(), keys.MonthOf(today), func(series.ID, labels.Labels) error { return context.Canceled }), context.Canceled)
}

// TestCatalogueProperty lists random label sets.
func TestCatalogueProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		svc := tabletest.NewModel()
		s, err := store.Open(context.Background(), svc, keep, today)
		if err != nil {
			r.Fatal(err)
		}
		pairs := rapid.MapOfN(rapid.StringN(1, 20, -1), rapid.StringN(1, 50, -1), 1, 10).Draw(r, "labels")
		ls := labels.FromMap(pairs)
		id := keys.SeriesID("", ls)
		if err := s.List(context.Background(), s.Bucket(id), keys.MonthOf(today), []store.Listed{{ID: id, Labels: ls}}); err != nil {
			r.Fatal(err)
		}
		err = s.Catalogue(context.Background(), keys.MonthOf(today), func(gotID series.ID, got labels.Labels) error {
			if !labels.Equal(got, ls) || gotID != id {
				r.Fatalf("%v came back as %v", ls, got)
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
	})
}
