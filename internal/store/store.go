// Package store is the layout of entities: it puts keys, slots and tables together, and nothing else knows how a
// series' samples lie in the tables. It has no goroutines and no timers; package ingest flushes into it, package
// rollup closes and seals days in it, package query reads from it.
//
// Two rules hold at every instant, and a crash between any two table operations keeps them:
//
//  1. A ring slot is overwritten only when what it held is in its page: a ring write for hour h needs the day of
//     h-26 closed (ErrDayOpen otherwise), and a day counts as closed when its pages are written for all series and
//     that is itself written down.
//  2. What is written for an hour of a closed day goes to its page, in the ring's hours also to the ring. So all
//     hours of closed days are in pages, and all of the last 24 h in the ring.
//
// Each writer owns the properties that end in its id and writes no others, so two processes with the same series do
// not overwrite each other; readers merge. Each closes for itself, so a reader asks FirstOpen, not Closed, from where
// on the ring is needed. Within one writer, an hour's slot is always written whole: the caller
// gives all samples of the hour that it has ever written.
package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/keys"
)

// Version is the layout's version, kept in the store itself.
const Version = 1

// ErrNewer says that a store was written by a newer daybook.
var ErrNewer = errors.New("the store was written by a newer version of daybook: use that version or a later one")

// ErrBuckets says that a store was created with another number of buckets than the configuration asks for.
var ErrBuckets = errors.New("the number of buckets is fixed when a store is created")

// ErrDayOpen says that a ring slot cannot be overwritten yet; close the day first.
var ErrDayOpen = errors.New("the day that the ring slot holds is not closed yet")

// Config says which store to open.
type Config struct {
	Tables  keys.Tables  // the prefix of the tables' names
	Buckets keys.Buckets // of a new store; an old one must have the same
	Writer  string       // this process's writer id
	Tenant  string       // "" for the default one
	Alone   bool         // no other process writes to the tables, so a page may be replaced whole
}

// Store is one store in a table service. Its methods may be called from many goroutines.
type Store struct {
	svc     table.Service
	cfg     Config
	writers []string // all that ever wrote, sorted, this one included

	made    sync.Map     // names of tables known to be there
	locks   []sync.Mutex // a bucket's: held over placing and writing, so that closing and sealing see all or nothing
	closed  atomic.Int32 // the newest day whose pages are written and known to be
	closing atomic.Int32 // the newest day that is being closed: new writes go to its pages already
	highest series.Day   // the newest day that was ever closed; days after Closed up to it were opened again
	others  series.Day   // the newest day that all other writers had closed when this one was opened

	unsealed unsealed
}

const (
	metaPartition = "meta"
	storeRow      = "store"
	writerRow     = "writer-"
)

// Open opens the store in the service and makes it where there is none: then all days before today count as
// closed, as there is nothing in a ring.
func Open(ctx context.Context, svc table.Service, cfg Config, today series.Day) (*Store, error) {
	if err := errors.Join(cfg.Buckets.Check(), keys.CheckWriter(cfg.Writer)); err != nil {
		return nil, err
	}
	s := &Store{svc: svc, cfg: cfg, locks: make([]sync.Mutex, cfg.Buckets)}
	if err := s.ensure(ctx, cfg.Tables.Meta()); err != nil {
		return nil, err
	}
	if err := s.openMeta(ctx); err != nil {
		return nil, err
	}
	if err := s.openWriters(ctx, today); err != nil {
		return nil, fmt.Errorf("reading the store's writers: %w", err)
	}
	return s, s.ensure(ctx, cfg.Tables.Ring())
}

func (s *Store) openMeta(ctx context.Context) error {
	e, err := s.svc.Get(ctx, s.cfg.Tables.Meta(), table.Key{Partition: metaPartition, Row: storeRow}, nil)
	if errors.Is(err, table.ErrNotFound) {
		return s.putMeta(ctx, storeRow, table.InsertOrReplace,
			table.Property{Name: "version", Value: number(Version)},
			table.Property{Name: "buckets", Value: number(int64(s.cfg.Buckets))})
	}
	if err != nil {
		return fmt.Errorf("reading what kind of store this is: %w", err)
	}
	if v := numberOf(e.Property("version")); v > Version {
		return fmt.Errorf("layout version %d, this program knows up to %d: %w", v, Version, ErrNewer)
	}
	if n := numberOf(e.Property("buckets")); n != int64(s.cfg.Buckets) {
		return fmt.Errorf("this store has %d buckets, the configuration says %d: %w", n, s.cfg.Buckets, ErrBuckets)
	}
	return nil
}

