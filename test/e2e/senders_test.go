package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestSenders lets a real Prometheus write in both versions of remote write, native histograms, exemplars and metadata
// included. It must count no failure, and daybook must answer with the same floats and histograms, also after a crash.
func TestSenders(t *testing.T) {
	for name, remoteWrite := range map[string]string{
		"1.0": "",
		"2.0": "    protobuf_message: io.prometheus.write.v2.Request\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const scrapes = 20
			d := startDaybook(t, "10s")
			first := time.Now().Add(-time.Minute).UnixMilli()
			p := startSender(t, "", d.api, sender{
				global:      "  scrape_native_histograms: true\n",
				remoteWrite: "    send_native_histograms: true\n    send_exemplars: true\n    metadata_config: {send_interval: 5s}\n" + remoteWrite,
				flags:       []string{"--enable-feature=exemplar-storage,metadata-wal-records"},
			})
			eventually(t, time.Minute, "some scrapes", func() error {
				up := p.query(t, "count_over_time(up[10m])", time.Now().UnixMilli())
				for _, c := range up {
					if c[0].V >= scrapes {
						return nil
					}
				}
				return fmt.Errorf("%v", up)
			})
			d.awaitFlushes(t, 1, time.Minute)
			p.stopScraping(t)
			p.awaitSent(t, time.Minute)
			last := time.Now().UnixMilli()
			expectNoFailures(t, p.metrics(t), name)

			want, histograms := p.readAll(t, first, last), p.histograms(t, first, last)
			if len(histograms) < 2 {
				t.Errorf("the sender has %d series of native histograms", len(histograms))
			}
			for _, when := range []string{"daybook and the sender", "after a crash"} {
				expectEqual(t, when, d.readAll(t, first, last), want)
				expectSameHistograms(t, when, d.histograms(t, first, last), histograms)
				if n := d.metrics(t).sum(t, "daybook_metadata_families"); n < 100 {
					t.Errorf("%s: daybook knows the metadata of %g metric families", when, n)
				}
				d.crash(t)
			}
		})
	}
}

// expectNoFailures wants no failure among what a sender counts, and that it has sent what it is to send.
func expectNoFailures(t *testing.T, sender metrics, version string) {
	t.Helper()
	for _, kind := range []string{"samples", "histograms", "exemplars"} {
		for _, what := range []string{"failed", "dropped", "retried"} {
			if n := sender.sumIfAny("prometheus_remote_storage_" + kind + "_" + what + "_total"); n != 0 {
				t.Errorf("version %s: the sender has %g %s %s", version, n, what, kind)
			}
		}
	}
	if n := sender.sumIfAny("prometheus_remote_storage_metadata_failed_total"); n != 0 {
		t.Errorf("version %s: the sender has %g failed metadata", version, n)
	}
	if n := sender.sum(t, "prometheus_remote_storage_histograms_total"); n == 0 {
		t.Errorf("version %s: the sender has sent no histogram", version)
	}
}

// histograms reads the native histograms of all series from the first to the last millisecond, as the JSON that a query
// answers with, by selector.
func (a api) histograms(t *testing.T, first, last int64) map[string][]string {
	t.Helper()
	form := url.Values{
		"query": {fmt.Sprintf(`{__name__=~".+"}[%dms]`, last-first+1)},
		"time":  {fmt.Sprintf("%.3f", float64(last)/1000)},
	}
	res, err := client.PostForm(string(a)+"/api/v1/query", form)
	var data struct {
		Result []struct {
			Metric     map[string]string
			Histograms []json.RawMessage
		}
	}
	decode(t, "histograms", res, err, &data)
	got := map[string][]string{}
	for _, series := range data.Result {
		for _, h := range series.Histograms {
			got[selector(series.Metric)] = append(got[selector(series.Metric)], string(h))
		}
	}
	return got
}

func expectSameHistograms(t *testing.T, when string, got, want map[string][]string) {
	t.Helper()
	n, wrong := 0, 0
	for series, all := range want {
		n += len(all)
		if strings.Join(got[series], "\n") == strings.Join(all, "\n") {
			continue
		}
		if wrong++; wrong <= differencesShown {
			t.Errorf("%s: %s has %d histograms for %d, or others", when, series, len(got[series]), len(all))
		}
	}
	if wrong > 0 || len(got) != len(want) {
		t.Errorf("%s: %d series of histograms for %d, %d of them differ", when, len(got), len(want), wrong)
		return
	}
	t.Logf("%s: %d histograms of %d series are equal", when, n, len(want))
}
