package ingest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"

	"daybook/ingest"
	"daybook/internal/index"
	"daybook/internal/series"
)

var now = at(day0, 1)

// refused gives what a write refuses, and checks that people can read it.
func refused(t *testing.T, err error) *ingest.RefusedError {
	t.Helper()
	var re *ingest.RefusedError
	if !errors.As(err, &re) {
		t.Fatalf("nothing is refused: %v", err)
	}
	if text := err.Error(); !utf8.ValidString(text) || len(text) > 20_000 {
		t.Errorf("%d bytes of message: %.300q", len(text), text)
	}
	return re
}

func TestLabelsRefused(t *testing.T) {
	for what, c := range map[string]struct {
		pairs   []string
		message string // what the refusal says, of the series and the reason
	}{
		"repeated":              {[]string{"__name__", "m", "a", "1", "b", "2", "a", "3"}, `m{a="1", a="3", b="2"}: the label name "a" is repeated`},
		"repeated, same value":  {[]string{"__name__", "m", "a", "1", "a", "1"}, `"a" is repeated`},
		"repeated, once empty":  {[]string{"__name__", "m", "a", "", "a", "1"}, `"a" is repeated`},
		"two metric names":      {[]string{"__name__", "m", "__name__", "n"}, `"__name__" is repeated`},
		"no metric name":        {[]string{"a", "1"}, `{a="1"}: the metric name (label __name__) is missing or empty`},
		"empty metric name":     {[]string{"__name__", "", "a", "1"}, `is missing or empty`},
		"no labels":             {nil, `is missing or empty`},
		"empty label name":      {[]string{"__name__", "m", "", "1"}, `m{="1"}: a label has an empty name`},
		"both empty":            {[]string{"__name__", "m", "", ""}, `a label has an empty name`},
		"value not UTF-8":       {[]string{"__name__", "m", "a", "x\xff\xfey"}, `m{a="x\xff\xfey"}: the value of label "a" is not valid UTF-8`},
		"name not UTF-8":        {[]string{"__name__", "m", "x\xff\xfey", "1"}, `the label name "x\xff\xfey" is not valid UTF-8`},
		"metric not UTF-8":      {[]string{"__name__", "x\xff\xfey"}, `x\xff\xfey{}: the value of label "__name__" is not valid UTF-8`},
		"overlong NUL":          {[]string{"__name__", "m", "a", "\xc0\x80"}, `not valid UTF-8`},
		"surrogate":             {[]string{"__name__", "m", "a", "\xed\xa0\x80"}, `not valid UTF-8`},
		"beyond Unicode":        {[]string{"__name__", "m", "a", "\xf4\x90\x80\x80"}, `not valid UTF-8`},
		"cut in a character":    {[]string{"__name__", "m", "a", "é"[:1]}, `not valid UTF-8`},
		"70 KiB":                {[]string{"__name__", "m", "a", strings.Repeat("x", 70<<10)}, "at most 61440"},
		"many long ones":        {[]string{"__name__", "m", "a", strings.Repeat("x", 40_000), "b", strings.Repeat("é", 20_000)}, "at most 61440"},
		"17 MiB":                {[]string{"__name__", "m", "a", strings.Repeat("\U0001f4d3", 17<<18)}, "at most 61440"},
		"17 MiB of a name":      {[]string{"__name__", "m", strings.Repeat("é", 17<<19), "1"}, "at most 61440"},
		"17 MiB not UTF-8":      {[]string{"__name__", "m", strings.Repeat("\xff", 17<<20), "1"}, "not valid UTF-8"},
		"17 MiB, repeated":      {[]string{"__name__", "m", strings.Repeat("x", 17<<20), "1", strings.Repeat("x", 17<<20), "1"}, "is repeated"},
		"empty in all but name": {[]string{"a", "", "b", ""}, `is missing or empty`},
	} {
		t.Run(what, func(t *testing.T) {
			for version := 1; version <= 2; version++ {
				w := newWorld(t, nil)
				result, err := w.send(version, labelled(c.pairs, now, at(day0.Add(-time.Minute), 2)), metric("control", now))
				re := refused(t, err)
				says := strings.Contains(err.Error(), c.message) || version == 2 && strings.Contains(err.Error(), "at most 61440")
				if !says || re.Samples != 2 || result.Samples != 1 {
					t.Errorf("version %d: %d refused, %d stored, %q does not say %q", version, re.Samples, result.Samples, err.Error(), c.message)
				}
				must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
				w.expect("control", now)
				if n := w.index.Len(); n != 1 {
					t.Errorf("version %d: %d series after a crash", version, n)
				}
			}
		})
	}
}

