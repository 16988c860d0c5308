package e2e

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"
)

// startNodeExporter starts a node_exporter and gives its address.
func startNodeExporter(t *testing.T) string {
	t.Helper()
	address := freeAddress(t)
	p := start(t, "node_exporter", nodeExporterPeer.build(t), "--web.listen-address="+address)
	eventually(t, 10*time.Second, "node_exporter answers", func() error {
		if err := p.running(); err != nil {
			t.Fatal(err)
		}
		res, err := client.Get("http://" + address + "/")
		if err == nil {
			res.Body.Close()
		}
		return err
	})
	return address
}

// prometheus is a running Prometheus that writes what it scrapes to a remote.
type prometheus struct {
	api
	*process
	config string // its configuration file
	remote api
	sender sender
}

// sender is how a Prometheus scrapes and writes, other than it does by default.
type sender struct {
	global      string   // lines of the configuration, with their indentation
	remoteWrite string   // the same
	flags       []string // of its command line
}

// startPrometheus starts a Prometheus that scrapes itself and a node_exporter every second and writes to the remote
// with the settings a Prometheus has by default.
func startPrometheus(t *testing.T, nodeExporter string, remote api) *prometheus {
	t.Helper()
	return startSender(t, nodeExporter, remote, sender{})
}

// startSender is startPrometheus with other settings.
func startSender(t *testing.T, nodeExporter string, remote api, s sender) *prometheus {
	t.Helper()
	address := freeAddress(t)
	p := &prometheus{api: api("http://" + address), remote: remote, sender: s}
	p.config = writeFile(t, "prometheus.yml", p.configuration(address, nodeExporter))
	p.process = start(t, "prometheus", prometheusPeer.build(t), append([]string{
		"--config.file=" + p.config,
		"--storage.tsdb.path=" + t.TempDir(),
		"--web.listen-address=" + address,
		"--web.enable-lifecycle",
	}, s.flags...)...)
	eventually(t, 30*time.Second, "Prometheus is ready", func() error {
		if err := p.running(); err != nil {
			t.Fatal(err)
		}
		return p.ready()
	})
	return p
}

// configuration is a prometheus.yml with two jobs, which may have no targets.
func (p *prometheus) configuration(itself, nodeExporter string) string {
	targets := func(address string) string {
		if address == "" {
			return "[]"
		}
		return fmt.Sprintf("[{targets: [%q]}]", address)
	}
	return fmt.Sprintf(`
global:
  scrape_interval: 1s
%sscrape_configs:
  - job_name: prometheus
    static_configs: %s
  - job_name: node
    static_configs: %s
remote_write:
  - url: %s/api/v1/write
%s`, p.sender.global, targets(itself), targets(nodeExporter), p.remote, p.sender.remoteWrite)
}

// stopScraping has Prometheus drop its targets and waits until it has marked their series as stale. It goes on writing
// to the remote.
func (p *prometheus) stopScraping(t *testing.T) {
	t.Helper()
	// The jobs stay: where a job goes too, Prometheus marks nothing.
	if err := os.WriteFile(p.config, []byte(p.configuration("", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := client.Post(string(p.api)+"/-/reload", "", nil)
	if err != nil {
		t.Fatalf("reloading Prometheus: %v", err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("reloading Prometheus: %s", res.Status)
	}
	eventually(t, time.Minute, "Prometheus has marked the series as stale", func() error {
		if up := p.query(t, "up", time.Now().UnixMilli()); len(up) > 0 {
			return fmt.Errorf("%d targets are up", len(up))
		}
		return nil
	})
}

// awaitSent waits until everything that Prometheus has is acknowledged by the remote.
func (p *prometheus) awaitSent(t *testing.T, within time.Duration) {
	t.Helper()
	eventually(t, within, "Prometheus has sent everything", func() error {
		m := p.metrics(t)
		pending := m.sum(t, "prometheus_remote_storage_samples_pending")
		newest := m.sum(t, "prometheus_remote_storage_highest_timestamp_in_seconds")
		sent := m.sum(t, "prometheus_remote_storage_queue_highest_sent_timestamp_seconds")
		if pending > 0 || sent < newest {
			return fmt.Errorf("%g samples are pending, sent up to %.3f of %.3f", pending, sent, newest)
		}
		return nil
	})
}
