package web

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	"google.golang.org/protobuf/encoding/protowire"

	"daybook/ingest"
	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/internal/table"
	"daybook/internal/table/embedded"
	"daybook/internal/table/tabletest"
	"daybook/keys"
	"daybook/query"
	"daybook/rollup"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is the time that it is in these tests, and midnight the begin of that day.
var (
	noon     = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	midnight = series.MillisOf(noon).Day().Start()
)

const (
	maxBody    = 64 << 10
	maxDecoded = 256 << 10

	maxReadSamples = 1000
	frameSize      = 1 << 10
)

var about = About{
	Version: "v1.2.3", Revision: "abc", Branch: "main", BuildDate: "2026-11-01T00:00:00Z",
	Started: noon.Add(-time.Hour), Retention: 400 * 24 * time.Hour,
	Settings: []Setting{{"listen", "127.0.0.1:9201"}, {"query.max_samples", 50_000}, {"query.timeout", "1m"}, {"web.cors_origin", "a\\b\"c"}},
	Flags:    map[string]string{"query.timeout": "1m", "query.lookback-delta": "5m"},
}

// rig is a Server on a listener of its own, in front of everything that is behind it in the program.
type rig struct {
	t        *testing.T
	server   *Server
	backend  *Backend
	registry *prometheus.Registry
	table    *tabletest.FaultyService
	log      *safeBuffer
	url      string

	mu  sync.Mutex
	err error // of the disk
}

type options struct {
	page      fstest.MapFS
	origins   string // of pages that may read answers; "" for .*
	noOrigins bool   // nothing is said of them
	notReady  bool
	maxLog    int64
	patience  time.Duration
	maxSeries int
}

func start(t *testing.T, o options) *rig {
	t.Helper()
	r := &rig{t: t, registry: prometheus.NewRegistry(), log: new(safeBuffer)}
	logger := slog.New(slog.NewTextHandler(r.log, nil))
	now := func() time.Time { return noon }
	if o.page == nil {
		o.page = fstest.MapFS{}
	}
	if o.origins == "" {
		o.origins = ".*"
	}
	origins, err := CompileOrigins(o.origins)
	if err != nil {
		t.Fatal(err)
	}
	if o.noOrigins {
		origins = nil
	}
	r.server = New(Config{
		MaxBody: maxBody, Registry: r.registry, Logger: logger, Now: now, Page: o.page,
		Origins: origins, MaxReadSamples: maxReadSamples, MaxReadFrame: frameSize, About: about,
	})
	if o.patience > 0 {
		r.server.patience = o.patience
	}
	r.backend = r.open(o, logger, now)
	if !o.notReady {
		r.server.Ready(r.backend)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(listener) }()
	t.Cleanup(func() {
		r.stop()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return r
}

// open makes what requests are answered from: the embedded table in memory, its calls counted and open to faults.
func (r *rig) open(o options, logger *slog.Logger, now func() time.Time) *Backend {
	t := r.t
	tables, err := embedded.Open(embedded.Config{Dir: "table", CacheBytes: 1 << 20, Logger: logger, FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	r.table = tabletest.Faulty(tables)
	s, err := store.Open(t.Context(), table.Counted(r.table, new(table.Totals)), store.Config{
		Tables: "t", Buckets: 16, Writer: "a", Alone: true,
	}, series.MillisOf(noon).Day())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(t.Context(), s, keys.MonthOf(series.MillisOf(noon).Day())-1, 0)
	if err != nil {
		t.Fatal(err)
	}
	metadata := index.NewMetadata()
	roller := rollup.New(rollup.Config{Now: now, Logger: logger, Registerer: r.registry}, s)
	if o.maxLog == 0 {
		o.maxLog = 1 << 30
	}
	ingester, err := ingest.Open(ingest.Config{
		Dir: t.TempDir(), FlushInterval: time.Hour, FlushBytes: 1 << 30, MaxLogBytes: o.maxLog,
		MaxBody: maxBody, MaxDecoded: maxDecoded, MaxInFlight: 1 << 30, MaxPerHour: 100_000, MaxExemplars: 100, Retention: 400 * 24 * time.Hour,
		Now: now, CloseDays: roller.CloseDays, FreeDisk: r.disk, Metadata: metadata, Logger: logger, Registerer: r.registry,
	}, s, x)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.table.Heal()
		if err := ingester.Close(context.Background()); err != nil {
			t.Errorf("closing: %v", err)
		}
		if err := tables.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	if o.maxSeries == 0 {
		o.maxSeries = 20
	}
	return &Backend{Ingester: ingester, Metadata: metadata, Reader: query.New(query.Config{
		MaxSamples: 50_000, Timeout: time.Minute, Lookback: 5 * time.Minute, MaxConcurrent: 4, MaxChart: o.maxSeries,
		MaxRows: 100_000, Parallel: 2,
		Now: now, Logger: logger, Registerer: r.registry,
	}, s, x, ingester.Head())}
}

func (r *rig) disk() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// stop returns when all requests are answered.
func (r *rig) stop() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.server.Stop(ctx); err != nil {
		r.t.Errorf("stopping: %v", err)
	}
}

func (r *rig) flush() {
	r.t.Helper()
	if err := r.backend.Ingester.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   string
}

// client does not ask for gzip of its own.
var client = &http.Client{
	Transport:     &http.Transport{DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (r *rig) do(request *http.Request) answer {
	r.t.Helper()
	response, err := client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if response.Header.Get("X-Content-Type-Options") != "nosniff" {
		r.t.Errorf("%s %s: no X-Content-Type-Options in %v", request.Method, request.URL, response.Header)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

func (r *rig) request(method, path string, body io.Reader) *http.Request {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return request
}

func (r *rig) get(path string) answer {
	r.t.Helper()
	return r.do(r.request(http.MethodGet, path, nil))
}

func (r *rig) post(path string, form url.Values) answer {
	r.t.Helper()
	request := r.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r.do(request)
}

// write sends series as remote write does, and wants a status.
func (r *rig) write(status int, all ...prompb.TimeSeries) answer {
	r.t.Helper()
	got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(body(r.t, all...))))
	if got.status != status {
		r.t.Fatalf("a write was answered with %d, want %d: %s", got.status, status, got.body)
	}
	return got
}

// describe sends metadata as remote write 1.0 does, in a request of its own.
func (r *rig) describe(all ...prompb.MetricMetadata) {
	r.t.Helper()
	r.send(prompb.WriteRequest{Metadata: all})
}

// send sends what body does not write.
func (r *rig) send(request prompb.WriteRequest) {
	r.t.Helper()
	message, err := request.Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	if got := r.do(r.writeRequest("/api/v1/write", bytes.NewReader(snappy.Encode(nil, message)))); got.status != http.StatusNoContent {
		r.t.Fatalf("a write is answered with %d: %s", got.status, got.body)
	}
}

// exemplified gives the series an exemplar.
func exemplified(s prompb.TimeSeries, at series.Millis, v float64, trace string) prompb.TimeSeries {
	s.Exemplars = append(s.Exemplars, prompb.Exemplar{
		Timestamp: int64(at), Value: v, Labels: []prompb.Label{{Name: "trace_id", Value: trace}},
	})
	return s
}

func (r *rig) writeRequest(path string, body io.Reader) *http.Request {
	r.t.Helper()
	request := r.request(http.MethodPost, path, body)
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	return request
}

// body is a remote write request, written out by hand: prompb leaves values of -0 out.
func body(t *testing.T, all ...prompb.TimeSeries) []byte {
	t.Helper()
	var message []byte
	for _, s := range all {
		var b []byte
		for _, l := range s.Labels {
			label := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), l.Name)
			label = protowire.AppendString(protowire.AppendTag(label, 2, protowire.BytesType), l.Value)
			b = protowire.AppendBytes(protowire.AppendTag(b, 1, protowire.BytesType), label)
		}
		for _, one := range s.Samples {
			sample := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(one.Value))
			sample = protowire.AppendVarint(protowire.AppendTag(sample, 2, protowire.VarintType), uint64(one.Timestamp))
			b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), sample)
		}
		message = protowire.AppendBytes(protowire.AppendTag(message, 1, protowire.BytesType), b)
	}
	return snappy.Encode(nil, message)
}

