package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client has a deadline so that a server that hangs fails a test early, with its log.
var client = http.Client{Timeout: time.Minute}

// api is the base URL of something that speaks Prometheus's HTTP API.
type api string

// point is one sample as a query answers it.
type point struct {
	T int64 // milliseconds
	V float64
}

// UnmarshalJSON reads [seconds, "value"].
func (p *point) UnmarshalJSON(b []byte) error {
	var at json.Number
	var value string
	if err := json.Unmarshal(b, &[]any{&at, &value}); err != nil {
		return err
	}
	seconds, err := at.Float64()
	if err != nil {
		return err
	}
	p.T = int64(math.Round(seconds * 1000))
	p.V, err = strconv.ParseFloat(value, 64)
	return err
}

// same tells whether two values are equal bit for bit. Payloads of NaN do not show in an answer: all NaN are the same.
func same(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

// samples are the points of each series, by its full selector.
type samples map[string][]point

// count is the number of points in all.
func (s samples) count() int {
	n := 0
	for _, points := range s {
		n += len(points)
	}
	return n
}

// selector writes labels as the PromQL that selects exactly the series which has them: name{a="1",b="2"}.
func selector(labels map[string]string) string {
	var b strings.Builder
	b.WriteString(labels["__name__"])
	b.WriteByte('{')
	sep := ""
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == "__name__" {
			continue
		}
		fmt.Fprintf(&b, "%s%s=%q", sep, name, labels[name])
		sep = ","
	}
	b.WriteByte('}')
	return b.String()
}

// raw reads all samples of a selector from the first to the last millisecond, both included.
func (a api) raw(t *testing.T, selector string, first, last int64) samples {
	t.Helper()
	// A range begins behind its left end.
	return a.query(t, fmt.Sprintf("%s[%dms]", selector, last-first+1), last)
}

// query evaluates an expression at a time in milliseconds. An instant vector gives one point a series.
func (a api) query(t *testing.T, expr string, at int64) samples {
	t.Helper()
	form := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at)/1000, 'f', 3, 64)}}
	res, err := client.PostForm(string(a)+"/api/v1/query", form)
	var data struct {
		ResultType string
		Result     []struct {
			Metric map[string]string
			Value  *point
			Values []point
		}
	}
	decode(t, "query "+expr, res, err, &data)
	got := make(samples, len(data.Result))
	for _, series := range data.Result {
		key := selector(series.Metric)
		if _, twice := got[key]; twice {
			t.Fatalf("query %s: %s is there twice", expr, key)
		}
		if series.Value != nil {
			series.Values = append(series.Values, *series.Value)
		}
		got[key] = series.Values
	}
	return got
}

// names gives all metric names, sorted.
func (a api) names(t *testing.T) []string {
	t.Helper()
	var names []string
	res, err := client.Get(string(a) + "/api/v1/label/__name__/values")
	decode(t, "metric names", res, err, &names)
	slices.Sort(names)
	return names
}

// chart is the answer of daybook's chart endpoint.
type chart struct {
	Span     string
	From, To int64
	Series   []struct {
		ID     string
		Labels map[string]string
		T      []int64
		V      []*float64
	}
	Cost struct {
		PointReads, RowsScanned, Bytes *int64
	}
}

// chart asks for the last 24 hours of what the selector selects.
func (a api) chart(t *testing.T, selector string) chart {
	t.Helper()
	var c chart
	res, err := client.Get(string(a) + "/api/v1/chart?" + url.Values{"match[]": {selector}, "span": {"24h"}}.Encode())
	decode(t, "chart of "+selector, res, err, &c)
	return c
}

// write posts a remote write request as it stands and gives the status with what the answer says.
func (a api) write(t *testing.T, header map[string]string, body []byte) (status int, text string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, string(a)+"/api/v1/write", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("remote write: %v", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("remote write: %v", err)
	}
	return res.StatusCode, string(answer)
}

// ready is nil when the server says that it is.
func (a api) ready() error {
	res, err := client.Get(string(a) + "/-/ready")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("/-/ready: %s", res.Status)
	}
	return nil
}

// decode reads the data of a successful answer of the API.
func decode(t *testing.T, what string, res *http.Response, err error, data any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	answer := struct {
		Status string
		Data   any
	}{Data: data}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %s: %v: %.300s", what, res.Status, err, body)
	}
	if res.StatusCode != http.StatusOK || answer.Status != "success" {
		t.Fatalf("%s: %s: %.300s", what, res.Status, body)
	}
}
