package tabletest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"daybook/internal/table"
)

func (s *suite) createDropList() {
	listed := func(name string) bool {
		s.Helper()
		names, err := s.Tables(s.Context())
		s.ok(err)
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			s.Errorf("the list of tables is not sorted: %q", names)
		}
		return contains(names, name)
	}
	name := newName()
	s.ok(s.Drop(s.Context(), name)) // there is none
	if listed(name) {
		s.Error("a table that was never made is listed")
	}
	s.ok(s.Create(s.Context(), name))
	s.ok(s.Transact(s.Context(), name, "5", []table.Operation{merge("r", "d_a", "v")}))
	s.ok(s.Create(s.Context(), name)) // it is there
	s.same(readAll(s, s, name, table.Query{Partition: "5"}), []string{"r: d_a=v"})
	if !listed(name) || !listed(s.table) {
		s.Error("a table is not listed")
	}
	s.ok(s.Drop(s.Context(), name))
	s.ok(s.Drop(s.Context(), name))
	if listed(name) || !listed(s.table) {
		s.Error("the wrong table is listed after Drop")
	}
	s.nothingIn(name)
}

// nothingIn wants a table not to be there.
func (s *suite) nothingIn(name string) {
	s.Helper()
	_, err := s.Get(s.Context(), name, table.Key{Partition: "5", Row: "r"}, nil)
	s.is(err, table.ErrNotFound)
	s.same(readAll(s, s, name, table.Query{Partition: "5"}), nil)
	s.is(s.Transact(s.Context(), name, "5", []table.Operation{merge("r", "d_a", "v")}), table.ErrNotFound)
	s.is(s.Transact(s.Context(), name, "5", []table.Operation{remove("r")}), table.ErrNotFound)
}

func (s *suite) badTableNames() {
	for _, name := range []string{"", "a", "ab", "1abc", "a-bc", "a_bc", "abc ", "abc/", "abé", "Abc", "abC", "tables", strings.Repeat("a", 64)} {
		s.is(s.Create(s.Context(), name), table.ErrLimit)
	}
	names, err := s.Tables(s.Context())
	s.ok(err)
	if contains(names, "Abc") || contains(names, "abc ") {
		s.Errorf("the tables are %q", names)
	}
}

func (s *suite) missingTable() { s.nothingIn(newName()) }

func (s *suite) missingEntity() {
	s.has("r", "")
	s.write(merge("r", "d_a", "v"))
	for _, key := range []table.Key{{Partition: "5", Row: "R"}, {Partition: "5", Row: "r0"}, {Partition: "5r", Row: "r"}, {Partition: "6", Row: "r"}} {
		_, err := s.Get(s.Context(), s.table, key, nil)
		s.is(err, table.ErrNotFound)
		_, err = s.Get(s.Context(), s.table, key, []string{"d_a"})
		s.is(err, table.ErrNotFound)
	}
	s.same(s.query(table.Query{Partition: "6"}), nil)
}

func (s *suite) merge() {
	s.write(merge("r", "h00_a", "0", "h01_a", "1"))
	s.write(merge("r", "h01_a", "one", "h02_a", "2"))
	s.has("r", "h00_a=0 h01_a=one h02_a=2")
	s.write(merge("r", "h01_a", "one", "h02_a", "2")) // a lost answer is resent
	s.has("r", "h00_a=0 h01_a=one h02_a=2")
	s.write(merge("r", "h00_a_1", "part", "h00_", "", "h00_ab", "other"))
	s.has("r", "h00_= h00_a=0 h00_a_1=part h00_ab=other h01_a=one h02_a=2")
}

func (s *suite) replace() {
	s.write(replace("r", "h00_a", "0", "h01_a", "1"))
	s.has("r", "h00_a=0 h01_a=1")
	s.write(replace("r", "h01_a", "one", "h02_a", "2"))
	s.has("r", "h01_a=one h02_a=2")
	s.write(replace("r", "d_a", "whole"))
	s.has("r", "d_a=whole")
	s.write(merge("r", "h00_b", "late"))
	s.has("r", "d_a=whole h00_b=late")
}