// A series is the same in whatever order its labels come, with or without empty ones.
func TestLabelsSorted(t *testing.T) {
	w := newWorld(t, nil)
	pairs := [][2]string{{"__name__", "m"}, {"Zone", "1"}, {"a", "2"}, {"a.b", "3"}, {"a_b", "4"}, {"z", "5"}, {"é", "6"}, {"\U0001f4d3", "7"}}
	rng := rand.New(rand.NewPCG(1, 2))
	var want []series.Sample
	for i := range 30 {
		var shuffled []string
		for _, j := range rng.Perm(len(pairs)) {
			shuffled = append(shuffled, pairs[j][0], pairs[j][1])
		}
		if i%3 == 0 {
			shuffled = append(shuffled, "empty", "", "b", "")
		}
		s := at(day0.Add(time.Duration(i-30)*time.Second), float64(i))
		_, err := w.send(1+i%2, labelled(shuffled, s))
		must(t, err)
		want = append(want, s)
	}
	for range 2 {
		found, err := w.index.Select(t.Context(), index.AllMonths)
		must(t, err)
		if len(found) != 1 {
			t.Fatalf("%d series", len(found))
		}
		var names []string
		found[0].Labels.Range(func(l labels.Label) { names = append(names, l.Name) })
		if got := strings.Join(names, " "); got != "Zone __name__ a a.b a_b z é \U0001f4d3" {
			t.Errorf("labels are sorted as %s", got)
		}
		got, err := w.all(found[0].ID)
		must(t, err)
		if err := same(truthOf(want...), got); err != nil {
			t.Error(err)
		}
		must(t, w.restart())
	}
}

// Labels come back byte for byte, from memory, from the log and from the catalogue.
func TestLabelsKept(t *testing.T) {
	w := newWorld(t, nil)
	values := []string{"\U0001f4d3", "\u00e9", "e\u0301", "a\x00b", "\x00", " ", "'", "''", `/\#?%`, "%2F", "\t", "\u0080", "\u0640", "\ufffd",
		strings.Repeat("k", 2<<10), strings.Repeat("x", 40_000), strings.Repeat("\U0001f4d3", 10_000)}
	for i, v := range values {
		_, err := w.send(1+i%2, labelled([]string{"__name__", "m", "l", v}, at(day0, float64(i))))
		must(t, err)
	}
	check := func(when string) {
		t.Helper()
		if n := w.index.Len(); n != len(values) {
			t.Fatalf("%s: %d series of %d", when, n, len(values))
		}
		for i, v := range values {
			found, err := w.index.Select(t.Context(), index.AllMonths, labels.MustNewMatcher(labels.MatchEqual, "l", v))
			must(t, err)
			if len(found) != 1 {
				t.Fatalf("%s: %d series with %.50q", when, len(found), v)
			}
			got, err := w.all(found[0].ID)
			must(t, err)
			if err := same(truthOf(at(day0, float64(i))), got); err != nil {
				t.Errorf("%s: %.50q: %v", when, v, err)
			}
		}
	}
	check("in memory")
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	check("from the log")
	must(t, w.restart())
	check("from the catalogue")
}

