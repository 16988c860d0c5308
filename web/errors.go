package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/prometheus/promql"

	"daybook/query"
)

// The errorType of answers, as in Prometheus's API.
const (
	badData     = "bad_data"
	timeout     = "timeout"
	canceled    = "canceled"
	execution   = "execution"
	internal    = "internal"
	unavailable = "unavailable"
	notFound    = "not_found"
)

// statusClientClosed is what is logged for a client that left; it never sees it.
const statusClientClosed = 499

// apiError is an error with its answer.
type apiError struct {
	status int
	kind   string
	err    error
}

func (e *apiError) Error() string { return e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

func badRequest(err error) error { return &apiError{http.StatusBadRequest, badData, err} }

// answerFor finds the answer for any error: the one place where errors become status codes.
func answerFor(err error) *apiError {
	var known *apiError
	var fromEcho *echo.HTTPError
	var timedOut promql.ErrQueryTimeout
	var cancelled promql.ErrQueryCanceled
	var tooMany promql.ErrTooManySamples
	var storage promql.ErrStorage
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &fromEcho):
		return echoAnswer(fromEcho)
	case errors.Is(err, query.ErrBadQuery):
		return &apiError{http.StatusBadRequest, badData, err}
	case errors.As(err, &timedOut), errors.Is(err, context.DeadlineExceeded):
		return &apiError{http.StatusServiceUnavailable, timeout, err}
	case errors.As(err, &cancelled), errors.Is(err, context.Canceled):
		return &apiError{statusClientClosed, canceled, err}
	case errors.As(err, &tooMany):
		return &apiError{http.StatusUnprocessableEntity, execution, err}
	case errors.As(err, &storage):
		return &apiError{http.StatusInternalServerError, internal, err}
	}
	return &apiError{http.StatusInternalServerError, internal, err}
}

func echoAnswer(e *echo.HTTPError) *apiError {
	switch e.Code {
	case http.StatusNotFound:
		return &apiError{e.Code, notFound, errors.New("there is nothing at this address")}
	case http.StatusMethodNotAllowed:
		return &apiError{e.Code, badData, errors.New("this address does not take that method; the Allow header says which it takes")}
	}
	return &apiError{e.Code, badData, e}
}

// fail answers with an error.
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	answer := answerFor(err)
	if answer.status >= http.StatusInternalServerError && answer.status != http.StatusServiceUnavailable {
		s.cfg.Logger.Error("a request failed", "path", c.Request().URL.Path, "err", err)
	}
	body := struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
	}{"error", answer.kind, answer.Error()}
	if err := c.JSON(answer.status, body); err != nil {
		s.cfg.Logger.Debug("an error could not be answered", "err", err)
	}
}
