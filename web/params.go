package web

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
)

func invalid(name string, err error) error {
	return badRequest(fmt.Errorf("invalid parameter %q: %w", name, err))
}

// form gives the parameters of the address and of a form in the body.
func (c *call) form() (url.Values, error) {
	if err := c.Request().ParseForm(); err != nil {
		return nil, badRequest(fmt.Errorf("reading the parameters: %w", err))
	}
	return c.Request().Form, nil
}

// Times further out than these, in seconds, are not taken; as milliseconds they are still exact in a float64.
const maxSeconds = math.MaxInt64 / 1e6

// parseTime reads seconds since 1970, to the millisecond, or RFC 3339.
func parseTime(name, value string) (series.Millis, error) {
	if value == "" {
		return 0, invalid(name, errors.New("it is missing"))
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > maxSeconds {
			return 0, invalid(name, fmt.Errorf("%q is no time", value))
		}
		return series.Millis(math.Round(seconds * 1000)), nil
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return 0, invalid(name, fmt.Errorf("cannot parse %q to a valid timestamp: seconds since 1970 or RFC 3339", value))
	}
	return series.MillisOf(t), nil
}

// parseStep reads a length of time: seconds, or a duration such as 5m.
func parseStep(name, value string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || math.Abs(seconds) > math.MaxInt64/1e10 {
			return 0, invalid(name, fmt.Errorf("cannot parse %q to a valid duration", value))
		}
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(value)
	if err != nil {
		return 0, invalid(name, fmt.Errorf("cannot parse %q to a valid duration: seconds, or a duration such as 5m", value))
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
