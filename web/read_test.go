package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"daybook/internal/series"
	"daybook/internal/table/tabletest"
)

// reads sends a remote read.
func (r *rig) reads(request *prompb.ReadRequest) answer {
	r.t.Helper()
	message, err := request.Marshal()
	if err != nil {
		r.t.Fatal(err)
	}
	return r.readsBody(snappy.Encode(nil, message))
}

func (r *rig) readsBody(body []byte) answer {
	r.t.Helper()
	request := r.request(http.MethodPost, "/api/v1/read", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Read-Version", "0.1.0")
	return r.do(request)
}

// wants is a query of a remote read for what a metric has from..to.
func wants(name string, from, to series.Millis) *prompb.Query {
	return &prompb.Query{
		StartTimestampMs: int64(from), EndTimestampMs: int64(to),
		Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_EQ, Name: "__name__", Value: name}},
	}
}

var streamed = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS, prompb.ReadRequest_SAMPLES}

// read is a series as a remote read gives it.
type read struct {
	labels  string
	samples []series.Sample
}

// samplesIn decodes a ReadResponse: the series of each query.
func (a answer) samplesIn(t *testing.T) (all [][]read) {
	t.Helper()
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/x-protobuf" || a.header.Get("Content-Encoding") != "snappy" {
		t.Fatalf("answered with %d %v %.200q", a.status, a.header, a.body)
	}
	message, err := snappy.Decode(nil, []byte(a.body))
	if err != nil {
		t.Fatal(err)
	}
	var response prompb.ReadResponse
	if err := response.Unmarshal(message); err != nil {
		t.Fatal(err)
	}
	for _, result := range response.Results {
		found := []read{}
		for _, s := range result.Timeseries {
			one := read{labels: spelled(s.Labels)}
			for _, x := range s.Samples {
				one.samples = append(one.samples, series.Sample{T: series.Millis(x.Timestamp), V: x.Value})
			}
			found = append(found, one)
		}
		all = append(all, found)
	}
	return all
}

func spelled(ls []prompb.Label) string {
	var b strings.Builder
	for _, l := range ls {
		fmt.Fprintf(&b, "%s=%q ", l.Name, l.Value)
	}
	return b.String()
}

// chunksIn decodes a stream of ChunkedReadResponses, with how many frames there were.
func (a answer) chunksIn(t *testing.T, queries int) (all [][]read, frames int) {
	t.Helper()
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse" {
		t.Fatalf("answered with %d %v %.200q", a.status, a.header, a.body)
	}
	all = make([][]read, queries)
	for in := bufio.NewReader(strings.NewReader(a.body)); ; frames++ {
		response, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			return all, frames
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range response.ChunkedSeries {
			found := &all[response.QueryIndex]
			if n := len(*found); n == 0 || (*found)[n-1].labels != spelled(s.Labels) {
				*found = append(*found, read{labels: spelled(s.Labels)})
			}
			one := &(*found)[len(*found)-1]
			for _, c := range s.Chunks {
				one.samples = append(one.samples, samplesOf(t, c)...)
			}
		}
	}
}

func readFrame(in *bufio.Reader) (*prompb.ChunkedReadResponse, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 4+n)
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, fmt.Errorf("a frame of %d bytes is cut off: %w", n, io.ErrUnexpectedEOF)
	}
	if got, want := crc32.Checksum(frame[4:], crc32.MakeTable(crc32.Castagnoli)), binary.BigEndian.Uint32(frame); got != want {
		return nil, fmt.Errorf("the checksum is %x, want %x", got, want)
	}
	response := new(prompb.ChunkedReadResponse)
	return response, response.Unmarshal(frame[4:])
}

func samplesOf(t *testing.T, c prompb.Chunk) (all []series.Sample) {
	t.Helper()
	chunk, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
	if err != nil {
		t.Fatal(err)
	}
	it := chunk.Iterator(nil)
	for it.Next() == chunkenc.ValFloat {
		at, v := it.At()
		all = append(all, series.Sample{T: series.Millis(at), V: v})
	}
	if it.Err() != nil || len(all) == 0 || int64(all[0].T) != c.MinTimeMs || int64(all[len(all)-1].T) != c.MaxTimeMs {
		t.Errorf("a chunk of %d samples from %d to %d: %v", len(all), c.MinTimeMs, c.MaxTimeMs, it.Err())
	}
	return all
}

