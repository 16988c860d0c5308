package ingest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"daybook/ingest"
	"daybook/internal/series"
)

const knownSeries = 2000

// scrapeSeries makes 2,000 series with 11 labels, with room for a sample each.
func scrapeSeries() (all []prompb.TimeSeries) {
	for i := range knownSeries {
		all = append(all, labelled([]string{
			"__name__", fmt.Sprintf("node_network_transmit_packets_total_%d", i%50), "cluster", "eu-west-1", "datacenter", "dc-7",
			"device", fmt.Sprintf("eth%d", i/50), "env", "production", "instance", "node-0017.example.org:9100", "job", "node",
			"namespace", "monitoring", "pod", "node-exporter-7xk2p", "region", "eu", "team", "platform",
		}, series.Sample{}))
	}
	return all
}

// scrapes makes requests of one sample of each of 2,000 series with 11 labels, as Prometheus sends them, one for each
// of n scrapes from the first on.
func scrapes(tb testing.TB, first, n int) (bodies [][]byte) {
	tb.Helper()
	request := prompb.WriteRequest{Timeseries: scrapeSeries()}
	for s := first; s < first+n; s++ {
		for i := range request.Timeseries {
			t := series.MillisOf(day0) + series.Millis(s*15_000)
			request.Timeseries[i].Samples[0] = prompb.Sample{Timestamp: int64(t), Value: float64(s*i) / 100}
		}
		b, err := request.Marshal()
		must(tb, err)
		bodies = append(bodies, snappy.Encode(nil, b))
	}
	return bodies
}

// scrapesV2 is scrapes in version 2.0, with metadata, as Prometheus sends it.
func scrapesV2(tb testing.TB, first, n int) (bodies [][]byte) {
	tb.Helper()
	r := newV2()
	for _, ts := range scrapeSeries() {
		pairs := make([]string, 0, 2*len(ts.Labels))
		for _, l := range ts.Labels {
			pairs = append(pairs, l.Name, l.Value)
		}
		help := r.symbols.Symbolize("Network device statistic transmit_packets.")
		r.add(writev2.TimeSeries{
			Samples:  make([]writev2.Sample, 1),
			Metadata: writev2.Metadata{Type: writev2.Metadata_METRIC_TYPE_COUNTER, HelpRef: help},
		}, pairs...)
	}
	for s := first; s < first+n; s++ {
		for i := range r.request.Timeseries {
			t := series.MillisOf(day0) + series.Millis(s*15_000)
			r.request.Timeseries[i].Samples[0] = writev2.Sample{Timestamp: int64(t), Value: float64(s*i) / 100}
		}
		bodies = append(bodies, r.body(tb))
	}
	return bodies
}

// A write of known series takes as much memory as one series would: nothing for a label, nothing for a sample.
func TestWriteAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, and pools forget at random")
	}
	const runs = 20
	for version, bodies := range [][][]byte{1: scrapes(t, 0, runs+20), 2: scrapesV2(t, 0, runs+20)} { // within an hour
		if bodies == nil {
			continue
		}
		w := newWorld(t, nil)
		next := 0
		write := func() {
			w.now.add(15 * time.Second)
			send := w.in.Write
			if version == 2 {
				send = w.in.WriteV2
			}
			result, err := send(t.Context(), bodies[next])
			if next++; err != nil || result.Samples != knownSeries {
				t.Errorf("%+v, %v", result, err)
			}
		}
		// Tails grow by doubling, and each has to once; what they leave behind is lent to the next.
		for range 17 {
			write()
		}
		// 16 to 32 samples: no tail grows now.
		most := testing.AllocsPerRun(14, write)
		t.Logf("version %d: %.1f allocations for %d series", version, most, knownSeries)
		if most > 20 {
			t.Errorf("version %d: %.0f allocations for a write of %d known series", version, most, knownSeries)
		}
	}
}

// BenchmarkWrite writes scrapes of 2,000 known series with 11 labels, one sample each, into log and head. Every 200
// of them, outside the time measured, there is a flush.
func BenchmarkWrite(b *testing.B) { benchmarkWrite(b, scrapes, (*ingest.Ingester).Write) }

// BenchmarkWriteV2 is BenchmarkWrite in version 2.0, with metadata.
func BenchmarkWriteV2(b *testing.B) { benchmarkWrite(b, scrapesV2, (*ingest.Ingester).WriteV2) }

func benchmarkWrite(b *testing.B, scrapes func(testing.TB, int, int) [][]byte, write func(*ingest.Ingester, context.Context, []byte) (ingest.Result, error)) {
	w := newWorld(b, nil)
	const batch = 200
	var bodies [][]byte
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n%batch == 0 {
			b.StopTimer()
			must(b, w.flush())
			bodies = scrapes(b, n, batch)
			b.StartTimer()
		}
		if _, err := write(w.in, b.Context(), bodies[n%batch]); err != nil {
			b.Fatal(err)
		}
		w.now.add(15 * time.Second)
		n++
	}
	b.SetBytes(int64(len(bodies[0])))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/knownSeries, "ns/sample")
}

// BenchmarkReplay reads the log back after a crash: 100 scrapes of 2,000 series.
func BenchmarkReplay(b *testing.B) {
	w := newWorld(b, nil)
	const n = 100
	for _, body := range scrapes(b, 0, n) {
		w.now.add(15 * time.Second)
		_, err := w.in.Write(b.Context(), body)
		must(b, err)
	}
	for b.Loop() {
		b.StopTimer()
		w.abandon()
		b.StartTimer()
		must(b, w.open())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n*knownSeries), "ns/sample")
}
