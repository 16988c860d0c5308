package e2e

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// Floats are written here, as prompb leaves out the value -0, taking it for 0.

// version is one of remote write.
type version struct {
	header  map[string]string
	request func(t *testing.T, all []*made, from, to int64) []byte
}

var (
	version1 = version{
		map[string]string{"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0"},
		request1,
	}
	version2 = version{
		map[string]string{"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request", "X-Prometheus-Remote-Write-Version": "2.0.0"},
		request2,
	}
)

// send posts the samples from..to (to excluded) of some series to all of some servers, each of which must accept them.
func (v version) send(t *testing.T, all []*made, from, to int64, servers ...api) {
	t.Helper()
	request := v.request(t, all, from, to)
	if len(request) == 0 {
		return
	}
	for _, server := range servers {
		if status, text := server.write(t, v.header, snappy.Encode(nil, request)); status/100 != 2 {
			t.Fatalf("a request was answered with %d by %s: %.500s", status, server, text)
		}
	}
}

// request1 is a remote write 1.0 request, nil where there is nothing to send.
func request1(t *testing.T, all []*made, from, to int64) []byte {
	t.Helper()
	var request []byte
	for _, m := range all {
		values := m.between(from, to)
		if len(values) == 0 {
			continue
		}
		ts := prompb.TimeSeries{}
		for i := 0; i < len(m.labels); i += 2 {
			ts.Labels = append(ts.Labels, prompb.Label{Name: m.labels[i], Value: m.labels[i+1]})
		}
		for _, v := range values {
			switch {
			case v.whole != nil:
				ts.Histograms = append(ts.Histograms, prompb.FromIntHistogram(v.at, v.whole))
			case v.float != nil:
				ts.Histograms = append(ts.Histograms, prompb.FromFloatHistogram(v.at, v.float))
			}
		}
		one, err := ts.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		request = appendField(request, 1, appendFloats(one, values))
	}
	return request
}

// request2 is a remote write 2.0 request, nil where there is nothing to send.
func request2(t *testing.T, all []*made, from, to int64) []byte {
	t.Helper()
	symbols := writev2.NewSymbolTable()
	var request []byte
	for _, m := range all {
		values := m.between(from, to)
		if len(values) == 0 {
			continue
		}
		ts := writev2.TimeSeries{}
		for _, text := range m.labels {
			ts.LabelsRefs = append(ts.LabelsRefs, symbols.Symbolize(text))
		}
		for _, v := range values {
			switch {
			case v.whole != nil:
				ts.Histograms = append(ts.Histograms, writev2.FromIntHistogram(0, v.at, v.whole))
			case v.float != nil:
				ts.Histograms = append(ts.Histograms, writev2.FromFloatHistogram(0, v.at, v.float))
			}
		}
		one, err := ts.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		request = appendField(request, 5, appendFloats(one, values))
	}
	if request == nil {
		return nil
	}
	for _, text := range symbols.Symbols() {
		request = appendField(request, 4, []byte(text))
	}
	return request
}

// appendField appends a field that holds bytes.
func appendField(to []byte, number int, data []byte) []byte {
	to = binary.AppendUvarint(to, uint64(number)<<3|2)
	to = binary.AppendUvarint(to, uint64(len(data)))
	return append(to, data...)
}

// appendFloats appends those samples to a series that are floats: field 2 in both versions, of value and timestamp.
func appendFloats(to []byte, all []taken) []byte {
	for _, s := range all {
		if s.whole == nil && s.float == nil {
			b := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(s.v))
			to = appendField(to, 2, binary.AppendUvarint(append(b, 2<<3), uint64(s.at)))
		}
	}
	return to
}
