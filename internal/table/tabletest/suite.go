// Package tabletest is for tests of tables, and of what is built on them: the conformance suite that every
// table.Service passes (Run, RunDurable), a model of the service in memory (NewModel) and a wrapper that makes
// chosen calls fail (Faulty).
//
// The suite holds the contract of table.Service, refusals included: the real service is strict where its emulators
// are lax, so what daybook must not send is refused on our side, by every implementation alike.
package tabletest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"daybook/internal/table"
)

// Option changes what Run expects.
type Option func(*suite)

// Emulator says that behind the implementation stands an emulator that does not look at what an entity holds already
// when it checks the limits of a merge (Azurite does not). The real service does; the cases are left out.
func Emulator() Option { return func(s *suite) { s.emulator = true } }

type suite struct {
	*testing.T
	table.Service
	table    string // a table made for the test
	emulator bool
}

// Run runs the suite. open gives a service, which may hold tables already; the suite uses names of its own, drops
// what it made, and closes the service.
func Run(t *testing.T, open func(t *testing.T) table.Service, options ...Option) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"create, drop and list tables", (*suite).createDropList},
		{"bad table names", (*suite).badTableNames},
		{"a missing table", (*suite).missingTable},
		{"a missing entity", (*suite).missingEntity},
		{"merge keeps other properties", (*suite).merge},
		{"replace removes other properties", (*suite).replace},
		{"delete", (*suite).deletes},
		{"values", (*suite).values},
		{"memory is not shared", (*suite).memory},
		{"projection", (*suite).projection},
		{"tables, partitions and rows are apart", (*suite).apart},
		{"transactions", (*suite).transactions},
		{"keys", (*suite).keys},
		{"property names", (*suite).propertyNames},
		{"252 properties", (*suite).manyProperties},
		{"64 KiB in a property", (*suite).largeProperty},
		{"1 MiB in an entity", (*suite).largeEntity},
		{"4 MiB in a transaction", (*suite).largeTransaction},
		{"a refused transaction leaves nothing", (*suite).atomic},
		{"range", (*suite).ranges},
		{"pages", (*suite).pages},
		{"pages while rows come and go", (*suite).movingPages},
		{"two writers of one entity", (*suite).twoWriters},
		{"cancelled", (*suite).cancelled},
		{"closed", (*suite).closed},
		{"random operations, seed 1", func(s *suite) { s.random(1) }},
		{"random operations, seed 2", func(s *suite) { s.random(2) }},
		{"random operations, seed 3", func(s *suite) { s.random(3) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, Service: open(t)}
			for _, o := range options {
				o(s)
			}
			t.Cleanup(func() { _ = s.Close() }) // some cases have closed it
			s.table = s.create()
			c.run(s)
		})
	}
}

// RunDurable checks what outlives the service. reopen is called after Sync; it ends s, by Close or as a crash would,
// and opens a service that holds what s held. The suite closes the last one.
func RunDurable(t *testing.T, open func(t *testing.T) table.Service, reopen func(t *testing.T, s table.Service) table.Service) {
	model := NewModel()
	s := &suite{T: t, Service: open(t)}
	t.Cleanup(func() { _ = s.Close() })
	kept, dropped := s.create(), s.create()
	model.tables[kept], model.tables[dropped] = map[string]rows{}, map[string]rows{}
	both := func(name, partition string, ops ...table.Operation) {
		s.Helper()
		s.ok(s.Transact(s.Context(), name, partition, ops))
		s.ok(model.Transact(s.Context(), name, partition, ops))
	}
	for round := range 4 {
		for i := range 30 {
			row := fmt.Sprintf("row%d", i%20)
			both(kept, "5", merge(row, fmt.Sprintf("h%02d_a", round), fmt.Sprint(i)), replace("x"+row, "d_a", ""))
			both(kept, "5a", merge(row, "d_a", strings.Repeat("v", 1000*i)))
			if round < 2 {
				both(dropped, "5", merge(row, "d_a", "v"))
			}
		}
		both(kept, "5", remove(fmt.Sprintf("row%d", round)))
		if round == 2 {
			s.ok(s.Drop(s.Context(), dropped))
			s.ok(model.Drop(s.Context(), dropped))
		}
		s.ok(s.Sync(s.Context()))
		s.Service = reopen(t, s.Service)
		for _, name := range []string{kept, dropped} {
			for _, partition := range []string{"5", "5a"} {
				q := table.Query{Partition: partition}
				want, got := readAll(t, model, name, q), readAll(t, s, name, q)
				s.same(got, want)
			}
		}
		names, err := s.Tables(s.Context())
		s.ok(err)
		if found := contains(names, dropped); found != (round < 2) || !contains(names, kept) {
			s.Errorf("round %d: the tables are %q", round, names)
		}
	}
	// What was dropped is not there again under another name.
	fresh := s.create()
	s.same(readAll(t, s, fresh, table.Query{Partition: "5"}), nil)
}

