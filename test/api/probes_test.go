package api

import (
	"strconv"
	"strings"
)

// Noon in seconds, and some times before it.
const (
	atNoon    = "1793707200"
	hourAgo   = "1793703600"
	threeAgo  = "1793696400"
	yesterday = "1793610000"
)

// differences are the probes that are answered in another way on purpose, and why.
var differences = map[string]string{
	"GET /api/v1/query?query=1&time=NaN":                                   "NaN is no time; Prometheus takes it for year -292277022",
	"GET /api/v1/query?query=1&time=Inf":                                   "nor is infinity",
	"GET /api/v1/query?query=1&time=1e100":                                 "nor what no timestamp can hold",
	"GET /api/v1/query?query=time()&time=148966367200.372":                 "no sample can have such a time: daybook's keys end in the year 3338",
	"GET /api/v1/query?query=time()&time=1793707200000":                    "milliseconds taken for seconds; Prometheus answers for another time, as its own overflows",
	"POST /api/v1/series?end=1793707200000&match[]=up&start=1793703600000": "the same, where daybook narrows down only roughly: this is allowed to give more",
	"GET /api/v1/query_exemplars?query=1":                                  "an empty list, where Prometheus answers 204: clients throw on missing data",
	"GET /api/v1/status/buildinfo":                                         "daybook says which program it is",
	"GET /api/v1/status/config":                                            "the settings are others",
	"GET /api/v1/status/flags":                                             "the settings are others",
	"GET /api/v1/status/runtimeinfo":                                       "the numbers are others",
	"GET /api/v1/status/tsdb":                                              "memory and chunks are others",
	"GET /api/v1/targets?state=active":                                     "an empty object, where Prometheus says null",
	"GET /api/v1/nothing":                                                  "an error in JSON, where Prometheus answers with text",
	"POST /api/v1/label/job/values":                                        "an error in JSON, where Prometheus answers with text",
	"POST /api/v1/admin/tsdb/snapshot":                                     "there are no snapshots: 404",
	"GET /api/v1/status/self_metrics":                                      "there is /metrics",
	"GET /api/v1/status/tsdb/blocks":                                       "there are no blocks",
	"GET /api/v1/query_range?end=1&query=1&start=0&step=0.0001":            "steps below a millisecond are refused, as samples have none",
}

// words are the probes that are refused alike, in other words.
var words = map[string]string{
	"GET /api/v1/query_range?end=Inf&query=1&start=0&step=1": "infinity is no time; to Prometheus it is one, and before the start",
	"GET /api/v1/labels?limit=x":                             "says what is wrong with the number, not which function found it",
	"GET /api/v1/labels?limit=-1":                            "the same words for all that is no limit",
	"GET /api/v1/query?limit=x&query=up":                     "says what is wrong with the number, not which function found it",
	"GET /api/v1/series?limit=-1&match[]=up":                 "the same words for all that is no limit",
	"GET /api/v1/labels?match[]={}":                          "names the selector and the parameter",
	"GET /api/v1/labels?match[]={":                           "names the parameter",
	"GET /api/v1/series?match[]={}":                          "names the selector",
	`GET /api/v1/series?match[]=up&match[]={a=~".*"}`:        "names the selector",
	"GET /api/v1/label/job/values?match[]=up{":               "names the parameter",
	"GET /api/v1/rules?match[]={":                            "names the parameter",
}

// probes are all requests.
func probes() (all []probe) {
	all = append(all, instants()...)
	all = append(all, ranges()...)
	all = append(all, refused()...)
	all = append(all, lists()...)
	all = append(all, syntax()...)
	return append(all, others()...)
}

