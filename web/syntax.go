package web

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// formatQuery is GET and POST /api/v1/format_query: an expression as it should be laid out.
func formatQuery(c *call) error {
	expr, err := c.parsed(maxFormatted)
	if err != nil {
		return err
	}
	return c.succeed(func(s *jsonStream) { s.text(expr.Pretty(0)) }, nil, nil)
}

// parseQuery is GET and POST /api/v1/parse_query: an expression taken apart, for those who draw or explain it.
func parseQuery(c *call) error {
	expr, err := c.parsed(maxWords)
	if err != nil {
		return err
	}
	return c.succeed(func(s *jsonStream) { s.expression(expr) }, nil, nil)
}

func (c *call) parsed(most int) (parser.Expr, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	text, err := expression(form, most)
	if err != nil {
		return nil, err
	}
	expr, err := c.Reader.Parse(text)
	if err != nil {
		return nil, invalid("query", err)
	}
	return expr, nil
}

// expression writes a node and all below it, in the words of Prometheus's API. Lengths of time are milliseconds.
func (s *jsonStream) expression(node parser.Expr) {
	switch n := node.(type) {
	case nil:
		s.WriteNil()
	case *parser.AggregateExpr:
		s.node("aggregation", s.aggregation(n))
	case *parser.BinaryExpr:
		s.node("binaryExpr", s.binary(n))
	case *parser.Call:
		s.node("call", s.function(n))
	case *parser.MatrixSelector:
		s.node("matrixSelector", s.matrixSelector(n))
	case *parser.SubqueryExpr:
		s.node("subquery", s.subquery(n))
	case *parser.VectorSelector:
		s.node("vectorSelector", s.selector(n))
	case *parser.NumberLiteral:
		s.node("numberLiteral", members{{"val", func() { s.WriteString(decimal(n.Val)) }}})
	case *parser.StringLiteral:
		s.node("stringLiteral", members{{"val", func() { s.text(n.Val) }}})
	case *parser.ParenExpr:
		s.node("parenExpr", members{{"expr", func() { s.expression(n.Expr) }}})
	case *parser.UnaryExpr:
		s.node("unaryExpr", members{
			{"op", func() { s.WriteString(n.Op.String()) }},
			{"expr", func() { s.expression(n.Expr) }},
		})
	case *parser.StepInvariantExpr: // which only the engine wraps around
		s.expression(n.Expr)
	case *parser.DurationExpr:
		s.duration(n)
	}
}

// members are the fields of an object.
type members []member

type member struct {
	name  string
	write func()
}

func (s *jsonStream) node(kind string, rest members) {
	s.object(append(members{{"type", func() { s.WriteString(kind) }}}, rest...))
}

func (s *jsonStream) object(all members) {
	s.WriteObjectStart()
	for i, m := range all {
		if i > 0 {
			s.WriteMore()
		}
		s.WriteObjectField(m.name)
		m.write()
	}
	s.WriteObjectEnd()
}

func (s *jsonStream) aggregation(n *parser.AggregateExpr) members {
	return members{
		{"op", func() { s.WriteString(n.Op.String()) }},
		{"expr", func() { s.expression(n.Expr) }},
		{"param", func() { s.expression(n.Param) }},
		{"grouping", func() { s.strings(n.Grouping) }},
		{"without", func() { s.WriteBool(n.Without) }},
	}
}

func (s *jsonStream) binary(n *parser.BinaryExpr) members {
	return members{
		{"op", func() { s.WriteString(n.Op.String()) }},
		{"lhs", func() { s.expression(n.LHS) }},
		{"rhs", func() { s.expression(n.RHS) }},
		{"matching", func() { s.matching(n.VectorMatching) }},
		{"bool", func() { s.WriteBool(n.ReturnBool) }},
	}
}

func (s *jsonStream) matching(m *parser.VectorMatching) {
	if m == nil {
		s.WriteNil()
		return
	}
	s.object(members{
		{"card", func() { s.WriteString(m.Card.String()) }},
		{"labels", func() { s.strings(m.MatchingLabels) }},
		{"on", func() { s.WriteBool(m.On) }},
		{"include", func() { s.strings(m.Include) }},
		{"fillValues", func() {
			s.object(members{
				{"lhs", func() { s.fill(m.FillValues.LHS) }},
				{"rhs", func() { s.fill(m.FillValues.RHS) }},
			})
		}},
	})
}

