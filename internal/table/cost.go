package table

import (
	"context"
	"errors"
	"sync/atomic"
)

// Cost is what reads of a table took, added up over all calls whose context carries it. It is counted where the
// table is called, by the wrapper that Counted makes.
type Cost struct {
	PointReads  atomic.Int64 // calls of Get
	RangeReads  atomic.Int64 // calls of Query: pages asked for
	RowsScanned atomic.Int64 // entities that Query gave
	Bytes       atomic.Int64 // of names and values read
	Slots       atomic.Int64 // decoded from what was read; see CountSlots
}

type costKey struct{}

// WithCost gives a context under which reads are counted into c.
func WithCost(ctx context.Context, c *Cost) context.Context {
	return context.WithValue(ctx, costKey{}, c)
}

// CountSlots adds to the Cost of a context that slots were decoded. It is for what reads the values of a table.
func CountSlots(ctx context.Context, n int) {
	if cost, ok := ctx.Value(costKey{}).(*Cost); ok {
		cost.Slots.Add(int64(n))
	}
}

// Totals are all operations of a Counted service since it was made.
type Totals struct {
	Reads        Cost
	Transactions atomic.Int64
	Operations   atomic.Int64 // of all transactions
	BytesWritten atomic.Int64 // of names and values
	Failures     atomic.Int64 // calls that gave an error other than ErrNotFound
}

// Counted wraps a service so that it counts: into the Cost of a call's context, and into totals.
func Counted(s Service, totals *Totals) Service { return &counted{s, totals} }

type counted struct {
	Service
	totals *Totals
}

func (c *counted) Transact(ctx context.Context, table, partition string, ops []Operation) error {
	c.totals.Transactions.Add(1)
	c.totals.Operations.Add(int64(len(ops)))
	for _, op := range ops {
		c.totals.BytesWritten.Add(propertyBytes(op.Properties))
	}
	return c.failed(c.Service.Transact(ctx, table, partition, ops))
}

func (c *counted) Get(ctx context.Context, table string, key Key, project []string) (Entity, error) {
	e, err := c.Service.Get(ctx, table, key, project)
	c.each(ctx, func(cost *Cost) {
		cost.PointReads.Add(1)
		cost.Bytes.Add(propertyBytes(e.Properties))
	})
	return e, c.failed(err)
}

func (c *counted) Query(ctx context.Context, table string, q Query) (Page, error) {
	page, err := c.Service.Query(ctx, table, q)
	c.each(ctx, func(cost *Cost) {
		cost.RangeReads.Add(1)
		cost.RowsScanned.Add(int64(len(page.Entities)))
		for _, e := range page.Entities {
			cost.Bytes.Add(propertyBytes(e.Properties))
		}
	})
	return page, c.failed(err)
}

func (c *counted) each(ctx context.Context, add func(*Cost)) {
	add(&c.totals.Reads)
	if cost, ok := ctx.Value(costKey{}).(*Cost); ok {
		add(cost)
	}
}

func (c *counted) failed(err error) error {
	if err != nil && !errors.Is(err, ErrNotFound) {
		c.totals.Failures.Add(1)
	}
	return err
}

func propertyBytes(properties []Property) (n int64) {
	for _, p := range properties {
		n += int64(len(p.Name) + len(p.Value))
	}
	return n
}
