package index_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/index"
	"daybook/internal/store"
	"daybook/internal/table/embedded"
	"daybook/keys"
)

// host is a series like those of a fleet: eleven labels of 200 bytes in all, ten metrics a host.
func host(i int) labels.Labels {
	n := i / 10
	return labels.FromStrings(
		model.MetricNameLabel, "cpu_usage_"+[]string{"user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"}[i%10],
		"instance", fmt.Sprintf("host_%d:9100", n), "job", "node", "region", fmt.Sprintf("eu-central-%d", n%9), "datacenter", fmt.Sprintf("eu-central-%d%c", n%9, 'a'+n%3),
		"rack", fmt.Sprint(n%100), "os", "Ubuntu22.04LTS", "arch", "x64", "team", "NYC", "service", fmt.Sprint(n%20), "environment", "production",
	)
}

// BenchmarkOpen reads the catalogue of a million series from the embedded table on the disk, and says what they take in
// memory, labels and index together. b.N should be 1: -benchtime 1x.
func BenchmarkOpen(b *testing.B) {
	const n = 1_000_000
	ctx := context.Background()
	tables, err := embedded.Open(embedded.Config{Dir: b.TempDir(), CacheBytes: 32 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer tables.Close()
	month := keys.MonthOf(20_000)
	s, err := store.Open(ctx, tables, store.Config{Tables: "daybook", Buckets: 256, Writer: "a", Alone: true}, 20_000)
	if err != nil {
		b.Fatal(err)
	}
	listed := make([][]store.Listed, s.Buckets())
	for i := range n {
		ls := host(i)
		id := keys.SeriesID("", ls)
		listed[s.Bucket(id)] = append(listed[s.Bucket(id)], store.Listed{ID: id, Labels: ls})
	}
	for bucket := range listed {
		if err := s.List(ctx, bucket, month, listed[bucket]); err != nil {
			b.Fatal(err)
		}
	}
	if err := tables.Sync(ctx); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		before := inUse()
		x, err := index.Open(ctx, s, month, 0)
		if err != nil || x.Len() != n {
			b.Fatal(x.Len(), err)
		}
		b.ReportMetric(float64(inUse()-before)/n, "B/series")
		runtime.KeepAlive(x)
	}
}

// inUse is how many bytes of the heap are in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