func (s *jsonStream) fill(v *float64) {
	if v == nil || math.IsInf(*v, 0) { // for which JSON has no number
		s.WriteNil()
		return
	}
	s.numberOrNull(*v)
}

func (s *jsonStream) function(n *parser.Call) members {
	return members{
		{"func", func() {
			s.object(members{
				{"name", func() { s.WriteString(n.Func.Name) }},
				{"argTypes", func() { array(s, n.Func.ArgTypes, func(t parser.ValueType) { s.WriteString(string(t)) }) }},
				{"variadic", func() { s.WriteInt(n.Func.Variadic) }},
				{"returnType", func() { s.WriteString(string(n.Func.ReturnType)) }},
			})
		}},
		{"args", func() { array(s, n.Args, s.expression) }},
	}
}

func (s *jsonStream) selector(n *parser.VectorSelector) members {
	return members{
		{"name", func() { s.text(n.Name) }},
		{"offset", func() { s.millis(n.OriginalOffset) }},
		{"offsetExpr", func() { s.duration(n.OriginalOffsetExpr) }},
		{"matchers", func() { array(s, n.LabelMatchers, s.matcher) }},
		{"timestamp", func() { s.timestamp(n.Timestamp) }},
		{"startOrEnd", func() { s.startOrEnd(n.StartOrEnd) }},
		{"anchored", func() { s.WriteBool(n.Anchored) }},
		{"smoothed", func() { s.WriteBool(n.Smoothed) }},
	}
}

func (s *jsonStream) matrixSelector(n *parser.MatrixSelector) members {
	selector, ok := n.VectorSelector.(*parser.VectorSelector)
	if !ok { // the parser lets nothing else through
		selector = &parser.VectorSelector{}
	}
	return append(s.selector(selector),
		member{"range", func() { s.millis(n.Range) }},
		member{"rangeExpr", func() { s.duration(n.RangeExpr) }},
	)
}

func (s *jsonStream) subquery(n *parser.SubqueryExpr) members {
	return members{
		{"expr", func() { s.expression(n.Expr) }},
		{"range", func() { s.millis(n.Range) }},
		{"rangeExpr", func() { s.duration(n.RangeExpr) }},
		{"offset", func() { s.millis(n.OriginalOffset) }},
		{"offsetExpr", func() { s.duration(n.OriginalOffsetExpr) }},
		{"step", func() { s.millis(n.Step) }},
		{"stepExpr", func() { s.duration(n.StepExpr) }},
		{"timestamp", func() { s.timestamp(n.Timestamp) }},
		{"startOrEnd", func() { s.startOrEnd(n.StartOrEnd) }},
	}
}

// duration writes a length of time that is computed, null where it was written as it is.
func (s *jsonStream) duration(n *parser.DurationExpr) {
	if n == nil {
		s.WriteNil()
		return
	}
	s.node("durationExpr", members{
		{"op", func() { s.WriteString(n.Op.String()) }},
		{"lhs", func() { s.durationOperand(n.LHS) }},
		{"rhs", func() { s.durationOperand(n.RHS) }},
		{"wrapped", func() { s.WriteBool(n.Wrapped) }},
	})
}

func (s *jsonStream) durationOperand(node parser.Expr) {
	switch n := node.(type) {
	case *parser.DurationExpr:
		s.duration(n)
	case *parser.NumberLiteral:
		if n == nil {
			s.WriteNil()
			return
		}
		s.node("numberLiteral", members{
			{"val", func() { s.WriteString(decimal(n.Val)) }},
			{"duration", func() { s.WriteBool(n.Duration) }},
		})
	default:
		s.expression(node)
	}
}

func (s *jsonStream) matcher(m *labels.Matcher) {
	s.object(members{
		{"name", func() { s.text(m.Name) }},
		{"value", func() { s.text(m.Value) }},
		{"type", func() { s.WriteString(m.Type.String()) }},
	})
}

func (s *jsonStream) millis(d time.Duration) { s.WriteInt64(d.Milliseconds()) }

func (s *jsonStream) timestamp(t *int64) {
	if t == nil {
		s.WriteNil()
		return
	}
	s.WriteInt64(*t)
}

func (s *jsonStream) startOrEnd(i parser.ItemType) {
	if i == 0 {
		s.WriteNil()
		return
	}
	s.WriteString(i.String())
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
