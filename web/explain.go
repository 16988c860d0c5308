package web

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"daybook/internal/table"
	"daybook/query"
)

// explained is how a query was planned and what it read, for requests with explain=true.
type explained struct {
	plan  query.Explanation
	cost  table.Cost
	start time.Time
}

// explain gives a context under which a query explains itself, and nil where nobody asks.
func explain(ctx context.Context, form url.Values) (context.Context, *explained, error) {
	asked := form.Get("explain")
	if asked == "" {
		return ctx, nil, nil
	}
	wanted, err := strconv.ParseBool(asked)
	if err != nil {
		return ctx, nil, invalid("explain", err)
	}
	if !wanted {
		return ctx, nil, nil
	}
	e := &explained{start: time.Now()}
	return query.WithExplanation(table.WithCost(ctx, &e.cost), &e.plan), e, nil
}

func (s *jsonStream) explanation(e *explained) {
	s.WriteObjectStart()
	s.WriteObjectField("selectors")
	array(s, e.plan.Selectors(), s.selectorPlan)
	s.next("cost")
	s.cost(&e.cost, time.Since(e.start))
	s.WriteObjectEnd()
}

func (s *jsonStream) selectorPlan(p query.SelectorPlan) {
	s.WriteObjectStart()
	s.WriteObjectField("selector")
	s.text(p.Selector)
	s.number("series", int64(p.Series))
	s.number("from", int64(p.From))
	s.number("to", int64(p.To))
	if p.Step > 0 {
		s.number("step", int64(p.Step))
		s.number("window", int64(p.Window))
	}
	s.number("ringHours", int64(p.RingHours))
	s.number("pageDays", int64(p.PageDays))
	s.number("rows", p.Rows)
	s.number("scanned", int64(p.Scanned))
	if p.Groups > 0 {
		s.number("groups", int64(p.Groups))
	}
	s.WriteObjectEnd()
}
