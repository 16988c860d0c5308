package main

import (
	"strings"
	"testing"
	"time"
)

func TestAbout(t *testing.T) {
	c := defaults()
	c.Query.Lookback = duration(90 * time.Second)
	started := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	a := aboutOf(c, started)
	if a.Version != version || !a.Started.Equal(started) || a.Retention != time.Duration(c.Retention.Raw) {
		t.Errorf("%+v", a)
	}
	for name, want := range map[string]string{
		// As Prometheus calls them.
		"query.lookback-delta": "1m30s", "query.timeout": "2m", "query.max-samples": "50000000", "query.max-concurrency": "20",
		"storage.tsdb.retention.time": "5y", "web.cors.origin": ".*",
		// As they are called here.
		"query.lookback": "1m30s", "query.max-concurrent": "20", "flush.interval": "5m", "log.level": "info",
	} {
		if got := a.Flags[name]; got != want {
			t.Errorf("the flag %s is %q, want %q", name, got, want)
		}
	}
	for name := range a.Flags {
		if strings.HasPrefix(name, "web.enable") {
			t.Errorf("%s is no setting of daybook's", name)
		}
	}
	all := settings(&c)
	if len(a.Settings) != len(all) {
		t.Fatalf("%d settings, want %d", len(a.Settings), len(all))
	}
	for i, s := range all {
		got := a.Settings[i]
		if _, isNumber := s.value.Interface().(int); got.Name != s.key || isNumber != isInt(got.Value) {
			t.Errorf("setting %d is %+v, want %s", i, got, s.line())
		}
	}
}

func isInt(v any) bool { _, ok := v.(int); return ok }