// expressions are of every kind of answer and of most of the language.
var expressions = strings.Split(strings.TrimSpace(`
1
-0.5
1e21
1e-7
123456789.125
NaN
"a <string> & more"
time()
vector(1)
up
up{job="node",instance=~"a.*|b.*"}
up{instance!="a:9100"}
{__name__=~"up|stale"}
{__name__="up",nobody_has=""}
nothing
ended
stale
special
hostile
{"my.metric"}
{"my.metric","日本"="ü"}
up[1m]
special[6m]
stale[10m]
requests_total offset 1h
requests_total @ 1793700000
requests_total offset -30m
sum(up)
sum by (instance) (requests_total)
sum without (instance) (requests_total)
count by (__name__) ({__name__=~".+"})
count_values("v", up)
group(up)
min(many)
max by (job) (requests_total)
avg(up)
quantile(0.5, many)
quantile(7, many)
rate(requests_total[5m])
rate(up[5m])
increase(requests_total{code="500"}[1h])
irate(requests_total[1m])
resets(requests_total[3h])
changes(up[10m])
delta(many[5m])
deriv(requests_total{code="200",instance="a:9100"}[5m])
histogram_quantile(0.9, sum by (le) (rate(seconds_bucket[5m])))
histogram_quantile(0.9, up)
max_over_time(up[5m:1m])
sum_over_time(rate(requests_total[5m])[30m:5m])
up * on (instance) group_left (code) requests_total
up * on (job) up
up and on (instance) requests_total{code="500"}
up unless up{instance="a:9100"}
up or many
up == bool 1
up == 1
-up
absent(nothing{job="x"})
absent_over_time(nothing[5m])
label_replace(up, "host", "$1", "instance", "(.*):.*")
label_replace(up, "host", "$1", "instance", "(")
label_join(up, "all", "-", "job", "instance")
clamp_max(many, 3)
round(many / 7, 0.1)
scalar(sum(up))
timestamp(up)
day_of_week()
hour(vector(1793707200))
predict_linear(requests_total[5m], 3600)
last_over_time(ended[2h])
present_over_time(stale[10m])
yesterday offset 25h
avg_over_time(yesterday[1h] offset 25h)
latency
latency{job="api"}[1m]
rate(latency[5m])
sum(latency)
histogram_quantile(0.9, rate(latency[10m]))
histogram_count(latency) / histogram_sum(latency)
sum by (job) (increase(latency[1h]))
latency or up
count(latency)
`), "\n")

func instants() (all []probe) {
	for _, expr := range expressions {
		all = append(all, get("/api/v1/query", "query="+expr, "time="+atNoon))
	}
	for _, expr := range []string{
		"sort(many)", "sort_desc(many)", "topk(3, many)", "bottomk(3, many)", "topk by (job) (2, requests_total)",
		"sort(many) * 2", "-topk(2, many)",
	} {
		all = append(all, get("/api/v1/query", "query="+expr, "time="+atNoon).inOrder())
	}
	for _, when := range []string{
		"4", "0", "-1", "1793707200.001", "1793707199.9994", "1793707199.9996", "1793707200000", "1e9", "0x6",
		"2026-11-03T12:00:00Z", "2026-11-03T13:00:00+01:00", "2026-11-03T12:00:00.123456789Z", "2026-11-03T11:59:59.999Z",
	} {
		all = append(all, get("/api/v1/query", "query=time()", "time="+when))
	}
	return append(all,
		post("/api/v1/query", "query=1+1", "time=4"),
		post("/api/v1/query", "query=up", "time="+atNoon, "timeout=10s", "stats=true"),
		get("/api/v1/query", "query=sort(many)", "time="+atNoon, "limit=3").inOrder(),
		get("/api/v1/query", "query=sort(many)", "time="+atNoon, "limit=12").inOrder(),
		get("/api/v1/query", "query=sort(many)", "time="+atNoon, "limit=0").inOrder(),
		get("/api/v1/query", "query=1", "time=4", "limit=1"),
		get("/api/v1/query", "query=ended", "time=1793703660", "lookback_delta=30s"),
		get("/api/v1/query", "query=ended", "time=1793703660", "lookback_delta=2m"),
		get("/api/v1/query", "query=ended", "time=1793703660", "lookback_delta=120"),
		get("/api/v1/query", "query=ended", "time=1793703660", "lookback_delta=0"),
		get("/api/v1/query", "query=ended", "time=1793703660", "lookback_delta=-1"),
		get("/api/v1/query", "query=sum(many)", "time="+atNoon, "stats=true"),
		get("/api/v1/query", "query=sum(many)", "time="+atNoon, "stats=all"),
		get("/api/v1/query", "query=max_over_time(up[5m])", "time="+atNoon, "stats=all"),
		get("/api/v1/query", "query=sum(many)", "time="+atNoon, "stats=some"),
		get("/api/v1/query", "query=sum(many)", "time="+atNoon, "step=60", "nocache=1"),
	)
}

