package ingest

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's own, for /metrics.
type metrics struct {
	samples       prometheus.Counter
	histograms    prometheus.Counter
	exemplars     prometheus.Counter
	metadata      prometheus.Counter
	refused       refusedMetrics
	leftOut       prometheus.Counter
	unavailable   prometheus.Counter
	lateConflicts prometheus.Counter
	flushes       prometheus.Counter
	flushFailures prometheus.Counter
	flushSeconds  prometheus.Histogram
}

// refusedMetrics count what was refused.
type refusedMetrics struct {
	samples, histograms, exemplars, metadata prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, in *Ingester) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "daybook_" + name, Help: help})
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string, value func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "daybook_" + name, Help: help}, value))
	}
	m := &metrics{
		samples:    counter("ingest_samples_total", "Samples acknowledged, those that were stored already included."),
		histograms: counter("ingest_histograms_total", "Native histograms acknowledged, those that were stored already included."),
		exemplars:  counter("ingest_exemplars_total", "Exemplars acknowledged, those that were stored already included."),
		metadata:   counter("ingest_metadata_total", "Metadata of metric families acknowledged that was not in the table."),
		refused: refusedMetrics{
			samples:    counter("ingest_refused_samples_total", "Samples refused with 400."),
			histograms: counter("ingest_refused_histograms_total", "Native histograms refused with 400."),
			exemplars:  counter("ingest_refused_exemplars_total", "Exemplars refused with 400."),
			metadata:   counter("ingest_refused_metadata_total", "Metadata refused with 400."),
		},
		leftOut:       counter("ingest_left_out_exemplars_total", "Exemplars beyond ingest.max_exemplars_per_hour, which are not stored."),
		unavailable:   counter("ingest_unavailable_total", "Requests answered with 503."),
		lateConflicts: counter("ingest_late_conflicts_total", "Acknowledged samples and histograms left out when their hour was flushed, as another value was stored for their time."),
		flushes:       counter("flush_cycles_total", "Rounds over all buckets that flushed and made durable what was in memory."),
		flushFailures: counter("flush_failures_total", "Rounds that failed and are repeated."),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "daybook_flush_seconds", Help: "How long a round over all buckets took, its pauses included.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 10),
		}),
	}
	reg.MustRegister(m.flushSeconds)
	gauge("head_unflushed_samples", "Samples, histograms and exemplars in memory and in the write-ahead log that are not in the table yet.",
		func() float64 { return float64(in.head.unflushed.Load()) })
	gauge("head_histogram_bytes", "Memory of the histograms and exemplars that are not in the table yet.",
		func() float64 { return float64(in.head.held.Load()) })
	gauge("metadata_families", "Metric families whose metadata is known.",
		func() float64 { return float64(in.families.known.Len()) })
	gauge("index_series", "Series in the index.", func() float64 { return float64(in.head.index.Len()) })
	gauge("wal_bytes", "Size of the write-ahead log.", func() float64 { return float64(in.log.Size()) })
	return m
}

func (m *metrics) count(r *request) {
	m.samples.Add(float64(r.result.Samples))
	m.histograms.Add(float64(r.result.Histograms))
	m.exemplars.Add(float64(r.result.Exemplars))
	m.metadata.Add(float64(r.news))
	m.refused.samples.Add(float64(r.refused.Samples))
	m.refused.histograms.Add(float64(r.refused.Histograms))
	m.refused.exemplars.Add(float64(r.refused.Exemplars))
	m.refused.metadata.Add(float64(r.refused.Metadata))
	m.leftOut.Add(float64(r.leftOut))
}
