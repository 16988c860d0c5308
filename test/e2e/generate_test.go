package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// generator makes up queries: every function, aggregation and operator in turn, around expressions drawn at random.
//
// Sums over several series (sum, avg, stddev, stdvar) are outermost or within what changes little when they do, so that
// a difference in their last digit stays one: nothing rounds, compares or counts them.
type generator struct {
	rng       *rand.Rand
	selectors []string
	s         *stream
}

// floatSelectors select series of floats, some of which are counters.
var floatSelectors = []string{
	`temperature_celsius`, `temperature_celsius{host="alpha"}`, `temperature_celsius{room=~"h.*|r.*"}`, `load`, `load{host!="beta"}`,
	`queue_length`, `requests_total`, `requests_total{code="200"}`, `requests_total{code!~"4..",path="/api"}`, `cpu_seconds_total`,
	`restarts_total`, `latency_seconds_bucket{le="0.5"}`, `latency_seconds_count`, `latency_seconds_sum`, `job_up`,
	`job_up{instance=~"i0."}`, `stray_total`, `history_total`, `dense`, `gappy`, `backfilled`, `edge`, `sparse`, `unsteady`, `cores`, `build_info`, `infinite`,
	`{__name__=~"load|cores"}`, `{"utf8.näme"}`, `{host="gamma",__name__!~"native.*|latency.*"}`,
}

func (g *generator) pick(from ...string) string { return from[g.rng.IntN(len(from))] }

// generate makes n queries at least, so many rounds over everything that there is.
func (g *generator) generate(n int) (all []string) {
	for len(all) < n {
		for _, name := range slices.Sorted(maps.Keys(parser.Functions)) {
			if f := parser.Functions[name]; !f.Experimental {
				all = append(all, g.call(f, 1))
			}
		}
		for _, op := range []string{"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "quantile", "count_values", "topk", "bottomk"} {
			all = append(all, g.aggregation(op, 2))
		}
		for _, op := range []string{"+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"} {
			all = append(all, g.binary(op, 1))
		}
		for range 10 {
			all = append(all, g.subquery(2)+g.pick("", g.modifiers()), g.averaged(1))
		}
	}
	return all
}

// vector is an expression that gives an instant vector.
func (g *generator) vector(depth int) string {
	if depth <= 0 {
		return g.selector() + g.modifiers()
	}
	switch g.rng.IntN(8) {
	case 0, 1:
		return g.call(g.function(parser.ValueTypeVector), depth-1)
	case 2:
		return g.binary(g.pick("+", "-", "*", "/", ">", "<=", "and", "or", "unless"), depth-1)
	case 3:
		return g.aggregation(g.pick("min", "max", "count", "group", "quantile"), depth-1)
	case 4, 5:
		return fmt.Sprintf("%s(%s)", g.pick("rate", "increase", "max_over_time", "last_over_time", "count_over_time", "changes", "resets", "deriv"), g.matrix(depth-1))
	case 6:
		return fmt.Sprintf("(%s %s %s)", g.vector(depth-1), g.pick("+", "-", "*", "/", "> bool", "<"), g.number())
	}
	return g.vector(0)
}

func (g *generator) selector() string { return g.pick(g.selectors...) }

// modifiers are an offset, a time, both, or mostly nothing.
func (g *generator) modifiers() string {
	offset := " offset " + g.pick("1m", "5m", "37s", "1h", "24h", "25h", "1d1h", "-1m", "-1h", "1ms", "-17ms")
	at := " @ " + g.pick("start()", "end()", g.time(), g.time())
	switch g.rng.IntN(12) {
	case 0, 1:
		return offset
	case 2:
		return at
	case 3:
		return at + offset
	}
	return ""
}

// time is one within the stream or a little outside, in seconds.
func (g *generator) time() string {
	const around = 3_600_000
	from, to := g.s.begin.UnixMilli()-around, g.s.end.UnixMilli()+around
	return fmt.Sprintf("%.3f", float64(from+g.rng.Int64N(to-from))/1000)
}

// matrix is an expression that gives ranges.
func (g *generator) matrix(depth int) string {
	if depth > 0 && g.rng.IntN(3) == 0 {
		return g.subquery(depth)
	}
	return g.selector() + "[" + g.pick("15s", "1m", "5m", "7m", "10m", "1h", "3h", "90m", "1d", "59m59s999ms", "2d") + "]" + g.modifiers()
}

func (g *generator) subquery(depth int) string {
	inner := g.vector(depth - 1)
	return fmt.Sprintf("(%s)[%s:%s]", inner, g.pick("5m", "10m", "1h", "2h"), g.pick("", "1m", "90s", "5m", "7m", "17s"))
}

func (g *generator) number() string {
	return g.pick("0", "1", "2", "-3", "0.5", "100", "1e3", "20", "NaN", "Inf", "(-Inf)", "7.25")
}

// function draws a function that gives such a value and is one of many, not one with arguments of its own kind.
func (g *generator) function(returns parser.ValueType) *parser.Function {
	var fit []string
	for name, f := range parser.Functions {
		if !f.Experimental && f.ReturnType == returns && !slices.Contains(f.ArgTypes, parser.ValueTypeString) &&
			!strings.HasPrefix(name, "sort") {
			fit = append(fit, name)
		}
	}
	slices.Sort(fit)
	return parser.Functions[g.pick(fit...)]
}