func ranges() (all []probe) {
	for _, expr := range expressions {
		all = append(all, get("/api/v1/query_range", "query="+expr, "start="+hourAgo, "end="+atNoon, "step=300"))
	}
	for _, expr := range []string{"up", "rate(requests_total[5m])", "stale", "ended"} {
		for _, step := range []string{"15", "7.5", "1m", "0.25h", "1h30m", "3600.0004"} {
			all = append(all, get("/api/v1/query_range", "query="+expr, "start="+threeAgo, "end="+atNoon, "step="+step))
		}
	}
	return append(all,
		post("/api/v1/query_range", "query=up", "start="+hourAgo, "end="+atNoon, "step=60"),
		get("/api/v1/query_range", "query=1", "start=1543578564.705", "end=1543578564.705", "step=1"),
		get("/api/v1/query_range", "query=up", "start="+yesterday, "end="+atNoon, "step=1h"),
		get("/api/v1/query_range", "query=yesterday", "start="+yesterday, "end="+atNoon, "step=90"),
		get("/api/v1/query_range", "query=nothing", "start=0", "end=11000", "step=1"),
		get("/api/v1/query_range", "query=many", "start="+hourAgo, "end="+atNoon, "step=600", "limit=12"),
		get("/api/v1/query_range", "query=sum(many)", "start="+hourAgo, "end="+atNoon, "step=600", "limit=1"),
		get("/api/v1/query_range", "query=many", "start="+hourAgo, "end="+atNoon, "step=600", "limit=5"),
		get("/api/v1/query_range", "query=max_over_time(up[5m])", "start="+hourAgo, "end="+atNoon, "step=600", "stats=all"),
		get("/api/v1/query_range", "query=sum_over_time(up[10m:1m])", "start="+hourAgo, "end="+atNoon, "step=600", "stats=all"),
		get("/api/v1/query_range", "query=ended", "start="+hourAgo, "end="+atNoon, "step=60", "lookback_delta=10m"),
	)
}

func refused() (all []probe) {
	for _, params := range []string{
		"", "query=", "query=(", "query=sum(up", "query=nofunction(up)", "query=up{a=~\"(\"}", "query=up offset x",
		"query=1&time=NaN", "query=1&time=Inf", "query=1&time=1e100", "query=1&time=yesterday", "query=time()&time=148966367200.372",
		"query=1&timeout=abc", "query=1&timeout=0", "query=1&timeout=-1", "query=1&timeout=NaN",
		"query=1&lookback_delta=abc", "query=up&limit=x",
	} {
		all = append(all, get("/api/v1/query", split(params)...))
	}
	for _, params := range []string{
		"query=1&end=1&step=1", "query=1&start=0&step=1", "query=1&start=0&end=1", "query=1&start=x&end=1&step=1",
		"query=1&start=0&end=Inf&step=1", "query=1&start=2&end=1&step=1", "query=1&start=1.001&end=1&step=1",
		"query=1&start=0&end=1&step=0", "query=1&start=0&end=1&step=-1", "query=1&start=0&end=1&step=0h", "query=1&start=0&end=1&step=NaN",
		"query=1&start=0&end=1&step=x", "query=1&start=0&end=1&step=1e100", "query=1&start=0&end=1&step=0.0001",
		"query=1&start=0&end=11001&step=1", "query=up[5m]&start=0&end=1&step=1", "query=\"text\"&start=0&end=1&step=1",
		"start=0&end=1&step=1", "query=(&start=0&end=1&step=1", "query=1&start=0&end=1&step=1&timeout=x",
	} {
		all = append(all, get("/api/v1/query_range", split(params)...))
	}
	for _, params := range []string{"query=1&time=x", "query=(", ""} {
		all = append(all, post("/api/v1/query", split(params)...))
	}
	return append(all,
		get("/api/v1/series"),
		get("/api/v1/series", "match[]={}"),
		get("/api/v1/series", "match[]=up", `match[]={a=~".*"}`),
		get("/api/v1/series", "match[]=up", "limit=-1"),
		get("/api/v1/series", "match[]=up", "start=x"),
		get("/api/v1/labels", "match[]={}"),
		get("/api/v1/labels", "match[]={"),
		get("/api/v1/labels", "limit=x"),
		get("/api/v1/labels", "limit=-1"),
		get("/api/v1/labels", "end=x"),
		get("/api/v1/label/job/values", "match[]=up{"),
		get("/api/v1/label/%FF/values"),
		get("/api/v1/nothing"),
		post("/api/v1/label/job/values"),
	)
}

// split takes name=value pairs with & between them apart.
func split(params string) []string {
	if params == "" {
		return nil
	}
	return strings.Split(params, "&")
}

