package web

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"daybook/internal/series"
	"daybook/keys"
)

// special are the values of a report by a user of another store: each spoiled its neighbours there.
var special = []float64{
	1.5, math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324, 2.964393875e-314, 18446744073709551615,
	1.7976931348623157e308, 9007199254740993, 2.33, math.NaN(), 1e21,
}

const hostile = "\"'<script>alert(1)</script>\n\\\x00\u2028\U0001F600"

// fill writes what the golden files ask for: half of it is flushed.
func (r *rig) fill() {
	r.write(http.StatusNoContent, with(named("special"), midnight, special...))
	var minutes []float64
	for i := range 40 {
		minutes = append(minutes, float64(i))
	}
	tenMinutes := series.MillisOf(noon) - 10*60_000
	for i := range 5 {
		r.write(http.StatusNoContent, with(named("many", "n", fmt.Sprint(i)), tenMinutes, minutes[:20+i]...))
	}
	r.write(http.StatusNoContent,
		with(named("up", "instance", "a:9100", "job", "node"), tenMinutes, minutes...),
		with(named("hostile", "value", hostile), tenMinutes, 1),
		with(named("hostile", "value", "é"), tenMinutes, 1),
		with(named("hostile", "value", "e\u0301"), tenMinutes, 2),
		with(named("my.metric", "my.label", "1", "a/b%41", "2", "日本", "3"), tenMinutes, 7),
	)
	r.describe(
		prompb.MetricMetadata{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "up", Help: "Whether it <is> up."},
		prompb.MetricMetadata{Type: prompb.MetricMetadata_HISTOGRAM, MetricFamilyName: "seconds", Help: "How long\nit \"took\".", Unit: "seconds"},
		prompb.MetricMetadata{MetricFamilyName: "my.metric"},
	)
	bucket := named("seconds_bucket", "le", "1")
	r.send(prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		exemplified(exemplified(bucket, tenMinutes+1, 0.25, "a"), tenMinutes+2, math.Inf(1), "b\""),
		exemplified(named("seconds_bucket", "le", "+Inf"), tenMinutes+1, 3, "c"),
	}})
	r.send(prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		observed(named("latency"), tenMinutes, 1), observed(named("latency"), tenMinutes+15_000, 3),
	}})
	r.flush()
	r.send(prompb.WriteRequest{Timeseries: []prompb.TimeSeries{exemplified(bucket, series.MillisOf(noon)-1, 0.5, "d")}})
	r.describe(prompb.MetricMetadata{Type: prompb.MetricMetadata_COUNTER, MetricFamilyName: "up", Help: "Newer."})
	r.write(http.StatusNoContent,
		with(named("up", "instance", "b:9100", "job", "node"), series.MillisOf(noon)-60_000, 1, 2, 3, 4, math.Float64frombits(value.StaleNaN)),
		with(named("late", "job", "node"), series.MillisOf(noon), 1),
	)
}

// An exchange is a request and what it is answered with, as a block of a golden file: comments, the request (method,
// path, and a form), and the status, content type and body of the answer.
type exchange struct{ comments, request, answer string }

func readExchanges(t *testing.T, name string) (all []exchange) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		var x exchange
		for line := range strings.Lines(block + "\n") {
			switch {
			case x.request == "" && strings.HasPrefix(line, "#"):
				x.comments += line
			case x.request == "":
				x.request = strings.TrimSuffix(line, "\n")
			default:
				x.answer += line
			}
		}
		if x.request != "" || x.comments != "" {
			all = append(all, x)
		}
	}
	return all
}

// volatile is what differs from run to run, or with the encoding of slots, the memory that labels take, the compiler.
var volatile = regexp.MustCompile(`"(bytes|ms|[a-zA-Z]+Time)":[0-9.e-]+|"(goVersion)":"[^"]*"`)

// memories are the numbers in memoryInBytesByLabelName, which depend on how labels are kept.
var memories = regexp.MustCompile(`"memoryInBytesByLabelName":\[[^\]]*\]`)