func sameReads(t *testing.T, what string, got, want [][]read) {
	t.Helper()
	bits := func(a, b series.Sample) bool { return a.T == b.T && math.Float64bits(a.V) == math.Float64bits(b.V) }
	same := func(a, b read) bool { return a.labels == b.labels && slices.EqualFunc(a.samples, b.samples, bits) }
	if !slices.EqualFunc(got, want, func(a, b []read) bool { return slices.EqualFunc(a, b, same) }) {
		t.Errorf("%s gives\n%v, want\n%v", what, got, want)
	}
}

// at is samples 15 s apart, as with() writes them.
func at(from series.Millis, values ...float64) (all []series.Sample) {
	for i, v := range values {
		all = append(all, series.Sample{T: from + series.Millis(i)*15_000, V: v})
	}
	return all
}

// Both ways of answering give every bit of what is stored, of several queries, from the table and from memory.
func TestRemoteRead(t *testing.T) {
	r := start(t, options{})
	r.fill()
	minute := series.MillisOf(noon) - 60_000
	stale := math.Float64frombits(value.StaleNaN)
	queries := []*prompb.Query{
		wants("special", midnight, midnight+60_000),
		wants("nothing", midnight, series.MillisOf(noon)),
		{
			StartTimestampMs: int64(minute), EndTimestampMs: int64(series.MillisOf(noon)),
			Matchers: []*prompb.LabelMatcher{
				{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: "up|late"},
				{Type: prompb.LabelMatcher_NEQ, Name: "instance", Value: "a:9100"},
				{Type: prompb.LabelMatcher_NRE, Name: "job", Value: "nod"},
			},
		},
		wants("up", midnight, minute-1_000_000),
	}
	want := [][]read{
		{{`__name__="special" `, at(midnight, special[:5]...)}},
		{},
		{
			{`__name__="late" job="node" `, at(series.MillisOf(noon), 1)},
			{`__name__="up" instance="b:9100" job="node" `, at(minute, 1, 2, 3, 4, stale)},
		},
		{},
	}
	sameReads(t, "SAMPLES", r.reads(&prompb.ReadRequest{Queries: queries}).samplesIn(t), want)
	got, _ := r.reads(&prompb.ReadRequest{Queries: queries, AcceptedResponseTypes: streamed}).chunksIn(t, len(queries))
	sameReads(t, "STREAMED_XOR_CHUNKS", got, want)
}

// The first type that is known is taken.
func TestRemoteReadTypes(t *testing.T) {
	r := start(t, options{})
	r.fill()
	queries := []*prompb.Query{wants("up", midnight, series.MillisOf(noon))}
	const unknown = prompb.ReadRequest_ResponseType(7)
	for want, types := range map[string][][]prompb.ReadRequest_ResponseType{
		"application/x-protobuf":          {nil, {prompb.ReadRequest_SAMPLES, prompb.ReadRequest_STREAMED_XOR_CHUNKS}, {unknown, prompb.ReadRequest_SAMPLES}},
		"application/x-streamed-protobuf": {streamed, {unknown, prompb.ReadRequest_STREAMED_XOR_CHUNKS}},
	} {
		for _, accepted := range types {
			got := r.reads(&prompb.ReadRequest{Queries: queries, AcceptedResponseTypes: accepted})
			if kind, _, _ := strings.Cut(got.header.Get("Content-Type"), ";"); got.status != http.StatusOK || kind != want {
				t.Errorf("%v: %d %s, want %s", accepted, got.status, kind, want)
			}
		}
	}
	r.reads(&prompb.ReadRequest{Queries: queries, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{unknown}}).
		fails(t, http.StatusBadRequest, badData)
}

// Hints narrow the time down; those without times do not.
func TestRemoteReadHints(t *testing.T) {
	r := start(t, options{})
	r.fill()
	query := wants("special", midnight, series.MillisOf(noon))
	for n, hints := range map[int]*prompb.ReadHints{
		12: {StepMs: 15_000, Func: "rate"},
		3:  {StartMs: int64(midnight) + 15_000, EndMs: int64(midnight) + 45_000, StepMs: 15_000},
	} {
		query.Hints = hints
		got := r.reads(&prompb.ReadRequest{Queries: []*prompb.Query{query}}).samplesIn(t)
		if len(got[0]) != 1 || len(got[0][0].samples) != n {
			t.Errorf("%v: %v, want %d samples", hints, got, n)
		}
	}
}

