package query

import (
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/schema"
	"github.com/prometheus/prometheus/util/kahansum"

	"daybook/internal/series"
)

// An aggregation right over a selector, such as avg by (region) (cpu), is worked out while its series are read: the engine
// then gets one series a group and aggregates each by itself, which for these operators changes nothing. It is the
// engine's arithmetic in the engine's order, so the results are the same to the bit, without a matrix of all series.

// aggregation is what stands around a selector.
type aggregation struct {
	op       parser.ItemType
	without  bool
	grouping []string // sorted
	quantile float64
}

// aggregations lists the selectors of an expression in the order in which the engine asks for them, each with the
// aggregation right around it, nil where there is none of a kind that may be done beforehand.
func aggregations(expr parser.Expr) (all []*aggregation) {
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		if _, ok := node.(*parser.VectorSelector); ok {
			all = append(all, aggregationAround(path))
		}
		return nil
	})
	return all
}

// aggregationAround gives the aggregation at the end of a path, nil where something else stands there.
func aggregationAround(path []parser.Node) *aggregation {
	for _, node := range slices.Backward(path) {
		switch n := node.(type) {
		case *parser.ParenExpr:
			continue
		case *parser.AggregateExpr:
			return aggregationOf(n)
		}
		return nil
	}
	return nil
}

// aggregationOf gives an aggregation of which holds that aggregating what it gave, group by group, gives the same again.
func aggregationOf(n *parser.AggregateExpr) *aggregation {
	a := &aggregation{op: n.Op, without: n.Without, grouping: slices.Sorted(slices.Values(n.Grouping))}
	switch n.Op {
	case parser.SUM, parser.AVG, parser.MIN, parser.MAX, parser.GROUP:
		return a
	case parser.QUANTILE:
		// Beyond 0 and 1 the engine has something to say.
		if q, ok := n.Param.(*parser.NumberLiteral); ok && q.Val >= 0 && q.Val <= 1 {
			a.quantile = q.Val
			return a
		}
	}
	return nil
}

// labels are those of the group of a series.
func (a *aggregation) labels(b *labels.Builder, of labels.Labels) labels.Labels {
	b.Reset(of)
	switch {
	case a.without:
		b.Del(a.grouping...)
		schema.Metadata{}.SetToLabels(b) // the name, among others, is never kept
	default:
		b.Keep(a.grouping...)
	}
	return b.Labels()
}

// group is what is known of a group while its series come in.
type group struct {
	labels labels.Labels
	series int
	cells  []cell
	values []float64 // of quantile: for each step room for a value of each series
}

// cell is a group at one step.
type cell struct {
	count       float64
	value       float64 // the sum, or the mean where that is incremental; otherwise the result
	c           float64 // what Kahan's summation carries
	incremental bool
}

// absent marks a step at which a series has no value. As a sample, a stale marker means just that.
var absent = math.Float64frombits(value.StaleNaN)

func isAbsent(v float64) bool { return math.Float64bits(v) == value.StaleNaN }

// add adds the values of one series to the group, one for each step.
func (a *aggregation) add(g *group, column []float64) {
	if a.op == parser.QUANTILE && g.values == nil {
		g.values = make([]float64, g.series*len(column))
	}
	for i, v := range column {
		if isAbsent(v) {
			continue
		}
		c := &g.cells[i]
		switch {
		case a.op == parser.QUANTILE:
			g.values[i*g.series+int(c.count)] = v
			c.count++
		case c.count == 0:
			*c = cell{count: 1, value: v}
		default:
			a.join(c, v)
		}
	}
}

// join adds a value to a cell that has one; as evaluator.aggregation of package promql does.
func (a *aggregation) join(c *cell, v float64) {
	switch a.op {
	case parser.SUM:
		c.value, c.c = kahansum.Inc(v, c.value, c.c)
	case parser.AVG:
		c.joinMean(v)
	case parser.MIN:
		if c.value > v || math.IsNaN(c.value) {
			c.value = v
		}
	case parser.MAX:
		if c.value < v || math.IsNaN(c.value) {
			c.value = v
		}
	}
}

// joinMean sums up, until that would overflow: from then on the mean itself is carried on.
func (c *cell) joinMean(v float64) {
	c.count++
	if !c.incremental {
		sum, carry := kahansum.Inc(v, c.value, c.c)
		if !math.IsInf(sum, 0) {
			c.value, c.c = sum, carry
			return
		}
		c.incremental = true
		c.value /= c.count - 1
		c.c /= c.count - 1
	}
	q := (c.count - 1) / c.count
	c.value, c.c = kahansum.Inc(v/c.count, q*c.value, q*c.c)
}

// result is the group's value at step i, absent where no series has any.
func (a *aggregation) result(g *group, i int) float64 {
	c := &g.cells[i]
	if c.count == 0 {
		return absent
	}
	switch a.op {
	case parser.AVG:
		if !c.incremental {
			return c.value/c.count + c.c/c.count
		}
		return c.value + c.c
	case parser.SUM:
		return c.value + c.c
	case parser.GROUP:
		return 1
	case parser.QUANTILE:
		return quantile(a.quantile, g.values[i*g.series:][:int(c.count)])
	}
	return c.value
}

// quantile sorts values, of which there is at least one, and interpolates; 0 <= q <= 1.
func quantile(q float64, values []float64) float64 {
	slices.Sort(values) // NaN first, as the engine does
	rank := q * float64(len(values)-1)
	lower := int(rank)
	weight := rank - math.Floor(rank)
	if weight == 0 {
		return values[lower]
	}
	return values[lower]*(1-weight) + values[min(lower+1, len(values)-1)]*weight
}

// samples are the group's results at the given times. A stale marker ends a run of values, so that no step sees the one
// before it.
func (a *aggregation) samples(g *group, first, step series.Millis) []series.Sample {
	samples := make([]series.Sample, 0, len(g.cells))
	before := absent
	for i := range g.cells {
		v := a.result(g, i)
		if !isAbsent(v) || !isAbsent(before) {
			samples = append(samples, series.Sample{T: first + series.Millis(i)*step, V: v})
		}
		before = v
	}
	return samples
}
