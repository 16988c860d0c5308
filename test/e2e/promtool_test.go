package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// promtoolPeer is Prometheus's command line tool.
var promtoolPeer = peer{
	name:   "promtool",
	module: "github.com/prometheus/prometheus",
	pkg:    "github.com/prometheus/prometheus/cmd/promtool",
	flags:  []string{"-tags", "remove_all_sd"},
}

// pushed are metrics in the text format, at a time in milliseconds.
const pushed = `# HELP pushed_total Things that were pushed.
# TYPE pushed_total counter
pushed_total{kind="a"} 3 %[1]d
pushed_total{kind="b"} 4.5 %[1]d
# TYPE pushed_celsius gauge
pushed_celsius{room="hall",note="it's \"warm\""} -1.25 %[1]d
# TYPE pushed_seconds histogram
pushed_seconds_bucket{le="0.5"} 2 %[1]d
pushed_seconds_bucket{le="+Inf"} 3 %[1]d
pushed_seconds_sum 1.75 %[1]d
pushed_seconds_count 3 %[1]d
`

// TestPromtool lets the real promtool push to daybook and to a Prometheus, and ask both: it must say the same of both.
func TestPromtool(t *testing.T) {
	bin := promtoolPeer.build(t)
	d, p := startDaybook(t, "1h"), startReceiver(t)
	now := time.Now().Truncate(time.Second)
	file := writeFile(t, "metrics.txt", fmt.Sprintf(pushed, now.UnixMilli()))
	at, before := fmt.Sprint(now.Unix()), fmt.Sprint(now.Add(-time.Minute).Unix())
	const url = "<url>" // put into the commands
	for _, c := range []struct {
		args  []string
		wants string // what it says, or part of that
	}{
		{[]string{"check", "healthy", "--url=" + url}, "SUCCESS"},
		{[]string{"check", "ready", "--url=" + url}, "SUCCESS"},
		{[]string{"check", "ready", "--url=" + url + "/"}, "SUCCESS"},
		{[]string{"push", "metrics", url, file}, "SUCCESS: metrics file"},
		{[]string{"push", "metrics", "--label=job=twice", url, file}, "SUCCESS: metrics file"},
		{[]string{"query", "instant", "--time=" + at, url, `pushed_total{job="promtool"}`}, `pushed_total{job="promtool", kind="b"} => 4.5 @[`},
		{[]string{"query", "instant", "--time=" + at, url, `sum by (job) (pushed_total)`}, `{job="twice"} => 7.5 @[`},
		{[]string{"query", "instant", "--time=" + at, url, `pushed_celsius{job="twice"}`}, `note="it's \"warm\""`},
		{[]string{"query", "instant", "-o", "json", "--time=" + at, url, `pushed_seconds_bucket{job="twice",le="+Inf"}`}, `"le":"+Inf"`},
		{[]string{"query", "instant", "--time=" + at, url, `histogram_quantile(0.5, pushed_seconds_bucket{job="twice"})`}, `0.375 @[`},
		{[]string{"query", "instant", "--time=" + at, url, `pushed_total{job="twice"}[1m]`}, `3 @[`},
		{[]string{"query", "instant", "--time=" + at, url, `scalar(pushed_celsius{job="twice"})`}, `scalar: -1.25 @[`},
		{[]string{"query", "instant", "--time=" + at, url, `"text"`}, `unexpected value type "string"`},
		{[]string{"query", "instant", "--time=" + at, url, `sum(`}, `query error: bad_data`},
		{[]string{"query", "instant", "--time=" + at, url, `label_replace(pushed_total{job="twice"}, "kind", "x", "job", ".*")`}, `query error: execution`},
		{[]string{"query", "range", "--start=" + before, "--end=" + at, "--step=15s", url, `pushed_total{kind="a"}`}, `3 @[`},
		{[]string{"query", "range", "-o", "json", "--start=" + before, "--end=" + at, url, `count(pushed_total)`}, `"4"`},
		{[]string{"query", "range", "--start=0", "--end=" + at, "--step=1s", url, `pushed_total`}, `exceeded maximum resolution`},
		{[]string{"query", "series", "--match=pushed_total", "--match=pushed_celsius", url}, `__name__="pushed_celsius"`},
		{[]string{"query", "series", "--match=pushed_total{", url}, `query error: bad_data`},
		{[]string{"query", "labels", url, "job"}, "promtool\ntwice"},
		{[]string{"query", "labels", "--match=pushed_total", url, "kind"}, "a\nb"},
		{[]string{"query", "labels", url, "nobody"}, ""},
		{[]string{"query", "analyze", "--server=" + url, "--type=histogram", "--time=" + at, "--match=pushed_seconds_bucket"}, ``},
	} {
		got, want := promtool(t, bin, c.args, d.api), promtool(t, bin, c.args, p.api)
		if c.args[0] == "check" { // each says so in its own words
			got, want = strings.ReplaceAll(got, "daybook is alive", "It is Healthy"), strings.ReplaceAll(want, "Prometheus Server is Healthy", "It is Healthy")
			got, want = strings.ReplaceAll(got, "daybook is ready", "It is Ready"), strings.ReplaceAll(want, "Prometheus Server is Ready", "It is Ready")
		}
		if got != want {
			t.Errorf("promtool %s\n  daybook:\n%s\n  Prometheus:\n%s", strings.Join(c.args, " "), got, want)
		}
		if !strings.Contains(want, c.wants) {
			t.Errorf("promtool %s says\n%s, without %s", strings.Join(c.args, " "), want, c.wants)
		}
	}
}

// promtool runs it on a server and gives all that it says, its lines sorted, as the order of a vector is open, and the
// status that it ended with.
func promtool(t *testing.T, bin string, args []string, server api) string {
	t.Helper()
	var full []string
	for _, arg := range args {
		full = append(full, strings.ReplaceAll(arg, "<url>", string(server)))
	}
	out, err := exec.CommandContext(t.Context(), bin, full...).CombinedOutput()
	status := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		status = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), string(server), "<url>")), "\n")
	slices.Sort(lines)
	return fmt.Sprintf("%s\n(status %d)", strings.Join(lines, "\n"), status)
}