// A series is cut into frames of about the size that is set, none of which is empty.
func TestRemoteReadFrames(t *testing.T) {
	r := start(t, options{})
	var all []float64
	for i := range 2000 {
		all = append(all, math.Sqrt(float64(i))) // which compresses badly
	}
	for i := 0; i < len(all); i += 500 {
		r.write(http.StatusNoContent, with(named("long"), midnight+series.Millis(i)*15_000, all[i:i+500]...))
	}
	got := r.reads(&prompb.ReadRequest{
		Queries: []*prompb.Query{wants("long", midnight, series.MillisOf(noon))}, AcceptedResponseTypes: streamed,
	})
	found, frames := got.chunksIn(t, 1)
	sameReads(t, "a long series", found, [][]read{{{`__name__="long" `, at(midnight, all...)}}})
	if bytes := len(got.body); frames < bytes/(3*frameSize) || frames > bytes/frameSize+1 {
		t.Errorf("%d bytes in %d frames", bytes, frames)
	}
}

// As one message there are so many samples at most; a stream has no limit.
func TestRemoteReadLimit(t *testing.T) {
	r := start(t, options{})
	r.write(http.StatusNoContent, with(named("a"), midnight, make([]float64, maxReadSamples/2)...))
	r.write(http.StatusNoContent, with(named("b"), midnight, make([]float64, maxReadSamples/2+1)...))
	a, b := wants("a", midnight, series.MillisOf(noon)), wants("b", midnight, series.MillisOf(noon))
	if got := r.reads(&prompb.ReadRequest{Queries: []*prompb.Query{a, a}}); got.status != http.StatusOK {
		t.Errorf("as many as there may be: %d %s", got.status, got.body)
	}
	text := r.reads(&prompb.ReadRequest{Queries: []*prompb.Query{a, b}}).fails(t, http.StatusBadRequest, badData)
	if !strings.Contains(text, "exceeded sample limit (1000)") || !strings.Contains(text, "query.max_read_samples") {
		t.Error(text)
	}
	if got := r.reads(&prompb.ReadRequest{Queries: []*prompb.Query{a, b}, AcceptedResponseTypes: streamed}); got.status != http.StatusOK {
		t.Errorf("a stream: %d %s", got.status, got.body)
	}
}

func TestRemoteReadRefuses(t *testing.T) {
	r := start(t, options{})
	matcher := func(m prompb.LabelMatcher) []byte {
		message, err := (&prompb.ReadRequest{Queries: []*prompb.Query{{Matchers: []*prompb.LabelMatcher{&m}}}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return snappy.Encode(nil, message)
	}
	for name, body := range map[string][]byte{
		"nothing":            {},
		"no snappy":          []byte("not snappy"),
		"no message":         snappy.Encode(nil, []byte("\xff\xff\xff")),
		"too much":           binary.AppendUvarint(nil, maxRead+1),
		"a broken regexp":    matcher(prompb.LabelMatcher{Type: prompb.LabelMatcher_RE, Name: "a", Value: "("}),
		"an unknown matcher": matcher(prompb.LabelMatcher{Type: 9, Name: "a"}),
	} {
		t.Run(name, func(t *testing.T) { r.readsBody(body).fails(t, http.StatusBadRequest, badData) })
	}
	if got := r.readsBody(make([]byte, maxRead+1)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %d", got.status)
	}
	// A request of no queries is one.
	if got := r.reads(&prompb.ReadRequest{}).samplesIn(t); len(got) != 0 {
		t.Errorf("no query gives %v", got)
	}
}

// What the table fails with is told where the answer has not begun, and breaks it off where it has.
func TestRemoteReadFails(t *testing.T) {
	r := start(t, options{})
	r.fill()
	r.table.Add(tabletest.Fault{Method: tabletest.Get, Err: errors.New("connection closing")})
	for _, accepted := range [][]prompb.ReadRequest_ResponseType{nil, streamed} {
		got := r.reads(&prompb.ReadRequest{Queries: []*prompb.Query{wants("up", midnight, series.MillisOf(noon))}, AcceptedResponseTypes: accepted})
		got.fails(t, http.StatusInternalServerError, internal)
		if got.header.Get("Content-Encoding") != "" {
			t.Errorf("an error is said to be compressed: %v", got.header)
		}
	}
}

// No more than so many are answered at a time, and a client that leaves the queue is not counted as an error of ours.
func TestRemoteReadsWait(t *testing.T) {
	r := start(t, options{})
	r.fill()
	for range maxReads - 1 {
		r.server.reads <- struct{}{}
	}
	if got := r.reads(&prompb.ReadRequest{}); got.status != http.StatusOK {
		t.Errorf("as many as there may be: %d %s", got.status, got.body)
	}
	r.server.reads <- struct{}{}
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	request := r.writeRequest("/api/v1/read", bytes.NewReader(nil)).WithContext(ctx)
	if _, err := client.Do(request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client got %v", err)
	}
	r.stop()
	if n := r.counted("/api/v1/read", "499"); n != 1 {
		t.Errorf("499 is counted %d times", n)
	}
}
