package slot

import (
	"math"
	"math/rand/v2"

	"daybook/internal/series"
)

// shape is a kind of data; make returns n samples of it, none before the hour start.
type shape struct {
	name string
	make func(r *rand.Rand, start series.Hour, n int) []series.Sample
}

const interval = 15_000

var shapes = []shape{
	{"walk", values(func(r *rand.Rand) func(int) float64 {
		units := r.IntN(100_000)
		return func(int) float64 {
			units += int(math.Round(r.NormFloat64() * 100))
			return float64(units) / 100
		}
	})},
	{"counter", values(func(r *rand.Rand) func(int) float64 {
		v := float64(r.IntN(1_000_000))
		return func(int) float64 {
			if v += float64(r.IntN(50)); r.IntN(500) == 0 {
				v = 0
			}
			return v
		}
	})},
	{"seconds", values(func(r *rand.Rand) func(int) float64 { // CPU time of a core: a steady rise in hundredths
		units := r.IntN(1_000_000)
		return func(int) float64 {
			units += 1450 + r.IntN(40)
			return float64(units) / 100
		}
	})},
	{"sparse", values(func(r *rand.Rand) func(int) float64 { // a counter of something rare
		v := 0
		return func(int) float64 {
			if r.IntN(30) == 0 {
				v += 1 + r.IntN(3)
			}
			return float64(v)
		}
	})},
	{"pages", values(func(r *rand.Rand) func(int) float64 { // bytes of memory, in whole pages
		pages := 100_000
		return func(int) float64 {
			if r.IntN(2) == 0 {
				pages += int(r.NormFloat64() * 30)
			}
			return float64(pages) * 4096
		}
	})},
	{"integers", values(func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return float64(r.IntN(200)) }
	})},
	{"peaks", values(func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return float64(max(0, r.IntN(40)-35)) }
	})},
	{"constant", values(func(r *rand.Rand) func(int) float64 {
		v := float64(r.IntN(1000)) / 10
		return func(int) float64 { return v }
	})},
	{"doubles", values(func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return r.Float64() }
	})},
	{"average", values(func(r *rand.Rand) func(int) float64 { // a smooth curve with all its binary places
		phase := r.Float64()
		return func(i int) float64 { return 20 + math.Sin(phase+float64(i)/100) }
	})},
	{"sums", values(func(r *rand.Rand) func(int) float64 { // seconds added up from nanoseconds
		sum := 0.0
		return func(int) float64 {
			for range r.IntN(4) {
				sum += float64(1_000_000+r.IntN(300_000)) / 1e9
			}
			return sum
		}
	})},
	{"bits", values(func(r *rand.Rand) func(int) float64 {
		return func(int) float64 { return math.Float64frombits(r.Uint64()) }
	})},
	{"places", values(func(r *rand.Rand) func(int) float64 { // a decimal place more now and then
		return func(i int) float64 { return float64(r.IntN(1000)) / math.Pow10(r.IntN(min(1+i/20, 12))) }
	})},
	{"holes", values(func(r *rand.Rand) func(int) float64 { // NaN for a while, and odd values
		nan := false
		return func(i int) float64 {
			if r.IntN(50) == 0 {
				nan = !nan
			}
			switch {
			case nan:
				return math.NaN()
			case r.IntN(60) == 0:
				return math.Inf(1 - 2*r.IntN(2))
			case r.IntN(60) == 0:
				return math.Copysign(0, -1)
			}
			return float64(i)
		}
	})},
	{"nan", values(func(*rand.Rand) func(int) float64 { return func(int) float64 { return math.NaN() } })},
	{"jitter", func(r *rand.Rand, start series.Hour, n int) []series.Sample {
		samples := make([]series.Sample, n)
		t := start.Start()
		for i := range samples {
			samples[i] = series.Sample{T: t + series.Millis(r.IntN(20)), V: float64(r.IntN(10))}
			t += interval
		}
		return samples
	}},
	{"gaps", func(r *rand.Rand, start series.Hour, n int) []series.Sample {
		samples := make([]series.Sample, n)
		t := start.Start() + 7
		for i := range samples {
			samples[i] = series.Sample{T: t, V: float64(i)}
			if t += interval; r.IntN(20) == 0 {
				t += series.Millis(r.IntN(10)) * interval
			}
		}
		return samples
	}},
	{"irregular", func(r *rand.Rand, start series.Hour, n int) []series.Sample {
		samples := make([]series.Sample, n)
		t := start.Start()
		for i := range samples {
			t += 1 + series.Millis(r.ExpFloat64()*1000)
			samples[i] = series.Sample{T: t, V: r.NormFloat64()}
		}
		return samples
	}},
}

// values makes a shape of regular times.
func values(make func(r *rand.Rand) func(i int) float64) func(*rand.Rand, series.Hour, int) []series.Sample {
	return func(r *rand.Rand, start series.Hour, n int) []series.Sample {
		next := make(r)
		t := start.Start() + series.Millis(r.IntN(interval))
		var samples []series.Sample
		for i := range n {
			samples = append(samples, series.Sample{T: t, V: next(i)})
			t += interval
		}
		return samples
	}
}

func shapeNamed(name string) shape {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	panic("no shape " + name)
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
