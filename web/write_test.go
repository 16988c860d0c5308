package web

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

func one(value float64) prompb.TimeSeries { return with(named("ok", "job", "t"), midnight, value) }

func TestWriteHeaders(t *testing.T) {
	r := start(t, options{})
	good := body(t, one(1))
	const protobuf = "application/x-protobuf"
	for _, c := range []struct {
		name, contentType, encoding string
		status                      int
	}{
		{"as the specification says", protobuf, "snappy", 204},
		{"message 1.0", protobuf + ";proto=prometheus.WriteRequest", "snappy", 204},
		{"message 1.0, with a space", protobuf + "; proto=prometheus.WriteRequest", "snappy", 204},
		{"in capitals", "Application/X-Protobuf", "SNAPPY", 204},
		{"without a type", "", "snappy", 204},
		{"without an encoding", protobuf, "", 204},
		{"message 1.0, quoted", protobuf + `;proto="prometheus.WriteRequest"`, "snappy", 204},
		{"another parameter", protobuf + ";charset=utf-8", "snappy", 204},
		{"another message", protobuf + ";proto=some.Other", "snappy", 415},
		{"another message, quoted", protobuf + `;proto="some.Other"`, "snappy", 415},
		{"no message", protobuf + ";proto=", "snappy", 415},
		{"no message, quoted", protobuf + `;proto=""`, "snappy", 415},
		{"two messages", protobuf + ";proto=prometheus.WriteRequest;proto=io.prometheus.write.v2.Request", "snappy", 415},
		{"a message in capitals", protobuf + ";proto=Prometheus.WriteRequest", "snappy", 415},
		{"a parameter that is none", protobuf + "; =x", "snappy", 415},
		{"zstd", protobuf, "zstd", 415},
		{"gzip", protobuf, "gzip", 415},
		{"two encodings", protobuf, "gzip, snappy", 415},
		{"JSON", "application/json", "snappy", 415},
		{"a form", "application/x-www-form-urlencoded", "", 415},
		{"no type at all", "; proto", "snappy", 415},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := r.writeRequest("/api/v1/write", bytes.NewReader(good))
			request.Header.Del("Content-Type")
			request.Header.Del("Content-Encoding")
			if c.contentType != "" {
				request.Header.Set("Content-Type", c.contentType)
			}
			if c.encoding != "" {
				request.Header.Set("Content-Encoding", c.encoding)
			}
			got := r.do(request)
			if got.status != c.status {
				t.Fatalf("answered with %d %s, want %d", got.status, got.body, c.status)
			}
			if c.status != http.StatusNoContent {
				got.fails(t, c.status, badData)
			} else if got.body != "" {
				t.Errorf("204 has a body: %q", got.body)
			}
		})
	}
}

func TestWriteAlias(t *testing.T) {
	r := start(t, options{})
	if got := r.do(r.writeRequest("/api/v1/push", bytes.NewReader(body(t, one(1))))); got.status != http.StatusNoContent {
		t.Fatalf("answered with %d %s", got.status, got.body)
	}
	if got := r.get("/api/v1/query?query=ok&time=2026-11-03T00:00:00Z"); !strings.Contains(got.body, `"1"`) {
		t.Errorf("what was pushed is not there: %s", got.body)
	}
}

func TestWriteMethods(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			r := start(t, options{page: page})
			for _, path := range []string{"/api/v1/write", "/api/v1/push"} {
				for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
					got := r.do(r.request(method, path, nil))
					got.fails(t, http.StatusMethodNotAllowed, badData)
					if allow := got.header.Get("Allow"); !strings.Contains(allow, http.MethodPost) || strings.Contains(allow, method) {
						t.Errorf("%s %s: Allow: %q", method, path, allow)
					}
				}
			}
		})
	}
}

func TestWriteTooLarge(t *testing.T) {
	r := start(t, options{})
	large := bytes.Repeat([]byte{1}, maxBody+1)
	t.Run("declared", func(t *testing.T) {
		got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(large)))
		if text := got.fails(t, http.StatusRequestEntityTooLarge, badData); !strings.Contains(text, "ingest.max_body") {
			t.Errorf("the answer names no setting: %s", text)
		}
	})
	t.Run("chunked", func(t *testing.T) {
		got := r.do(r.writeRequest("/api/v1/write", struct{ io.Reader }{bytes.NewReader(large)}))
		got.fails(t, http.StatusRequestEntityTooLarge, badData)
	})
	t.Run("as large as may be", func(t *testing.T) {
		got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(large[:maxBody])))
		got.fails(t, http.StatusBadRequest, badData) // it is no snappy
	})
	t.Run("declared to become too large", func(t *testing.T) {
		bomb := append(binary.AppendUvarint(nil, maxDecoded+1), 0)
		got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(bomb)))
		got.fails(t, http.StatusRequestEntityTooLarge, badData)
	})
	t.Run("becomes too large", func(t *testing.T) {
		got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(snappy.Encode(nil, make([]byte, maxDecoded+1)))))
		got.fails(t, http.StatusRequestEntityTooLarge, badData)
	})
}

