// Package embedded keeps tables in this process, in a Pebble database on the local disk: nothing to install, one
// machine. It is an implementation of table.Service and enforces the limits of Azure Table Storage, so that what
// works here works there.
//
// One key of the database is one property of one entity:
//
//	00 00 00 07   20   00   3252f164…-479212   00   h05_a      -> value
//	table number  partition  row                    property
//
// so that a merge writes just what it sets, and the properties of an entity, the entities of a partition and the
// partitions of a table are neighbours. Table number 0 is the list of tables: "t" + a table's name gives its number,
// and "next" the number of the next table; numbers are never used twice.
//
// Pebble's own write-ahead log is off: daybook has one of its own in front (package ingest), so a second would only
// write everything twice. Sync flushes the memtables; a crash keeps all transactions up to some point in time, as
// table.Service promises.
package embedded

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"daybook/internal/table"
)

// Config says where and how the tables are kept.
type Config struct {
	Dir        string       // made if it is not there
	CacheBytes int64        // of blocks read
	Logger     *slog.Logger // nil: slog.Default

	// DiskFull is called when a write finds the disk full, and returns when it is worth trying again. nil: such a
	// write fails, which ends the process.
	DiskFull func()
	// FS is the file system; nil for the machine's own. Tests inject faults here.
	FS vfs.FS

	memTable uint64 // bytes; 0 for memTableBytes
}

// Table is the embedded table service.
type Table struct {
	db     *pebble.DB
	tables tableList

	life   sync.RWMutex // held to read by every call, to write by Close
	closed bool
	write  [64]sync.Mutex // one transaction at a time in a partition, as each looks before it writes
}

const (
	memTableBytes = 8 << 20
	blockBytes    = 32 << 10
	pageBytes     = 4 << 20 // of values, after which a page of a query ends: a thousand full entities are a gigabyte
)

// Open opens the database in cfg.Dir, making it where there is none.
func Open(cfg Config) (*Table, error) {
	log := cfg.Logger
	if log == nil {
		log = slog.Default()
	}
	db, err := pebble.Open(cfg.Dir, options(cfg, log))
	if err != nil {
		return nil, fmt.Errorf("opening the embedded table in %s: %w", cfg.Dir, err)
	}
	t := &Table{db: db}
	if err := t.tables.load(db); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the list of tables in %s: %w", cfg.Dir, err), db.Close())
	}
	return t, nil
}

func options(cfg Config, log *slog.Logger) *pebble.Options {
	fs := cfg.FS
	if fs == nil {
		fs = vfs.Default
	}
	if cfg.DiskFull != nil {
		fs = vfs.OnDiskFull(fs, cfg.DiskFull)
	}
	var failures atomic.Int32
	o := &pebble.Options{
		FS:                          patience{fs, &failures},
		CacheSize:                   cfg.CacheBytes,
		DisableWAL:                  true,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                cmp.Or(cfg.memTable, memTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		Logger:                      pebbleLogger{log},
	}
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionBalanced })
	for i := range o.Levels {
		o.Levels[i].BlockSize = blockBytes
	}
	o.EventListener = &pebble.EventListener{
		BackgroundError: func(err error) {
			failures.Add(1)
			log.Error("the embedded table could not write in the background and tries again", "err", err.Error())
		},
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err == nil {
				failures.Store(0)
			}
		},
	}
	return o
}

// Create implements table.Service.
func (t *Table) Create(ctx context.Context, name string) error {
	if err := table.CheckTable(name); err != nil {
		return err
	}
	return t.open(ctx, func() error { return t.tables.create(t.db, name) })
}

// Drop implements table.Service.
func (t *Table) Drop(ctx context.Context, name string) error {
	return t.open(ctx, func() error {
		// No transaction may have looked the table up and write to it after it is gone: nothing would ever find
		// its rows again, nor remove them.
		for i := range t.write {
			t.write[i].Lock()
			defer t.write[i].Unlock()
		}
		return t.tables.drop(t.db, name)
	})
}

// Tables implements table.Service.
func (t *Table) Tables(ctx context.Context) (names []string, err error) {
	err = t.open(ctx, func() error { names = t.tables.names(); return nil })
	return names, err
}

