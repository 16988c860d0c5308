// Package query is what a read means: which entities hold what is asked for (the planner), PromQL over them on
// Prometheus's own engine, and the chart of one span, which is one point read for each series.
//
// Samples of the last 24 h come from the ring, older ones from pages, and what is not flushed yet from the head, which
// is asked first so that nothing is missed while it is flushed. A sample in several of these places counts once.
package query

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
)

// Head holds samples that are not in the table yet.
type Head interface {
	// Samples appends to dst the samples of a series from..to (both included), ascending.
	Samples(dst []series.Sample, id series.ID, from, to series.Millis) []series.Sample
	// Histograms and Exemplars are like Samples.
	Histograms(dst []series.Histogram, id series.ID, from, to series.Millis) []series.Histogram
	Exemplars(dst []series.Exemplar, id series.ID, from, to series.Millis) []series.Exemplar
}

// Config says what a query may take.
type Config struct {
	MaxSamples    int           // in memory for one query
	Timeout       time.Duration // of one query
	Lookback      time.Duration // how old the newest sample of an instant may be
	MaxConcurrent int           // queries at a time; others wait
	MaxChart      int           // series in one chart
	MaxRows       int64         // of the tables that one query reads; a row is a day of a series
	Parallel      int           // reads of the tables at a time, of all queries together

	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Reader answers queries. Its methods may be called from many goroutines.
type Reader struct {
	cfg    Config
	store  *store.Store
	index  *index.Index
	head   Head
	parser parser.Parser
	engine *promql.Engine
	slots  chan struct{} // one value for each query that runs
	reads  chan struct{} // one value for each batch of series that is read
	spare  sync.Pool     // *store.Run
}

// New makes a Reader.
func New(cfg Config, s *store.Store, x *index.Index, head Head) *Reader {
	p := parser.NewParser(parser.Options{})
	return &Reader{
		cfg: cfg, store: s, index: x, head: head, parser: p, slots: make(chan struct{}, cfg.MaxConcurrent),
		reads: make(chan struct{}, cfg.Parallel), spare: sync.Pool{New: func() any { return new(store.Run) }},
		engine: promql.NewEngine(promql.EngineOpts{
			Logger: cfg.Logger, Reg: cfg.Registerer, MaxSamples: cfg.MaxSamples,
			Timeout:       2 * cfg.Timeout, // run's is over before
			LookbackDelta: cfg.Lookback, EnableAtModifier: true, EnableNegativeOffset: true, Parser: p,
			EnablePerStepStats:       true, // for queries that ask for them
			NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		}),
	}
}

// Range evaluates a query at each step from start to end. The caller closes the query when it is done with the
// result. An error here says that the query cannot be parsed; one of evaluating is in the result. There may be opts
// once: another lookback, statistics of each step.
func (r *Reader) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration, opts ...promql.QueryOpts) (promql.Query, *promql.Result, error) {
	q, err := r.engine.NewRangeQuery(ctx, r.queryable(ctx, expr, optional(opts)), optional(opts), expr, start, end, step)
	return r.run(ctx, q, err)
}

// Instant evaluates a query at one time; see Range. A vector is sorted by labels, unless the query gives it an order of
// its own.
func (r *Reader) Instant(ctx context.Context, expr string, at time.Time, opts ...promql.QueryOpts) (promql.Query, *promql.Result, error) {
	q, err := r.engine.NewInstantQuery(ctx, r.queryable(ctx, expr, optional(opts)), optional(opts), expr, at)
	q, result, err := r.run(ctx, q, err)
	if err == nil {
		sortUnordered(q, result)
	}
	return q, result, err
}

// queryable is the storage for one query.
func (r *Reader) queryable(ctx context.Context, expr string, opts promql.QueryOpts) queryable {
	q := queryable{Reader: r, lookback: r.cfg.Lookback, explain: explanationOf(ctx)}
	if opts != nil && opts.LookbackDelta() > 0 {
		q.lookback = opts.LookbackDelta()
	}
	if parsed, err := r.parser.ParseExpr(expr); err == nil {
		q.steps = !hasSubquery(parsed)
		if !wantsStatistics(ctx) {
			q.around = aggregations(parsed)
		}
	}
	return q
}

func hasSubquery(expr parser.Expr) (found bool) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		_, ok := node.(*parser.SubqueryExpr)
		found = found || ok
		return nil
	})
	return found
}

func optional(opts []promql.QueryOpts) promql.QueryOpts {
	if len(opts) == 0 {
		return nil
	}
	return opts[0]
}

// Parse parses an expression. The error says where it is wrong.
func (r *Reader) Parse(expr string) (parser.Expr, error) { return r.parser.ParseExpr(expr) }

// Queryable is the storage that queries read: the tables, with what is in memory only on top.
func (r *Reader) Queryable() storage.Queryable { return queryable{Reader: r, lookback: r.cfg.Lookback} }

func (r *Reader) run(ctx context.Context, q promql.Query, err error) (promql.Query, *promql.Result, error) {
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		result := q.Exec(ctx)
		if ctx.Err() != nil && errors.Is(result.Err, ctx.Err()) { // the engine takes it for a failure of the storage
			result.Err = ended(ctx, "reading")
		}
		return q, result, nil
	case <-ctx.Done():
		return q, &promql.Result{Err: ended(ctx, "waiting for one of the concurrent queries to end (query.max_concurrent)")}, nil
	}
}

// ended says in the engine's words why a query could not go on with what it was doing.
func ended(ctx context.Context, doing string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return promql.ErrQueryCanceled(doing)
	}
	return promql.ErrQueryTimeout(doing)
}
