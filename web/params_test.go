package web

import (
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"daybook/internal/series"
)

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{
		"", "0", "4", "-1", "1543578564.705", "1767225600.001", "1e100", "NaN", "+Inf", "-Inf", "0x1p10", "1_000", "148966367200.372",
		"2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.123456789Z", "9999-12-31T23:59:59Z", "2026-01-01",
		"-292273086-05-16T16:47:06Z", "292277025-08-18T07:12:54.999999999Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTime(text)
		seconds, notSeconds := strconv.ParseFloat(text, 64)
		written, notWritten := time.Parse(time.RFC3339Nano, text)
		switch {
		case err != nil:
			if notSeconds == nil && math.Abs(seconds) <= maxSeconds || notWritten == nil {
				t.Errorf("%q is a time: %v", text, err)
			}
		case notSeconds == nil:
			// The millisecond that is nearest to what was written.
			if math.Abs(float64(got)-seconds*1000) > 0.5+math.Abs(seconds)*1e-12 {
				t.Errorf("%q became %d ms", text, got)
			}
		case notWritten == nil && got != series.MillisOf(written):
			t.Errorf("%q became %d ms", text, got)
		}
	})
}

func FuzzParseStep(f *testing.F) {
	for _, seed := range []string{"", "0", "1", "-1", "15s", "1h30m", "0h", "NaN", "Inf", "1e100", "0.0001", "922337203.7", "9223372036.8", "5y", "1000000y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseStep(text)
		if err != nil {
			return
		}
		seconds, notSeconds := strconv.ParseFloat(text, 64)
		if notSeconds == nil && math.Abs(got.Seconds()-seconds) > 1e-6+math.Abs(seconds)*1e-9 {
			t.Errorf("%q became %v", text, got)
		}
		if d, err := model.ParseDuration(text); notSeconds != nil && (err != nil || time.Duration(d) != got) {
			t.Errorf("%q became %v", text, got)
		}
		// Whatever is taken is no trap for what divides by it.
		var refused *apiError
		if err := checkStep(0, 1_000_000_000, got); err != nil && !errors.As(err, &refused) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
