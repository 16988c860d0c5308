package api

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/prompb"

	"daybook/ingest"
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

const (
	maxSamples = 50_000_000
	lookback   = 5 * time.Minute
	timeout    = time.Minute
)

// startDaybook serves the data, half of it flushed, and gives the address.
func startDaybook(t *testing.T) string {
	t.Helper()
	backend, registry := openDaybook(t)
	write := func(all []prompb.TimeSeries) {
		for _, s := range all {
			message, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{s}}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := backend.Ingester.Write(t.Context(), snappy.Encode(nil, message)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(before())
	if err := backend.Ingester.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(after())
	origins, err := web.CompileOrigins(".*")
	if err != nil {
		t.Fatal(err)
	}
	server := web.New(web.Config{
		MaxBody: 32 << 20, Registry: registry, Logger: slog.New(slog.DiscardHandler), Now: now,
		Origins: origins, MaxReadSamples: maxSamples, MaxReadFrame: 1 << 20,
		About: web.About{
			Version: "v1", Started: noon, Retention: 24 * time.Hour, Flags: map[string]string{"query.lookback-delta": "5m"},
			Settings: []web.Setting{{Name: "listen", Value: "127.0.0.1:9201"}, {Name: "query.max_samples", Value: maxSamples}, {Name: "web.cors_origin", Value: `a\b"c`}},
		},
	})
	server.Ready(backend)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func now() time.Time { return noon }

// openDaybook opens all that is behind the server, on the machine's disk.
func openDaybook(t *testing.T) (*web.Backend, *prometheus.Registry) {
	t.Helper()
	logger, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	tables, err := embedded.Open(embedded.Config{Dir: t.TempDir(), CacheBytes: 1 << 20, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), table.Counted(tables, new(table.Totals)), store.Config{
		Tables: "daybook", Buckets: 16, Writer: "a", Alone: true,
	}, series.MillisOf(noon).Day())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(t.Context(), s, keys.MonthOf(series.MillisOf(noon).Day())-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	metadata := index.NewMetadata()
	roller := rollup.New(rollup.Config{Now: now, Logger: logger, Registerer: registry}, s)
	ingester, err := ingest.Open(ingest.Config{
		Dir: t.TempDir(), FlushInterval: time.Hour, FlushBytes: 1 << 30, MaxLogBytes: 1 << 30,
		MaxBody: 32 << 20, MaxDecoded: 128 << 20, MaxInFlight: 1 << 30, MaxPerHour: 100_000, MaxExemplars: 100, Retention: 400 * 24 * time.Hour,
		Now: now, CloseDays: roller.CloseDays, Metadata: metadata, Logger: logger, Registerer: registry,
	}, s, x)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ingester.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := tables.Close(); err != nil {
			t.Error(err)
		}
	})
	reader := query.New(query.Config{
		MaxSamples: maxSamples, Timeout: timeout, Lookback: lookback, MaxConcurrent: 20, MaxChart: 20,
		MaxRows: 1_000_000, Parallel: 2,
		Now: now, Logger: logger, Registerer: registry,
	}, s, x, ingester.Head())
	return &web.Backend{Ingester: ingester, Reader: reader, Metadata: metadata}, registry
}
