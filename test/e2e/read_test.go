package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestPrometheusReads has a Prometheus without data read a recording from daybook, out of memory and out of the table,
// as chunks that are streamed, which is what it asks for.
func TestPrometheusReads(t *testing.T) {
	recorded := readRecording(t)
	d := startDaybook(t, "1h")
	want := recorded.content(t)
	replay(t, d, recorded)
	p := startReader(t, d.api)
	read := func() samples {
		first, last := want.span()
		all := make(samples)
		for _, name := range d.names(t) { // remote read has no lists of labels
			for key, points := range p.raw(t, fmt.Sprintf("{__name__=%q}", name), first, last) {
				all[key] = points
			}
		}
		return all
	}
	expectEqual(t, "from memory", read(), want)
	d.restart(t) // which flushes
	expectEqual(t, "from the table", read(), want)
}

// startReader starts a Prometheus that scrapes nothing and reads from a remote.
func startReader(t *testing.T, remote api) api {
	t.Helper()
	address := freeAddress(t)
	config := writeFile(t, "prometheus.yml", fmt.Sprintf("remote_read:\n  - url: %s/api/v1/read\n    read_recent: true\n", remote))
	p := start(t, "prometheus", prometheusPeer.build(t),
		"--config.file="+config, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address)
	reader := api("http://" + address)
	eventually(t, 30*time.Second, "Prometheus is ready", func() error {
		if err := p.running(); err != nil {
			t.Fatal(err)
		}
		return reader.ready()
	})
	return reader
}
