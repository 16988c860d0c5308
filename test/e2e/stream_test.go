package e2e

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
)

// stream is a made-up remote write stream of a little more than two days: what a sender of many kinds of series sends,
// odd ones among them. With the same seed and end it is the same.
type stream struct {
	begin, end time.Time
	rng        *rand.Rand
	series     []*made
}

// made is one series of a stream.
type made struct {
	labels []string // names and values in turn, sorted by name
	values []taken  // ascending
	late   bool     // sent when all others are there, as a backfill is
	strays bool     // some of it is sent when all others are there
}

// taken is one sample: a float, or a histogram of one of both kinds.
type taken struct {
	at    int64 // milliseconds
	v     float64
	whole *histogram.Histogram
	float *histogram.FloatHistogram
}

var stale = math.Float64frombits(value.StaleNaN)

// streamLength makes every stream have two midnights, and most of it be older than the ring.
const streamLength = 50 * time.Hour

// makeStream makes up the stream that ends at a time.
func makeStream(seed uint64, end time.Time) *stream {
	s := &stream{begin: end.Add(-streamLength), end: end, rng: rand.New(rand.NewPCG(seed, 3))}
	s.gauges()
	s.counters()
	s.classicHistograms()
	s.churn()
	s.gaps()
	s.history()
	s.dense()
	s.odds()
	s.edges()
	s.joins()
	s.names()
	s.nativeHistograms()
	slices.SortFunc(s.series, func(a, b *made) int { return slices.Compare(a.labels, b.labels) })
	return s
}