// Transact implements table.Service.
func (t *Table) Transact(ctx context.Context, name, partition string, ops []table.Operation) error {
	if err := table.CheckTransaction(partition, ops); err != nil {
		return err
	}
	return t.open(ctx, func() error {
		lock := &t.write[stripe(name, partition)]
		lock.Lock()
		defer lock.Unlock()
		number, ok := t.tables.number(name)
		if !ok {
			return fmt.Errorf("table %q: %w", name, table.ErrNotFound)
		}
		return t.transact(partitionPrefix(number, partition), partition, ops)
	})
}

// Get implements table.Service.
func (t *Table) Get(ctx context.Context, name string, key table.Key, project []string) (e table.Entity, err error) {
	if err := table.CheckKey(key); err != nil {
		return e, err
	}
	err = t.open(ctx, func() error {
		number, ok := t.tables.number(name)
		if !ok {
			return fmt.Errorf("table %q: %w", name, table.ErrNotFound)
		}
		e, err = t.get(entityPrefix(partitionPrefix(number, key.Partition), key.Row), key, project)
		return err
	})
	return e, err
}

// Query implements table.Service.
func (t *Table) Query(ctx context.Context, name string, q table.Query) (page table.Page, err error) {
	if err := table.CheckQuery(q); err != nil {
		return page, err
	}
	err = t.open(ctx, func() error {
		number, ok := t.tables.number(name)
		if !ok {
			return nil
		}
		page, err = t.query(partitionPrefix(number, q.Partition), q)
		return err
	})
	return page, err
}

// Sync implements table.Service.
func (t *Table) Sync(ctx context.Context) error {
	return t.open(ctx, func() error {
		flushed, err := t.db.AsyncFlush()
		if err != nil {
			return err
		}
		select {
		case <-flushed:
			return nil
		case <-ctx.Done(): // it goes on; with a full disk, for as long as that lasts
			return ctx.Err()
		}
	})
}

// Compact rewrites what a table holds so that overwritten values give their room back.
func (t *Table) Compact(ctx context.Context, name string) error {
	return t.open(ctx, func() error {
		number, ok := t.tables.number(name)
		if !ok {
			return nil
		}
		from := tablePrefix(number)
		return t.db.Compact(ctx, from, prefixEnd(from), false)
	})
}

// DiskBytes is what the database's files take.
func (t *Table) DiskBytes() (n uint64) {
	_ = t.open(context.Background(), func() error { n = t.db.Metrics().DiskSpaceUsage(); return nil })
	return n
}

// Close implements table.Service.
func (t *Table) Close() error {
	t.life.Lock()
	defer t.life.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	return errors.Join(t.db.Flush(), t.db.Close())
}

// open runs f unless the service is closed or ctx has ended, and keeps Close waiting meanwhile.
func (t *Table) open(ctx context.Context, f func() error) error {
	t.life.RLock()
	defer t.life.RUnlock()
	if t.closed {
		return table.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f()
}

func stripe(name, partition string) uint32 {
	h := uint32(2166136261)
	for _, s := range []string{name, partition} {
		for i := range len(s) {
			h = (h ^ uint32(s[i])) * 16777619
		}
	}
	return h % 64
}

// transact writes the operations in one batch. prefix is the partition's.
func (t *Table) transact(prefix []byte, partition string, ops []table.Operation) error {
	order := make([]int, len(ops)) // by row, so that the iterator only goes forward
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(ops[a].Row, ops[b].Row) })
	it, err := t.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return fmt.Errorf("looking at partition %q: %w", partition, err)
	}
	defer it.Close()
	batch := t.db.NewBatch()
	defer batch.Close()
	for _, i := range order {
		key := table.Key{Partition: partition, Row: ops[i].Row}
		if err := apply(batch, it, entityPrefix(prefix, key.Row), key, ops[i]); err != nil {
			return &table.OperationError{Index: i, Err: err}
		}
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("writing to partition %q: %w", partition, err)
	}
	return nil
}

