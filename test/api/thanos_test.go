package api

import (
	"encoding/json"
	"io"
	"testing"

	"go.yaml.in/yaml/v2"
)

// What Thanos's sidecar reads of the configuration, as it reads it.
func TestConfigForThanos(t *testing.T) {
	response, err := client.Get(startDaybook(t) + "/api/v1/status/config")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			YAML string `json:"yaml"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Global struct {
			ExternalLabels map[string]string `yaml:"external_labels"`
		} `yaml:"global"`
		Daybook struct {
			Listen string
			Query  struct {
				MaxSamples int `yaml:"max_samples"`
			}
			Web struct {
				CORSOrigin string `yaml:"cors_origin"`
			}
		} `yaml:"daybook"`
	}
	if err := yaml.Unmarshal([]byte(answer.Data.YAML), &parsed); err != nil {
		t.Fatalf("%v in\n%s", err, answer.Data.YAML)
	}
	d := parsed.Daybook
	if parsed.Global.ExternalLabels == nil || d.Listen != "127.0.0.1:9201" || d.Query.MaxSamples != maxSamples || d.Web.CORSOrigin != `a\b"c` {
		t.Errorf("it says %+v", parsed)
	}
}
