package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"daybook/internal/table"
	"daybook/internal/table/embedded"
)

func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "daybook_build_info", Help: "1, with the version as labels.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// tableCollector gives what the table was asked to do.
type tableCollector struct {
	totals *table.Totals
	tables *embedded.Table
}

var (
	tableOperations = prometheus.NewDesc("daybook_table_operations_total", "Operations of the table service, by kind.", []string{"kind"}, nil)
	tableEntities   = prometheus.NewDesc("daybook_table_entities_total", "Entities written (operations of transactions) and scanned.", []string{"kind"}, nil)
	tableBytes      = prometheus.NewDesc("daybook_table_bytes_total", "Bytes of names and values read and written.", []string{"kind"}, nil)
	tableFailures   = prometheus.NewDesc("daybook_table_failures_total", "Calls of the table service that failed.", nil, nil)
	tableDisk       = prometheus.NewDesc("daybook_table_disk_bytes", "What the embedded table takes on the disk.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c tableCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c tableCollector) Collect(out chan<- prometheus.Metric) {
	counter := func(desc *prometheus.Desc, value int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	counter(tableOperations, c.totals.Reads.PointReads.Load(), "point_read")
	counter(tableOperations, c.totals.Reads.RangeReads.Load(), "range_read")
	counter(tableOperations, c.totals.Transactions.Load(), "transaction")
	counter(tableEntities, c.totals.Operations.Load(), "written")
	counter(tableEntities, c.totals.Reads.RowsScanned.Load(), "scanned")
	counter(tableBytes, c.totals.Reads.Bytes.Load(), "read")
	counter(tableBytes, c.totals.BytesWritten.Load(), "written")
	counter(tableFailures, c.totals.Failures.Load())
	out <- prometheus.MustNewConstMetric(tableDisk, prometheus.GaugeValue, float64(c.tables.DiskBytes()))
}