func truthOf(all ...series.Sample) map[series.Millis]uint64 {
	truth := map[series.Millis]uint64{}
	for _, s := range all {
		truth[s.T] = math.Float64bits(s.V)
	}
	return truth
}

func TestTimesRefused(t *testing.T) {
	w := newWorld(t, nil)
	newest, oldest := at(day0.Add(ingest.Future), 1), at(day0.Add(-retention), 2)
	good := []series.Sample{oldest, now, newest}
	for what, s := range map[string]series.Sample{
		"is more than 10 minutes in the future": {T: newest.T + 1, V: 3},
		"is older than the retention":           {T: oldest.T - 1, V: 4},
		"9223372036854775807 ms is more than":   {T: math.MaxInt64, V: 5},
		"-9223372036854775808 ms is older than": {T: math.MinInt64, V: 6},
	} {
		result, err := w.write(metric("m", oldest, s, now), metric("only", s), metric("m", newest))
		re := refused(t, err)
		if text := err.Error(); !strings.Contains(text, `{__name__="m", job="test"}: timestamp`) || !strings.Contains(text, what) {
			t.Errorf("%q does not say %q", text, what)
		}
		if re.Samples != 2 || result.Samples != 3 {
			t.Errorf("%d refused, %d stored", re.Samples, result.Samples)
		}
	}
	for range 2 {
		w.expect("m", good...)
		if n := w.index.Len(); n != 1 {
			t.Errorf("%d series, with one that has no samples", n)
		}
		must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	}
}

// Without a retention everything is taken back to where keys end.
func TestNoRetention(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.Retention = 0 })
	_, err := w.write(metric("m", series.Sample{T: -1 << 60, V: 1}, series.Sample{T: -1, V: 2}, series.Sample{T: 0, V: 3}, now))
	if re := refused(t, err); re.Samples != 1 {
		t.Errorf("%d refused", re.Samples)
	}
	must(t, w.flush())
	got, err := theFloats(w.store.Pages(t.Context(), w.id("m"), -1, -1, -24, -1))
	must(t, err)
	if err := same(truthOf(series.Sample{T: -1, V: 2}), got); err != nil {
		t.Error(err)
	}
}

var (
	stale    = math.Float64frombits(0x7ff0000000000002)
	otherNaN = math.Float64frombits(0x7ff0000000000003)
)

// The first value of a time stays: another is refused, the same bits are as good as there.
func TestSameTime(t *testing.T) {
	values := []float64{1, math.NaN(), stale, otherNaN, 0, math.Copysign(0, -1), math.Inf(1), 5e-324}
	for _, first := range values {
		w := newWorld(t, nil)
		s := at(day0, first)
		try := func(when string) {
			t.Helper()
			for _, v := range values {
				result, err := w.write(metric("m", at(day0, v)), metric("control", now))
				if math.Float64bits(v) == math.Float64bits(first) {
					if err != nil || result.Samples != 2 {
						t.Errorf("%s: the same value %x again: %v", when, math.Float64bits(v), err)
					}
					continue
				}
				if re := refused(t, err); re.Samples != 1 || result.Samples != 1 || !strings.Contains(err.Error(), "another value is stored for timestamp 2026-10-28T12:30:00.000Z already") {
					t.Errorf("%s: %v", when, err)
				}
			}
			w.expect("m", s)
		}
		w.put(metric("m", s))
		try("in memory")
		must(t, w.flush())
		try("flushed")
		w.put(metric("m", at(day0.Add(time.Second), 9)))
		if _, err := w.write(metric("m", s, series.Sample{T: s.T, V: 77})); err == nil {
			t.Error("another value within one request is taken")
		}
		must(t, w.crashNow(rand.New(rand.NewPCG(1, 0))))
		w.expect("m", s, at(day0.Add(time.Second), 9))
	}
}

