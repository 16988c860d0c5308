package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

var builtForTests = fstest.MapFS{
	"index.html":            {Data: []byte("<!doctype html><title>daybook</title>" + strings.Repeat(" ", 2000))},
	"robots.txt":            {Data: []byte("User-agent: *\n")},
	".gitkeep":              {},
	"assets/main-abc12.js":  {Data: []byte("console.log(1)//" + strings.Repeat("x", 4000))},
	"assets/main-abc12.css": {Data: []byte("body{}")},
}

var pages = map[string]fstest.MapFS{"with a page": builtForTests, "without a page": {}}

func TestPage(t *testing.T) {
	r := start(t, options{page: builtForTests})
	for _, c := range []struct{ path, contentType, cache, begins string }{
		{"/", "text/html; charset=UTF-8", "no-cache", "<!doctype html>"},
		{"/?q=up", "text/html; charset=UTF-8", "no-cache", "<!doctype html>"},
		{"/robots.txt", "text/plain; charset=utf-8", "no-cache", "User-agent"},
		{"/assets/main-abc12.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", "console"},
		{"/assets/main-abc12.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable", "body"},
	} {
		got := r.get(c.path)
		if got.status != http.StatusOK || !strings.HasPrefix(got.body, c.begins) {
			t.Errorf("%s: %d %.80s", c.path, got.status, got.body)
		}
		for header, want := range map[string]string{
			"Content-Type": c.contentType, "Cache-Control": c.cache, "Content-Security-Policy": contentPolicy,
			"Referrer-Policy": "no-referrer",
		} {
			if got := got.header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", c.path, header, got, want)
			}
		}
	}
	if got := r.get("/index.html"); got.status != http.StatusMovedPermanently || got.header.Get("Location") != "./" {
		t.Errorf("/index.html: %d %v", got.status, got.header)
	}
}

func TestUnknownPaths(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			r := start(t, options{page: page})
			for _, path := range []string{
				"/assets/nothing.js", "/assets/", "/assets", "/.gitkeep", "/nothing", "/api/v1/nothing", "/api/v2/query",
				"/assets/../index.html", "/assets/%2e%2e/index.html", "/api/v1/label/a/b/values",
			} {
				got := r.get(path)
				got.fails(t, http.StatusNotFound, notFound)
				if got.header.Get("Cache-Control") != "" {
					t.Errorf("%s: a 404 is cached: %v", path, got.header)
				}
			}
			if r.counted("none", "404")+r.counted("/assets/*", "404") == 0 {
				t.Error("unknown paths are not counted under a name of their own")
			}
		})
	}
}

func TestNoPage(t *testing.T) {
	r := start(t, options{})
	got := r.get("/")
	if got.status != http.StatusOK || !strings.Contains(got.body, "make build") || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
}

// What is in the binary is served by default, built or not.
func TestBuiltPage(t *testing.T) {
	if builtPage() == nil {
		t.Fatal("no files")
	}
}

func TestGzip(t *testing.T) {
	r := start(t, options{page: builtForTests})
	for _, path := range []string{"/", "/assets/main-abc12.js", "/metrics", "/api/v1/query?query=" + long} {
		for accept, want := range map[string]string{
			"gzip": "gzip", "gzip, zstd": "gzip", "deflate, gzip;q=0.5": "gzip",
			"": "", "deflate": "", "gzip;q=0": "", "identity, gzip; q=0.0": "",
		} {
			request := r.request(http.MethodGet, path, nil)
			if accept != "" {
				request.Header.Set("Accept-Encoding", accept)
			}
			got := r.do(request)
			if path == "/metrics" && (accept == "gzip, zstd" || strings.Contains(accept, "q=0")) {
				continue // the client library's own choice
			}
			if encoding := strings.Join(got.header["Content-Encoding"], "+"); encoding != want {
				t.Errorf("%.30s, Accept-Encoding %q: Content-Encoding is %q", path, accept, encoding)
			}
			plain := got.body
			if want == "gzip" {
				plain = unzip(t, got.body)
			}
			if strings.HasPrefix(plain, "\x1f\x8b") || len(plain) < 1024 {
				t.Errorf("%.30s, Accept-Encoding %q: %.20q", path, accept, plain)
			}
			varies := "Accept-Encoding"
			if strings.HasPrefix(path, "/api/") {
				varies = "Origin, Accept-Encoding"
			}
			if vary := strings.Join(got.header.Values("Vary"), ", "); path != "/metrics" && vary != varies {
				t.Errorf("%.30s, Accept-Encoding %q: Vary is %q", path, accept, vary)
			}
			if length := got.header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(got.body)) {
				t.Errorf("%.30s, Accept-Encoding %q: Content-Length is %s of %d", path, accept, length, len(got.body))
			}
		}
	}
}

// long is a query with an answer that is worth compressing.
var long = "%22" + strings.Repeat("a", 2000) + "%22"

func unzip(t *testing.T, text string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}
