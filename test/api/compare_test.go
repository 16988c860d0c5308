package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A probe is a request to both.
type probe struct {
	method, path string
	form         url.Values
	ordered      bool // the order of a vector counts
}

func (p probe) String() string {
	text := p.method + " " + p.path
	if len(p.form) > 0 {
		query, err := url.QueryUnescape(p.form.Encode())
		if err != nil {
			query = p.form.Encode()
		}
		text += "?" + query
	}
	return text
}

// get is a probe with parameters written as name=value.
func get(path string, params ...string) probe {
	return probe{http.MethodGet, path, formOf(params), false}
}

func post(path string, params ...string) probe {
	return probe{http.MethodPost, path, formOf(params), false}
}

func (p probe) inOrder() probe { p.ordered = true; return p }

func formOf(params []string) url.Values {
	form := url.Values{}
	for _, one := range params {
		name, value, _ := strings.Cut(one, "=")
		form.Add(name, value)
	}
	return form
}

// reply is what counts of an answer.
type reply struct {
	Status      int
	ContentType string
	Body        any
}

var client = http.Client{Timeout: time.Minute}

func (p probe) ask(t *testing.T, base string) reply {
	t.Helper()
	address, body := base+p.path, io.Reader(nil)
	if p.method == http.MethodPost {
		body = strings.NewReader(p.form.Encode())
	} else if len(p.form) > 0 {
		address += "?" + p.form.Encode()
	}
	request, err := http.NewRequestWithContext(t.Context(), p.method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	r := reply{Status: response.StatusCode}
	r.ContentType, _, _ = mime.ParseMediaType(response.Header.Get("Content-Type"))
	if r.ContentType != "application/json" {
		r.Body = string(text)
		return r
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&r.Body); err != nil {
		t.Fatalf("%v: %v in %.300s", p, err, text)
	}
	p.settle(r.Body)
	return r
}

// settle takes out of an answer what may differ: how long things took, and the order of what has none.
func (p probe) settle(body any) {
	all, ok := body.(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"warnings", "infos"} {
		sortJSON(all[name])
	}
	switch data := all["data"].(type) {
	case []any:
		if !p.ordered {
			sortJSON(data)
		}
	case map[string]any:
		if stats, ok := data["stats"].(map[string]any); ok {
			delete(stats, "timings")
		}
		if data["resultType"] == "matrix" || data["resultType"] == "vector" && !p.ordered {
			sortJSON(data["result"])
		}
	}
}

// sortJSON sorts a list by the text of what is in it.
func sortJSON(list any) {
	all, ok := list.([]any)
	if !ok {
		return
	}
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(text(a), text(b)) })
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// sameAs compares all but the words of errors, where these are said to differ.
func (r reply) sameAs(other reply, wording bool) bool {
	if wording {
		r.Body, other.Body = withoutWords(r.Body), withoutWords(other.Body)
	}
	return reflect.DeepEqual(r, other)
}

func withoutWords(body any) any {
	all, ok := body.(map[string]any)
	if !ok {
		return body
	}
	copied := map[string]any{}
	for name, v := range all {
		if name != "error" {
			copied[name] = v
		}
	}
	return copied
}

// TestSameAnswers is the test: each probe is answered alike, or is in one of the lists of what differs on purpose. What
// is listed must differ.
func TestSameAnswers(t *testing.T) {
	ours, theirs := startDaybook(t), startPrometheus(t)
	listed := map[string]bool{}
	for _, p := range probes() {
		name := p.String()
		if listed[name] {
			t.Errorf("%s is asked twice", name)
		}
		listed[name] = true
		a, b := p.ask(t, ours), p.ask(t, theirs)
		_, differs := differences[name]
		_, otherWords := words[name]
		same, alike := a.sameAs(b, false), a.sameAs(b, true)
		switch {
		case differs && alike:
			t.Errorf("%s is listed among the differences, and does not differ", name)
		case otherWords && same:
			t.Errorf("%s is listed as answered in other words, and is not", name)
		case !differs && !otherWords && !same, otherWords && !alike:
			t.Errorf("%s\ndaybook    %d %s %s\nPrometheus %d %s %s", name,
				a.Status, a.ContentType, short(text(a.Body)), b.Status, b.ContentType, short(text(b.Body)))
		}
	}
	if len(listed) < 100 {
		t.Errorf("only %d probes", len(listed))
	}
	for _, list := range []map[string]string{differences, words} {
		for name := range list {
			if !listed[name] {
				t.Errorf("%s is in a list of what differs, and is not asked", name)
			}
		}
	}
}

func short(s string) string {
	const most = 1500
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
