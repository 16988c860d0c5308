package ingest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"daybook/internal/series"
)

// ErrUnavailable says that nothing was taken and the sender should come again later.
var ErrUnavailable = errors.New("not taking samples at the moment")

// ErrTooLarge says that a request is over a configured limit.
var ErrTooLarge = errors.New("the request is too large")

// Refusal is what was not stored of one series, and why.
type Refusal struct {
	Series string
	Reason string
	Count  int // samples, histograms, exemplars and metadata
}

func (r *Refusal) Error() string { return r.Series + ": " + r.Reason }

// RefusedError says that some of a request was refused; all else is stored. Sending the same again gives the same answer.
type RefusedError struct {
	Samples, Histograms, Exemplars, Metadata int       // how many were refused
	Refusals                                 []Refusal // the first few of them
}

const maxRefusals = 10

func (e *RefusedError) any() bool { return e.count() > 0 || len(e.Refusals) > 0 }

func (e *RefusedError) count() int { return e.Samples + e.Histograms + e.Exemplars + e.Metadata }

func (e *RefusedError) Error() string {
	var lines []string
	shown := 0
	for _, r := range e.Refusals {
		lines = append(lines, r.Error())
		shown += r.Count
	}
	if more := e.count() - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s refused, all else is stored: %s", e.what(), strings.Join(lines, "; "))
}

// what says how many of which kind.
func (e *RefusedError) what() string {
	var kinds []string
	for _, kind := range []struct {
		n    int
		name string
	}{{e.Samples, "samples"}, {e.Histograms, "histograms"}, {e.Exemplars, "exemplars"}, {e.Metadata, "metadata"}} {
		if kind.n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", kind.n, kind.name))
		}
	}
	if len(kinds) == 0 {
		return "a series without samples is"
	}
	return strings.Join(kinds, ", ")
}

// note keeps a refusal for the message.
func (e *RefusedError) note(r Refusal) {
	if n := len(e.Refusals); n > 0 && e.Refusals[n-1].Series == r.Series && e.Refusals[n-1].Reason == r.Reason {
		e.Refusals[n-1].Count += r.Count
		return
	}
	if len(e.Refusals) < maxRefusals {
		e.Refusals = append(e.Refusals, r)
	}
}

// bounds are the times that a sample may have.
type bounds struct {
	now, oldest, newest series.Millis
	retention           time.Duration
}

func (b bounds) hold(t series.Millis) bool { return t >= b.oldest && t <= b.newest }

// reason says why a time is out of bounds.
func (b bounds) reason(t series.Millis) string {
	if t > b.newest {
		return fmt.Sprintf("timestamp %s is more than 10 minutes in the future (the server's clock says %s)", stamp(t), stamp(b.now))
	}
	return fmt.Sprintf("timestamp %s is older than the retention of %s", stamp(t), b.retention)
}

func stamp(t series.Millis) string {
	const layout = "2006-01-02T15:04:05.000Z"
	if year := t.Time().Year(); year < 0 || year > 9999 {
		return fmt.Sprintf("%d ms", t)
	}
	return t.Time().Format(layout)
}