// call calls a function with arguments of the types that it takes.
func (g *generator) call(f *parser.Function, depth int) string {
	args := g.special(f.Name)
	if args == nil {
		types := f.ArgTypes
		switch {
		case f.Variadic == 1 && g.rng.IntN(2) == 0: // the last one may be left out
			types = types[:len(types)-1]
		case f.Variadic < 0 || f.Variadic > 1:
			panic("e2e: nobody has said what arguments " + f.Name + " takes")
		}
		for _, t := range types {
			args = append(args, g.argument(t, depth))
		}
	}
	return f.Name + "(" + strings.Join(args, ", ") + ")"
}

func (g *generator) argument(t parser.ValueType, depth int) string {
	switch t {
	case parser.ValueTypeMatrix:
		return g.matrix(depth)
	case parser.ValueTypeVector:
		return g.vector(depth)
	case parser.ValueTypeScalar:
		return g.pick(g.number(), g.number(), "scalar(cores{host=\"alpha\"})", "time()", "pi()")
	}
	panic("e2e: no argument of type " + string(t))
}

// special gives the arguments of functions where not any will do.
func (g *generator) special(name string) []string {
	label := g.pick("host", "room", "instance", "code", "nobody")
	phi := g.pick("0", "0.5", "0.9", "0.99", "1")
	switch name {
	case "label_replace":
		return []string{g.vector(0), `"` + g.pick("copy", "host") + `"`, g.pick(`"$1"`, `"x-$1"`, `""`, `"${2}$1"`), `"` + label + `"`, g.pick(`"(.)(.*)"`, `".*"`, `"alpha|(.*)a"`)}
	case "label_join":
		return []string{g.vector(0), `"joined"`, `"-"`, `"` + label + `"`, `"host"`}
	case "histogram_quantile":
		return []string{phi, g.pick(`latency_seconds_bucket`, `rate(latency_seconds_bucket[10m])`, `max by (le) (latency_seconds_bucket)`) + ""}
	case "histogram_fraction":
		return []string{g.pick("0", "-Inf", "0.1"), g.pick("1", "0.5", "Inf"), `rate(latency_seconds_bucket[10m])`}
	case "quantile_over_time":
		return []string{phi, g.matrix(0)}
	case "round":
		return []string{g.vector(0), g.pick("0.1", "1", "5", "0.25")}
	}
	return nil
}

// aggregation aggregates an expression.
func (g *generator) aggregation(op string, depth int) string {
	grouping := g.pick("", " by (host)", " by (host, room)", " without (host)", " by (code)", " without (instance, path)", " by ()", " without ()", " by (nobody)")
	var parameter string
	inner := g.vector(depth - 1)
	switch op {
	case "quantile":
		parameter = g.pick("0.5", "0.9", "0", "1", "0.25") + ", "
	case "count_values":
		parameter = `"value", `
		inner = g.pick("queue_length", "cores", "job_up", "restarts_total", "edge")
	case "topk", "bottomk": // of equal values the first would stay, and which is first is open
		parameter = g.pick("1", "2", "5") + ", "
		inner = g.pick("load", "rate(cpu_seconds_total[5m])", "deriv(temperature_celsius[30m])")
	}
	return fmt.Sprintf("%s%s (%s%s)", op, grouping, parameter, inner)
}

// averaged puts a sum over series into what changes little with it.
func (g *generator) averaged(depth int) string {
	sum := g.aggregation(g.pick("sum", "avg", "stddev", "stdvar"), depth)
	switch g.rng.IntN(4) {
	case 0:
		return sum + g.pick(" * 2", " / 3", " + 0")
	case 1:
		return "abs(" + sum + ")"
	case 2:
		return fmt.Sprintf("avg_over_time((%s)[%s:%s])", sum, g.pick("10m", "1h"), g.pick("1m", "5m"))
	}
	return sum
}

// binary puts an operator between two expressions whose labels may match.
func (g *generator) binary(op string, depth int) string {
	pairs := [][2]string{
		{"load", "cores"},
		{"requests_total", "build_info"},
		{"temperature_celsius", "cores"},
		{"rate(requests_total[5m])", "rate(cpu_seconds_total[5m])"},
		{"temperature_celsius", "load"},
	}
	set := op == "and" || op == "or" || op == "unless"
	if !set && strings.ContainsAny(op, "=<>") && g.rng.IntN(2) == 0 {
		op += " bool"
	}
	switch g.rng.IntN(5) {
	case 0: // the same on both sides
		v := g.selector()
		return fmt.Sprintf("(%s%s) %s (%s%s)", v, g.modifiers(), op, v, g.modifiers())
	case 1:
		if !set {
			return fmt.Sprintf("(%s) %s %s", g.vector(depth), op, g.number())
		}
	case 2:
		return fmt.Sprintf("(%s) %s %s (%s)", g.vector(depth), op, g.pick("", "on(host)", "ignoring(room)"), g.vector(depth))
	case 3:
		if !set {
			pair := pairs[g.rng.IntN(len(pairs))]
			return fmt.Sprintf("%s %s on(host) group_left%s %s", pair[0], op, g.pick("", "()", "(version)", "(arch)"), pair[1])
		}
	}
	pair := pairs[g.rng.IntN(2)]
	return fmt.Sprintf("%s %s on(host) %s", pair[1], op, g.pick("load", "cores", "max by (host) (requests_total)"))
}
