package e2e

import (
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are what a program says of itself on /metrics, by name.
type metrics map[string]*dto.MetricFamily

func (a api) metrics(t *testing.T) metrics {
	t.Helper()
	res, err := client.Get(string(a) + "/metrics")
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s", res.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	if err != nil {
		t.Fatalf("metrics: %v", err)
	}
	return families
}

// sum adds up the counters or gauges of one name. A name that is not there fails the test, so that a metric which was
// renamed is not taken for a zero.
func (m metrics) sum(t *testing.T, name string) float64 {
	t.Helper()
	if _, ok := m[name]; !ok {
		t.Fatalf("there is no metric %s", name)
	}
	return m.sumIfAny(name)
}

// sumIfAny is sum for counters that appear with what they count first, by a label such as the reason.
func (m metrics) sumIfAny(name string) float64 {
	var sum float64
	for _, metric := range m[name].GetMetric() {
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
	}
	return sum
}
