package query

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"daybook/internal/series"
)

// TestIterator compares random walks with what package storage says of Next and Seek.
func TestIterator(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var samples []series.Sample
		at := series.Millis(r.IntN(100) - 50)
		for range r.IntN(40) {
			samples = append(samples, series.Sample{T: at, V: float64(at)})
			at += 1 + series.Millis(r.IntN(20))
		}
		it, where := &iterator{samples: samples, at: -1}, -1
		for range 30 {
			var got chunkenc.ValueType
			if r.IntN(2) == 0 {
				got = it.Next()
				where = min(where+1, len(samples))
			} else {
				target := int64(at) * int64(r.IntN(14)-2) / 10
				got = it.Seek(target)
				where = max(where, 0) // a Seek never goes back
				if n := slices.IndexFunc(samples[min(where, len(samples)):], func(s series.Sample) bool { return int64(s.T) >= target }); n >= 0 {
					where += n
				} else {
					where = len(samples)
				}
			}
			if where == len(samples) {
				if got != chunkenc.ValNone || it.Err() != nil {
					t.Fatalf("behind the last sample: %v, error %v", got, it.Err())
				}
				continue
			}
			if sampleT, v := it.At(); got != chunkenc.ValFloat || sampleT != it.AtT() || sampleT != int64(samples[where].T) || v != samples[where].V {
				t.Fatalf("at sample %d of %v: %v %d %v", where, samples, got, sampleT, v)
			}
		}
	}
}

func TestIteratorFails(t *testing.T) {
	broken := errors.New("broken")
	it := &iterator{samples: []series.Sample{{T: 1}}, at: -1, err: broken}
	if it.Next() != chunkenc.ValNone || it.Seek(0) != chunkenc.ValNone || !errors.Is(it.Err(), broken) {
		t.Error("an iterator that failed gives samples")
	}
}