// A value that only the table knows cannot be compared when another one comes: that one is left out later.
func TestSameTimeInTheTable(t *testing.T) {
	w := newWorld(t, nil)
	s := at(day0, 1)
	w.put(metric("m", s))
	must(t, w.restart())
	w.put(metric("m", at(day0, 2)), metric("other", now))
	w.expect("m", s)
	must(t, w.flush())
	w.expect("m", s)
	w.expect("other", now)
	if w.logs.with("were left out") != 1 {
		t.Errorf("nothing is said of what was left out: %q", w.logs.lines)
	}
	if _, err := w.write(metric("m", at(day0, 2))); err == nil {
		t.Error("now that the hour is in memory, another value is taken")
	}
}

// Resending is harmless, whenever it happens.
func TestResend(t *testing.T) {
	w := newWorld(t, nil)
	var request []prompb.TimeSeries
	want := map[string][]series.Sample{}
	for i := range 20 {
		name := fmt.Sprintf("m%d", i)
		for j := range 50 {
			want[name] = append(want[name], at(day0.Add(time.Duration(j-50)*10*time.Minute), float64(i*j)))
		}
		request = append(request, metric(name, want[name]...))
	}
	rng := rand.New(rand.NewPCG(1, 0))
	for step, do := range []func() error{
		func() error { return nil }, func() error { return nil }, w.flush, w.restart, w.flush,
		func() error { return w.crashNow(rng) },
		func() error { w.now.add(30 * time.Hour); return w.flush() },
		func() error { return w.roller.CloseDays(t.Context(), w.now.day()-1) },
		w.flush, w.restart, func() error { return w.crashNow(rng) },
	} {
		must(t, do())
		result, err := w.write(request...)
		if err != nil || result.Samples != 1000 {
			t.Errorf("step %d: %d samples, %v", step, result.Samples, err)
		}
		for name := range want {
			w.expect(name, want[name]...)
		}
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.MaxBody, c.MaxDecoded = 1000, 2000 })
	huge := binary.AppendUvarint(nil, 1<<32-1)
	for what, c := range map[string]struct {
		body []byte
		want error
	}{
		"a long body":            {make([]byte, 1001), ingest.ErrTooLarge},
		"declared too long":      {binary.AppendUvarint(nil, 2001), ingest.ErrTooLarge},
		"declared 4 GiB":         {huge, ingest.ErrTooLarge},
		"declared over 4 GiB":    {binary.AppendUvarint(nil, 1<<40), ingest.ErrMessage},
		"no body":                {nil, ingest.ErrMessage},
		"declared, but not sent": {binary.AppendUvarint(nil, 2000), ingest.ErrMessage},
		"not snappy":             {[]byte("not snappy"), ingest.ErrMessage},
		"not protobuf":           {snappy.Encode(nil, []byte("not protobuf")), ingest.ErrMessage},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := w.in.Write(t.Context(), c.body)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
			t.Errorf("%s: %d bytes of memory taken", what, taken)
		}
	}
	w.put(metric("m", now))
}

// The bytes of requests being handled are bounded; a request that is larger than the bound alone is taken.
func TestInFlight(t *testing.T) {
	entered, goOn := make(chan struct{}), make(chan struct{})
	blocking := false
	w := newWorld(t, nil)
	w.abandon()
	w.edit = func(c *ingest.Config) {
		c.MaxInFlight = 10
		clock := c.Now
		c.Now = func() time.Time {
			if blocking {
				entered <- struct{}{}
				<-goOn
			}
			return clock()
		}
	}
	must(t, w.open())
	w.put(metric("m", at(day0.Add(-time.Second), 1)))
	blocking = true
	done := make(chan error)
	go func() {
		_, err := w.write(metric("m", now))
		done <- err
	}()
	<-entered
	if _, err := w.write(metric("n", now)); !errors.Is(err, ingest.ErrUnavailable) {
		t.Errorf("beyond what may be in flight: %v", err)
	}
	close(goOn)
	must(t, <-done)
	blocking = false
	w.put(metric("n", now))
	w.expect("n", now)
}