// add enters a series under a name; pairs are further labels.
func (s *stream) add(name string, pairs ...string) *made {
	type label struct{ name, value string }
	all := []label{{"__name__", name}}
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, label{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(all, func(a, b label) int { return strings.Compare(a.name, b.name) })
	m := &made{}
	for _, l := range all {
		m.labels = append(m.labels, l.name, l.value)
	}
	s.series = append(s.series, m)
	return m
}

func (m *made) put(at time.Time, v float64) {
	m.values = append(m.values, taken{at: at.UnixMilli(), v: v})
}

// scrapes gives the times of scrapes from..to, each a few milliseconds off, as real ones are.
func (s *stream) scrapes(from, to time.Time, every time.Duration) (times []time.Time) {
	offset := time.Duration(s.rng.Int64N(int64(every))).Truncate(time.Millisecond)
	for t := from.Add(offset); t.Before(to); t = t.Add(every) {
		off := time.Duration(0)
		if s.rng.IntN(4) == 0 {
			off = time.Duration(s.rng.IntN(41)-20) * time.Millisecond
		}
		times = append(times, t.Add(off))
	}
	return times
}

var hosts = []string{"alpha", "beta", "gamma"}

func (s *stream) gauges() {
	for _, host := range hosts {
		for _, room := range []string{"cellar", "hall", "roof"} {
			m := s.add("temperature_celsius", "host", host, "room", room)
			v := 15 + 10*s.rng.Float64()
			for _, t := range s.scrapes(s.begin, s.end, time.Minute) {
				v += s.rng.NormFloat64() / 5
				m.put(t, math.Round(v*100)/100)
			}
		}
		m := s.add("load", "host", host)
		for _, t := range s.scrapes(s.begin, s.end, 30*time.Second) {
			m.put(t, s.rng.ExpFloat64())
		}
		m = s.add("queue_length", "host", host)
		for _, t := range s.scrapes(s.begin, s.end, 2*time.Minute) {
			m.put(t, float64(s.rng.IntN(9)))
		}
	}
}

func (s *stream) counters() {
	for _, host := range hosts {
		for _, code := range []string{"200", "404", "500"} {
			for _, path := range []string{"/", "/api"} {
				s.counter(s.add("requests_total", "host", host, "code", code, "path", path), time.Minute, func() float64 { return float64(s.rng.IntN(50)) })
			}
		}
		s.counter(s.add("cpu_seconds_total", "host", host), 15*time.Second, func() float64 { return math.Round(s.rng.Float64()*1500) / 100 })
	}
	// One that resets within hours, and one that is always 0.
	m := s.add("restarts_total", "host", hosts[0])
	v := 0.0
	for _, t := range s.scrapes(s.begin, s.end, time.Minute) {
		if v++; s.rng.IntN(20) == 0 {
			v = 0
		}
		m.put(t, v)
	}
	s.counter(s.add("errors_total", "host", hosts[0]), time.Minute, func() float64 { return 0 })
}

// counter grows by what step says, and begins anew two or three times.
func (s *stream) counter(m *made, every time.Duration, step func() float64) {
	times := s.scrapes(s.begin, s.end, every)
	v := 0.0
	for _, t := range times {
		if s.rng.IntN(len(times)/3) == 0 {
			v = 0
		}
		v += step()
		m.put(t, v)
	}
}

func (s *stream) classicHistograms() {
	bounds := []float64{0.005, 0.1, 0.5, 1, 2.5, math.Inf(1)}
	for _, host := range hosts {
		times := s.scrapes(s.begin, s.end, time.Minute)
		var buckets []*made
		for _, le := range bounds {
			buckets = append(buckets, s.add("latency_seconds_bucket", "host", host, "le", strconv.FormatFloat(le, 'g', -1, 64)))
		}
		sum, count := s.add("latency_seconds_sum", "host", host), s.add("latency_seconds_count", "host", host)
		counts, total, n := make([]float64, len(bounds)), 0.0, 0.0
		for _, t := range times {
			if s.rng.IntN(len(times)/2) == 0 {
				clear(counts)
				total, n = 0, 0
			}
			for range s.rng.IntN(20) {
				v := s.rng.ExpFloat64()
				total, n = total+v, n+1
				for i, le := range bounds {
					if v <= le {
						counts[i]++
					}
				}
			}
			for i := range bounds {
				buckets[i].put(t, counts[i])
			}
			sum.put(t, total)
			count.put(t, n)
		}
	}
}

// churn makes series that live for some hours. Most end with a stale marker, the others in silence.
func (s *stream) churn() {
	for i := range 24 {
		m := s.add("job_up", "instance", fmt.Sprintf("i%02d", i), "job", "batch")
		from := s.begin.Add(time.Duration(s.rng.Int64N(int64(streamLength - 2*time.Hour))))
		to := from.Add(time.Duration(s.rng.IntN(300)+20) * time.Minute)
		last := from
		for _, last = range s.scrapes(from, minTime(to, s.end), time.Minute) {
			m.put(last, float64(min(1, s.rng.IntN(20))))
		}
		if end := last.Add(time.Minute); i%4 != 0 && end.Before(s.end) {
			m.put(end, stale)
		}
	}
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// gaps makes series that are away again and again, for less or more than the lookback, with and without a marker.
func (s *stream) gaps() {
	for i := range 4 {
		m := s.add("gappy", "i", strconv.Itoa(i))
		away := s.begin
		for _, t := range s.scrapes(s.begin, s.end, 30*time.Second) {
			switch {
			case t.Before(away):
			case s.rng.IntN(100) == 0:
				away = t.Add(time.Duration(s.rng.IntN(3600)) * time.Second / time.Duration(1+9*(i%2)))
				if i > 1 {
					m.put(t, stale)
				}
			default:
				m.put(t, math.Sqrt(float64(s.rng.IntN(1000))))
			}
		}
	}
	for i := range 3 {
		m := s.add("stray_total", "i", strconv.Itoa(i))
		m.strays = true
		s.counter(m, time.Minute, func() float64 { return float64(s.rng.IntN(9)) })
	}
	// Backfilled: it comes when everything else is there.
	for i := range 2 {
		m := s.add("backfilled", "i", strconv.Itoa(i))
		m.late = true
		for _, t := range s.scrapes(s.begin.Add(3*time.Hour), s.end.Add(-5*time.Hour), 5*time.Minute) {
			m.put(t, float64(s.rng.IntN(1000))/8)
		}
	}
}

// historyLength goes back over two ends of months at least.
const historyLength = 65 * 24 * time.Hour

// history makes series that go far back, some of which have long ended. It comes as a backfill.
func (s *stream) history() {
	from := s.end.Add(-historyLength)
	for i, part := range [][2]int{{0, 65}, {0, 65}, {3, 20}, {18, 43}, {40, 62}} {
		m := s.add("history_total", "i", strconv.Itoa(i), "age", strconv.Itoa(65-part[1]))
		m.late = true
		v := 0.0
		for _, t := range s.scrapes(from.AddDate(0, 0, part[0]), from.AddDate(0, 0, part[1]), 3*time.Hour) {
			if v += float64(s.rng.IntN(100)); s.rng.IntN(100) == 0 {
				v = 0
			}
			m.put(t, v)
		}
	}
}

// dense makes a series of so many samples that its hours do not fit beside others, around the last midnight.
func (s *stream) dense() {
	m := s.add("dense", "hertz", "10")
	midnight := time.UnixMilli(s.midnight())
	for t := midnight.Add(-35 * time.Minute); t.Before(midnight.Add(35*time.Minute)) && t.Before(s.end); t = t.Add(100 * time.Millisecond) {
		m.put(t, s.rng.NormFloat64())
	}
}

// odds makes values that are unusual, and times.
func (s *stream) odds() {
	odd := []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1, -1, 5e-324, 2.964393875e-314, math.MaxFloat64,
		-math.MaxFloat64, 1 << 53, 1<<53 - 1, 18446744073709551615, 2.33, 1e21, 0.1, 1e-7, stale,
	}
	for i, every := range []time.Duration{5 * time.Minute, 4 * time.Minute} {
		m := s.add("odd", "i", strconv.Itoa(i))
		for _, t := range s.scrapes(s.begin, s.end, every) {
			m.put(t, odd[s.rng.IntN(len(odd))])
		}
	}
	m := s.add("infinite", "sign", "both")
	for _, t := range s.scrapes(s.begin, s.end, 3*time.Minute) {
		m.put(t, []float64{1, 2, 3, math.Inf(1), math.Inf(-1), math.NaN()}[min(s.rng.IntN(60), 5)])
	}
	// From one millisecond to ten minutes apart.
	m = s.add("unsteady", "kind", "times")
	for t := s.begin; t.Before(s.end); t = t.Add(time.Duration(math.Exp(s.rng.Float64()*math.Log(600_000))) * time.Millisecond) {
		m.put(t, float64(s.rng.IntN(10_000))/4)
	}
}

// edges makes samples around the beginnings of hours and days, and nothing else.
func (s *stream) edges() {
	around := []time.Duration{-time.Millisecond, 0, time.Millisecond}
	for i, offsets := range [][]time.Duration{around, around[1:2], around[:1], around[2:]} {
		m := s.add("edge", "i", strconv.Itoa(i))
		for hour := s.begin.Truncate(time.Hour).Add(time.Hour); hour.Before(s.end.Add(-time.Minute)); hour = hour.Add(time.Hour) {
			for _, off := range offsets {
				m.put(hour.Add(off), float64(s.rng.IntN(100)))
			}
		}
	}
	// A sample each 5 minutes on the dot: the lookback's length.
	m := s.add("sparse", "every", "5m")
	for t := s.begin.Truncate(5 * time.Minute).Add(5 * time.Minute); t.Before(s.end); t = t.Add(5 * time.Minute) {
		m.put(t, float64(t.Unix()%3600)/60)
	}
}

// joins makes series of a constant 1, and of small whole numbers, to match others with.
func (s *stream) joins() {
	for i, host := range hosts {
		m := s.add("build_info", "host", host, "version", fmt.Sprintf("1.%d", i))
		for _, t := range s.scrapes(s.begin, s.end, time.Minute) {
			m.put(t, 1)
		}
		m = s.add("cores", "host", host, "arch", []string{"amd64", "arm64"}[i%2])
		for _, t := range s.scrapes(s.begin, s.end, time.Minute) {
			m.put(t, math.Exp2(float64(i+1)))
		}
	}
}

// names makes series whose names and labels are not what everybody has.
func (s *stream) names() {
	for i, pairs := range [][]string{{"plain", "1"}, {"with.dot", "ä"}, {"with space", "a\"b\\c\nd"}, {"emoji", "🦉"}} {
		m := s.add("utf8.näme", pairs...)
		for _, t := range s.scrapes(s.begin, s.end, 10*time.Minute) {
			m.put(t, float64(i)+s.rng.Float64())
		}
	}
}

// between gives the values of a series in from..to (to excluded), in milliseconds.
func (m *made) between(from, to int64) []taken {
	at := func(t int64) int {
		i, _ := slices.BinarySearchFunc(m.values, t, func(v taken, t int64) int { return cmp.Compare(v.at, t) })
		return i
	}
	return m.values[at(from):at(to)]
}

// count is how many samples there are in all.
func (s *stream) count() (n int) {
	for _, m := range s.series {
		n += len(m.values)
	}
	return n
}
