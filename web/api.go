package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/stats"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/query"
)

// maxPoints is how many points a series may have in the answer to a range query, as in Prometheus.
const maxPoints = 11_000

// instantQuery is GET and POST /api/v1/query.
func instantQuery(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	most, err := limit(form)
	if err != nil {
		return err
	}
	at := series.MillisOf(c.server.cfg.Now())
	if form.Get("time") != "" {
		if at, err = queryTime(form, "time"); err != nil {
			return invalid("time", fmt.Errorf("invalid time value for 'time': %w", err))
		}
	}
	e, err := c.evaluation(form)
	if err != nil {
		return err
	}
	defer e.cancel()
	q, result, err := c.Reader.Instant(e.ctx, e.expr, at.Time(), e.opts)
	if err != nil {
		return invalid("query", err)
	}
	defer q.Close()
	return c.result(form, most, e, q, result)
}

// rangeQuery is GET and POST /api/v1/query_range.
func rangeQuery(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	most, err := limit(form)
	if err != nil {
		return err
	}
	start, err := queryTime(form, "start")
	if err != nil {
		return invalid("start", err)
	}
	end, err := queryTime(form, "end")
	if err != nil {
		return invalid("end", err)
	}
	if end < start {
		return invalid("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseStep(form.Get("step"))
	if err != nil {
		return invalid("step", err)
	}
	if err := checkStep(start, end, step); err != nil {
		return err
	}
	e, err := c.evaluation(form)
	if err != nil {
		return err
	}
	defer e.cancel()
	q, result, err := c.Reader.Range(e.ctx, e.expr, start.Time(), end.Time(), step, e.opts)
	if err != nil {
		return invalid("query", err)
	}
	defer q.Close()
	return c.result(form, most, e, q, result)
}

func checkStep(start, end series.Millis, step time.Duration) error {
	if step < time.Millisecond {
		return invalid("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if int64(end-start)/step.Milliseconds() > maxPoints {
		return badRequest(errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"))
	}
	return nil
}

// evaluation is what instant and range queries have in common.
type evaluation struct {
	ctx       context.Context // with the timeout asked for
	cancel    context.CancelFunc
	opts      promql.QueryOpts
	expr      string
	explained *explained // nil where nobody asks
}

func (c *call) evaluation(form url.Values) (e evaluation, err error) {
	if e.ctx, e.cancel, err = c.deadline(form); err != nil {
		return e, err
	}
	if e.opts, err = c.options(form); err == nil {
		e.expr, err = expression(form, maxWords)
	}
	if err == nil {
		e.ctx, e.explained, err = explain(e.ctx, form)
	}
	if err != nil {
		e.cancel()
	}
	if form.Get("stats") != "" {
		e.ctx = query.WithStatistics(e.ctx)
	}
	return e, err
}

// deadline gives the request's context with the timeout that it asks for.
func (c *call) deadline(form url.Values) (context.Context, context.CancelFunc, error) {
	ctx := c.Request().Context()
	if form.Get("timeout") == "" {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	d, err := parseStep(form.Get("timeout"))
	if err != nil {
		return nil, nil, invalid("timeout", err)
	}
	if d <= 0 {
		return nil, nil, invalid("timeout", fmt.Errorf("timeout must be positive, got %s", d))
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}

// options reads what a query may ask of the engine.
func (c *call) options(form url.Values) (promql.QueryOpts, error) {
	var lookback time.Duration
	if text := form.Get("lookback_delta"); text != "" {
		var err error
		if lookback, err = parseStep(text); err != nil {
			return nil, badRequest(fmt.Errorf("error parsing lookback delta duration: %w", err))
		}
	}
	var startTimes *bool
	if text := c.Request().Header.Get(startTimesHeader); text != "" {
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, badRequest(fmt.Errorf("error parsing %s header: %w", startTimesHeader, err))
		}
		startTimes = &b
	}
	return promql.NewPrometheusQueryOpts(form.Get("stats") == "all", lookback, startTimes), nil
}

const startTimesHeader = "X-Prometheus-Use-Start-Timestamps"

// result answers with what a query gave, most series of it at most.
func (c *call) result(form url.Values, most int, e evaluation, q promql.Query, r *promql.Result) error {
	if r.Err != nil {
		return evaluationError(r.Err)
	}
	warnings, infos := r.Warnings.AsStrings(form.Get("query"), 10, 10)
	value, cut := valueAtMost(r.Value, most)
	warnings = append(warnings, cut...)
	var statistics []byte
	if asked := form.Get("stats"); asked != "" {
		var err error
		if statistics, err = json.Marshal(stats.NewQueryStats(q.Stats())); err != nil {
			return fmt.Errorf("writing the statistics: %w", err)
		}
		if asked != "true" && asked != "all" {
			warnings = append(warnings, fmt.Sprintf(oddStats, asked))
		}
	}
	return c.succeed(func(s *jsonStream) { s.value(value, statistics, e.explained) }, warnings, infos)
}

const oddStats = `value %q for parameter "stats" is deprecated and will be rejected in the next major release, use "true" or "all"`

// valueAtMost cuts the series of a query's value to the limit and gives the warning for that.
func valueAtMost(v parser.Value, most int) (parser.Value, []string) {
	var warnings []string
	switch all := v.(type) {
	case promql.Matrix:
		all, warnings = atMost(all, most)
		v = all
	case promql.Vector:
		all, warnings = atMost(all, most)
		v = all
	}
	return v, warnings
}

// evaluationError makes what is wrong with the query itself 422, and leaves the rest to answerFor.
func evaluationError(err error) error {
	var storage promql.ErrStorage
	if a := answerFor(err); a.status != http.StatusInternalServerError || errors.As(err, &storage) {
		return a
	}
	return &apiError{http.StatusUnprocessableEntity, execution, err}
}

// seriesList is GET and POST /api/v1/series.
func seriesList(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	if len(form["match[]"]) == 0 {
		return badRequest(errors.New("no match[] parameter provided"))
	}
	asked, err := c.listing(form)
	if err != nil {
		return err
	}
	found, err := c.Reader.Series(c.Request().Context(), asked.sets, asked.from, asked.to)
	if err != nil {
		return err
	}
	found, warnings := atMost(found, asked.most)
	return c.succeed(func(s *jsonStream) {
		array(s, found, func(one *index.Series) { s.labels(one.Labels) })
	}, warnings, nil)
}

// labelNames is GET and POST /api/v1/labels.
func labelNames(c *call) error {
	return c.list(func(ctx context.Context, l listing) ([]string, error) {
		return c.Reader.LabelNames(ctx, l.sets, l.from, l.to)
	})
}

// labelValues is GET /api/v1/label/<name>/values.
func labelValues(c *call) error {
	name := c.Param("name")
	if c.Request().URL.RawPath != "" { // else the router was given the path unescaped already
		unescaped, err := url.PathUnescape(name)
		if err != nil {
			return badRequest(fmt.Errorf("invalid label name: %w", err))
		}
		name = unescaped
	}
	name = model.UnescapeName(name, model.ValueEncodingEscaping)
	if !model.UTF8Validation.IsValidLabelName(name) {
		return badRequest(fmt.Errorf("invalid label name: %q", name))
	}
	return c.list(func(ctx context.Context, l listing) ([]string, error) {
		return c.Reader.LabelValues(ctx, name, l.sets, l.from, l.to)
	})
}

// list answers with a list of strings, cut to the limit asked for.
func (c *call) list(get func(context.Context, listing) ([]string, error)) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	asked, err := c.listing(form)
	if err != nil {
		return err
	}
	all, err := get(c.Request().Context(), asked)
	if err != nil {
		return err
	}
	all, warnings := atMost(all, asked.most)
	return c.succeed(func(s *jsonStream) { s.strings(all) }, warnings, nil)
}

// listing is what a list of series or labels is asked for.
type listing struct {
	most     int // 0 for no limit
	from, to series.Millis
	sets     [][]*labels.Matcher
}

func (c *call) listing(form url.Values) (l listing, err error) {
	if l.most, err = limit(form); err != nil {
		return l, err
	}
	if l.from, l.to, err = span(form); err != nil {
		return l, err
	}
	l.sets, err = c.matchers(form)
	return l, err
}
