package series

import (
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
)

// Histogram is a native histogram of a series at one moment. One of Int and Float is set: what was sent with integer
// counts stays so. It is kept as it came, buckets in the layout that the sender chose.
type Histogram struct {
	T     Millis
	Int   *histogram.Histogram
	Float *histogram.FloatHistogram
}

// Exemplar is one observation behind the samples of a series, with labels of its own, such as a trace's id.
type Exemplar struct {
	T      Millis
	V      float64
	Labels labels.Labels
}

// Metadata is what is known of a metric family beyond its samples. Type is one of Prometheus's words for it ("counter",
// "gauge", "histogram" ...), "unknown" where nobody said.
type Metadata struct {
	Family string
	Type   string
	Help   string
	Unit   string
}
