package web

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"daybook/internal/index"
)

// About is what the status endpoints say of the program.
type About struct {
	Version   string // daybook's own
	Revision  string
	Branch    string
	BuildDate string
	Started   time.Time
	Retention time.Duration // 0 for ever
	Settings  []Setting     // all, in the order of the settings' file
	Flags     map[string]string
}

// Setting is a setting as the settings' file has it: the name with the table before it, such as flush.interval.
type Setting struct {
	Name  string
	Value any // an int, or what is written as a text
}

// speaks is the Prometheus whose API this is: clients compare it to know what they may ask for.
const speaks = "3.16.0"

// buildInfo is GET /api/v1/status/buildinfo. It has no features: by those Grafana knows a Mimir.
func buildInfo(c *call) error {
	about := c.server.cfg.About
	return c.succeed(func(s *jsonStream) {
		s.object(members{
			{"version", func() { s.WriteString(speaks) }},
			{"revision", func() { s.text(about.Revision) }},
			{"branch", func() { s.text(about.Branch) }},
			{"buildUser", func() { s.WriteString("") }},
			{"buildDate", func() { s.text(about.BuildDate) }},
			{"goVersion", func() { s.text(runtime.Version()) }},
			{"application", func() { s.WriteString("daybook") }},
			{"applicationVersion", func() { s.text(about.Version) }},
			{"repository", func() { s.WriteString("daybook") }},
		})
	}, nil, nil)
}

// statusConfig is GET /api/v1/status/config.
func statusConfig(c *call) error {
	text := configText(c.server.cfg.About.Settings)
	return c.succeed(func(s *jsonStream) {
		s.object(members{{"yaml", func() { s.text(text) }}})
	}, nil, nil)
}

// configText writes the settings as YAML, behind what clients look for in Prometheus's configuration.
func configText(settings []Setting) string {
	var b strings.Builder
	b.WriteString("global:\n  evaluation_interval: 1m\n  external_labels: {}\ndaybook:\n")
	table := ""
	for _, one := range settings {
		indent := "  "
		name := one.Name
		if t, rest, ok := strings.Cut(one.Name, "."); ok {
			if t != table {
				fmt.Fprintf(&b, "  %s:\n", t)
				table = t
			}
			indent, name = "    ", rest
		}
		switch v := one.Value.(type) {
		case int:
			fmt.Fprintf(&b, "%s%s: %d\n", indent, name, v)
		default:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, name, strconv.Quote(fmt.Sprint(v)))
		}
	}
	return b.String()
}

// statusFlags is GET /api/v1/status/flags.
func statusFlags(c *call) error {
	flags := c.server.cfg.About.Flags
	return c.succeed(func(s *jsonStream) {
		var all members
		for _, name := range slices.Sorted(maps.Keys(flags)) {
			all = append(all, member{name, func() { s.text(flags[name]) }})
		}
		s.object(all)
	}, nil, nil)
}

// runtimeInfo is GET /api/v1/status/runtimeinfo.
func runtimeInfo(c *call) error {
	about := c.server.cfg.About
	folder, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working directory: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding the host's name: %w", err)
	}
	retention := ""
	if about.Retention > 0 {
		retention = model.Duration(about.Retention).String()
	}
	moment := func(t time.Time) func(*jsonStream) {
		return func(s *jsonStream) { s.WriteString(t.UTC().Format(time.RFC3339Nano)) }
	}
	started, now := moment(about.Started), moment(c.server.cfg.Now())
	return c.succeed(func(s *jsonStream) {
		s.object(members{
			{"startTime", func() { started(s) }},
			{"CWD", func() { s.text(folder) }},
			{"hostname", func() { s.text(host) }},
			{"serverTime", func() { now(s) }},
			{"reloadConfigSuccess", func() { s.WriteBool(true) }},
			{"lastConfigTime", func() { started(s) }}, // settings are read at the start
			{"corruptionCount", func() { s.WriteInt(0) }},
			{"goroutineCount", func() { s.WriteInt(runtime.NumGoroutine()) }},
			{"GOMAXPROCS", func() { s.WriteInt(runtime.GOMAXPROCS(0)) }},
			{"GOMEMLIMIT", func() { s.WriteInt64(debug.SetMemoryLimit(-1)) }},
			{"GOGC", func() { s.WriteString(gcPercent()) }},
			{"GODEBUG", func() { s.text(os.Getenv("GODEBUG")) }},
			{"storageRetention", func() { s.WriteString(retention) }},
		})
	}, nil, nil)
}

// gcPercent is what GOGC is in effect.
func gcPercent() string {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return ""
	}
	if v := sample[0].Value.Uint64(); v != math.MaxUint64 {
		return strconv.FormatUint(v, 10)
	}
	return "off"
}

// The longest lists that statusTSDB gives.
const (
	usualCounts = 10
	mostCounts  = 10_000
)

// statusTSDB is GET /api/v1/status/tsdb: how many series there are, and of which labels there are most. A chunk is an
// hour of a series in memory, and the times are those of such hours.
func statusTSDB(c *call) error {
	form, err := c.form()
	if err != nil {
		return err
	}
	most := usualCounts
	if text := form.Get("limit"); text != "" {
		if most, err = strconv.Atoi(text); err != nil || most < 1 {
			return badRequest(errors.New("limit must be a positive number"))
		}
		if most > mostCounts {
			return badRequest(fmt.Errorf("limit must not exceed %d", mostCounts))
		}
	}
	stats, memory := c.Reader.Cardinality(most), c.Ingester.Memory()
	return c.succeed(func(s *jsonStream) {
		s.object(members{
			{"headStats", func() {
				s.object(members{
					{"numSeries", func() { s.WriteInt(stats.Series) }},
					{"numLabelPairs", func() { s.WriteInt(stats.LabelPairs) }},
					{"chunkCount", func() { s.WriteInt(memory.Hours) }},
					{"minTime", func() { s.WriteInt64(int64(memory.First)) }},
					{"maxTime", func() { s.WriteInt64(int64(memory.Last)) }},
				})
			}},
			{"seriesCountByMetricName", func() { array(s, stats.Metrics, s.count) }},
			{"labelValueCountByLabelName", func() { array(s, stats.LabelValues, s.count) }},
			{"memoryInBytesByLabelName", func() { array(s, stats.LabelBytes, s.count) }},
			{"seriesCountByLabelValuePair", func() { array(s, stats.Pairs, s.count) }},
		})
	}, nil, nil)
}

func (s *jsonStream) count(c index.Count) {
	s.object(members{
		{"name", func() { s.text(c.Name) }},
		{"value", func() { s.WriteUint64(c.Count) }},
	})
}

// oldLink is GET /graph and /query: addresses of expressions in Prometheus's page, as alerts link to them. The page
// opens with the expression in its address, and with its chart where it is a selector.
func oldLink(c *call) error {
	target := "/"
	if raw := c.Request().URL.RawQuery; raw != "" {
		target += "?" + raw
	}
	if expr := c.QueryParam("g0.expr"); expr != "" {
		if _, err := c.Reader.Selectors([]string{expr}); err == nil {
			target += "#/?m=" + url.QueryEscape(expr)
		}
	}
	return c.Redirect(http.StatusFound, target)
}
