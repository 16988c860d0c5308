package index

import (
	"cmp"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/index"

	"daybook/keys"
)

// Cardinality says how many series there are and what most of them have, each list from the most to the fewest.
type Cardinality struct {
	Series     int
	LabelPairs int

	Metrics     []Count // series by metric name
	LabelValues []Count // different values by label name
	LabelBytes  []Count // memory of the names and values by label name, counted for each series
	Pairs       []Count // series by label name and value, name=value
}

// Count is how many there are of something.
type Count struct {
	Name  string
	Count uint64
}

// Cardinality gives the numbers of a month that is in memory, at most so many in each list. It goes over all postings.
func (x *Index) Cardinality(month keys.Month, most int) Cardinality {
	x.mu.RLock()
	p := x.periods[month]
	x.mu.RUnlock()
	if p == nil {
		return Cardinality{}
	}
	stats := p.postings.Stats(model.MetricNameLabel, most, labels.SizeOfLabels)
	x.mu.RLock()
	defer x.mu.RUnlock()
	return Cardinality{
		Series: len(p.byRef), LabelPairs: stats.NumLabelPairs,
		Metrics: counts(stats.CardinalityMetricsStats), LabelValues: counts(stats.CardinalityLabelStats),
		LabelBytes: counts(stats.LabelValueStats), Pairs: counts(stats.LabelValuePairsStats),
	}
}

func counts(stats []index.Stat) []Count {
	all := make([]Count, len(stats))
	for i, s := range stats {
		all[i] = Count(s)
	}
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return all
}
