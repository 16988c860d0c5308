package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

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
	"daybook/web"
)

func serveCommand(cmd *cobra.Command) error {
	c, err := loadConfig(cmd.Flags(), os.Environ())
	if err != nil {
		return err
	}
	return serve(cmd.Context(), c, newLogger(c.Log, cmd.ErrOrStderr()))
}

// serve runs until ctx ends, then takes no more requests, flushes, and closes.
func serve(ctx context.Context, c config, log *slog.Logger) error {
	tuneMemory()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	cfg, err := webConfigOf(c, registry, log)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	server := web.New(cfg)
	group, ctx := errgroup.WithContext(ctx)
	ended := make(chan error, 2)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		err := work(ctx, c, server, registry, log, func(err error) { ended <- err })
		return errors.Join(err, stop(server))
	})
	log.Info("daybook is listening", "address", listener.Addr().String(), "version", version)
	go func() { ended <- group.Wait() }()
	return <-ended
}

const stopWithin = 10 * time.Second

func stop(server *web.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	return server.Stop(ctx)
}

// work opens the parts from the table upwards, serves until ctx ends, and closes them in turn. Where the disk is full
// the table cannot be closed: then work calls abandon and does not return, and the process is to end as it is.
func work(ctx context.Context, c config, server *web.Server, registry *prometheus.Registry, log *slog.Logger, abandon func(error)) (err error) {
	dir, err := datadir.Open(c.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	patience, lose := context.WithCancelCause(context.Background()) // with a full disk
	defer context.AfterFunc(ctx, func() { _ = stop(server); lose(errStopped) })()
	tables, err := embedded.Open(embedded.Config{
		Dir: dir.Table(), CacheBytes: int64(c.Table.Cache), Logger: log,
		DiskFull: func() { awaitRoom(patience, dir, log, abandon) },
	})
	if err != nil {
		return err
	}
	defer func() { lose(cmp.Or(err, errStopped)); err = errors.Join(err, tables.Close()) }()
	totals := new(table.Totals)
	registry.MustRegister(tableCollector{totals, tables})
	s, err := openStore(ctx, table.Counted(tables, totals), c)
	if err != nil {
		return err
	}
	start := time.Now()
	x, err := index.Open(ctx, s, keys.MonthOf(thisDay())-1, c.Query.MaxPastSeries)
	if err != nil {
		return err
	}
	metadata := index.NewMetadata()
	if err := fillMetadata(ctx, s, metadata); err != nil {
		return err
	}
	log.Info("the catalogue is read", "series", x.Len(), "took", time.Since(start).Round(time.Millisecond))
	roller := rollup.New(rollupConfigOf(c, tables, registry, log), s)
	ingester, err := ingest.Open(ingestConfigOf(c, dir, roller, metadata, registry, log), s, x)
	if err != nil {
		return err
	}
	reader := query.New(queryConfigOf(c, registry, log), s, x, ingester.Head())
	server.Ready(&web.Backend{Ingester: ingester, Reader: reader, Metadata: metadata})
	log.Info("daybook is ready", "took", time.Since(start).Round(time.Millisecond))

	var group errgroup.Group
	group.Go(func() error { ingester.Run(ctx); return nil })
	group.Go(func() error { roller.Run(ctx); return nil })
	<-ctx.Done()
	log.Info("daybook is stopping: no more requests are taken, and what is in memory is flushed")
	stopErr := stop(server)
	_ = group.Wait() // neither gives an error
	return errors.Join(stopErr, ingester.Close(context.Background()))
}

// errStopped says that daybook was told to stop while the disk was full.
var errStopped = errors.New("stopped while the disk was full, so what is in memory could not be flushed; nothing is lost, the next start reads the write-ahead log")

// awaitRoom is called by the embedded table when the disk is full: its write is tried again when this returns. Where
// daybook ends, it does not: the table would only run into the full disk again.
func awaitRoom(patience context.Context, dir *datadir.Dir, log *slog.Logger, abandon func(error)) {
	log.Error("the disk is full: the table waits for room, and senders get 503 meanwhile; nothing acknowledged is lost")
	if !dir.AwaitRoom(patience, 4<<20) {
		abandon(context.Cause(patience))
		select {}
	}
	log.Info("there is room on the disk again")
}

func openStore(ctx context.Context, svc table.Service, c config) (*store.Store, error) {
	return store.Open(ctx, svc, store.Config{
		Tables: keys.Tables(c.Table.Prefix), Buckets: keys.Buckets(c.Table.Buckets), Writer: c.Table.Writer,
		Alone: true, // the embedded table is this process's own
	}, thisDay())
}

func thisDay() series.Day { return series.MillisOf(time.Now()).Day() }

// fillMetadata reads what the store has of the metadata of metric families.
func fillMetadata(ctx context.Context, s *store.Store, into *index.Metadata) error {
	return s.Metadata(ctx, func(one series.Metadata) error {
		into.Set(one)
		return nil
	})
}

func ingestConfigOf(c config, dir *datadir.Dir, roller *rollup.Roller, metadata *index.Metadata, reg prometheus.Registerer, log *slog.Logger) ingest.Config {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	return ingest.Config{
		Dir: dir.WAL(), Retention: time.Duration(c.Retention.Raw), FlushInterval: time.Duration(c.Flush.Interval),
		FlushBytes: int64(c.Flush.WALSize), MaxLogBytes: int64(c.WAL.MaxSize), MaxBody: int(c.Ingest.MaxBody),
		MaxDecoded: int(c.Ingest.MaxDecoded), MaxInFlight: int64(c.Ingest.MaxInFlight),
		MaxPerHour: c.Ingest.MaxSamplesPerHour, MaxExemplars: c.Ingest.MaxExemplars,
		Metadata: metadata, Seed: binary.LittleEndian.Uint64(seed[:]),
		Now: time.Now, CloseDays: roller.CloseDays, Logger: log, Registerer: reg,
		FreeDisk: func() error { return dir.CheckFree(int64(c.WAL.MinFreeDisk)) },
	}
}

func rollupConfigOf(c config, tables *embedded.Table, reg prometheus.Registerer, log *slog.Logger) rollup.Config {
	return rollup.Config{
		CloseAfter: time.Duration(c.Rollup.CloseAfter), CloseOver: time.Duration(c.Rollup.CloseOver),
		SealAfter: time.Duration(c.Rollup.SealAfter), Tick: 10 * time.Second,
		Now: time.Now, Compact: tables.Compact, Logger: log, Registerer: reg,
	}
}

func queryConfigOf(c config, reg prometheus.Registerer, log *slog.Logger) query.Config {
	return query.Config{
		MaxSamples: c.Query.MaxSamples, Timeout: time.Duration(c.Query.Timeout), Lookback: time.Duration(c.Query.Lookback),
		MaxConcurrent: c.Query.MaxConcurrent, MaxChart: c.Query.MaxChartSeries,
		MaxRows: int64(c.Query.MaxRows), Parallel: c.Query.MaxParallelReads, Now: time.Now, Logger: log, Registerer: reg,
	}
}

func webConfigOf(c config, registry *prometheus.Registry, log *slog.Logger) (web.Config, error) {
	origins, err := web.CompileOrigins(c.Web.CORSOrigin)
	return web.Config{
		MaxBody: int(c.Ingest.MaxBody), Registry: registry, Logger: log, Now: time.Now, Origins: origins,
		MaxReadSamples: c.Query.MaxReadSamples, MaxReadFrame: int(c.Query.ReadFrame), About: aboutOf(c, time.Now()),
	}, err
}
