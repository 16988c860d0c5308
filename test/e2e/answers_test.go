package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// answer is what a server answered, as JSON.
type answer struct {
	code      int
	Status    string
	ErrorType string
	Error     string
	Warnings  []string
	Infos     []string
	Data      any
	body      []byte
}

// ask sends the parameters as a form.
func (a api) ask(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	res, err := client.PostForm(string(a)+path, form)
	return readAnswer(t, path, res, err)
}

// get sends the parameters in the address.
func (a api) get(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	res, err := client.Get(string(a) + path + "?" + form.Encode())
	return readAnswer(t, path, res, err)
}

func readAnswer(t *testing.T, path string, res *http.Response, err error) answer {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer res.Body.Close()
	got := answer{code: res.StatusCode}
	if got.body, err = io.ReadAll(res.Body); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	d := json.NewDecoder(bytes.NewReader(got.body))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatalf("%s: %s: %v: %.300s", path, res.Status, err, got.body)
	}
	slices.Sort(got.Warnings)
	slices.Sort(got.Infos)
	return got
}

// comparison says how two answers may differ.
type comparison struct {
	ordered bool // the order of a vector's values counts: the query sorts them
	summed  bool // the query adds up several series, whose order is open: floats may differ in the last digits
	zeros   bool // the query looks for the least or the greatest of several series: of 0 and -0 the first one stays
}

// difference says where two answers differ, "" where they do not.
func (c comparison) difference(got, want answer) string {
	switch {
	case got.code != want.code:
		return fmt.Sprintf("status %d for %d", got.code, want.code)
	case got.Status != want.Status || got.ErrorType != want.ErrorType:
		return fmt.Sprintf("%s %s for %s %s", got.Status, got.ErrorType, want.Status, want.ErrorType)
	case plainError(got.Error) != plainError(want.Error):
		return fmt.Sprintf("error %q for %q", got.Error, want.Error)
	case !slices.Equal(got.Warnings, want.Warnings):
		return fmt.Sprintf("warnings %q for %q", got.Warnings, want.Warnings)
	case !slices.Equal(got.Infos, want.Infos):
		return fmt.Sprintf("infos %q for %q", got.Infos, want.Infos)
	}
	c.sortResult(got.Data)
	c.sortResult(want.Data)
	return c.values("data", got.Data, want.Data)
}

// plainError leaves out of an error the series that it names: where several are at fault it is open which come first.
func plainError(text string) string {
	if before, _, found := strings.Cut(text, "{"); found && strings.Contains(text, "match group") {
		return before
	}
	return text
}

// sortResult sorts a vector by labels, where the query sorts it only what has the same value. (A matrix is sorted
// already, on both sides, and must be.)
func (c comparison) sortResult(data any) {
	object, _ := data.(map[string]any)
	if object["resultType"] != "vector" {
		return
	}
	list, _ := object["result"].([]any)
	for len(list) > 0 {
		n := len(list)
		if c.ordered {
			n = 1
			for n < len(list) && valueOf(list[n]) == valueOf(list[0]) {
				n++
			}
		}
		slices.SortFunc(list[:n], func(a, b any) int { return strings.Compare(metricOf(a), metricOf(b)) })
		list = list[n:]
	}
}

// valueOf gives the value of one item of a vector as text.
func valueOf(item any) string {
	object, _ := item.(map[string]any)
	pair, _ := object["value"].([]any)
	return fmt.Sprint(pair...)
}

// metricOf gives the labels of one item of a result as text.
func metricOf(item any) string {
	object, _ := item.(map[string]any)
	text, err := json.Marshal(object["metric"]) // sorted by name
	if err != nil {
		panic(err) // it came out of JSON
	}
	return string(text)
}

// values says where two values differ. at is where they stand.
func (c comparison) values(at string, got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(got) != len(want) {
			return unlike(at, got, want)
		}
		for name := range want {
			inner := c
			inner.summed, inner.zeros = c.summed && name != "metric", c.zeros && name != "metric"
			if said := inner.values(at+"."+name, got[name], want[name]); said != "" {
				return said
			}
		}
		return ""
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			return unlike(at, got, want)
		}
		for i := range want {
			if said := c.values(fmt.Sprintf("%s[%d]", at, i), got[i], want[i]); said != "" {
				return said
			}
		}
		return ""
	case string:
		if got, ok := got.(string); ok && (got == want || c.summed && near(got, want) || c.zeros && zero(got) && zero(want)) {
			return ""
		}
	case json.Number: // as a number: trailing zeros do not count
		if got, ok := got.(json.Number); ok && sameNumber(got, want) {
			return ""
		}
	default:
		if got == want {
			return ""
		}
	}
	return unlike(at, got, want)
}

func sameNumber(a, b json.Number) bool {
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

func unlike(at string, got, want any) string {
	return fmt.Sprintf("%s is %.200s for %.200s", at, fmt.Sprint(got), fmt.Sprint(want))
}

func zero(text string) bool { return text == "0" || text == "-0" }

// tolerance is how far floats may be apart, relative to their size, that are sums of floats in an order which is open.
const tolerance = 1e-12

// near tells whether two texts are floats that differ in their last digits only.
func near(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return false
	}
	return math.Abs(x-y) <= tolerance*max(math.Abs(x), math.Abs(y))
}
