package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// TestSameReads asks both for all there is by remote read, in both ways, and compares what is in the answers: every
// series, every sample by its bits, and every histogram.
func TestSameReads(t *testing.T) {
	ours, theirs := startDaybook(t), startPrometheus(t)
	from, to := noon.AddDate(0, 0, -2).UnixMilli(), noon.UnixMilli()
	queries := []*prompb.Query{
		{StartTimestampMs: from, EndTimestampMs: to, Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: ".+"}}},
		{StartTimestampMs: to - 60_000, EndTimestampMs: to, Matchers: []*prompb.LabelMatcher{{Name: "__name__", Value: "up"}, {Type: prompb.LabelMatcher_NEQ, Name: "instance", Value: "a:9100"}}},
		{StartTimestampMs: from, EndTimestampMs: to, Matchers: []*prompb.LabelMatcher{{Name: "__name__", Value: "nothing"}}},
	}
	for i, q := range queries {
		for _, kind := range []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES, prompb.ReadRequest_STREAMED_XOR_CHUNKS} {
			request := &prompb.ReadRequest{Queries: []*prompb.Query{q}, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{kind}}
			a, b := readAll(t, ours, request), readAll(t, theirs, request)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("query %d, %v: daybook gives %d lines, Prometheus %d: %s", i, kind, len(a), len(b), firstDifference(a, b))
			}
			if i == 0 && len(a) < 10_000 {
				t.Errorf("only %d lines are compared", len(a))
			}
		}
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " and " + b[i]
		}
	}
	return "one goes on"
}

// readAll gives what a remote read answers, a line for each sample, sorted.
func readAll(t *testing.T, base string, request *prompb.ReadRequest) (lines []string) {
	t.Helper()
	message, err := request.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Post(base+"/api/v1/read", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, message)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s", base, response.Status)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-streamed-protobuf") {
		lines = chunkLines(t, response.Body)
	} else {
		lines = sampleLines(t, response.Body)
	}
	slices.Sort(lines)
	return lines
}

func sampleLines(t *testing.T, body io.Reader) (lines []string) {
	t.Helper()
	compressed, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	message, err := snappy.Decode(nil, compressed)
	if err != nil {
		t.Fatal(err)
	}
	var answer prompb.ReadResponse
	if err := answer.Unmarshal(message); err != nil {
		t.Fatal(err)
	}
	for _, s := range answer.Results[0].Timeseries {
		for _, x := range s.Samples {
			lines = append(lines, fmt.Sprintf("%v %d %x", s.Labels, x.Timestamp, math.Float64bits(x.Value)))
		}
		for _, h := range s.Histograms {
			h.ResetHint = prompb.Histogram_UNKNOWN // which Prometheus works out chunk by chunk
			lines = append(lines, fmt.Sprintf("%v %s", s.Labels, h.String()))
		}
	}
	return lines
}

func chunkLines(t *testing.T, body io.Reader) (lines []string) {
	t.Helper()
	in := remote.NewChunkedReader(body, 10<<20, nil)
	for {
		var answer prompb.ChunkedReadResponse
		if err := in.NextProto(&answer); errors.Is(err, io.EOF) {
			return lines
		} else if err != nil {
			t.Fatal(err)
		}
		for _, s := range answer.ChunkedSeries {
			for _, c := range s.Chunks {
				chunk, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, linesOf(t, fmt.Sprint(s.Labels), chunk.Iterator(nil))...)
			}
		}
	}
}

func linesOf(t *testing.T, labels string, it chunkenc.Iterator) (lines []string) {
	t.Helper()
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		switch kind {
		case chunkenc.ValFloat:
			at, v := it.At()
			lines = append(lines, fmt.Sprintf("%s %d %x", labels, at, math.Float64bits(v)))
		case chunkenc.ValHistogram:
			at, h := it.AtHistogram(nil)
			lines = append(lines, fmt.Sprintf("%s %d %v", labels, at, h))
		default:
			at, h := it.AtFloatHistogram(nil)
			lines = append(lines, fmt.Sprintf("%s %d %v", labels, at, h))
		}
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return lines
}
