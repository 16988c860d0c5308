package query

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"daybook/internal/series"
	"daybook/internal/store"
)

// iterator goes over the samples of one series. It implements chunkenc.Iterator.
type iterator struct {
	run     *store.Run // whose samples these are
	samples []series.Sample
	at      int
	err     error
}

// reset begins anew with what was read of a series, or why it was not.
func (it *iterator) reset(run *store.Run, err error) {
	*it = iterator{run: run, at: -1, err: err}
	if run != nil {
		it.samples = run.Floats
	}
}

func (it *iterator) Next() chunkenc.ValueType {
	it.at++
	return it.value()
}

// Seek tries the next few samples first, as steps are seldom long.
func (it *iterator) Seek(t int64) chunkenc.ValueType {
	if it.at < 0 {
		it.at = 0
	}
	const near = 8
	for end := min(it.at+near, len(it.samples)); it.at < end; it.at++ {
		if int64(it.samples[it.at].T) >= t {
			return it.value()
		}
	}
	low, high := it.at, len(it.samples)
	for low < high {
		if middle := int(uint(low+high) >> 1); int64(it.samples[middle].T) < t {
			low = middle + 1
		} else {
			high = middle
		}
	}
	it.at = low
	return it.value()
}

func (it *iterator) value() chunkenc.ValueType {
	if it.err != nil || it.at >= len(it.samples) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

func (it *iterator) At() (int64, float64) {
	s := it.samples[it.at]
	return int64(s.T), s.V
}

func (it *iterator) AtT() int64  { return int64(it.samples[it.at].T) }
func (it *iterator) AtST() int64 { return 0 }
func (it *iterator) Err() error  { return it.err }

func (it *iterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	panic("query: a float series was asked for a histogram")
}

func (it *iterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	panic("query: a float series was asked for a histogram")
}
