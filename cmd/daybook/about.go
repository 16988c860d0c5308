package main

import (
	"runtime/debug"
	"strconv"
	"time"

	"daybook/web"
)

// stamps are what the build noted of the repository: the revision, and when that was made.
func stamps() (revision, made string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			made = s.Value
		}
	}
	return revision, made
}

// aboutOf is what the status endpoints say of the program.
func aboutOf(c config, started time.Time) web.About {
	revision, made := stamps()
	a := web.About{
		Version: version, Revision: revision, Branch: branch, BuildDate: made,
		Started: started, Retention: time.Duration(c.Retention.Raw), Flags: prometheusFlags(c),
	}
	for _, s := range settings(&c) {
		var value any = s.String()
		if n, ok := s.value.Interface().(int); ok {
			value = n
		}
		a.Settings = append(a.Settings, web.Setting{Name: s.key, Value: value})
		a.Flags[s.flag()] = s.String()
	}
	return a
}

// prometheusFlags are settings by the names that clients know them by from Prometheus. (query.timeout and
// query.max-samples are called the same here.)
func prometheusFlags(c config) map[string]string {
	return map[string]string{
		"query.lookback-delta":                   c.Query.Lookback.String(),
		"query.max-concurrency":                  strconv.Itoa(c.Query.MaxConcurrent),
		"storage.tsdb.retention.time":            c.Retention.Raw.String(),
		"storage.remote.read-sample-limit":       strconv.Itoa(c.Query.MaxReadSamples),
		"storage.remote.read-max-bytes-in-frame": strconv.FormatInt(int64(c.Query.ReadFrame), 10),
		"web.cors.origin":                        c.Web.CORSOrigin,
		"web.listen-address":                     c.Listen,
	}
}