func lists() (all []probe) {
	for _, match := range [][]string{
		{"up"}, {"many"}, {"nothing"}, {"up", "many"}, {"up", `{job="node"}`}, {`{__name__=~".+"}`}, {`{__name__!=""}`},
		{`{job=~"a.*",code!="500"}`}, {`{"my.metric"}`}, {`hostile`}, {`{n=~"0[1-3]"}`}, {`{job!~"node|api",__name__=~".+"}`},
	} {
		var params []string
		for _, m := range match {
			params = append(params, "match[]="+m)
		}
		all = append(all, get("/api/v1/series", params...), post("/api/v1/labels", params...),
			get("/api/v1/label/job/values", params...), get("/api/v1/label/__name__/values", params...))
	}
	for _, name := range []string{
		"job", "instance", "le", "nothing", "my.label", "U__my_2e_label", "U___65e5__672c_", "%E6%97%A5%E6%9C%AC", "value", "__name__", "U__job",
	} {
		all = append(all, get("/api/v1/label/"+name+"/values"))
	}
	for _, limit := range []int{0, 1, 3, 40000} {
		all = append(all, get("/api/v1/labels", "limit="+strconv.Itoa(limit)), get("/api/v1/label/n/values", "limit="+strconv.Itoa(limit)))
	}
	return append(all,
		get("/api/v1/labels"),
		get("/api/v1/series", "match[]=many", "limit=12"),
		get("/api/v1/series", "match[]=up", "start="+hourAgo, "end="+atNoon, "limit=0"),
		get("/api/v1/series", "match[]=up", "start=-292273086-05-16T16:47:06Z", "end=292277025-08-18T07:12:54.999999999Z"),
		get("/api/v1/series", "match[]=up", "start="+hourAgo, "end=9999-12-31T23:59:59Z"),
		post("/api/v1/series", "match[]=up", "start="+hourAgo+"000", "end="+atNoon+"000"),
	)
}

func syntax() (all []probe) {
	for _, expr := range expressions {
		all = append(all, get("/api/v1/parse_query", "query="+expr), get("/api/v1/format_query", "query="+expr))
	}
	for _, expr := range []string{
		"up @ end()", "up @ start() offset 5m", "a + ignoring (x, y) group_right (z) b", "(1 + 2) * 3 ^ 4 % 5", "a atan2 b", "sum(((up)))",
		"max_over_time((up)[5m:] @ 10 offset -1m)", "topk without (a, b) (1 + 1, up)", "0x1F", "Inf", "-Inf", `'single'`, "`raw\\n`",
		`{a="b",c!="d",e=~"f",g!~"h"}`, `up{"a.b"="c"}`, "rate(up[1h30m15s])", "(", "", "1 2", "up{", "sum by (", "foo bar",
	} {
		all = append(all, get("/api/v1/parse_query", "query="+expr), post("/api/v1/format_query", "query="+expr))
	}
	return all
}

func others() []probe {
	return []probe{
		get("/api/v1/rules"), get("/api/v1/rules", "type=alert"), get("/api/v1/rules", "type=x"), get("/api/v1/rules", "match[]={"),
		get("/api/v1/rules", "exclude_alerts=maybe"),
		get("/api/v1/alerts"), get("/api/v1/targets"), get("/api/v1/targets", "state=active"), get("/api/v1/targets", "state=dropped"),
		get("/api/v1/targets/metadata"), get("/api/v1/targets/metadata", "limit=x"), get("/api/v1/targets/metadata", "limit=1"),
		get("/api/v1/metadata"), get("/api/v1/metadata", "metric=up"), get("/api/v1/metadata", "limit=x"), get("/api/v1/metadata", "limit_per_metric=x"),
		get("/api/v1/query_exemplars", "query=seconds_bucket"), get("/api/v1/query_exemplars", "query=1"), get("/api/v1/query_exemplars"),
		post("/api/v1/query_exemplars", "query=rate(seconds_bucket{le=\"1\"}[5m]) + up", "start="+hourAgo, "end="+atNoon),
		post("/api/v1/query_exemplars", "query=test", "start="+hourAgo+"000", "end="+atNoon+"000"),
		get("/api/v1/query_exemplars", "query=seconds_bucket", "start=1793706960.001", "end=1793706960.001"),
		get("/api/v1/query_exemplars", "query=seconds_bucket", "start=2", "end=1"), get("/api/v1/query_exemplars", "query=("),
		get("/api/v1/query_exemplars", "query=up", "start=x"),
		get("/api/v1/alertmanagers"), get("/api/v1/scrape_pools"), get("/api/v1/notifications"),
		get("/api/v1/status/buildinfo"), get("/api/v1/status/config"), get("/api/v1/status/flags"), get("/api/v1/status/runtimeinfo"),
		get("/api/v1/status/tsdb"), get("/api/v1/status/tsdb", "limit=0"), get("/api/v1/status/tsdb", "limit=x"),
		get("/api/v1/status/tsdb", "limit=10001"), get("/api/v1/status/walreplay"), get("/api/v1/features"),
		get("/api/v1/status/self_metrics"), get("/api/v1/status/tsdb/blocks"), post("/api/v1/admin/tsdb/snapshot"),
	}
}
