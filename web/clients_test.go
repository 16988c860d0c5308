package web

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// Prometheus's client library, and promtool with it: POST first, and GET where that is answered with 403, 405 or 501.
func TestPromtool(t *testing.T) {
	r := start(t, options{})
	r.fill()
	instant := decoded[queryData](t, r.post("/api/v1/query", url.Values{"query": {"up"}, "time": {"2026-11-03T11:59:00Z"}}))
	if len(instant.Result) != 2 {
		t.Errorf("promtool query instant: %v", instant)
	}
	matrix := decoded[queryData](t, r.post("/api/v1/query_range", url.Values{
		"query": {"up"}, "start": {"1793706600"}, "end": {"1793707200"}, "step": {"2.4"},
	}))
	if len(matrix.Result) != 2 || len(matrix.Result[0].Values) != 251 {
		t.Errorf("promtool query range: %v", matrix)
	}
	// It asks for all of time with times of six digits.
	always := url.Values{"start": {"-292273086-05-16T16:47:06Z"}, "end": {"292277025-08-18T07:12:54.999999999Z"}}
	form := url.Values{"match[]": {"up"}, "start": always["start"], "end": always["end"]}
	var found []map[string]string
	r.post("/api/v1/series", form).succeeds(t, &found)
	if len(found) != 2 {
		t.Errorf("promtool query series: %v", found)
	}
	var values []string
	r.get("/api/v1/label/job/values?"+always.Encode()).succeeds(t, &values)
	if !slices.Equal(values, []string{"node"}) {
		t.Errorf("promtool query labels: %v", values)
	}
	if got := r.post("/api/v1/label/job/values", always); got.status != http.StatusMethodNotAllowed {
		t.Errorf("POST where there is only GET: %d, which the library does not fall back from", got.status)
	}
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		if got := r.get(path); got.status != http.StatusOK {
			t.Errorf("promtool check %s: %d", path, got.status)
		}
	}
}

// The editor that Prometheus and Perses have: it throws where data is missing.
func TestCodeMirror(t *testing.T) {
	r := start(t, options{})
	for _, empty := range []answer{
		r.post("/api/v1/labels", url.Values{"match[]": {"nothing"}}),
		r.post("/api/v1/series", url.Values{"match[]": {"nothing"}}),
		r.get("/api/v1/label/nothing/values"),
		r.get("/api/v1/label/__name__/values?match[]=nothing"),
	} {
		list := []any{"not decoded"}
		empty.succeeds(t, &list)
		if list == nil || len(list) != 0 {
			t.Errorf("an empty list is %v", list)
		}
	}
	var flags map[string]string
	r.get("/api/v1/status/flags").succeeds(t, &flags)
	if flags["query.lookback-delta"] != "5m" {
		t.Errorf("the flags are %v", flags)
	}
}

func TestPerses(t *testing.T) {
	r := start(t, options{})
	r.fill()
	if got := r.get("/-/healthy"); got.status != http.StatusOK {
		t.Errorf("the check of the data source: %d", got.status)
	}
	var tree map[string]any
	r.post("/api/v1/parse_query", url.Values{"query": {"sum by (job) (rate(up[5m]))"}}).succeeds(t, &tree)
	if tree["type"] != "aggregation" || tree["op"] != "sum" {
		t.Errorf("the tree is %v", tree)
	}
	var text string
	r.post("/api/v1/format_query", url.Values{"query": {"sum(up)by(job)"}}).succeeds(t, &text)
	if text != "sum by (job) (up)" {
		t.Errorf("laid out as %q", text)
	}
}

// KEDA's scaler asks with GET and a time in RFC 3339; vmalert gives a step to instant queries, too.
func TestScalersAndRulers(t *testing.T) {
	r := start(t, options{})
	r.fill()
	for _, query := range []string{
		"query=sum(up)&time=2026-11-03T11%3A59%3A00Z",
		"query=sum(up)&step=300s&time=2026-11-03T11%3A59%3A00Z",
		"query=sum(up)&step=5m&time=1793707140&timeout=30s&nocache=1",
	} {
		data := decoded[queryData](t, r.get("/api/v1/query?"+query))
		if len(data.Result) != 1 || data.Result[0].Value[1] != "37" {
			t.Errorf("%s: %v", query, data)
		}
	}
	data := decoded[queryData](t, r.get("/api/v1/query_range?query=sum(up)&start=2026-11-03T11:50:00Z&end=2026-11-03T11:59:00Z&step=60s"))
	if len(data.Result) != 1 || len(data.Result[0].Values) != 10 {
		t.Errorf("%v", data)
	}
}
