package web

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

const contentTypeV2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"

// v2 makes requests of version 2.0.
type v2 struct {
	symbols writev2.SymbolsTable
	request writev2.Request
}

func newV2() *v2 { return &v2{symbols: writev2.NewSymbolTable()} }

// add adds a series of the labels, with samples 15 s apart from midnight on.
func (r *v2) add(labels []string, values ...float64) *writev2.TimeSeries {
	var ts writev2.TimeSeries
	for _, text := range labels {
		ts.LabelsRefs = append(ts.LabelsRefs, r.symbols.Symbolize(text))
	}
	for i, v := range values {
		ts.Samples = append(ts.Samples, writev2.Sample{Timestamp: int64(midnight) + int64(i)*15_000, Value: v})
	}
	r.request.Timeseries = append(r.request.Timeseries, ts)
	return &r.request.Timeseries[len(r.request.Timeseries)-1]
}

func (r *v2) body(t *testing.T) []byte {
	t.Helper()
	r.request.Symbols = r.symbols.Symbols()
	b, err := r.request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, b)
}

// writeV2 sends a body as remote write 2.0 does.
func (r *rig) writeV2(body io.Reader) answer {
	r.t.Helper()
	request := r.writeRequest("/api/v1/write", body)
	request.Header.Set("Content-Type", contentTypeV2)
	request.Header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	return r.do(request)
}

// wrote checks what an answer says was stored: samples, histograms, exemplars.
func (a answer) wrote(t *testing.T, status int, want string) {
	t.Helper()
	got := fmt.Sprint(a.header[samplesWritten], a.header[histogramsWritten], a.header[exemplarsWritten])
	if a.status != status || got != want {
		t.Errorf("answered with %d %s, written %s; want %d, %s", a.status, a.body, got, status, want)
	}
}

var control = []string{"__name__", "ok", "job", "t"}

func nativeHistogram(count uint64) writev2.Histogram {
	return writev2.Histogram{
		Count: &writev2.Histogram_CountInt{CountInt: count}, Sum: 9, Schema: 3, Timestamp: int64(midnight),
		ZeroCount: &writev2.Histogram_ZeroCountInt{}, PositiveSpans: []writev2.BucketSpan{{Length: 2}}, PositiveDeltas: []int64{1, 1},
	}
}

// The content type is read as RFC 9110 says: none of its forms turns 2.0 into 1.0.
func TestWriteV2ContentType(t *testing.T) {
	r := start(t, options{})
	request := newV2()
	request.add(control, 1)
	good := request.body(t)
	for contentType, status := range map[string]int{
		contentTypeV2: 204,
		"application/x-protobuf; proto=io.prometheus.write.v2.Request":              204,
		"application/x-protobuf ;\tproto=io.prometheus.write.v2.Request":            204,
		`application/x-protobuf;proto="io.prometheus.write.v2.Request"`:             204,
		"Application/X-Protobuf;PROTO=io.prometheus.write.v2.Request":               204,
		"application/x-protobuf;charset=utf-8;proto=io.prometheus.write.v2.Request": 204,
		"application/x-protobuf;proto=io.prometheus.write.v2.Request;":              204,
		"application/x-protobuf;proto=io.prometheus.write.v2.request":               415,
		"application/x-protobuf;proto=io.prometheus.write.v3.Request":               415,
		"application/x-protobuf;proto = io.prometheus.write.v2.Request":             204,
		"application/x-protobuf,proto=io.prometheus.write.v2.Request":               415,
		"application/json;proto=io.prometheus.write.v2.Request":                     415,
		"application/x-protobuf":                               400, // of 1.0, which it is not
		"application/x-protobuf;proto=prometheus.WriteRequest": 400,
	} {
		t.Run(contentType, func(t *testing.T) {
			request := r.writeRequest("/api/v1/write", bytes.NewReader(good))
			request.Header.Set("Content-Type", contentType)
			got := r.do(request)
			if status == http.StatusNoContent {
				got.wrote(t, status, "[1] [0] [0]")
				return
			}
			got.fails(t, status, badData)
			if _, ok := got.header[samplesWritten]; ok {
				t.Error("a header says what 2.0 has written")
			}
		})
	}
	for _, encoding := range []string{"zstd", "gzip", "snappy, gzip"} {
		request := r.writeRequest("/api/v1/write", bytes.NewReader(good))
		request.Header.Set("Content-Type", contentTypeV2)
		request.Header.Set("Content-Encoding", encoding)
		r.do(request).fails(t, http.StatusUnsupportedMediaType, badData)
	}
}

