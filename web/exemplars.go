package web

import (
	"errors"

	"github.com/prometheus/prometheus/util/jsonutil"

	"daybook/internal/series"
	"daybook/query"
)

// exemplars is GET and POST /api/v1/query_exemplars: the exemplars of all series that an expression selects.
func exemplars(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	from, to, err := span(form)
	if err != nil {
		return err
	}
	if to < from {
		return badRequest(errors.New("end timestamp must not be before start timestamp"))
	}
	text, err := expression(form, maxWords)
	if err != nil {
		return err
	}
	expr, err := c.Reader.Parse(text)
	if err != nil {
		return badRequest(err)
	}
	found, err := c.Reader.Exemplars(c.Request().Context(), expr, from, to)
	if err != nil {
		return err
	}
	return c.succeed(func(s *jsonStream) { array(s, found, s.exemplars) }, nil, nil)
}

func (s *jsonStream) exemplars(of query.Exemplars) {
	s.object(members{
		{"seriesLabels", func() { s.labels(of.Labels) }},
		{"exemplars", func() { array(s, of.Exemplars, s.exemplar) }},
	})
}

func (s *jsonStream) exemplar(x series.Exemplar) {
	s.object(members{
		{"labels", func() { s.labels(x.Labels) }},
		{"value", func() { jsonutil.MarshalFloat(x.V, s.Stream) }},
		{"timestamp", func() { jsonutil.MarshalTimestamp(int64(x.T), s.Stream) }},
	})
}