func (s *suite) deletes() {
	s.write(remove("never"))
	s.write(merge("r", "d_a", "v", "d_b", "v"), merge("r-1", "d_a", "v"), merge("q", "d_a", "v"))
	s.write(remove("r"))
	s.write(remove("r"))
	s.has("r", "")
	s.same(s.query(table.Query{}), []string{"q: d_a=v", "r-1: d_a=v"})
	s.write(merge("r", "d_c", "again"))
	s.has("r", "d_c=again") // nothing of before
	s.write(remove("q"), merge("r", "d_a", "v"), remove("r-1"), merge("new", "d_a", "v"))
	s.same(s.query(table.Query{}), []string{"new: d_a=v", "r: d_a=v d_c=again"})
}

func (s *suite) values() {
	all := make([]byte, 512)
	for i := range all {
		all[i] = byte(i)
	}
	s.write(merge("r", "bytes", string(all), "empty", "", "zero", "\x00", "zeros", strings.Repeat("\x00", 300), "text", "ÿ'\"<&>\r\n\u0080😀"))
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: "r"}, nil)
	s.ok(err)
	for _, e := range []table.Entity{e, s.only(table.Query{Partition: "5"})} {
		for name, want := range map[string]string{"bytes": string(all), "zero": "\x00", "zeros": strings.Repeat("\x00", 300), "text": "ÿ'\"<&>\r\n\u0080😀"} {
			if got := e.Property(name); string(got) != want {
				s.Errorf("%s is %q", name, got)
			}
		}
		if got := e.Property("empty"); got == nil || len(got) != 0 {
			s.Errorf("the empty value is %#v: nil would say that it is missing", got)
		}
		if e.Property("none") != nil {
			s.Error("a missing property has a value")
		}
	}
	// The same alone, where it is the first value that is read, and in place of another.
	s.write(replace("r", "empty", ""))
	s.has("r", "empty=")
	s.write(merge("r", "full", "v"))
	s.write(merge("r", "full", ""))
	s.has("r", "empty= full=")
}

// memory checks that neither side sees the other write to its own memory.
func (s *suite) memory() {
	ops := []table.Operation{merge("r", "d_a", "abc")}
	s.write(ops...)
	copy(ops[0].Properties[0].Value, "xyz")
	ops[0].Properties[0].Name = "other"
	s.has("r", "d_a=abc")
	project := []string{"d_a"}
	for range 2 {
		e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: "r"}, project)
		s.ok(err)
		queried := s.only(table.Query{Partition: "5", Project: project})
		s.same([]string{describe(e), describe(queried)}, []string{"r: d_a=abc", "r: d_a=abc"})
		for _, e := range []table.Entity{e, queried} {
			copy(e.Property("d_a"), "xyz")
			_ = append(e.Property("d_a"), "more"...)
		}
	}
}

func (s *suite) projection() {
	s.write(merge("r", "h00_a", "0", "h00_a_1", "part", "h00_b", "zero", "h01_a", "1", "empty", ""), merge("s", "h01_a", "1"), merge("t", "d_a", "v"))
	for _, c := range []struct {
		project []string
		r, s, t string
	}{
		{nil, "r: empty= h00_a=0 h00_a_1=part h00_b=zero h01_a=1", "s: h01_a=1", "t: d_a=v"},
		{[]string{}, "r:", "s:", "t:"}, // not nil: none
		{[]string{"h00_a"}, "r: h00_a=0", "s:", "t:"},
		{[]string{"h00"}, "r:", "s:", "t:"},
		{[]string{"H00_A"}, "r:", "s:", "t:"},
		{[]string{"h01_a", "h00_b", "d_a"}, "r: h00_b=zero h01_a=1", "s: h01_a=1", "t: d_a=v"}, // sorted by name
		{[]string{"none", "h01_a", "h01_a", "nor_this"}, "r: h01_a=1", "s: h01_a=1", "t:"},
		{[]string{"empty"}, "r: empty=", "s:", "t:"},
		{[]string{"none"}, "r:", "s:", "t:"},
	} {
		want := []string{c.r, c.s, c.t}
		s.same(s.query(table.Query{Project: c.project}), want)
		for i, row := range []string{"r", "s", "t"} {
			e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: row}, c.project)
			s.ok(err)
			if e.Key != (table.Key{Partition: "5", Row: row}) {
				s.Errorf("the entity has the key %v", e.Key)
			}
			s.same([]string{describe(e)}, want[i:i+1])
		}
	}
	// All 26 slots of a ring and their parts, as a chart asks for them.
	var pairs, project []string
	for i := range 26 {
		pairs = append(pairs, fmt.Sprintf("h%02d_a", i), fmt.Sprint(i))
		project = append(project, fmt.Sprintf("h%02d_a", i), fmt.Sprintf("h%02d_a_1", i), fmt.Sprintf("h%02d_b", i))
	}
	s.write(merge("u", pairs...))
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: "u"}, project)
	s.ok(err)
	if len(e.Properties) != 26 {
		s.Errorf("%d of 26 slots: %s", len(e.Properties), describe(e))
	}
}

