package query

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"daybook/internal/series"
	"daybook/internal/store"
)

// mixed goes over the samples of a series that has native histograms, and floats where it changed from one to the other.
// It implements chunkenc.Iterator.
type mixed struct {
	run        *store.Run // whose samples these are
	floats     []series.Sample
	histograms []series.Histogram
	at         chunkenc.ValueType // of the first of which it stands
	begun      bool
}

func newMixed(run *store.Run) *mixed {
	return &mixed{run: run, floats: run.Floats, histograms: run.Histograms}
}

func (it *mixed) Next() chunkenc.ValueType {
	switch {
	case !it.begun:
		it.begun = true
	case it.at == chunkenc.ValFloat:
		it.floats = it.floats[1:]
	case it.at != chunkenc.ValNone:
		it.histograms = it.histograms[1:]
	}
	return it.look()
}

// look finds out which sample is the earlier one. A series has only one at a time; if there are two, the float counts.
func (it *mixed) look() chunkenc.ValueType {
	switch {
	case len(it.histograms) == 0 && len(it.floats) == 0:
		it.at = chunkenc.ValNone
	case len(it.histograms) == 0 || len(it.floats) > 0 && it.floats[0].T <= it.histograms[0].T:
		it.at = chunkenc.ValFloat
		if len(it.histograms) > 0 && it.floats[0].T == it.histograms[0].T {
			it.histograms = it.histograms[1:]
		}
	case it.histograms[0].Int != nil:
		it.at = chunkenc.ValHistogram
	default:
		it.at = chunkenc.ValFloatHistogram
	}
	return it.at
}

func (it *mixed) Seek(t int64) chunkenc.ValueType {
	if !it.begun {
		it.Next()
	}
	for it.at != chunkenc.ValNone && it.AtT() < t {
		it.Next()
	}
	return it.at
}

func (it *mixed) At() (int64, float64) { return int64(it.floats[0].T), it.floats[0].V }

func (it *mixed) AtHistogram(into *histogram.Histogram) (int64, *histogram.Histogram) {
	h := it.histograms[0]
	if into == nil {
		into = new(histogram.Histogram)
	}
	h.Int.CopyTo(into)
	into.CounterResetHint = hint(into.CounterResetHint)
	return int64(h.T), into
}

func (it *mixed) AtFloatHistogram(into *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	h := it.histograms[0]
	if into == nil {
		into = new(histogram.FloatHistogram)
	}
	if h.Int != nil {
		into = h.Int.ToFloat(into)
	} else {
		h.Float.CopyTo(into)
	}
	into.CounterResetHint = hint(into.CounterResetHint)
	return int64(h.T), into
}

// hint passes on what a sender says of a histogram by itself. That there was no reset since the histogram before is true
// only of what the sender sent before, which need not be what is stored before: then the engine has to look.
func hint(h histogram.CounterResetHint) histogram.CounterResetHint {
	if h == histogram.NotCounterReset {
		return histogram.UnknownCounterReset
	}
	return h
}

func (it *mixed) AtT() int64 {
	if it.at == chunkenc.ValFloat {
		return int64(it.floats[0].T)
	}
	return int64(it.histograms[0].T)
}

func (it *mixed) AtST() int64 { return 0 }
func (it *mixed) Err() error  { return nil }