// opentelemetry-collector-contrib#50340: the headers say what was stored, with 204 and with 400, and of what was there
// already, too.
func TestWriteV2Headers(t *testing.T) {
	r := start(t, options{})
	bad := newV2()
	good := bad.add([]string{"__name__", "good"}, 1, 2)
	good.Exemplars = []writev2.Exemplar{{Timestamp: int64(midnight), Value: 1, LabelsRefs: []uint32{bad.symbols.Symbolize("trace_id"), bad.symbols.Symbolize("abc")}}}
	bad.add([]string{"__name__", "repeated", "a", "1", "a", "2"}, 3)
	bad.add([]string{"__name__", "counted"}).Histograms = []writev2.Histogram{nativeHistogram(7)}
	all := newV2()
	all.add([]string{"__name__", "native"}).Histograms = []writev2.Histogram{nativeHistogram(3)}
	all.add(control, 1)
	for range 2 { // a resend is as good as the first
		got := r.writeV2(bytes.NewReader(bad.body(t)))
		got.wrote(t, http.StatusBadRequest, "[2] [0] [1]")
		text := got.fails(t, http.StatusBadRequest, badData)
		for _, part := range []string{`"a" is repeated`, "counted", "should equal"} {
			if !strings.Contains(text, part) {
				t.Errorf("the answer does not say %s: %s", part, text)
			}
		}
		r.writeV2(bytes.NewReader(all.body(t))).wrote(t, http.StatusNoContent, "[1] [1] [0]")
	}
	r.writeV2(strings.NewReader("\x00")).wrote(t, http.StatusNoContent, "[0] [0] [0]")
	if got := r.get("/api/v1/query?query=good[1h]&time=2026-11-03T00:01:00Z"); !strings.Contains(got.body, `"1"`) || !strings.Contains(got.body, `"2"`) {
		t.Errorf("the good samples are not there: %s", got.body)
	}
	answered := r.write(http.StatusNoContent, one(1))
	if _, ok := answered.header[samplesWritten]; ok {
		t.Error("an answer to 1.0 has the headers of 2.0")
	}
}

// Whatever is wrong with a request as a whole, nothing of it is said to be written.
func TestWriteV2Refused(t *testing.T) {
	r := start(t, options{})
	request := newV2()
	request.add(control, 1)
	request.request.Symbols = append([]string{"not empty"}, request.symbols.Symbols()[1:]...)
	b, err := request.request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	wide := newV2()
	for i := range 300 {
		wide.add([]string{"__name__", "wide", "i", fmt.Sprint(i), "long", strings.Repeat("x", 2000)}, 1)
	}
	for name, c := range map[string]struct {
		body   []byte
		status int
	}{
		"nothing at all":             {nil, 400},
		"no snappy":                  {[]byte("no snappy"), 400},
		"no protobuf":                {snappy.Encode(nil, []byte("\x2a\xff{}")), 400},
		"the first symbol":           {snappy.Encode(nil, b), 400},
		"a message of 1.0":           {body(t, one(1)), 400},
		"too large":                  {make([]byte, maxBody+1), 413},
		"too large, decompressed":    {snappy.Encode(nil, make([]byte, maxDecoded+1)), 413},
		"too large when written out": {wide.body(t), 413},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.writeV2(bytes.NewReader(c.body))
			got.wrote(t, c.status, "[0] [0] [0]")
			got.fails(t, c.status, badData)
		})
	}
	r.mu.Lock()
	r.err = io.ErrShortWrite
	r.mu.Unlock()
	got := r.writeV2(bytes.NewReader(newV2().body(t)))
	got.fails(t, http.StatusServiceUnavailable, unavailable)
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// prometheus#17247: a series with exemplars alone is one whose exemplars are stored; real senders send them so.
func TestWriteV2ExemplarsOnly(t *testing.T) {
	r := start(t, options{})
	request := newV2()
	request.add(control).Exemplars = []writev2.Exemplar{{Timestamp: int64(midnight), Value: 1}}
	r.writeV2(bytes.NewReader(request.body(t))).wrote(t, http.StatusNoContent, "[0] [0] [1]")
	empty := newV2()
	empty.add(control)
	r.writeV2(bytes.NewReader(empty.body(t))).wrote(t, http.StatusNoContent, "[0] [0] [0]")
}

// What is wrong in 1.0 is said in 1.0: histograms without bounds for their own buckets, exemplars that are too long.
func TestWriteRefusesOtherKinds(t *testing.T) {
	r := start(t, options{})
	native, long := named("native"), named("long")
	native.Histograms = []prompb.Histogram{{
		Count: &prompb.Histogram_CountInt{CountInt: 6}, Sum: 9, Schema: -53, Timestamp: int64(midnight),
		PositiveSpans: []prompb.BucketSpan{{Length: 3}}, PositiveDeltas: []int64{1, 1, 1},
	}}
	long.Exemplars = []prompb.Exemplar{{Timestamp: int64(midnight), Labels: []prompb.Label{{Name: "trace_id", Value: strings.Repeat("x", 200)}}}}
	message, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{native, long, one(1)}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(snappy.Encode(nil, message))))
	text := got.fails(t, http.StatusBadRequest, badData)
	for _, part := range []string{"native", "custom", "long", "128 characters"} {
		if !strings.Contains(text, part) {
			t.Errorf("the answer does not say %s: %s", part, text)
		}
	}
	if got := r.get("/api/v1/query?query=ok&time=2026-11-03T00:00:00Z"); !strings.Contains(got.body, `"1"`) {
		t.Errorf("the good sample is not there: %s", got.body)
	}
}