func TestNothingToStore(t *testing.T) {
	w := newWorld(t, nil)
	size := w.in.LogSize()
	for what, body := range map[string][]byte{
		"an empty request":         {0},
		"a series without samples": body(metric("m")),
	} {
		result, err := w.in.Write(t.Context(), body)
		if err != nil || result.Samples != 0 {
			t.Errorf("%s: %+v, %v", what, result, err)
		}
	}
	if w.in.LogSize() != size || w.index.Len() != 0 {
		t.Errorf("the log grew from %d to %d bytes, and there are %d series", size, w.in.LogSize(), w.index.Len())
	}
}

func TestMaxPerHour(t *testing.T) {
	w := newWorld(t, func(c *ingest.Config) { c.MaxPerHour = 100 })
	hour := day0.Truncate(time.Hour)
	var all []series.Sample
	for i := range 150 {
		all = append(all, at(hour.Add(time.Duration(i)*time.Second), float64(i)))
	}
	w.put(metric("m", all[:60]...))
	must(t, w.flush())
	result, err := w.write(metric("m", all[60:]...), metric("control", now))
	re := refused(t, err)
	if re.Samples != 50 || result.Samples != 41 || !strings.Contains(err.Error(), "max_samples_per_hour") {
		t.Errorf("%d stored, %v", result.Samples, err)
	}
	if len(re.Refusals) != 1 || re.Refusals[0].Count != 50 {
		t.Errorf("one refusal of 50 samples, told as %+v", re.Refusals)
	}
	before := at(hour.Add(-time.Second), 1)
	w.put(metric("m", all[3], before)) // what is there already, and another hour
	w.expect("m", append([]series.Sample{before}, all[:100]...)...)
}

// A message that names thousands of refused samples is as long as one that names ten.
func TestManyRefusals(t *testing.T) {
	w := newWorld(t, nil)
	var request []prompb.TimeSeries
	for i := range 2000 {
		request = append(request, labelled([]string{"__name__", fmt.Sprint("m", i), "long", strings.Repeat("é", 5000)}, series.Sample{T: 1, V: 1}, now))
	}
	result, err := w.write(request...)
	if re := refused(t, err); re.Samples != 2000 || result.Samples != 2000 || !strings.Contains(err.Error(), "and 1990 more") {
		t.Errorf("%d refused, %d stored, %.300q", re.Samples, result.Samples, err.Error())
	}
}

// A request of which a part was refused is in the log without that part.
func TestRefusedStaysRefused(t *testing.T) {
	w := newWorld(t, nil)
	far := series.Sample{T: now.T + 11*60_000, V: 7}
	_, err := w.write(metric("a", now), metric("b", now, far, at(day0.Add(-time.Hour), 2)), metric("c", far), metric("d", now))
	if re := refused(t, err); re.Samples != 2 {
		t.Errorf("%d refused", re.Samples)
	}
	w.now.add(24 * time.Hour) // now the refused ones would be good
	must(t, w.crashNow(rand.New(rand.NewPCG(1, 1))))
	w.expect("a", now)
	w.expect("b", at(day0.Add(-time.Hour), 2), now)
	w.expect("c")
	w.expect("d", now)
	if n := w.index.Len(); n != 3 {
		t.Errorf("%d series", n)
	}
}

// When there is no room nothing is taken.
func TestNoRoom(t *testing.T) {
	full := errors.New("1 byte is left, 2 are kept free")
	var free error
	w := newWorld(t, func(c *ingest.Config) { c.FreeDisk = func() error { return free } })
	free = full
	if _, err := w.write(metric("m", now)); !errors.Is(err, ingest.ErrUnavailable) || !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	w.expect("m")
	free = nil
	w.put(metric("m", now))
	w.expect("m", now)
}

// What cannot be logged is not acknowledged.
func TestLogClosed(t *testing.T) {
	w := newWorld(t, nil)
	must(t, w.in.Abandon())
	if _, err := w.write(metric("m", now)); !errors.Is(err, ingest.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}
