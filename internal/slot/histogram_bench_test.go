package slot

import (
	"fmt"
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"daybook/internal/series"
)

// scraped gives n native histograms, 15 s apart, of the latencies of 20 requests a second, as Prometheus's own client
// library has them: a tenth of a second at the median, log-normal, buckets 10 per cent apart.
func scraped(n int) (all []series.Histogram) {
	r := seeded(8)
	latencies := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "latency", NativeHistogramBucketFactor: 1.1})
	for i := range n {
		for range 280 + r.IntN(40) {
			latencies.Observe(0.1 * math.Exp(r.NormFloat64()/2))
		}
		var m dto.Metric
		if err := latencies.Write(&m); err != nil {
			panic(err)
		}
		at := start.Start() + 3_906 + series.Millis(i)*interval
		all = append(all, series.Histogram{T: at, Int: fromClient(m.GetHistogram())})
	}
	return all
}

func fromClient(m *dto.Histogram) *histogram.Histogram {
	h := &histogram.Histogram{
		Schema: m.GetSchema(), ZeroThreshold: m.GetZeroThreshold(), ZeroCount: m.GetZeroCount(), Count: m.GetSampleCount(),
		Sum: m.GetSampleSum(), PositiveBuckets: m.GetPositiveDelta(),
	}
	for _, s := range m.GetPositiveSpan() {
		h.PositiveSpans = append(h.PositiveSpans, histogram.Span{Offset: s.GetOffset(), Length: s.GetLength()})
	}
	return h
}

// chunkBytes is how long the chunks are that Prometheus would have of histograms, 120 in each.
func chunkBytes(b *testing.B, all []series.Histogram) (bytes int) {
	b.Helper()
	for i := 0; i < len(all); i += 120 {
		var chunk chunkenc.Chunk = chunkenc.NewHistogramChunk()
		app, err := chunk.Appender()
		if err != nil {
			b.Fatal(err)
		}
		for _, h := range all[i:min(i+120, len(all))] {
			next, recoded, a, err := app.AppendHistogram(nil, 0, int64(h.T), h.Int.Copy(), false)
			if err != nil {
				b.Fatal(err)
			}
			if next != nil {
				if !recoded {
					bytes += len(chunk.Bytes())
				}
				chunk = next
			}
			app = a
		}
		bytes += len(chunk.Bytes())
	}
	return bytes
}

func BenchmarkEncodeHistograms(b *testing.B) {
	for _, n := range []int{240, 5760} {
		b.Run(fmt.Sprintf("latency/%d", n), func(b *testing.B) {
			all := scraped(n)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = EncodeHistograms(buf[:0], start, all)
			}
			report(b, n, len(buf))
			b.ReportMetric(float64(len(all[n-1].Int.PositiveBuckets)), "buckets")
			b.ReportMetric(float64(chunkBytes(b, all))/float64(n), "chunk-B/sample")
		})
	}
}

func BenchmarkDecodeHistograms(b *testing.B) {
	for _, n := range []int{240, 5760} {
		b.Run(fmt.Sprintf("latency/%d", n), func(b *testing.B) {
			buf := EncodeHistograms(nil, start, scraped(n))
			var out []series.Histogram
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if out, err = DecodeHistograms(out[:0], buf); err != nil {
					b.Fatal(err)
				}
			}
			report(b, n, len(buf))
		})
	}
}