// named makes a series of the name and further label names and values in turn.
func named(name string, pairs ...string) prompb.TimeSeries {
	s := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name}}}
	for i := 0; i < len(pairs); i += 2 {
		s.Labels = append(s.Labels, prompb.Label{Name: pairs[i], Value: pairs[i+1]})
	}
	return s
}

// with gives the series samples, 15 s apart.
func with(s prompb.TimeSeries, from series.Millis, values ...float64) prompb.TimeSeries {
	for i, v := range values {
		s.Samples = append(s.Samples, prompb.Sample{Timestamp: int64(from) + int64(i)*15_000, Value: v})
	}
	return s
}

// observed gives the series a native histogram that has seen so many observations in each bucket.
func observed(s prompb.TimeSeries, at series.Millis, n int64) prompb.TimeSeries {
	s.Histograms = append(s.Histograms, prompb.FromIntHistogram(int64(at), &histogram.Histogram{
		ZeroThreshold: 0.001, ZeroCount: uint64(n), Count: uint64(4 * n), Sum: float64(n) * 2.5,
		PositiveSpans: []histogram.Span{{Offset: -1, Length: 1}, {Offset: 2, Length: 1}}, PositiveBuckets: []int64{n, 0},
		NegativeSpans: []histogram.Span{{Offset: 0, Length: 1}}, NegativeBuckets: []int64{n},
	}))
	return s
}

// failure is what errors are answered with.
type failure struct {
	Status    string `json:"status"`
	ErrorType string `json:"errorType"`
	Error     string `json:"error"`
}

// fails checks that an answer is an error in valid JSON, and gives its text.
func (a answer) fails(t *testing.T, status int, kind string) string {
	t.Helper()
	var f failure
	strict(t, a.body, &f)
	if a.status != status || f.Status != "error" || f.ErrorType != kind || f.Error == "" {
		t.Errorf("answered with %d %s, want %d %q", a.status, a.body, status, kind)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the content type of an error is %q", got)
	}
	return f.Error
}

// strict parses JSON, which must be valid UTF-8 and have no further fields and nothing behind it.
func strict(t *testing.T, text string, into any) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("not valid UTF-8: %q", text)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Errorf("%v in %q", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("something is behind the JSON: %q", text)
	}
}

// counted is how many requests a route answered with a code, as in the server's own metrics.
func (r *rig) counted(route, code string) (n uint64) {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "daybook_http_request_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			values := map[string]string{}
			for _, l := range m.GetLabel() {
				values[l.GetName()] = l.GetValue()
			}
			if values["route"] == route && values["code"] == code {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

// safeBuffer is a buffer that several goroutines write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