// apply adds one operation to the batch. It looks at what the entity has, for the limits count the whole of it.
func apply(batch *pebble.Batch, it *pebble.Iterator, entity []byte, key table.Key, op table.Operation) error {
	n, size := len(op.Properties), table.EntitySize(key, op.Properties)
	for ok := it.SeekGE(entity); ok && bytes.HasPrefix(it.Key(), entity); ok = it.Next() {
		name := it.Key()[len(entity):]
		if slices.ContainsFunc(op.Properties, func(p table.Property) bool { return p.Name == string(name) }) {
			continue
		}
		if op.Kind != table.InsertOrMerge {
			if err := batch.Delete(it.Key(), nil); err != nil {
				return err
			}
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		n++
		size += table.PropertySize(string(name), len(value))
	}
	if err := it.Error(); err != nil {
		return err
	}
	if err := table.CheckEntity(key, n, size); err != nil {
		return err
	}
	for _, p := range op.Properties {
		if err := batch.Set(append(entity, p.Name...), p.Value, nil); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) get(entity []byte, key table.Key, project []string) (table.Entity, error) {
	e := table.Entity{Key: key}
	it, err := t.db.NewIter(&pebble.IterOptions{LowerBound: entity, UpperBound: prefixEnd(entity)})
	if err != nil {
		return e, fmt.Errorf("reading entity %v: %w", key, err)
	}
	defer it.Close()
	if !it.First() {
		if err := it.Error(); err != nil {
			return e, fmt.Errorf("reading entity %v: %w", key, err)
		}
		return e, fmt.Errorf("entity %v: %w", key, table.ErrNotFound)
	}
	r := reader{project: project}
	for ok := true; ok; ok = it.Next() {
		if err := r.add(it, it.Key()[len(entity):]); err != nil {
			return e, fmt.Errorf("reading entity %v: %w", key, err)
		}
	}
	e.Properties = r.take()
	return e, it.Error()
}

func (t *Table) query(prefix []byte, q table.Query) (table.Page, error) {
	var page table.Page
	from, to := max(q.From, q.Token), prefixEnd(prefix)
	if q.To != "" {
		to = append(bytes.Clone(prefix), q.To...)
	}
	it, err := t.db.NewIter(&pebble.IterOptions{LowerBound: append(bytes.Clone(prefix), from...), UpperBound: to})
	if err != nil {
		return page, fmt.Errorf("reading partition %q: %w", q.Partition, err)
	}
	defer it.Close()
	limit := table.MaxPage
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	r := reader{project: q.Project}
	row := []byte(nil)
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()[len(prefix):]
		cut := bytes.IndexByte(key, 0)
		if row == nil || !bytes.Equal(row, key[:cut]) {
			r.end(&page)
			row = append(row[:0], key[:cut]...)
			if len(page.Entities) == limit || r.bytes >= pageBytes {
				page.Next = string(row)
				return page, nil
			}
			page.Entities = append(page.Entities, table.Entity{Key: table.Key{Partition: q.Partition, Row: string(row)}})
		}
		if err := r.add(it, key[cut+1:]); err != nil {
			return page, fmt.Errorf("reading partition %q: %w", q.Partition, err)
		}
	}
	r.end(&page)
	return page, it.Error()
}

// reader collects the projected properties of one entity; their values share one buffer.
type reader struct {
	project []string
	found   []table.Property
	buffer  []byte
	bytes   int // of all values so far

	likely, likelyFound int // the size of the entity before, as neighbours are much alike
}

func (r *reader) add(it *pebble.Iterator, name []byte) error {
	if r.project != nil && !slices.ContainsFunc(r.project, func(p string) bool { return p == string(name) }) {
		return nil
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return err
	}
	if r.buffer == nil { // then it is made, so that an empty value is not nil, which would say that there is none
		r.buffer, r.found = make([]byte, 0, max(len(value), r.likely)), make([]table.Property, 0, max(1, r.likelyFound))
	}
	start := len(r.buffer)
	r.bytes += len(value)
	r.buffer = append(r.buffer, value...)
	r.found = append(r.found, table.Property{Name: string(name), Value: r.buffer[start:len(r.buffer):len(r.buffer)]})
	return nil
}

// end gives what was collected to the page's last entity.
func (r *reader) end(page *table.Page) {
	if n := len(page.Entities); n > 0 {
		page.Entities[n-1].Properties = r.take()
	}
}

func (r *reader) take() []table.Property {
	found := r.found
	r.likely, r.likelyFound = len(r.buffer), len(found)
	r.found, r.buffer = nil, nil
	return found
}
