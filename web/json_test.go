package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

func matrix(series, points int) promql.Matrix {
	m := make(promql.Matrix, series)
	for i := range m {
		m[i].Metric = labels.FromStrings("__name__", "node_cpu_seconds_total", "cpu", strconv.Itoa(i), "mode", "user")
		for j := range points {
			m[i].Floats = append(m[i].Floats, promql.FPoint{T: 1793707200000 + int64(j)*15_000, F: float64(i*j) / 100})
		}
	}
	return m
}

func encode(w io.Writer, m promql.Matrix) error {
	s := streams.Get().(*jsonStream)
	defer streams.Put(s)
	s.Reset(w)
	s.Error = nil
	s.success(func(s *jsonStream) { s.value(m, nil, nil) }, nil, nil)
	return s.Flush()
}

// Neither a sample nor a label costs an allocation.
func TestAllocations(t *testing.T) {
	m := matrix(100, 1000)
	if n := testing.AllocsPerRun(5, func() {
		if err := encode(io.Discard, m); err != nil {
			t.Fatal(err)
		}
	}); n > 20 {
		t.Errorf("%v allocations for an answer of 100 series with 1000 samples each", n)
	}
}

// broken is a client that leaves after some bytes.
type broken struct{ left, writes int }

var errLeft = errors.New("the client left")

func (b *broken) Write(p []byte) (int, error) {
	b.writes++
	if b.left -= len(p); b.left < 0 {
		return 0, errLeft
	}
	return len(p), nil
}

// For a client that has left nothing piles up.
func TestNothingPilesUp(t *testing.T) {
	s := streams.New().(*jsonStream)
	w := &broken{left: 3 * streamBuffer}
	s.Reset(w)
	s.success(func(s *jsonStream) { s.value(matrix(100, 1000), nil, nil) }, nil, nil)
	if err := s.Flush(); !errors.Is(err, errLeft) {
		t.Errorf("the error is %v", err)
	}
	if n := cap(s.Buffer()); n > 4*streamBuffer {
		t.Errorf("%d bytes piled up", n)
	}
	if w.writes > 5 {
		t.Errorf("written to %d times", w.writes)
	}
}

// Numbers and strings are what encoding/json reads back.
func TestNumbersAndStrings(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1.5, 5e-324, math.MaxFloat64, 1e21, 1e-7, 123456789.125, math.NaN()} {
		s := streams.New().(*jsonStream)
		s.numberOrNull(v)
		var got *float64
		if err := json.Unmarshal(s.Buffer(), &got); err != nil {
			t.Fatalf("%v: %v in %s", v, err, s.Buffer())
		}
		if (got == nil) != math.IsNaN(v) || got != nil && math.Float64bits(*got) != math.Float64bits(v) {
			t.Errorf("%v becomes %s", v, s.Buffer())
		}
	}
	for v, want := range map[string]string{
		hostile: hostile, "\xff": "\ufffd", "a\xed\xa0\x80b": "a\ufffdb", "\x7f\u2029": "\x7f\u2029", "": "",
	} {
		s := streams.New().(*jsonStream)
		s.text(v)
		var got string
		if err := json.Unmarshal(s.Buffer(), &got); err != nil || got != want {
			t.Errorf("%q becomes %s (%v)", v, s.Buffer(), err)
		}
	}
}

func BenchmarkMatrix(b *testing.B) {
	m := matrix(100, 1000)
	b.Run("stream", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := encode(io.Discard, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := json.NewEncoder(io.Discard).Encode(plain(m)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// plain is a matrix as encoding/json would be given it.
func plain(m promql.Matrix) any {
	type series struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	var all []series
	for _, one := range m {
		s := series{Metric: one.Metric.Map()}
		for _, p := range one.Floats {
			s.Values = append(s.Values, [2]any{float64(p.T) / 1000, fmt.Sprint(p.F)})
		}
		all = append(all, s)
	}
	return map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": all}}
}