func TestWriteBadMessages(t *testing.T) {
	r := start(t, options{})
	for name, text := range map[string]string{
		"nothing at all":      "",
		"no snappy":           "\xff\xff\xff\xff\xff\xff",
		"cut short":           string(body(t, one(1))[:10]),
		"no protobuf":         string(snappy.Encode(nil, []byte("\x0a\xff{}"))),
		"a length over 4 GiB": "\xff\xff\xff\xff\xff\xff\xff\xff\x01",
	} {
		t.Run(name, func(t *testing.T) {
			r.do(r.writeRequest("/api/v1/write", strings.NewReader(text))).fails(t, http.StatusBadRequest, badData)
		})
	}
	t.Run("an empty request", func(t *testing.T) {
		if got := r.do(r.writeRequest("/api/v1/write", strings.NewReader("\x00"))); got.status != http.StatusNoContent {
			t.Errorf("answered with %d %s", got.status, got.body)
		}
	})
}

// The good rest of a request is kept, and the answer names the bad, whatever bytes it is made of.
func TestWriteRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		bad  prompb.TimeSeries
		says string
	}{
		"not UTF-8":           {named("m", "a", "x\xff\xfey"), `the value of label "a" is not valid UTF-8`},
		"a name not UTF-8":    {named("m", "a\xff", "x"), "is not valid UTF-8"},
		"a metric not UTF-8":  {named("m\xff"), "is not valid UTF-8"},
		"an overlong NUL":     {named("m", "a", "\xc0\x80"), "is not valid UTF-8"},
		"a surrogate":         {named("m", "a", "\xed\xa0\x80"), "is not valid UTF-8"},
		"a long one, cut":     {named("m", "a", strings.Repeat("é", 100)+"\xff"), "is not valid UTF-8"},
		"a repeated name":     {named("m", "a", "1", "a", "2"), `the label name "a" is repeated`},
		"an empty name":       {named("m", "", "1"), "a label has an empty name"},
		"no metric name":      {named(""), "metric name"},
		"a quote and a break": {named("m", "a", "\"\n\x00\xff"), "is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, options{})
			text := r.write(http.StatusBadRequest, with(c.bad, midnight, 2), one(1)).fails(t, http.StatusBadRequest, badData)
			if !strings.Contains(text, c.says) {
				t.Errorf("the answer is %q, want %q in it", text, c.says)
			}
			if got := r.get("/api/v1/query?query=count({__name__!=%22%22})&time=2026-11-03T00:00:00Z"); !strings.Contains(got.body, `"1"]`) {
				t.Errorf("not just the good series is there: %s", got.body)
			}
		})
	}
}

func TestWriteUnavailable(t *testing.T) {
	t.Run("the log is full", func(t *testing.T) {
		r := start(t, options{maxLog: 100})
		r.write(http.StatusNoContent, one(1))
		got := r.write(http.StatusServiceUnavailable, with(named("ok", "job", "t"), midnight+1, 2))
		got.fails(t, http.StatusServiceUnavailable, unavailable)
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	})
	t.Run("the disk is full, and has room again", func(t *testing.T) {
		r := start(t, options{})
		r.mu.Lock()
		r.err = errors.New("no room: make some")
		r.mu.Unlock()
		got := r.write(http.StatusServiceUnavailable, one(1))
		if text := got.fails(t, http.StatusServiceUnavailable, unavailable); !strings.Contains(text, "make some") || got.header.Get("Retry-After") == "" {
			t.Errorf("answered with %v %s", got.header, got.body)
		}
		r.mu.Lock()
		r.err = nil
		r.mu.Unlock()
		r.write(http.StatusNoContent, one(1))
	})
	t.Run("before Ready", func(t *testing.T) {
		r := start(t, options{notReady: true})
		got := r.write(http.StatusServiceUnavailable, one(1))
		got.fails(t, http.StatusServiceUnavailable, unavailable)
		if got.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		r.server.Ready(r.backend)
		r.write(http.StatusNoContent, one(1))
	})
}

// A body is read whole, whatever pieces it comes in, and the memory taken follows what came.
func TestBodyInPieces(t *testing.T) {
	r := start(t, options{})
	whole := body(t, one(1))
	reader, writer := io.Pipe()
	go func() {
		for _, b := range whole {
			_, _ = writer.Write([]byte{b})
		}
		writer.Close()
	}()
	if got := r.do(r.writeRequest("/api/v1/write", reader)); got.status != http.StatusNoContent {
		t.Errorf("answered with %d %s", got.status, got.body)
	}
}
