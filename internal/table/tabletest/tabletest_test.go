package tabletest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"daybook/internal/table"
	"daybook/internal/table/tabletest"
)

func TestModel(t *testing.T) {
	for name, make := range map[string]func() *tabletest.Model{
		"plain":       tabletest.NewModel,
		"short pages": func() *tabletest.Model { m := tabletest.NewModel(); m.PageRows = 3; return m },
		"empty pages": func() *tabletest.Model { m := tabletest.NewModel(); m.EmptyPages = true; return m },
	} {
		t.Run(name, func(t *testing.T) {
			tabletest.Run(t, func(*testing.T) table.Service { return make() })
		})
	}
}

// Without faults, the wrapper is the service.
func TestFaultyWithoutFaults(t *testing.T) {
	tabletest.Run(t, func(*testing.T) table.Service { return tabletest.Faulty(tabletest.NewModel()) })
}

func put(s table.Service, name, value string) error {
	ops := []table.Operation{{Row: "r", Properties: []table.Property{{Name: "d_a", Value: []byte(value)}}}}
	return s.Transact(context.Background(), name, "5", ops)
}

func value(t *testing.T, s table.Service, name string) string {
	t.Helper()
	e, err := s.Get(t.Context(), name, table.Key{Partition: "5", Row: "r"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Property("d_a"))
}

func faulty(t *testing.T, plan ...tabletest.Fault) (*tabletest.FaultyService, *tabletest.Model) {
	m := tabletest.NewModel()
	for _, name := range []string{"one", "two"} {
		if err := m.Create(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	return tabletest.Faulty(m, plan...), m
}

func want(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("the error is %v, want %v", got, want)
	}
}

func TestFaultyBeforeAndAfter(t *testing.T) {
	mine := errors.New("mine")
	s, m := faulty(t,
		tabletest.Fault{Method: tabletest.Transact, Call: 2},
		tabletest.Fault{Method: tabletest.Transact, Call: 3, Effect: tabletest.FailAfter, Err: mine},
		tabletest.Fault{Method: tabletest.Transact, Call: 4, Effect: tabletest.FailAfter})
	want(t, put(s, "one", "1"), nil)
	want(t, put(s, "one", "2"), tabletest.ErrInjected)
	if got := value(t, m, "one"); got != "1" {
		t.Errorf("a call that failed before wrote %q", got)
	}
	want(t, put(s, "one", "3"), mine)
	if got := value(t, m, "one"); got != "3" {
		t.Errorf("a call whose answer was lost wrote %q", got)
	}
	want(t, put(s, "none", "4"), table.ErrNotFound) // the service's own error goes first
	want(t, put(s, "one", "5"), nil)
	if n := s.Calls(tabletest.Transact); n != 5 {
		t.Errorf("%d calls", n)
	}
}

func TestFaultyEveryMethod(t *testing.T) {
	ctx := t.Context()
	key := table.Key{Partition: "5", Row: "r"}
	for m, call := range map[tabletest.Method]func(s table.Service) error{
		tabletest.Create:   func(s table.Service) error { return s.Create(ctx, "three") },
		tabletest.Drop:     func(s table.Service) error { return s.Drop(ctx, "one") },
		tabletest.Tables:   func(s table.Service) error { _, err := s.Tables(ctx); return err },
		tabletest.Transact: func(s table.Service) error { return put(s, "one", "2") },
		tabletest.Get:      func(s table.Service) error { _, err := s.Get(ctx, "one", key, nil); return err },
		tabletest.Query: func(s table.Service) error {
			page, err := s.Query(ctx, "one", table.Query{Partition: "5"})
			if err != nil && len(page.Entities) > 0 {
				t.Error("a lost answer was given")
			}
			return err
		},
		tabletest.Sync: func(s table.Service) error { return s.Sync(ctx) },
	} {
		for _, effect := range []tabletest.Effect{tabletest.FailBefore, tabletest.FailAfter} {
			s, _ := faulty(t)
			want(t, put(s, "one", "1"), nil)
			s.Add(tabletest.Fault{Method: m, Call: 1, Effect: effect})
			want(t, call(s), tabletest.ErrInjected)
			want(t, call(s), nil)
			s.Add(tabletest.Fault{Method: m})
			want(t, call(s), tabletest.ErrInjected)
			want(t, call(s), tabletest.ErrInjected)
			s.Heal()
			want(t, call(s), nil)
			if n := s.Calls(m); n < 5 {
				t.Errorf("%s was called %d times", m, n)
			}
		}
	}
}

func TestFaultyTable(t *testing.T) {
	s, _ := faulty(t, tabletest.Fault{Method: tabletest.Transact, Table: "two", Call: 2})
	want(t, put(s, "one", "1"), nil)
	want(t, put(s, "two", "1"), nil)
	want(t, put(s, "one", "1"), nil)
	want(t, put(s, "two", "1"), tabletest.ErrInjected)
	want(t, put(s, "two", "1"), nil)
}

func TestFaultyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		struck, release := make(chan struct{}), make(chan struct{})
		s, m := faulty(t, tabletest.Fault{Method: tabletest.Transact, Call: 1, Effect: tabletest.Pass,
			Struck: func() { close(struck) }, Wait: release})
		done := make(chan error, 1)
		go func() { done <- put(s, "one", "slow") }()
		<-struck
		synctest.Wait() // it blocks now
		want(t, put(s, "one", "fast"), nil)
		if got := value(t, m, "one"); got != "fast" {
			t.Errorf("the blocked call wrote already: %q", got)
		}
		close(release)
		want(t, <-done, nil)
		if got := value(t, m, "one"); got != "slow" {
			t.Errorf("the released call wrote nothing: %q", got)
		}
		s.Add(tabletest.Fault{Method: tabletest.Sync, Wait: make(chan struct{})})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- s.Sync(ctx) }()
		synctest.Wait()
		cancel()
		want(t, <-done, context.Canceled)
	})
}
