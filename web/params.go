package web

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"daybook/internal/series"
	"daybook/keys"
	"daybook/query"
)

func invalid(name string, err error) error {
	return badRequest(fmt.Errorf("invalid parameter %q: %w", name, err))
}

// maxForm is the most bytes that parameters may have in the body of a POST.
const maxForm = 10 << 20

// form gives the parameters of the address and of a form in the body.
func (c *call) form() (url.Values, error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxForm)
	arrived := c.hurry()
	err := r.ParseForm()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &apiError{http.StatusRequestEntityTooLarge, badData, fmt.Errorf("the parameters have more than %d bytes", maxForm)}
	case err != nil:
		return nil, bodyError(fmt.Errorf("reading the parameters: %w", err))
	}
	arrived()
	return r.Form, nil
}

// How large expressions may be. What the parser and the engine do with one that is nested deeply, as 1+1+1... is, takes
// time by the square of its words, and laying it out by the cube, which no timeout ends; and they go down into it by
// recursion. A long regular expression is one word.
const (
	maxQuery     = 256 << 10 // bytes
	maxWords     = 10_000
	maxFormatted = 2000 // words of an expression that is to be laid out
)

// expression reads the query parameter.
func expression(form url.Values, most int) (string, error) {
	text := form.Get("query")
	if len(text) > maxQuery {
		return "", invalid("query", fmt.Errorf("it has %d bytes, more than %d", len(text), maxQuery))
	}
	if n := words(text); n > most {
		return "", invalid("query", fmt.Errorf("it has %d words and signs, more than %d", n, most))
	}
	return text, nil
}

// words counts what the parser takes for one each: names, numbers, strings, operators, brackets.
func words(text string) (n int) {
	lexer := parser.Lex(text)
	for {
		var item parser.Item
		lexer.NextItem(&item)
		if item.Typ == parser.EOF || item.Typ == parser.ERROR {
			return n
		}
		n++
	}
}

// hurry gives the client a while to send the body of its request. The caller calls arrived when all of it is there;
// when it is not, the deadline stays, as the server reads on. (A ReadTimeout of the server would count on while the
// request is answered, and end long queries.)
func (c *call) hurry() (arrived func()) {
	if c.Request().ContentLength == 0 {
		return func() {}
	}
	connection := http.NewResponseController(c.Response())
	_ = connection.SetReadDeadline(time.Now().Add(c.server.patience)) // where there are no deadlines, nobody is slow
	return func() { _ = connection.SetReadDeadline(time.Time{}) }
}

// bodyError is 503 for a client that was too slow, as remote write takes 4xx for final, and 400 for all else.
func bodyError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &apiError{http.StatusServiceUnavailable, timeout, err}
	}
	return badRequest(err)
}

// maxSeconds is about the year 294000. Times further out, in seconds, are not taken.
const maxSeconds = math.MaxInt64 / 1e6

// The boundary times of Prometheus's client library, which time.Parse does not take, as their years have six digits.
var boundaries = map[string]series.Millis{
	"-292273086-05-16T16:47:06Z":          series.MillisOf(time.Unix(math.MinInt64/1000+62135596801, 0)),
	"292277025-08-18T07:12:54.999999999Z": series.MillisOf(time.Unix(math.MaxInt64/1000-62135596801, 999999999)),
}

// parseTime reads seconds since 1970, to the millisecond, or RFC 3339.
func parseTime(value string) (series.Millis, error) {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > maxSeconds {
			return 0, fmt.Errorf("cannot parse %q to a valid timestamp", value)
		}
		return series.Millis(math.Round(seconds * 1000)), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return series.MillisOf(t), nil
	}
	if t, ok := boundaries[value]; ok {
		return t, nil
	}
	return 0, fmt.Errorf("cannot parse %q to a valid timestamp", value)
}

// queryTime reads a time to evaluate at: one that samples can have, or nearly so.
func queryTime(form url.Values, name string) (series.Millis, error) {
	t, err := parseTime(form.Get(name))
	if err == nil && (t < keys.FirstDay.Start() || t >= (keys.LastDay+1).Start()) {
		err = fmt.Errorf("%q is out of range: times are from %s to %s", form.Get(name),
			keys.FirstDay.Time().Format(time.DateOnly), keys.LastDay.Time().Format(time.DateOnly))
	}
	return t, err
}

// span reads start and end; all of time where they are not given.
func span(form url.Values) (from, to series.Millis, err error) {
	from, to = query.AlwaysFrom, query.AlwaysTo
	for _, p := range []struct {
		name string
		t    *series.Millis
	}{{"start", &from}, {"end", &to}} {
		if form.Get(p.name) == "" {
			continue
		}
		if *p.t, err = parseTime(form.Get(p.name)); err != nil {
			return 0, 0, invalid(p.name, fmt.Errorf("invalid time value for '%s': %w", p.name, err))
		}
	}
	return from, to, nil
}

// parseStep reads a length of time: seconds, or a duration such as 5m.
func parseStep(value string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/1e10 {
			return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", value)
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("cannot parse %q to a valid duration", value)
	}
	return time.Duration(d), nil
}

// limit reads the parameter of that name; 0 for no limit.
func limit(form url.Values) (int, error) {
	value := form.Get("limit")
	if value == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, invalid("limit", fmt.Errorf("%q is not a number of 0 or more", value))
	}
	return n, nil
}

// anyLimit reads a limit that may be negative, which means the same as 0: none. (To Prometheus 0 is no answer at all
// there, and to Grafana, which asks for it, it is all.)
func anyLimit(form url.Values, name string) (int, error) {
	value := form.Get(name)
	if value == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return 0, badRequest(fmt.Errorf("%s must be a number", name))
	}
	return max(n, 0), nil
}

// matchers reads the match[] parameters.
func (c *call) matchers(form url.Values) ([][]*labels.Matcher, error) {
	return c.Reader.Selectors(form["match[]"])
}

const truncated = "results truncated due to limit"

// atMost cuts a list to the limit and gives the warning for that.
func atMost[T any](list []T, limit int) ([]T, []string) {
	if limit > 0 && len(list) > limit {
		return list[:limit], []string{truncated}
	}
	return list, nil
}
