package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/tabletest"
	"daybook/keys"
)

func metadata(t testing.TB, s *store.Store) map[string]series.Metadata {
	t.Helper()
	all := map[string]series.Metadata{}
	ok(t, s.Metadata(t.Context(), func(m series.Metadata) error {
		if _, twice := all[m.Family]; twice {
			t.Errorf("the family %q is given twice", m.Family)
		}
		all[m.Family] = m
		return nil
	}))
	return all
}

func family(name, help string) series.Metadata {
	return series.Metadata{Family: name, Type: "counter", Help: help, Unit: "seconds"}
}

// TestMetadata stores families with all kinds of names and texts, and some again: the newest wins, after a restart too.
func TestMetadata(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	want := map[string]series.Metadata{}
	var all []series.Metadata
	put := func(m series.Metadata) {
		want[m.Family] = m
		all = append(all, m)
	}
	for _, name := range []string{"up", "http.server.duration", "it's a/b\\c#d?e", "é", ""} {
		put(family(name, "text of "+name))
	}
	put(series.Metadata{Family: "nothing else"})
	for i := range 250 { // three transactions
		put(family(fmt.Sprint("family_", i), strings.Repeat("x", i)))
	}
	for _, n := range []int{70 << 10, 600 << 10, 2_000_000} { // split, in a row of its own, in three
		put(family(fmt.Sprint("long_", n), strings.Repeat("é\x00'", n/4)))
	}
	put(family("up", "twice in one call"))
	ok(t, s.PutMetadata(t.Context(), all))
	check := func() {
		t.Helper()
		got := metadata(t, s)
		if len(got) != len(want) {
			t.Errorf("%d families, want %d", len(got), len(want))
		}
		for name, m := range want {
			if got[name] != m {
				t.Errorf("%q is %.200q, want %.200q", name, fmt.Sprint(got[name]), fmt.Sprint(m))
			}
		}
	}
	check()
	all = nil
	put(family("up", "another text"))
	put(family("long_614400", "short"))
	put(series.Metadata{Family: "family_3", Type: "gauge"})
	ok(t, s.PutMetadata(t.Context(), all))
	ok(t, s.PutMetadata(t.Context(), nil))
	check()
	s = open(t, svc, keep, today+1)
	check()

	tenant := keep
	tenant.Tenant = "acme"
	other := open(t, svc, tenant, today)
	if got := metadata(t, other); len(got) > 0 {
		t.Errorf("another tenant sees %d families", len(got))
	}
	ok(t, other.PutMetadata(t.Context(), []series.Metadata{family("up", "of acme")}))
	check()
	if got := metadata(t, other)["up"].Help; got != "of acme" {
		t.Errorf("the tenant's own says %q", got)
	}
	if got := open(t, svc, keep, today+1).Closed(); got != today-1 {
		t.Errorf("with metadata in it the store has closed up to %d, want %d", got-today, -1)
	}
}

// TestMetadataCollision has a family stored where another's hash points to: it is refused, and others are not kept from
// being stored.
func TestMetadataCollision(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	ok(t, s.PutMetadata(t.Context(), []series.Metadata{family("first", "x")}))
	partition := "metadata"
	e := read(t, svc, "daybookmeta", table.Key{Partition: partition, Row: string(keys.MetadataRow("first"))})
	write(t, svc, "daybookmeta", table.Key{Partition: partition, Row: string(keys.MetadataRow("second"))}, table.InsertOrReplace, e.Properties...)
	err := s.PutMetadata(t.Context(), []series.Metadata{family("second", "y"), family("third", "z")})
	is(t, err, store.ErrSameHash)
	if text := err.Error(); !strings.Contains(text, `"second"`) || !strings.Contains(text, `"first"`) {
		t.Errorf("the message does not name both: %s", text)
	}
	e = read(t, svc, "daybookmeta", table.Key{Partition: partition, Row: string(keys.MetadataRow("second"))})
	if !strings.Contains(string(e.Property("family")), "first") {
		t.Errorf("the first family was overwritten: %q", e.Property("family"))
	}
	read(t, svc, "daybookmeta", table.Key{Partition: partition, Row: string(keys.MetadataRow("third"))})
}

// TestMetadataRefuses refuses what is too long, and says where what is stored is damaged.
func TestMetadataRefuses(t *testing.T) {
	svc := strict()
	s := open(t, svc, keep, today)
	long := family("long", strings.Repeat("x", store.MaxMetadata))
	is(t, s.PutMetadata(t.Context(), []series.Metadata{long, family("good", "")}), store.ErrMetadata)
	most := series.Metadata{Family: "most", Help: strings.Repeat("x", store.MaxMetadata-4)}
	ok(t, s.PutMetadata(t.Context(), []series.Metadata{most}))
	got := metadata(t, s)
	if len(got) != 2 || got["most"] != most {
		t.Errorf("%d families are stored, want two", len(got))
	}
	row := table.Key{Partition: "metadata", Row: string(keys.MetadataRow("good"))}
	whole := read(t, svc, "daybookmeta", row).Property("family")
	for _, bad := range [][]byte{{}, {9}, whole[:len(whole)-1], append(slices.Clone(whole), 0), {1, 0xff}, {0xf1, 3, 1}, {0x90}} {
		write(t, svc, "daybookmeta", row, table.InsertOrReplace, table.Property{Name: "family", Value: bad})
		err := s.Metadata(t.Context(), func(series.Metadata) error { return nil })
		if !errors.Is(err, store.ErrMetadata) && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%x gives %v", bad, err)
		}
	}
	ok(t, s.PutMetadata(t.Context(), []series.Metadata{family("good", "again")})) // makes it good
	if got := metadata(t, s)["good"].Help; got != "again" {
		t.Errorf("put over a damaged one it says %q", got)
	}
	stop := errors.New("enough")
	is(t, s.Metadata(t.Context(), func(series.Metadata) error { return stop }), stop)
}

// TestMetadataFaults lets the table fail: the error comes through, and another attempt stores everything.
func TestMetadataFaults(t *testing.T) {
	svc := strict()
	open(t, svc, keep, today)
	faulty := tabletest.Faulty(svc)
	s := open(t, faulty, keep, today)
	all := []series.Metadata{family("a", "1"), family("b", "2")}
	for _, method := range []tabletest.Method{tabletest.Get, tabletest.Transact} {
		faulty.Add(tabletest.Fault{Method: method, Call: 1})
		is(t, s.PutMetadata(context.Background(), all), tabletest.ErrInjected)
		ok(t, s.PutMetadata(context.Background(), all))
	}
	faulty.Add(tabletest.Fault{Method: tabletest.Query, Call: 1})
	is(t, s.Metadata(context.Background(), func(series.Metadata) error { return nil }), tabletest.ErrInjected)
	if got := metadata(t, s); len(got) != 2 {
		t.Errorf("%d families, want 2", len(got))
	}
}
