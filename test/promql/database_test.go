package promql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/storage"

	"daybook/ingest"
	"daybook/internal/datadir"
	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/embedded"
	"daybook/keys"
	"daybook/query"
	"daybook/rollup"
)

// database is daybook without its web: the real parts on top of each other, in a folder on the disk, with a clock that
// follows the samples. It is the storage.Storage that the scripts load into and read from.
type database struct {
	path string
	// then is what happens to what was loaded before it is read.
	then func(*database) error
	now  *clock
	last []byte // the newest request

	dir    *datadir.Dir
	tables *embedded.Table
	store  *store.Store
	index  *index.Index
	roller *rollup.Roller
	in     *ingest.Ingester
	reader *query.Reader
}

// newDatabase opens an empty database. Whoever asked for it closes it.
func newDatabase(tb testing.TB, then func(*database) error) *database {
	tb.Helper()
	d := &database{path: filepath.Join(tb.TempDir(), "data"), then: then, now: &clock{at: time.UnixMilli(0)}}
	if err := d.open(); err != nil {
		tb.Fatal(err)
	}
	return d
}

// open puts the parts together as cmd/daybook does. Nothing runs in the background.
func (d *database) open() (err error) {
	if d.dir, err = datadir.Open(d.path); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	d.tables, err = embedded.Open(embedded.Config{Dir: d.dir.Table(), CacheBytes: 1 << 20, Logger: log})
	if err != nil {
		return err
	}
	// Few buckets, as there are few series: the number makes no difference but to the time it takes.
	cfg := store.Config{Tables: "daybook", Buckets: 16, Writer: "a", Alone: true}
	d.store, err = store.Open(context.Background(), table.Counted(d.tables, new(table.Totals)), cfg, d.now.day())
	if err != nil {
		return err
	}
	if d.index, err = index.Open(context.Background(), d.store, keys.MonthOf(d.now.day()), 1000); err != nil {
		return err
	}
	reg := prometheus.NewRegistry()
	d.roller = rollup.New(rollup.Config{
		CloseAfter: time.Hour, SealAfter: time.Minute, Tick: time.Second, Now: d.now.Now, Logger: log, Registerer: reg,
	}, d.store)
	d.in, err = ingest.Open(ingest.Config{
		Dir: d.dir.WAL(), FlushInterval: time.Hour, FlushBytes: 1 << 30, MaxLogBytes: 1 << 30,
		MaxBody: 32 << 20, MaxDecoded: 128 << 20, MaxInFlight: 256 << 20, MaxPerHour: 100_000, MaxExemplars: 100, Seed: 1,
		Now: d.now.Now, CloseDays: d.roller.CloseDays, Logger: log, Registerer: reg,
	}, d.store, d.index)
	if err != nil {
		return err
	}
	d.reader = query.New(query.Config{
		MaxSamples: 50_000_000, Timeout: time.Minute, Lookback: 5 * time.Minute, MaxConcurrent: 2, MaxChart: 100,
		MaxRows: 1_000_000, Parallel: 4, Now: d.now.Now, Logger: log, Registerer: reg,
	}, d.store, d.index, d.in.Head())
	return nil
}

// Close flushes and closes everything.
func (d *database) Close() error { return d.close(context.Background()) }

func (d *database) close(ctx context.Context) error {
	return errors.Join(d.in.Close(ctx), d.tables.Close(), d.dir.Close())
}

// flush writes what is in memory into the table.
func (d *database) flush() error { return d.in.Flush(context.Background()) }

// restart is a stop and a start, with a flush in between as on SIGTERM.
func (d *database) restart() error {
	if err := d.Close(); err != nil {
		return err
	}
	return d.open()
}

// replay is a stop and a start with nothing flushed: what comes back does so out of the write-ahead log.
func (d *database) replay() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.in.Close(ctx); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing should have been broken off: %w", err)
	}
	if err := errors.Join(d.tables.Close(), d.dir.Close()); err != nil {
		return err
	}
	return d.open()
}

// resend sends the newest request again when it is in the table already and nothing of it in memory.
func (d *database) resend() error {
	if err := d.restart(); err != nil {
		return err
	}
	_, err := d.in.WriteV2(context.Background(), d.last)
	return err
}

// age lets three days go by: all that was loaded comes into pages, which are sealed.
func (d *database) age() error {
	if err := d.flush(); err != nil {
		return err
	}
	d.now.reach(d.now.Now().Add(72 * time.Hour))
	ctx := context.Background()
	if err := d.roller.CloseDays(ctx, d.now.day()-1); err != nil {
		return err
	}
	if err := d.roller.Seal(ctx); err != nil {
		return err
	}
	return d.restart()
}

// Querier implements storage.Queryable.
func (d *database) Querier(from, to int64) (storage.Querier, error) {
	return d.reader.Queryable().Querier(from, to)
}

// ChunkQuerier implements storage.ChunkQueryable, which PromQL has no use for.
func (*database) ChunkQuerier(int64, int64) (storage.ChunkQuerier, error) {
	return nil, errors.New("the scripts ask for no chunks")
}

// Appender implements storage.Appendable, which the scripts have left for AppenderV2.
func (*database) Appender(context.Context) storage.Appender {
	panic("the scripts append with AppenderV2")
}

// AppenderV2 implements storage.AppendableV2.
func (d *database) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &appender{ctx: ctx, to: d}
}

// StartTime implements storage.Storage.
func (*database) StartTime() (int64, error) { return 0, nil }

// clock is what the parts take for the time.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// reach puts the clock forward to a time, if it is not there yet.
func (c *clock) reach(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.at) {
		c.at = t
	}
}

func (c *clock) day() series.Day { return series.MillisOf(c.Now()).Day() }