func (s *Store) openWriters(ctx context.Context, today series.Day) error {
	closed, known := today-1, false
	s.others = math.MaxInt32
	q := table.Query{Partition: metaPartition, From: writerRow}
	err := s.query(ctx, s.cfg.Tables.Meta(), q, func(e table.Entity) error {
		writer, ok := strings.CutPrefix(e.Key.Row, writerRow)
		if !ok {
			return nil
		}
		s.writers = append(s.writers, writer)
		day := series.Day(numberOf(e.Property("closed")))
		if writer != s.cfg.Writer {
			s.others = min(s.others, day)
			return nil
		}
		// With the clock ahead once, days still to come were closed: take them as open again. All that was
		// written for them meanwhile is in their pages (rule 2), which closing them again must keep.
		closed, known = min(today-1, day), true
		s.highest = series.Day(numberOf(e.Property("highest")))
		return nil
	})
	if err != nil {
		return err
	}
	if !known {
		s.writers = append(s.writers, s.cfg.Writer)
		slices.Sort(s.writers)
	}
	s.closed.Store(int32(closed))
	s.closing.Store(int32(closed))
	s.highest = max(s.highest, closed)
	return s.putClosed(ctx, closed)
}

func (s *Store) putMeta(ctx context.Context, row string, kind table.Kind, properties ...table.Property) error {
	ops := []table.Operation{{Kind: kind, Row: row, Properties: properties}}
	return s.svc.Transact(ctx, s.cfg.Tables.Meta(), metaPartition, ops)
}

func (s *Store) putClosed(ctx context.Context, day series.Day) error {
	return s.putMeta(ctx, writerRow+s.cfg.Writer, table.InsertOrMerge,
		table.Property{Name: "closed", Value: number(int64(day))},
		table.Property{Name: "highest", Value: number(int64(max(s.highest, day)))})
}

// Buckets is how many buckets the store has.
func (s *Store) Buckets() int { return int(s.cfg.Buckets) }

// Bucket is the number of a series' bucket.
func (s *Store) Bucket(id series.ID) int { return s.cfg.Buckets.Of(id) }

// Closed is the newest closed day.
func (s *Store) Closed() series.Day { return series.Day(s.closed.Load()) }

// FirstOpen is the first day of which hours may be in rings and in no page. Alone, it is the one after the newest that
// this writer and all before it have closed: a writer that is gone never closes its last days. Where others may come
// and go at any time it cannot be told, and rings must be read for all days.
func (s *Store) FirstOpen() series.Day {
	if !s.cfg.Alone {
		return keys.FirstDay
	}
	return min(s.Closed(), s.others) + 1
}

// Tenant is the tenant whose series these are.
func (s *Store) Tenant() string { return s.cfg.Tenant }

// Sync returns when all that was written before is durable.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.svc.Sync(ctx); err != nil {
		return fmt.Errorf("making the tables durable: %w", err)
	}
	return nil
}

func (s *Store) partition(bucket int) string {
	return string(s.cfg.Buckets.Partition(bucket, s.cfg.Tenant))
}

func (s *Store) key(id series.ID, row keys.Row) table.Key {
	return table.Key{Partition: s.partition(s.Bucket(id)), Row: string(row)}
}

// ensure makes a table unless this process knows it to be there.
func (s *Store) ensure(ctx context.Context, name string) error {
	if _, ok := s.made.Load(name); ok {
		return nil
	}
	if err := s.svc.Create(ctx, name); err != nil {
		return fmt.Errorf("creating table %q: %w", name, err)
	}
	s.made.Store(name, true)
	return nil
}

// transact writes operations of one partition, as many as fit in a transaction at a time. A group's operations go
// in one transaction, so that they are seen together or not at all.
func (s *Store) transact(ctx context.Context, name, partition string, groups [][]table.Operation) error {
	if len(groups) == 0 {
		return nil
	}
	if err := s.ensure(ctx, name); err != nil {
		return err
	}
	var ops []table.Operation
	size := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		err := s.svc.Transact(ctx, name, partition, ops)
		ops, size = ops[:0], 0
		if err != nil {
			return fmt.Errorf("writing to table %q, partition %q: %w", name, partition, err)
		}
		return nil
	}
	for _, group := range groups {
		more := 0
		for _, op := range group {
			more += table.OperationSize(partition, op)
		}
		// Groups of several operations may name a row that another group names too: each goes alone.
		alone := len(group) > 1
		if alone || len(ops)+len(group) > table.MaxOperations || size+more > table.MaxTransaction {
			if err := flush(); err != nil {
				return err
			}
		}
		ops, size = append(ops, group...), size+more
		if alone {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func number(n int64) []byte { return binary.AppendVarint(nil, n) }

func numberOf(b []byte) int64 {
	n, _ := binary.Varint(b)
	return n
}