func (s *suite) apart() {
	other := s.create()
	for _, name := range []string{s.table, other} {
		for _, partition := range []string{"5", "5a", "5-acme", "50", "6"} {
			for _, row := range []string{"a", "ab", "ab-c", "abc", "5", "5a"} {
				s.ok(s.Transact(s.Context(), name, partition, []table.Operation{merge(row, "in", name[len(name)-5:]+"/"+partition+"/"+row)}))
			}
		}
	}
	s.ok(s.Transact(s.Context(), other, "5", []table.Operation{remove("ab"), replace("a", "b", "changed")}))
	for _, partition := range []string{"5", "5a", "5-acme", "50", "6"} {
		var want []string
		for _, row := range []string{"5", "5a", "a", "ab", "ab-c", "abc"} {
			want = append(want, fmt.Sprintf("%s: in=%s/%s/%s", row, s.table[len(s.table)-5:], partition, row))
		}
		s.same(s.query(table.Query{Partition: partition}), want)
	}
	got := readAll(s, s, other, table.Query{Partition: "5", From: "a", To: "ac"})
	s.same(got, []string{"a: b=changed", "ab-c: in=" + other[len(other)-5:] + "/5/ab-c", "abc: in=" + other[len(other)-5:] + "/5/abc"})
}

// twoWriters merge into the same entities at once, each its own properties: the rule that keeps two processes apart.
func (s *suite) twoWriters() {
	const rounds = 100
	var wg sync.WaitGroup
	errs := make(chan error, 2*rounds)
	for _, writer := range []string{"a", "b"} {
		wg.Go(func() {
			for i := range rounds {
				ops := []table.Operation{
					merge("r", fmt.Sprintf("p%d_%s", i, writer), fmt.Sprint(i), "last_"+writer, fmt.Sprint(i)),
					merge("t", "last_"+writer, fmt.Sprint(i)),
				}
				if err := s.Transact(s.Context(), s.table, "5", ops); err != nil {
					errs <- err
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		s.Error(err)
	}
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: "r"}, nil)
	s.ok(err)
	if len(e.Properties) != 2*rounds+2 {
		s.Errorf("%d of %d properties are there", len(e.Properties), 2*rounds+2)
	}
	for _, writer := range []string{"a", "b"} {
		for i := range rounds {
			if got := e.Property(fmt.Sprintf("p%d_%s", i, writer)); string(got) != fmt.Sprint(i) {
				s.Errorf("writer %s's property %d is %q", writer, i, got)
			}
		}
	}
	s.has("t", "last_a=99 last_b=99")
}

// each calls every method that takes a context.
func (s *suite) each(ctx context.Context, check func(err error)) {
	check(s.Create(ctx, newName()))
	check(s.Drop(ctx, s.table))
	_, err := s.Tables(ctx)
	check(err)
	check(s.Transact(ctx, s.table, "5", []table.Operation{merge("r", "d_a", "new")}))
	_, err = s.Get(ctx, s.table, table.Key{Partition: "5", Row: "r"}, nil)
	check(err)
	_, err = s.Query(ctx, s.table, table.Query{Partition: "5"})
	check(err)
	check(s.Sync(ctx))
}

func (s *suite) cancelled() {
	s.write(merge("r", "d_a", "v"))
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	s.each(ctx, func(err error) { s.Helper(); s.is(err, context.Canceled) })
	s.has("r", "d_a=v")
	s.ok(s.Sync(s.Context()))
}

func (s *suite) closed() {
	s.write(merge("r", "d_a", "v"))
	s.ok(s.Close())
	s.each(s.Context(), func(err error) { s.Helper(); s.is(err, table.ErrClosed) })
	s.ok(s.Close()) // once more does nothing
}