func (r *rig) exchange(request string) string {
	method, rest, _ := strings.Cut(request, " ")
	path, form, _ := strings.Cut(rest, " ")
	var got answer
	switch values, err := url.ParseQuery(form); {
	case err != nil:
		r.t.Fatalf("%s: %v", request, err)
	case method == http.MethodPost:
		got = r.post(path, values)
	default:
		got = r.do(r.request(method, path, nil))
	}
	if strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
		strict(r.t, got.body, new(any))
	}
	body := volatile.ReplaceAllString(strings.TrimSuffix(got.body, "\n"), `"$1$2":0`)
	body = memories.ReplaceAllString(body, `"memoryInBytesByLabelName":[...]`)
	if location := got.header.Get("Location"); location != "" {
		body = "Location: " + location
	}
	return fmt.Sprintf("%d %s\n%s\n", got.status, got.header.Get("Content-Type"), body)
}

// TestGolden goes through testdata/*.txt; -update writes them anew.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	r := start(t, options{})
	r.fill()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var all bytes.Buffer
			for _, x := range readExchanges(t, file) {
				got := ""
				if x.request != "" {
					got = r.exchange(x.request)
				}
				if got != x.answer && !*update {
					t.Errorf("%s\ngot\n%s\nwant\n%s", x.request, got, x.answer)
				}
				fmt.Fprintf(&all, "%s%s\n%s\n", x.comments, x.request, got)
			}
			if *update {
				if err := os.WriteFile(file, bytes.TrimSuffix(all.Bytes(), []byte("\n")), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// GET and POST are answered alike, errors too.
func TestGetAndPostAlike(t *testing.T) {
	r := start(t, options{})
	r.fill()
	for _, c := range []struct{ path, form string }{
		{"/api/v1/query", "query=sum(up)&time=2026-11-03T12:00:00Z"},
		{"/api/v1/query", "query=1%2B1"},
		{"/api/v1/query", "query=("},
		{"/api/v1/query", "time=NaN&query=1"},
		{"/api/v1/query_range", "query=up&start=1793706600&end=1793707200&step=60"},
		{"/api/v1/query_range", "query=up&start=2&end=1&step=60"},
		{"/api/v1/series", "match[]=up&match[]=many&limit=3"},
		{"/api/v1/series", ""},
		{"/api/v1/labels", "match[]=up"},
		{"/api/v1/labels", "match[]={}"},
		{"/api/v1/query", "query=many&limit=2&time=2026-11-03T11:51:00Z"},
		{"/api/v1/format_query", "query=sum(up)by(job)"},
		{"/api/v1/format_query", "query=sum("},
		{"/api/v1/parse_query", "query=rate(up[5m]%20offset%201h)"},
		{"/api/v1/parse_query", ""},
	} {
		t.Run(c.path+"?"+c.form, func(t *testing.T) {
			form, err := url.ParseQuery(c.form)
			if err != nil {
				t.Fatal(err)
			}
			got, posted := r.get(c.path+"?"+c.form), r.post(c.path, form)
			if got.status != posted.status || got.body != posted.body {
				t.Errorf("GET %d %s\nPOST %d %s", got.status, got.body, posted.status, posted.body)
			}
		})
	}
}

// A label's name in the path is unescaped once: by the router or by the handler, as the address is written.
func TestLabelNameInPath(t *testing.T) {
	r := start(t, options{})
	r.write(http.StatusNoContent,
		with(named("m", "a%41", "percent"), midnight, 1),
		with(named("m", "aA", "letter"), midnight, 1),
		with(named("m", "a/b", "slash"), midnight, 1),
		with(named("m", "a%2Fb", "percent and slash"), midnight, 1),
		with(named("m", "日本", "three bytes each"), midnight, 1),
		with(named("m", "a b", "space"), midnight, 1),
		with(named("m", "a+b", "plus"), midnight, 1),
		with(named("m", "U__a", "no escape"), midnight, 1),
	)
	for path, want := range map[string]string{
		"a%2541":             "percent",
		"aA":                 "letter",
		"a%41":               "letter",
		"a%2Fb":              "slash",
		"a%252Fb":            "percent and slash",
		"%E6%97%A5%E6%9C%AC": "three bytes each",
		"日本":                 "three bytes each",
		"a%20b":              "space",
		"a+b":                "plus",
		"U__a_2f_b":          "slash",
		"U___65e5__672c_":    "three bytes each",
		"U__a_20_b":          "space",
		"U__U____a":          "no escape",
	} {
		got := r.get("/api/v1/label/" + path + "/values")
		if want := `{"status":"success","data":["` + want + `"]}`; got.status != http.StatusOK || got.body != want {
			t.Errorf("%s: %d %s, want %s", path, got.status, got.body, want)
		}
	}
	for _, path := range []string{"%FF", "%00%FF", ""} {
		r.get("/api/v1/label/"+path+"/values").fails(t, http.StatusBadRequest, badData)
	}
}

func TestFormTooLarge(t *testing.T) {
	r := start(t, options{})
	got := r.post("/api/v1/query", url.Values{"query": {strings.Repeat("a", maxForm)}})
	got.fails(t, http.StatusRequestEntityTooLarge, badData)
	got = r.post("/api/v1/query", url.Values{"query": {"1"}, "more": {strings.Repeat(" ", maxForm/2)}})
	if got.status != http.StatusOK { // a space is one byte of the form
		t.Errorf("%d %.200s", got.status, got.body)
	}
}

// Expressions may be nested deeply; those that are too large are refused before anything goes down into them.
func TestDeepExpressions(t *testing.T) {
	r := start(t, options{})
	paths := []string{"/api/v1/query", "/api/v1/parse_query", "/api/v1/format_query", "/api/v1/query_exemplars"}
	for name, nested := range map[string]func(deep int) string{
		"brackets": func(deep int) string { return strings.Repeat("(", deep) + "1" + strings.Repeat(")", deep) },
		"signs":    func(deep int) string { return strings.Repeat("-", deep) + "up" },
		"a sum":    func(deep int) string { return strings.Repeat("1+", deep) + "1" },
		"words":    func(deep int) string { return strings.Repeat("a or ", deep) + "a" },
	} {
		for _, path := range paths {
			if got := r.post(path, url.Values{"query": {nested(300)}}); got.status != http.StatusOK {
				t.Errorf("%s, %s: %d %.200s", name, path, got.status, got.body)
			}
			r.post(path, url.Values{"query": {nested(maxWords)}}).fails(t, http.StatusBadRequest, badData)
			r.post(path, url.Values{"query": {"1" + strings.Repeat(" ", maxQuery)}}).fails(t, http.StatusBadRequest, badData)
		}
	}
	r.post("/api/v1/format_query", url.Values{"query": {strings.Repeat("1+", maxFormatted/2) + "1"}}).fails(t, http.StatusBadRequest, badData)
	// A long regular expression is no deep one.
	long := url.Values{"query": {`up{instance=~"` + strings.Repeat("a:9100|", 20_000) + `b"}`}}
	if got := r.post("/api/v1/query", long); got.status != http.StatusOK {
		t.Errorf("a long regular expression: %d %.200s", got.status, got.body)
	}
}

// The times that a query takes end where keys end.
func TestQueryTimeBounds(t *testing.T) {
	for text, ok := range map[string]bool{
		fmt.Sprint(int64(keys.FirstDay.Start()) / 1000):      true,
		fmt.Sprint(int64(keys.FirstDay.Start())/1000 - 1):    false,
		fmt.Sprint(int64((keys.LastDay+1).Start())/1000 - 1): true,
		fmt.Sprint(int64((keys.LastDay + 1).Start()) / 1000): false,
		"-292273086-05-16T16:47:06Z":                         false,
		"292277025-08-18T07:12:54.999999999Z":                false,
		"4":                                                  true,
	} {
		if _, err := queryTime(url.Values{"time": {text}}, "time"); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A report by a user of another store: a very large end changed the answer.
func TestSeriesOfATime(t *testing.T) {
	r := start(t, options{})
	yesterday := midnight - series.MillisPerDay
	r.write(http.StatusNoContent, with(named("old"), yesterday+series.MillisPerHour, 1), with(named("new"), yesterday+20*series.MillisPerHour, 1))
	const both = `{"status":"success","data":[{"__name__":"new"},{"__name__":"old"}]}`
	path := "/api/v1/series?match[]={__name__=~%22old|new%22}"
	if got := r.get(path); got.body != both {
		t.Errorf("of all that is retained: %s", got.body)
	}
	from := (yesterday + 19*series.MillisPerHour).Time().Format(time.RFC3339)
	to := r.get(path + "&start=" + from + "&end=" + noon.Format(time.RFC3339))
	if !strings.Contains(to.body, `{"__name__":"new"}`) {
		t.Errorf("up to now: %s", to.body)
	}
	for _, end := range []string{"9999-12-31T23:59:59Z", "292277025-08-18T07:12:54.999999999Z", "9223372036"} {
		if got := r.get(path + "&start=" + from + "&end=" + end); got.body != to.body {
			t.Errorf("up to %s: %s, up to now: %s", end, got.body, to.body)
		}
	}
}
