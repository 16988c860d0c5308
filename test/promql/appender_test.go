package promql

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
)

// appender collects what a script loads. Commit sends it as one remote write 2.0 request, as a sender would.
type appender struct {
	ctx    context.Context
	to     *database
	all    []*loaded
	newest int64
}

// loaded is one series of a load.
type loaded struct {
	labels     labels.Labels
	samples    []writev2.Sample
	histograms []writev2.Histogram
}

// Append implements storage.AppenderV2. Start timestamps are left out, as daybook does not keep them.
func (a *appender) Append(_ storage.SeriesRef, ls labels.Labels, _, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, _ storage.AppendV2Options) (storage.SeriesRef, error) {
	one := a.of(ls)
	switch {
	case fh != nil:
		one.histograms = append(one.histograms, writev2.FromFloatHistogram(0, t, fh.Copy()))
	case h != nil:
		one.histograms = append(one.histograms, writev2.FromIntHistogram(0, t, h.Copy()))
	default:
		one.samples = append(one.samples, writev2.Sample{Timestamp: t, Value: v})
	}
	a.newest = max(a.newest, t)
	return 0, nil
}

// of gives the series with some labels. Scripts append one after the other.
func (a *appender) of(ls labels.Labels) *loaded {
	if n := len(a.all); n > 0 && labels.Equal(a.all[n-1].labels, ls) {
		return a.all[n-1]
	}
	one := &loaded{labels: ls}
	a.all = append(a.all, one)
	return one
}

// Commit implements storage.AppenderTransaction.
func (a *appender) Commit() error {
	a.to.now.reach(time.UnixMilli(a.newest).Add(time.Second))
	body, err := a.body()
	if err != nil {
		return err
	}
	a.to.last = body
	if _, err := a.to.in.WriteV2(a.ctx, body); err != nil {
		return err
	}
	return a.to.then(a.to)
}

// Rollback implements storage.AppenderTransaction: nothing was sent yet.
func (a *appender) Rollback() error { return nil }

// body is the remote write request. writev2 leaves out the value -0, taking it for 0, so floats are written here.
func (a *appender) body() ([]byte, error) {
	symbols := writev2.NewSymbolTable()
	var request []byte
	for _, one := range a.all {
		ts := writev2.TimeSeries{LabelsRefs: symbols.SymbolizeLabels(one.labels, nil), Histograms: one.histograms}
		field, err := ts.Marshal()
		if err != nil {
			return nil, err
		}
		for _, s := range one.samples {
			b := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(s.Value))
			field = appendField(field, 2, binary.AppendUvarint(append(b, 2<<3), uint64(s.Timestamp)))
		}
		request = appendField(request, 5, field)
	}
	for _, text := range symbols.Symbols() {
		request = appendField(request, 4, []byte(text))
	}
	return snappy.Encode(nil, request), nil
}

// appendField appends a field that holds bytes.
func appendField(to []byte, number int, data []byte) []byte {
	to = binary.AppendUvarint(to, uint64(number)<<3|2)
	to = binary.AppendUvarint(to, uint64(len(data)))
	return append(to, data...)
}
