package tabletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"daybook/internal/table"
)

// Model is the table service as simple as it can be: maps in memory, everything under one lock. The suite compares
// implementations with it, and tests of the layers above may use it for its speed. Nothing outlives it.
//
// It is strict where the real service may be lax: with PageRows and EmptyPages its queries use all the freedom that
// table.Service gives them.
type Model struct {
	// PageRows is the most rows in a page; 0 for table.MaxPage.
	PageRows int
	// EmptyPages puts an empty page before each page with rows.
	EmptyPages bool

	mu     sync.Mutex
	closed bool
	tables map[string]map[string]rows // table, partition
}

type rows map[string]map[string]string // row, property

// NewModel makes a service without tables.
func NewModel() *Model { return &Model{tables: map[string]map[string]rows{}} }

func (m *Model) open(ctx context.Context, f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return table.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

// Create implements table.Service.
func (m *Model) Create(ctx context.Context, name string) error {
	return m.open(ctx, func() error {
		if err := table.CheckTable(name); err != nil {
			return err
		}
		if m.tables[name] == nil {
			m.tables[name] = map[string]rows{}
		}
		return nil
	})
}

// Drop implements table.Service.
func (m *Model) Drop(ctx context.Context, name string) error {
	return m.open(ctx, func() error { delete(m.tables, name); return nil })
}

// Tables implements table.Service.
func (m *Model) Tables(ctx context.Context) (names []string, err error) {
	err = m.open(ctx, func() error { names = slices.Sorted(maps.Keys(m.tables)); return nil })
	return names, err
}

// Transact implements table.Service.
func (m *Model) Transact(ctx context.Context, name, partition string, ops []table.Operation) error {
	return m.open(ctx, func() error {
		if err := table.CheckTransaction(partition, ops); err != nil {
			return err
		}
		if m.tables[name] == nil {
			return fmt.Errorf("table %q: %w", name, table.ErrNotFound)
		}
		before := m.tables[name][partition]
		after := maps.Clone(before)
		if after == nil {
			after = rows{}
		}
		for i, op := range ops {
			entity := map[string]string{}
			if op.Kind == table.InsertOrMerge {
				maps.Copy(entity, before[op.Row])
			}
			for _, p := range op.Properties {
				entity[p.Name] = string(p.Value)
			}
			key := table.Key{Partition: partition, Row: op.Row}
			if err := table.CheckEntity(key, len(entity), table.EntitySize(key, sorted(entity, nil))); err != nil {
				return &table.OperationError{Index: i, Err: err}
			}
			after[op.Row] = entity
			if op.Kind == table.Delete {
				delete(after, op.Row)
			}
		}
		m.tables[name][partition] = after
		return nil
	})
}

// Get implements table.Service.
func (m *Model) Get(ctx context.Context, name string, key table.Key, project []string) (e table.Entity, err error) {
	err = m.open(ctx, func() error {
		if err := table.CheckKey(key); err != nil {
			return err
		}
		entity, ok := m.tables[name][key.Partition][key.Row]
		if !ok {
			return fmt.Errorf("entity %v of table %q: %w", key, name, table.ErrNotFound)
		}
		e = table.Entity{Key: key, Properties: sorted(entity, project)}
		return nil
	})
	return e, err
}

// emptyToken marks the token that an empty page gives.
const emptyToken = "after an empty page/"

// Query implements table.Service.
func (m *Model) Query(ctx context.Context, name string, q table.Query) (page table.Page, err error) {
	err = m.open(ctx, func() error {
		if err := table.CheckQuery(q); err != nil {
			return err
		}
		token, afterEmpty := strings.CutPrefix(q.Token, emptyToken)
		from := max(q.From, token)
		var found []string
		for row := range m.tables[name][q.Partition] {
			if row >= from && (q.To == "" || row < q.To) {
				found = append(found, row)
			}
		}
		slices.Sort(found)
		if m.EmptyPages && !afterEmpty && len(found) > 0 {
			page.Next = emptyToken + from
			return nil
		}
		limit := table.MaxPage
		for _, n := range []int{q.Limit, m.PageRows} {
			if n > 0 {
				limit = min(limit, n)
			}
		}
		if len(found) > limit {
			page.Next, found = found[limit], found[:limit]
		}
		for _, row := range found {
			page.Entities = append(page.Entities, table.Entity{
				Key:        table.Key{Partition: q.Partition, Row: row},
				Properties: sorted(m.tables[name][q.Partition][row], q.Project),
			})
		}
		return nil
	})
	return page, err
}

// Sync implements table.Service.
func (m *Model) Sync(ctx context.Context) error { return m.open(ctx, func() error { return nil }) }

// Close implements table.Service.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func sorted(entity map[string]string, project []string) (properties []table.Property) {
	for _, name := range slices.Sorted(maps.Keys(entity)) {
		if project == nil || slices.Contains(project, name) {
			properties = append(properties, table.Property{Name: name, Value: []byte(entity[name])})
		}
	}
	return properties
}
