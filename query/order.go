package query

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// sortUnordered sorts an instant vector by labels where the query says nothing of its order: the engine groups with
// maps, and an answer should be the same each time it is asked for.
func sortUnordered(q promql.Query, r *promql.Result) {
	v, ok := r.Value.(promql.Vector)
	if !ok || ordered(q.Statement()) {
		return
	}
	slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
}

// ordered tells whether a vector comes in an order that the query asked for: that of sort() or topk(), which binary
// operations and most functions keep, and which is lost when it is grouped again.
func ordered(node parser.Node) bool {
	switch n := node.(type) {
	case *parser.AggregateExpr:
		return ordersGroups(n.Op)
	case *parser.Call:
		if strings.HasPrefix(n.Func.Name, "sort") {
			return true
		}
	case *parser.SubqueryExpr:
		return false
	}
	for child := range parser.ChildrenIter(node) {
		if child != nil && ordered(child) {
			return true
		}
	}
	return false
}

func ordersGroups(op parser.ItemType) bool {
	switch op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return true
	}
	return false
}
