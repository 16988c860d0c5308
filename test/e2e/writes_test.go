package e2e

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// Metrics that TestPrometheusWrites must have seen, with how many series of each at least: counters, gauges with
// fractions, buckets of histograms, quantiles, NaN. They are there on every system.
var mustHave = map[string]int{
	"node_cpu_seconds_total":                             4,
	"node_load1":                                         1,
	"process_cpu_seconds_total":                          2,
	"scrape_duration_seconds":                            2,
	"go_gc_duration_seconds":                             5,
	"go_goroutines":                                      2,
	"prometheus_engine_query_duration_seconds":           3,
	"prometheus_tsdb_compaction_duration_seconds_bucket": 5,
	"up": 2,
}

// Metrics of which the chart of the first series is compared with a query.
var charted = []string{"node_cpu_seconds_total", "node_load1", "scrape_duration_seconds", "go_goroutines", "up"}

// TestPrometheusWrites lets a real Prometheus scrape a node_exporter and itself every second and write to daybook for a
// minute and across flushes. Then both must have the same samples, and a chart must be one point read.
func TestPrometheusWrites(t *testing.T) {
	const scrapes = 60
	d := startDaybook(t, "20s")
	p := startPrometheus(t, startNodeExporter(t), d.api)
	first := time.Now().Add(-time.Minute).UnixMilli() // before the first scrape
	eventually(t, 3*time.Minute, "a minute of scrapes", func() error {
		counts := p.query(t, "count_over_time(up[10m])", time.Now().UnixMilli())
		for key, c := range counts {
			if c[0].V < scrapes {
				return fmt.Errorf("%s was scraped %g times", key, c[0].V)
			}
		}
		if len(counts) != 2 {
			return fmt.Errorf("%d targets are scraped", len(counts))
		}
		return nil
	})
	d.awaitFlushes(t, 2, time.Minute)
	p.stopScraping(t)
	p.awaitSent(t, time.Minute)
	last := time.Now().UnixMilli() // after the last scrape: nothing comes any more

	sender := p.metrics(t)
	for name, n := range map[string]float64{
		"failed samples":   sender.sum(t, "prometheus_remote_storage_samples_failed_total"),
		"dropped samples":  sender.sumIfAny("prometheus_remote_storage_samples_dropped_total"),
		"failed metadata":  sender.sum(t, "prometheus_remote_storage_metadata_failed_total"),
		"retried samples":  sender.sum(t, "prometheus_remote_storage_samples_retried_total"),
		"retried metadata": sender.sum(t, "prometheus_remote_storage_metadata_retried_total"),
	} {
		if n != 0 {
			t.Errorf("the sender has %g %s", n, name)
		}
	}
	want := p.readAll(t, first, last)
	expectMetrics(t, want, scrapes)
	expectEqual(t, "daybook and the sender", d.readAll(t, first, last), want)
	// The sender said that its series have ended. daybook must have understood.
	if up := d.query(t, "up", last); len(up) > 0 {
		t.Errorf("series that have ended are still up: %v", up)
	}
	for _, name := range charted {
		expectChart(t, d, firstSeries(want, name), first, last)
	}
}

// expectMetrics sees to it that the comparison is worth something: the kinds of metrics are there, and their series are
// long enough.
func expectMetrics(t *testing.T, all samples, scrapes int) {
	t.Helper()
	for name, least := range mustHave {
		n := 0
		for key, points := range all {
			if strings.HasPrefix(key, name+"{") && len(points) >= scrapes {
				n++
			}
		}
		if n < least {
			t.Errorf("the sender has %d series of %s with %d samples, want %d", n, name, scrapes, least)
		}
	}
}

// firstSeries is the first selector of a metric, in the order of the alphabet.
func firstSeries(all samples, name string) string {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(key, name+"{") {
			return key
		}
	}
	return name
}

// expectChart asks for the chart of one series: it must cost one point read and have the points that a query has.
func expectChart(t *testing.T, d *daybook, series string, first, last int64) {
	t.Helper()
	c := d.chart(t, series)
	if len(c.Series) != 1 {
		t.Errorf("chart of %s: %d series", series, len(c.Series))
		return
	}
	switch reads, rows := c.Cost.PointReads, c.Cost.RowsScanned; {
	case reads == nil || rows == nil:
		t.Errorf("chart of %s: it does not say what it cost", series)
	case *reads != 1 || *rows != 0:
		t.Errorf("chart of %s: %d point reads and %d rows scanned", series, *reads, *rows)
	}
	s := c.Series[0]
	if got := selector(s.Labels); got != series {
		t.Errorf("chart of %s: it is of %s", series, got)
	}
	if len(s.T) != len(s.V) {
		t.Errorf("chart of %s: %d times for %d values", series, len(s.T), len(s.V))
		return
	}
	var got []point
	for i, v := range s.V {
		if s.T[i] < c.From || s.T[i] > c.To {
			t.Errorf("chart of %s: a point at %d, outside %d to %d", series, s.T[i], c.From, c.To)
		}
		if v != nil {
			got = append(got, point{T: s.T[i], V: *v})
		}
	}
	want := slices.DeleteFunc(d.raw(t, series, first, last)[series], func(p point) bool {
		return math.IsNaN(p.V) || math.IsInf(p.V, 0) // null in a chart
	})
	if said := seriesDifference(got, want); said != "" {
		t.Errorf("chart of %s: %s", series, said)
	}
}
