package e2e

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// request is a recorded remote write 1.0 request. In the recording, each is one line of JSON.
type request struct {
	Header map[string]string `json:"headers"`
	Body   []byte            `json:"body"`
}

// recording is the traffic of a real Prometheus, in the order in which it came.
type recording []request

// readRecording reads node15s.ndjson.gz of the shared folder.
func readRecording(t *testing.T) recording {
	t.Helper()
	shared := os.Getenv("DAYBOOK_SHARED")
	if shared == "" {
		shared = filepath.Join(repository, "..", "shared")
	}
	f, err := os.Open(filepath.Join(shared, "data", "node15s.ndjson.gz"))
	if err != nil {
		t.Fatalf("the recording is missing (DAYBOOK_SHARED names the folder it is in): %v", err)
	}
	defer f.Close()
	lines, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	for d := json.NewDecoder(lines); ; {
		var q request
		switch err := d.Decode(&q); {
		case errors.Is(err, io.EOF):
			if len(r) == 0 {
				t.Fatal("the recording is empty")
			}
			return r
		case err != nil:
			t.Fatalf("recorded request %d: %v", len(r), err)
		}
		r = append(r, q)
	}
}

// message decodes the body of a request.
func (q request) message(t *testing.T) *prompb.WriteRequest {
	t.Helper()
	body, err := snappy.Decode(nil, q.Body)
	if err != nil {
		t.Fatalf("recorded request: %v", err)
	}
	var m prompb.WriteRequest
	if err := m.Unmarshal(body); err != nil {
		t.Fatalf("recorded request: %v", err)
	}
	return &m
}

// shifted gives the recording with all samples later by a length of time.
func (r recording) shifted(t *testing.T, by time.Duration) recording {
	t.Helper()
	later := make(recording, len(r))
	for i, q := range r {
		m := q.message(t)
		for _, series := range m.Timeseries {
			for k := range series.Samples {
				series.Samples[k].Timestamp += by.Milliseconds()
			}
		}
		body, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		later[i] = request{Header: q.Header, Body: snappy.Encode(nil, body)}
	}
	return later
}

// endingAt gives the recording shifted so that its last sample is at the given time.
func (r recording) endingAt(t *testing.T, end time.Time) recording {
	t.Helper()
	_, last := r.content(t).span()
	return r.shifted(t, time.Duration(end.UnixMilli()-last)*time.Millisecond)
}

// content is what a query must find when all requests of the recording have been written: every sample, the first
// value of a timestamp, without stale markers, which a query leaves out.
func (r recording) content(t *testing.T) samples {
	t.Helper()
	all := make(samples)
	type moment struct {
		key string
		at  int64
	}
	seen := make(map[moment]bool)
	for _, q := range r {
		for _, series := range q.message(t).Timeseries {
			key := selector(labelMap(series.Labels))
			for _, s := range series.Samples {
				if at := (moment{key, s.Timestamp}); seen[at] || value.IsStaleNaN(s.Value) {
					continue
				} else {
					seen[at] = true
				}
				all[key] = append(all[key], point{T: s.Timestamp, V: s.Value})
			}
		}
	}
	for key, points := range all {
		if err := ascending(points); err != nil {
			t.Fatalf("recording of %s: %v", key, err)
		}
	}
	return all
}

// span gives the times of the first and the last sample of all.
func (s samples) span() (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	for _, points := range s {
		first, last = min(first, points[0].T), max(last, points[len(points)-1].T)
	}
	return first, last
}

func ascending(points []point) error {
	for i := 1; i < len(points); i++ {
		if points[i].T <= points[i-1].T {
			return fmt.Errorf("sample %d is at %d, not after %d", i, points[i].T, points[i-1].T)
		}
	}
	return nil
}

func labelMap(labels []prompb.Label) map[string]string {
	m := make(map[string]string, len(labels))
	for _, l := range labels {
		m[l.Name] = l.Value
	}
	return m
}
