package web

import (
	"net/http"
	"strings"
	"testing"
)

const elsewhere = "https://grafana.example.com"

func TestCORS(t *testing.T) {
	for _, c := range []struct{ origins, origin, allowed string }{
		{".*", elsewhere, "*"},
		{".*", "", ""},
		{`https://(grafana|dashboards)\.example\.com`, elsewhere, elsewhere},
		{`https://(grafana|dashboards)\.example\.com`, elsewhere + ".evil.test", ""}, // for the whole origin
		{`https://(grafana|dashboards)\.example\.com`, "null", ""},
		{"https://a|https://b", "https://b", "https://b"},
		{"https://a|https://b", "https://b.test", ""},
		{"()", elsewhere, ""},
	} {
		t.Run(c.origins+" "+c.origin, func(t *testing.T) {
			r := start(t, options{origins: c.origins})
			for path, status := range map[string]int{
				"/api/v1/query?query=1": http.StatusOK, "/api/v1/query?query=(": http.StatusBadRequest,
				"/api/v1/nothing": http.StatusNotFound, "/api/v1/status/buildinfo": http.StatusOK,
			} {
				got := r.asks(http.MethodGet, path, c.origin)
				if got.status != status {
					t.Errorf("%s: %d", path, got.status)
				}
				checkCORS(t, got, c.origin, c.allowed)
			}
			got := r.asks(http.MethodOptions, "/api/v1/query_range", c.origin)
			if got.status != http.StatusNoContent || got.body != "" {
				t.Errorf("OPTIONS is answered with %d %q", got.status, got.body)
			}
			checkCORS(t, got, c.origin, c.allowed)
		})
	}
}

func (r *rig) asks(method, path, origin string) answer {
	r.t.Helper()
	request := r.request(method, path, nil)
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	return r.do(request)
}

func checkCORS(t *testing.T, got answer, origin, allowed string) {
	t.Helper()
	if vary := strings.Join(got.header.Values("Vary"), ","); !strings.Contains(vary, "Origin") {
		t.Errorf("Vary is %q", vary)
	}
	want := map[string]string{
		"Access-Control-Allow-Origin": allowed, "Access-Control-Allow-Headers": "", "Access-Control-Allow-Methods": "",
		"Access-Control-Expose-Headers": "",
	}
	if origin != "" {
		want["Access-Control-Allow-Headers"] = "Accept, Authorization, Content-Type, Origin"
		want["Access-Control-Allow-Methods"] = "GET, POST, OPTIONS"
		want["Access-Control-Expose-Headers"] = "Date"
	}
	for name, value := range want {
		if have := got.header.Get(name); have != value {
			t.Errorf("%s is %q, want %q", name, have, value)
		}
	}
	if got.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("answers may be read with the visitor's credentials")
	}
}

// No page of another origin is let in where one writes, nor where there is no API.
func TestNoCORSForWrites(t *testing.T) {
	r := start(t, options{})
	for path, status := range map[string]int{
		"/api/v1/write": http.StatusNoContent, "/api/v1/push": http.StatusNoContent, "/": http.StatusNoContent,
		"/api/v1": http.StatusNotFound, "/api/v1x/query": http.StatusNotFound,
	} {
		got := r.asks(http.MethodOptions, path, elsewhere)
		if got.status != status || got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("OPTIONS %s: %d %v", path, got.status, got.header)
		}
	}
}

// Where nothing is said of origins, none is let in.
func TestNoOrigins(t *testing.T) {
	r := start(t, options{noOrigins: true})
	if got := r.asks(http.MethodGet, "/api/v1/query?query=1", elsewhere); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", got.header)
	}
}

func TestCompileOrigins(t *testing.T) {
	if _, err := CompileOrigins("("); err == nil {
		t.Error("( is a regular expression")
	}
}
