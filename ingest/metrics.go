package ingest

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's own, for /metrics.
type metrics struct {
	samples       prometheus.Counter
	refused       prometheus.Counter
	exemplars     prometheus.Counter
	unavailable   prometheus.Counter
	lateConflicts prometheus.Counter
	flushes       prometheus.Counter
	flushFailures prometheus.Counter
	flushSeconds  prometheus.Histogram
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
		samples:       counter("ingest_samples_total", "Samples acknowledged, those that were stored already included."),
		refused:       counter("ingest_refused_samples_total", "Samples refused with 400."),
		exemplars:     counter("ingest_dropped_exemplars_total", "Exemplars received; none is stored."),
		unavailable:   counter("ingest_unavailable_total", "Requests answered with 503."),
		lateConflicts: counter("ingest_late_conflicts_total", "Acknowledged samples left out when their hour was flushed, as another value was stored for their time."),
		flushes:       counter("flush_cycles_total", "Rounds over all buckets that flushed and made durable what was in memory."),
		flushFailures: counter("flush_failures_total", "Rounds that failed and are repeated."),
		flushSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "daybook_flush_seconds", Help: "How long a round over all buckets took, its pauses included.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 10),
		}),
	}
	reg.MustRegister(m.flushSeconds)
	gauge("head_unflushed_samples", "Samples in memory and in the write-ahead log that are not in the table yet.",
		func() float64 { return float64(in.head.unflushed.Load()) })
	gauge("index_series", "Series in the index.", func() float64 { return float64(in.head.index.Len()) })
	gauge("wal_bytes", "Size of the write-ahead log.", func() float64 { return float64(in.log.Size()) })
	return m
}

func (m *metrics) count(r *request) {
	m.samples.Add(float64(r.result.Samples))
	m.refused.Add(float64(r.refused.Samples))
	m.exemplars.Add(float64(r.result.Exemplars))
}
