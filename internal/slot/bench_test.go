package slot

import (
	"fmt"
	"testing"

	"daybook/internal/series"
)

var benchmarks = []struct {
	shape string
	n     int
}{
	{"walk", 240}, {"walk", 5760},
	{"counter", 240}, {"counter", 5760},
	{"seconds", 240}, {"seconds", 5760},
	{"sparse", 240}, {"pages", 240}, {"constant", 240}, {"constant", 5760},
	{"jitter", 240}, {"sums", 240}, {"doubles", 240}, {"average", 240},
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(fmt.Sprintf("%s/%d", c.shape, c.n), func(b *testing.B) {
			samples := shapeNamed(c.shape).make(seeded(6), start, c.n)
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = Encode(buf[:0], start, samples)
			}
			report(b, c.n, len(buf))
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range benchmarks {
		b.Run(fmt.Sprintf("%s/%d", c.shape, c.n), func(b *testing.B) {
			buf := Encode(nil, start, shapeNamed(c.shape).make(seeded(6), start, c.n))
			var out []series.Sample
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if out, err = Decode(out[:0], buf); err != nil {
					b.Fatal(err)
				}
			}
			report(b, c.n, len(buf))
		})
	}
}

func report(b *testing.B, samples, bytes int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(samples), "ns/sample")
	b.ReportMetric(float64(bytes)/float64(samples), "B/sample")
}
