package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
	case errors.As(err, &storage):
		return storageAnswer(storage)
	case errors.Is(err, query.ErrBadQuery):
		return &apiError{http.StatusBadRequest, badData, withoutKind(err)}
	case errors.As(err, &timedOut):
		return &apiError{http.StatusServiceUnavailable, timeout, err}
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{http.StatusServiceUnavailable, timeout, fmt.Errorf("timed out: %w", err)}
	case errors.As(err, &cancelled), errors.Is(err, context.Canceled):
		return &apiError{statusClientClosed, canceled, err}
	case errors.As(err, &tooMany):
		return &apiError{http.StatusUnprocessableEntity, execution, err}
	}
	return &apiError{http.StatusInternalServerError, internal, err}
}

// withoutKind takes off what the errorType says already.
func withoutKind(err error) error {
	if text, ok := strings.CutPrefix(err.Error(), query.ErrBadQuery.Error()+": "); ok {
		return errors.New(text)
	}
	return err
}

// storageAnswer is that of the error within, which errors.Is and errors.As do not find.
func storageAnswer(err promql.ErrStorage) *apiError {
	if err.Err == nil {
		return &apiError{http.StatusInternalServerError, internal, err}
	}
	return answerFor(err.Err)
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
	if answer.status == statusClientClosed && c.Request().Context().Err() == nil {
		answer = &apiError{http.StatusInternalServerError, internal, err} // the client is there: something of ours gave up
	}
	if answer.status >= http.StatusInternalServerError && answer.status != http.StatusServiceUnavailable {
		s.cfg.Logger.Error("a request failed", "path", c.Request().URL.Path, "err", err)
	}
	if err := s.send(c, answer.status, func(s *jsonStream) { s.failure(answer) }); err != nil {
		s.cfg.Logger.Debug("an error could not be answered", "err", err)
	}
}