// create makes a table with a name that was never used; it is dropped when the test is over.
func (s *suite) create() string {
	s.Helper()
	name := newName()
	s.ok(s.Create(s.Context(), name))
	s.Cleanup(func() {
		if err := s.Drop(context.Background(), name); err != nil && !errors.Is(err, table.ErrClosed) {
			s.Errorf("dropping the test's table: %v", err)
		}
	})
	return name
}

func newName() string { return "conformance" + strings.ToLower(rand.Text()[:16]) }

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// is wants an error that matches target.
func (s *suite) is(err, target error) {
	s.Helper()
	if !errors.Is(err, target) {
		s.Errorf("the error is %v, want %v", err, target)
	}
}

// write does operations in partition "5" of the test's table.
func (s *suite) write(ops ...table.Operation) {
	s.Helper()
	s.ok(s.Transact(s.Context(), s.table, "5", ops))
}

// refused wants operations in partition "5" to be refused because of the one at index, or of all (-1).
func (s *suite) refused(index int, ops ...table.Operation) {
	s.Helper()
	err := s.Transact(s.Context(), s.table, "5", ops)
	s.is(err, table.ErrLimit)
	var at *table.OperationError
	switch {
	case index >= 0 && !errors.As(err, &at):
		s.Errorf("%v does not say which operation", err)
	case index >= 0 && at.Index != index:
		s.Errorf("operation %d is at fault, want %d: %v", at.Index, index, err)
	}
}

// has wants row of partition "5" to be described like this; "" for not there.
func (s *suite) has(row, want string) {
	s.Helper()
	e, err := s.Get(s.Context(), s.table, table.Key{Partition: "5", Row: row}, nil)
	if want == "" {
		s.is(err, table.ErrNotFound)
		return
	}
	s.ok(err)
	s.same([]string{describe(e)}, []string{row + ": " + want})
}

func (s *suite) same(got, want []string) {
	s.Helper()
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			s.Fatalf("entity %d of %d, %d wanted:\n got %s\nwant %s", i, len(got), len(want), g, w)
		}
	}
}

// only gives the one entity that a query finds.
func (s *suite) only(q table.Query) table.Entity {
	s.Helper()
	found, err := entities(s.Context(), s, s.table, q)
	s.ok(err)
	if len(found) != 1 {
		s.Fatalf("%d entities, want 1", len(found))
	}
	return found[0]
}

// query gives the descriptions of all rows of all pages of a query of partition "5", or of q's.
func (s *suite) query(q table.Query) []string {
	s.Helper()
	if q.Partition == "" {
		q.Partition = "5"
	}
	return readAll(s, s, s.table, q)
}

// readAll gives the descriptions of what entities finds.
func readAll(t testing.TB, s table.Service, name string, q table.Query) (descriptions []string) {
	t.Helper()
	found, err := entities(t.Context(), s, name, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		descriptions = append(descriptions, describe(e))
	}
	return descriptions
}

// entities reads all pages of a query and checks what holds for every page.
func entities(ctx context.Context, s table.Service, name string, q table.Query) (found []table.Entity, err error) {
	limit, last := table.MaxPage, ""
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	for range 10_000 {
		page, err := s.Query(ctx, name, q)
		if err != nil {
			return nil, err
		}
		if len(page.Entities) > limit {
			return nil, fmt.Errorf("a page of %d rows, the limit is %d", len(page.Entities), limit)
		}
		for _, e := range page.Entities {
			if e.Key.Partition != q.Partition || e.Key.Row <= last {
				return nil, fmt.Errorf("entity %v comes after row %q", e.Key, last)
			}
			last = e.Key.Row
		}
		found = append(found, page.Entities...)
		if page.Next == "" {
			return found, nil
		}
		q.Token = page.Next
	}
	return nil, errors.New("the pages have no end")
}

// describe writes an entity down in one line; what is long is hashed.
func describe(e table.Entity) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", short([]byte(e.Key.Row)))
	for _, p := range e.Properties {
		if p.Value == nil {
			fmt.Fprintf(&b, " %s=nil", p.Name)
			continue
		}
		fmt.Fprintf(&b, " %s=%s", p.Name, short(p.Value))
	}
	return b.String()
}

func short(v []byte) string {
	if len(v) > 50 {
		return fmt.Sprintf("(%d bytes, %.8x)", len(v), sha256.Sum256(v))
	}
	return string(v)
}

func merge(row string, pairs ...string) table.Operation {
	return operation(table.InsertOrMerge, row, pairs)
}
func replace(row string, pairs ...string) table.Operation {
	return operation(table.InsertOrReplace, row, pairs)
}
func remove(row string) table.Operation { return operation(table.Delete, row, nil) }

// operation makes properties of names and values that take turns.
func operation(kind table.Kind, row string, pairs []string) table.Operation {
	op := table.Operation{Kind: kind, Row: row}
	for i := 0; i < len(pairs); i += 2 {
		op.Properties = append(op.Properties, table.Property{Name: pairs[i], Value: []byte(pairs[i+1])})
	}
	return op
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}
