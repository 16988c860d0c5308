package web

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/query"
)

// chart is GET /api/v1/chart?series=<id>|match[]=<selector>&span=24h: columns for a plot, and what reading them cost.
func chart(c *call) error {
	start := time.Now()
	form, err := c.form()
	if err != nil {
		return err
	}
	most, err := limit(form)
	if err != nil {
		return err
	}
	found, err := c.chartSeries(form["series"], form["match[]"])
	if err != nil {
		return err
	}
	span := "24h"
	if asked := form.Get("span"); asked != "" {
		span = asked
	}
	var cost table.Cost
	drawn, err := c.Reader.Chart(table.WithCost(c.Request().Context(), &cost), found, span, most)
	if err != nil {
		return err
	}
	var warnings []string
	if drawn.Left > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: %d of %d series are left out", truncated, drawn.Left, len(found)))
	}
	return c.succeed(func(s *jsonStream) { s.chart(drawn, &cost, time.Since(start)) }, warnings, nil)
}

// chartSeries finds the series of a chart, by ids or by selectors.
func (c *call) chartSeries(ids, selectors []string) (found []*index.Series, err error) {
	if (len(ids) == 0) == (len(selectors) == 0) {
		return nil, badRequest(errors.New("give either series=<id> or match[]=<selector>"))
	}
	for _, text := range ids {
		id, err := series.ParseID(text)
		if err != nil {
			return nil, invalid("series", err)
		}
		found = append(found, c.Reader.Find(id)...)
	}
	if len(selectors) == 0 {
		return found, nil
	}
	sets, err := c.Reader.Selectors(selectors)
	if err != nil {
		return nil, err
	}
	return c.Reader.Series(c.Request().Context(), sets, query.AlwaysFrom, query.AlwaysTo)
}

func (s *jsonStream) chart(drawn *query.Chart, cost *table.Cost, took time.Duration) {
	s.WriteObjectStart()
	s.WriteObjectField("span")
	s.WriteString(drawn.Span)
	s.number("from", int64(drawn.From))
	s.number("to", int64(drawn.To))
	s.next("series")
	array(s, drawn.Series, s.line)
	s.next("cost")
	s.cost(cost, took)
	s.WriteObjectEnd()
}

func (s *jsonStream) line(l query.Line) {
	s.WriteObjectStart()
	s.WriteObjectField("id")
	s.WriteString(l.ID.String())
	s.next("labels")
	s.labels(l.Labels)
	s.next("t")
	array(s, l.T, func(t series.Millis) { s.WriteInt64(int64(t)) })
	s.next("v")
	array(s, l.V, s.numberOrNull)
	s.WriteObjectEnd()
}

// numberOrNull writes what JSON has for a value of a chart, which is never infinite.
func (s *jsonStream) numberOrNull(v float64) {
	if math.IsNaN(v) {
		s.WriteNil()
		return
	}
	s.WriteFloat64(v)
}

// inspect is GET /api/v1/inspect?match[]=<selector>: what is stored of some series, as text for a person.
func inspect(c *call) error {
	selectors := c.QueryParams()["match[]"]
	if len(selectors) != 1 {
		return badRequest(errors.New("give one match[]=<selector>"))
	}
	var text bytes.Buffer
	if err := c.Reader.Inspect(c.Request().Context(), &text, selectors[0]); err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMETextPlainCharsetUTF8, text.Bytes())
}

// cost writes what reading took.
func (s *jsonStream) cost(cost *table.Cost, took time.Duration) {
	s.WriteObjectStart()
	s.WriteObjectField("pointReads")
	s.WriteInt64(cost.PointReads.Load())
	s.number("rangeReads", cost.RangeReads.Load())
	s.number("rowsScanned", cost.RowsScanned.Load())
	s.number("slots", cost.Slots.Load())
	s.number("bytes", cost.Bytes.Load())
	s.next("ms")
	s.WriteFloat64(math.Round(took.Seconds()*1e6) / 1e3)
	s.WriteObjectEnd()
}
