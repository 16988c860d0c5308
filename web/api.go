package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"

	"daybook/internal/index"
	"daybook/internal/series"
)

// maxPoints is how many points a series may have in the answer to a range query, as in Prometheus.
const maxPoints = 11_000

// instantQuery is GET and POST /api/v1/query.
func instantQuery(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	at := series.MillisOf(c.server.cfg.Now())
	if form.Get("time") != "" {
		if at, err = queryTime(form, "time"); err != nil {
			return err
		}
	}
	ctx, cancel, err := c.deadline(form)
	if err != nil {
		return err
	}
	defer cancel()
	q, result, err := c.Reader.Instant(ctx, form.Get("query"), at.Time())
	if err != nil {
		return invalid("query", err)
	}
	defer q.Close()
	return c.result(form.Get("query"), result)
}

// rangeQuery is GET and POST /api/v1/query_range.
func rangeQuery(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	start, err := queryTime(form, "start")
	if err != nil {
		return err
	}
	end, err := queryTime(form, "end")
	if err != nil {
		return err
	}
	step, err := parseStep("step", form.Get("step"))
	if err != nil {
		return err
	}
	if err := checkRange(start, end, step); err != nil {
		return err
	}
	ctx, cancel, err := c.deadline(form)
	if err != nil {
		return err
	}
	defer cancel()
	q, result, err := c.Reader.Range(ctx, form.Get("query"), start.Time(), end.Time(), step)
	if err != nil {
		return invalid("query", err)
	}
	defer q.Close()
	return c.result(form.Get("query"), result)
}

func checkRange(start, end series.Millis, step time.Duration) error {
	if end < start {
		return invalid("end", errors.New("end timestamp must not be before start time"))
	}
	if step < time.Millisecond {
		return invalid("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if int64(end-start)/step.Milliseconds() > maxPoints {
		return badRequest(errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"))
	}
	return nil
}

// deadline gives the request's context with the timeout that it asks for.
func (c *call) deadline(form url.Values) (context.Context, context.CancelFunc, error) {
	ctx := c.Request().Context()
	if form.Get("timeout") == "" {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	d, err := parseStep("timeout", form.Get("timeout"))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}

// result answers with what a query gave.
func (c *call) result(expr string, r *promql.Result) error {
	if r.Err != nil {
		return evaluationError(r.Err)
	}
	warnings, infos := r.Warnings.AsStrings(expr, 10, 10)
	return c.succeed(func(s *jsonStream) { s.value(r.Value) }, warnings, infos)
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
	most, err := limit(form)
	if err != nil {
		return err
	}
	if len(form["match[]"]) == 0 {
		return badRequest(errors.New("no match[] parameter provided"))
	}
	if err := c.checkSpan(form); err != nil {
		return err
	}
	sets, err := c.matchers(form)
	if err != nil {
		return err
	}
	found, err := c.Reader.Series(c.Request().Context(), sets)
	if err != nil {
		return err
	}
	found, warnings := atMost(found, most)
	return c.succeed(func(s *jsonStream) {
		array(s, found, func(one *index.Series) { s.labels(one.Labels) })
	}, warnings, nil)
}

// labelNames is GET and POST /api/v1/labels.
func labelNames(c *call) error {
	return c.list(func(form url.Values) ([]string, error) {
		sets, err := c.matchers(form)
		if err != nil {
			return nil, err
		}
		return c.Reader.LabelNames(c.Request().Context(), sets)
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
	return c.list(func(form url.Values) ([]string, error) {
		sets, err := c.matchers(form)
		if err != nil {
			return nil, err
		}
		return c.Reader.LabelValues(c.Request().Context(), name, sets)
	})
}

// list answers with a list of strings, cut to the limit asked for.
func (c *call) list(get func(url.Values) ([]string, error)) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	most, err := limit(form)
	if err != nil {
		return err
	}
	if err := c.checkSpan(form); err != nil {
		return err
	}
	all, err := get(form)
	if err != nil {
		return err
	}
	all, warnings := atMost(all, most)
	return c.succeed(func(s *jsonStream) { s.strings(all) }, warnings, nil)
}

// checkSpan checks start and end, which the lists take and do not narrow down by: they are of all that is retained.
func (c *call) checkSpan(form url.Values) error {
	for _, name := range []string{"start", "end"} {
		if form.Get(name) == "" {
			continue
		}
		if _, err := parseTime(name, form.Get(name)); err != nil {
			return err
		}
	}
	return nil
}
