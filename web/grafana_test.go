package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// success is what all but errors are answered with.
type success struct {
	Status   string          `json:"status"`
	Data     json.RawMessage `json:"data"`
	Warnings []string        `json:"warnings"`
	Infos    []string        `json:"infos"`
}

// succeeds checks that an answer is one, with data, and decodes that.
func (a answer) succeeds(t *testing.T, into any) success {
	t.Helper()
	var s success
	strict(t, a.body, &s)
	if a.status != http.StatusOK || s.Status != "success" || len(s.Data) == 0 || string(s.Data) == "null" {
		t.Fatalf("answered with %d %.300s", a.status, a.body)
	}
	if err := json.Unmarshal(s.Data, into); err != nil {
		t.Fatalf("%v in %.300s", err, a.body)
	}
	return s
}

// decoded is the data of an answer.
func decoded[T any](t *testing.T, a answer) (data T) {
	t.Helper()
	a.succeeds(t, &data)
	return data
}

// grafana sends requests as Grafana does, with the headers that it sends along.
func (r *rig) grafana(method, path string, form url.Values) answer {
	r.t.Helper()
	var request *http.Request
	if method == http.MethodPost {
		request = r.request(method, path, strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		if len(form) > 0 {
			path += "?" + form.Encode()
		}
		request = r.request(method, path, nil)
	}
	for name, value := range map[string]string{
		"X-Dashboard-Uid": "abc", "X-Panel-Id": "1", "X-Grafana-Org-Id": "1", "X-Datasource-Uid": "def",
		"X-Query-Tags": "Source=grafana", "User-Agent": "Grafana/13.1.7", "Idempotency-Key": "grafana-1",
	} {
		request.Header.Set(name, value)
	}
	return r.do(request)
}

// queryData is the data of a query.
type queryData struct {
	ResultType string `json:"resultType"`
	Result     []struct {
		Metric map[string]string `json:"metric"`
		Value  []any             `json:"value"`
		Values [][]any           `json:"values"`
	} `json:"result"`
}

// 'Save & test' and what is asked when a data source is opened.
func TestGrafanaSaveAndTest(t *testing.T) {
	r := start(t, options{})
	r.fill()
	var scalar struct {
		ResultType string `json:"resultType"`
		Result     []any  `json:"result"`
	}
	r.grafana(http.MethodPost, "/api/v1/query", url.Values{"query": {"1+1"}, "time": {"4"}, "timeout": {"60s"}}).succeeds(t, &scalar)
	if scalar.ResultType != "scalar" || len(scalar.Result) != 2 || scalar.Result[0] != 4.0 || scalar.Result[1] != "2" {
		t.Errorf("1+1 is %v", scalar)
	}
	var build map[string]any
	r.grafana(http.MethodGet, "/api/v1/status/buildinfo", nil).succeeds(t, &build)
	if _, ok := build["features"]; ok || build["application"] != "daybook" {
		t.Errorf("Grafana takes this for a Mimir: %v", build)
	}
	major, _, _ := strings.Cut(build["version"].(string), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 3 {
		t.Errorf("the version %v is none of a Prometheus that has what Grafana asks for", build["version"])
	}
	var rules struct{ Groups []any }
	r.grafana(http.MethodGet, "/api/v1/rules", nil).succeeds(t, &rules)
	if rules.Groups == nil {
		t.Error("no groups: a list must be there")
	}
	// Whether there are exemplars, with times in milliseconds. An error would switch them off.
	list := []any{"not decoded"}
	r.grafana(http.MethodPost, "/api/v1/query_exemplars", url.Values{
		"query": {"test"}, "start": {"1793703600000"}, "end": {"1793707200000"},
	}).succeeds(t, &list)
	if list == nil || len(list) != 0 {
		t.Errorf("exemplars of nothing are %v", list)
	}
	families := decoded[map[string][]map[string]string](t, r.grafana(http.MethodGet, "/api/v1/metadata", url.Values{"limit": {"0"}}))
	if len(families) != 3 || families["up"][0]["type"] != "counter" {
		t.Errorf("with a limit of 0 the metadata is %v", families)
	}
}

// The metrics browser, the query builder and completion.
func TestGrafanaMetricsBrowser(t *testing.T) {
	r := start(t, options{})
	r.fill()
	span := func(more ...string) url.Values {
		form := url.Values{"start": {"1793703600"}, "end": {"1793707200"}, "limit": {"40000"}}
		for i := 0; i < len(more); i += 2 {
			form.Add(more[i], more[i+1])
		}
		return form
	}
	names := decoded[[]string](t, r.grafana(http.MethodPost, "/api/v1/labels", span("match[]", `{__name__="up",__ignore_usage__=""}`)))
	if !slices.Equal(names, []string{"__name__", "instance", "job"}) {
		t.Errorf("the labels of up are %q", names)
	}
	for _, c := range []struct {
		label, match string
		want         []string
	}{
		{"__name__", "", []string{"hostile", "late", "latency", "many", "my.metric", "seconds_bucket", "special", "up"}},
		{"job", "up", []string{"node"}},
		{"U__my_2e_label", `{"my.metric"}`, []string{"1"}},
	} {
		form := span()
		if c.match != "" { // several selectors are a union
			form = span("match[]", "many", "match[]", c.match)
		}
		values := decoded[[]string](t, r.grafana(http.MethodGet, "/api/v1/label/"+c.label+"/values", form))
		if !slices.Equal(values, c.want) {
			t.Errorf("%s has the values %q, want %q", c.label, values, c.want)
		}
	}
	all := decoded[[]map[string]string](t, r.grafana(http.MethodPost, "/api/v1/series", span("match[]", `{__name__!=""}`)))
	if len(all) != 16 {
		t.Errorf("%d series", len(all))
	}
	var some []map[string]string
	got := r.grafana(http.MethodPost, "/api/v1/series", url.Values{"match[]": {`{__name__!=""}`}, "limit": {"3"}}).succeeds(t, &some)
	if len(some) != 3 || !slices.Equal(got.Warnings, []string{truncated}) {
		t.Errorf("%d series with the warnings %q", len(some), got.Warnings)
	}
}

// Panels, Explore and what they send along.
func TestGrafanaExplore(t *testing.T) {
	r := start(t, options{})
	r.fill()
	form := url.Values{
		"query": {"up"}, "start": {"1793706600.000"}, "end": {"1793707200.000"}, "step": {"15.000"}, "timeout": {"60s"},
	}
	whole := decoded[queryData](t, r.grafana(http.MethodPost, "/api/v1/query_range", form))
	if whole.ResultType != "matrix" || len(whole.Result) != 2 || len(whole.Result[0].Values) != 41 {
		t.Fatalf("a panel shows %v", whole)
	}
	// Incremental querying asks for the tail again, on the same grid: the points are the same.
	form.Set("start", "1793706900.000")
	tail := decoded[queryData](t, r.grafana(http.MethodPost, "/api/v1/query_range", form)).Result[0].Values
	for i, p := range tail {
		if want := whole.Result[0].Values[41-len(tail)+i]; !slices.Equal(p, want) {
			t.Errorf("the tail has %v where the whole has %v", p, want)
		}
	}
	instant := url.Values{"query": {"up"}, "time": {"1793707140.000"}, "timeout": {"60s"}}
	now := decoded[queryData](t, r.grafana(http.MethodPost, "/api/v1/query", instant))
	if len(tail) != 21 || now.ResultType != "vector" || len(now.Result) != 2 {
		t.Errorf("%d points, and an instant query gives %v", len(tail), now)
	}
	// What is wrong with a query is told in one of the ways that Grafana reads.
	for _, c := range []struct {
		query  string
		status int
		kind   string
	}{
		{"sum(", http.StatusBadRequest, badData},
		{`up * on(job) up`, http.StatusUnprocessableEntity, execution},
	} {
		form.Set("query", c.query)
		r.grafana(http.MethodPost, "/api/v1/query_range", form).fails(t, c.status, c.kind)
	}
}

// The alerting page asks each data source for its rules and alerts.
func TestGrafanaAlertingPage(t *testing.T) {
	r := start(t, options{})
	for path, field := range map[string]string{"/api/v1/rules": "groups", "/api/v1/alerts": "alerts"} {
		var data map[string][]any
		r.grafana(http.MethodGet, path, url.Values{"limit_alerts": {"16"}}).succeeds(t, &data)
		if list, ok := data[field]; !ok || list == nil {
			t.Errorf("%s: %v", path, data)
		}
	}
}

// Drilldown: which metrics there are, which are new, and a panel for each.
func TestGrafanaDrilldown(t *testing.T) {
	r := start(t, options{})
	r.fill()
	recent := `group by (__name__) ({__name__!="",__ignore_usage__=""}) unless (group by (__name__) ({__name__!="",__ignore_usage__=""} offset 1d))`
	data := decoded[queryData](t, r.grafana(http.MethodPost, "/api/v1/query", url.Values{"query": {recent}, "time": {"1793707140"}}))
	var names []string
	for _, one := range data.Result {
		names = append(names, one.Metric["__name__"])
	}
	if !slices.Equal(names, []string{"many", "up"}) {
		t.Errorf("the recent metrics are %q", names)
	}
	// A label that no series has, equal to nothing, changes nothing.
	for _, selector := range []string{`up`, `up{__ignore_usage__=""}`} {
		data := decoded[queryData](t, r.grafana(http.MethodPost, "/api/v1/query_range", url.Values{
			"query": {"avg by (job) (" + selector + ")"}, "start": {"1793706600"}, "end": {"1793707200"}, "step": {"60"},
		}))
		if len(data.Result) != 1 || len(data.Result[0].Values) != 11 {
			t.Errorf("%s: %v", selector, data)
		}
	}
}
