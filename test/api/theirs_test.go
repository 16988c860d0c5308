package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/features"
	"github.com/prometheus/prometheus/util/notifications"
	v1 "github.com/prometheus/prometheus/web/api/v1"
)

// startPrometheus serves the data by Prometheus's own API, from its own database, and gives the address.
func startPrometheus(t *testing.T) string {
	t.Helper()
	opts := tsdb.DefaultOptions()
	opts.RetentionDuration = 0
	opts.OutOfOrderTimeWindow = (365 * 24 * time.Hour).Milliseconds()
	opts.EnableExemplarStorage, opts.MaxExemplars = true, 1000
	logger := slog.New(slog.DiscardHandler)
	db, err := tsdb.Open(t.TempDir(), logger, nil, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.DisableCompactions()
	for _, part := range [][]prompb.TimeSeries{before(), after()} {
		appendTo(t, db, part)
	}
	router := route.New()
	newAPI(db, logger).Register(router.WithPrefix("/api/v1"))
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server.URL
}

func appendTo(t *testing.T, db *tsdb.DB, all []prompb.TimeSeries) {
	t.Helper()
	appender := db.Appender(t.Context())
	builder := labels.NewScratchBuilder(0)
	for _, s := range all {
		ls := s.ToLabels(&builder, nil)
		ref := storage.SeriesRef(0)
		var err error
		for _, x := range s.Samples {
			if ref, err = appender.Append(ref, ls, x.Timestamp, x.Value); err != nil {
				t.Fatalf("%v at %d: %v", ls, x.Timestamp, err)
			}
		}
		for _, x := range s.Histograms {
			h, fh := x.ToIntHistogram(), (*histogram.FloatHistogram)(nil)
			if h == nil {
				fh = x.ToFloatHistogram()
			}
			if ref, err = appender.AppendHistogram(ref, ls, x.Timestamp, h, fh); err != nil {
				t.Fatalf("a histogram of %v at %d: %v", ls, x.Timestamp, err)
			}
		}
		for _, x := range s.Exemplars {
			if _, err := appender.AppendExemplar(ref, ls, x.ToExemplar(&builder, nil)); err != nil {
				t.Fatalf("an exemplar of %v at %d: %v", ls, x.Timestamp, err)
			}
		}
	}
	if err := appender.Commit(); err != nil {
		t.Fatal(err)
	}
}

// newAPI makes Prometheus's API; its 44 arguments stand in their order.
func newAPI(db *tsdb.DB, logger *slog.Logger) *v1.API {
	registry := prometheus.NewRegistry()
	p := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: logger, MaxSamples: maxSamples, Timeout: timeout, LookbackDelta: lookback,
		EnableAtModifier: true, EnableNegativeOffset: true, EnablePerStepStats: true, Parser: p,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	return v1.NewAPI(
		engine, db, nil, db,
		func(context.Context) v1.ScrapePoolsRetriever { return nothing{} },
		func(context.Context) v1.TargetRetriever { return nothing{} },
		func(context.Context) v1.AlertmanagerRetriever { return nothing{} },
		func() config.Config { return config.DefaultConfig },
		map[string]string{},
		v1.GlobalURLOptions{},
		func(f http.HandlerFunc) http.HandlerFunc { return f },
		admin{db}, "", false,
		false, 0,
		logger,
		func(context.Context) v1.RulesRetriever { return nothing{} },
		maxSamples, 10, 1<<20,
		false,
		regexp.MustCompile("^(?:.*)$"),
		func() (v1.RuntimeInfo, error) { return v1.RuntimeInfo{}, nil },
		&v1.PrometheusVersion{Version: "3.16.0"},
		func() []notifications.Notification { return []notifications.Notification{} },
		func() (<-chan notifications.Notification, func(), bool) { return nil, func() {}, false },
		registry, registry,
		nil,
		false, nil,
		false, false, false,
		lookback,
		false, false,
		nil,
		features.NewRegistry(),
		v1.OpenAPIOptions{},
		p,
		false,
		timeout,
	)
}

// nothing scrapes no targets, evaluates no rules and knows no Alertmanager.
type nothing struct{}

func (nothing) ScrapePools() []string                       { return []string{} }
func (nothing) TargetsActive() map[string][]*scrape.Target  { return nil }
func (nothing) TargetsDropped() map[string][]*scrape.Target { return nil }
func (nothing) TargetsDroppedCounts() map[string]int        { return map[string]int{} }
func (nothing) Alertmanagers() []*url.URL                   { return nil }
func (nothing) DroppedAlertmanagers() []*url.URL            { return nil }
func (nothing) RuleGroups() []*rules.Group                  { return nil }
func (nothing) AlertingRules() []*rules.AlertingRule        { return nil }
func (nothing) ScrapePoolConfig(string) (*config.ScrapeConfig, error) {
	return nil, errors.New("there is no such pool")
}

// admin is what the API asks of the database beside queries.
type admin struct{ *tsdb.DB }

func (a admin) Stats(label string, limit int) (*tsdb.Stats, error) {
	return a.Head().Stats(label, limit), nil
}
func (a admin) BlockMetas() ([]tsdb.BlockMeta, error)          { return a.DB.BlockMetas(), nil }
func (a admin) WALReplayStatus() (tsdb.WALReplayStatus, error) { return tsdb.WALReplayStatus{}, nil }
