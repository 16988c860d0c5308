package series_test

import (
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"daybook/internal/series"
)

func TestFloors(t *testing.T) {
	const hour, day = int64(series.MillisPerHour), int64(series.MillisPerDay)
	for _, tt := range []struct {
		name string
		t    int64
		hour series.Hour
		day  series.Day
	}{
		{"the first millisecond", 0, 0, 0},
		{"one before", -1, -1, -1},
		{"the last of an hour", hour - 1, 0, 0},
		{"the first of an hour", hour, 1, 0},
		{"the last of a day", day - 1, 23, 0},
		{"the first of a day", day, 24, 1},
		{"an hour before 1970", -hour, -1, -1},
		{"just over an hour before", -hour - 1, -2, -1},
		{"a day before 1970", -day, -24, -1},
		{"just over a day before", -day - 1, -25, -2},
		{"one millisecond into the day before", -day + 1, -24, -1},
		{"the last day of 2026", 1798761599999, 499655, 20818},
		{"the first of 2027", 1798761600000, 499656, 20819},
	} {
		m := series.Millis(tt.t)
		if m.Hour() != tt.hour || m.Day() != tt.day {
			t.Errorf("%s: %d lies in hour %d of day %d, want hour %d of day %d", tt.name, tt.t, m.Hour(), m.Day(), tt.hour, tt.day)
		}
	}
}

// Midnights around everything in the calendar that is not the same every year.
func TestFloorsAgreeWithTheCalendar(t *testing.T) {
	for _, year := range []int{601, 1582, 1600, 1899, 1900, 1904, 1969, 1970, 1971, 1972, 2000, 2024, 2026, 2100, 2400, 3338} {
		for _, date := range []time.Time{
			time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC),
			time.Date(year, 2, 28, 0, 0, 0, 0, time.UTC),
			time.Date(year, 2, 29, 0, 0, 0, 0, time.UTC), // the first of March where there is none
			time.Date(year, 3, 1, 0, 0, 0, 0, time.UTC),
			time.Date(year, 6, 30, 0, 0, 0, 0, time.UTC), // leap seconds are not counted
			time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC),
		} {
			for _, off := range []time.Duration{-time.Millisecond, 0, time.Millisecond, time.Hour - time.Millisecond,
				time.Hour, 23*time.Hour + 59*time.Minute, 24*time.Hour - time.Millisecond} {
				checkCalendar(t, date.Add(off))
			}
		}
	}
}

func TestFloorsAgreeWithTheCalendarAnywhere(t *testing.T) {
	from := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	to := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).UnixMilli()
	rapid.Check(t, func(t *rapid.T) {
		checkCalendar(t, time.UnixMilli(rapid.Int64Range(from, to).Draw(t, "t")).UTC())
	})
}

func checkCalendar(t rapid.TB, want time.Time) {
	t.Helper()
	m := series.MillisOf(want)
	if !m.Time().Equal(want) || m.Time().Location() != time.UTC {
		t.Errorf("%v became %v", want, m.Time())
	}
	hour := time.Date(want.Year(), want.Month(), want.Day(), want.Hour(), 0, 0, 0, time.UTC)
	if got := m.Hour().Start().Time(); !got.Equal(hour) {
		t.Errorf("the hour of %v begins at %v", want, got)
	}
	midnight := time.Date(want.Year(), want.Month(), want.Day(), 0, 0, 0, 0, time.UTC)
	if got := m.Day().Time(); !got.Equal(midnight) {
		t.Errorf("the day of %v begins at %v", want, got)
	}
	if m.Day() != m.Hour().Day() || m.Day().Start() != m.Day().FirstHour().Start() {
		t.Errorf("%v: day %d and hour %d disagree", want, m.Day(), m.Hour())
	}
	if m.Hour().OfDay() != want.Hour() {
		t.Errorf("%v is in hour %d of its day", want, m.Hour().OfDay())
	}
}

func TestMillisOfFloors(t *testing.T) {
	for _, tt := range []struct {
		t    time.Time
		want series.Millis
	}{
		{time.Unix(0, 999_999), 0},
		{time.Unix(0, -1), -1},
		{time.Date(1970, 1, 1, 1, 0, 0, 0, time.FixedZone("", 3600)), 0},
	} {
		if got := series.MillisOf(tt.t); got != tt.want {
			t.Errorf("MillisOf(%v) = %d, want %d", tt.t, got, tt.want)
		}
	}
}

// Prometheus accepts any 64-bit timestamp, and an Hour has 32 bits: what lies outside must be refused before it is
// turned into one. These are the bounds within which the conversions hold.
func TestHoursHoldWithin240000Years(t *testing.T) {
	for _, h := range []series.Hour{math.MinInt32 + 24, math.MaxInt32} {
		if got := h.Start().Hour(); got != h {
			t.Errorf("hour %d begins in hour %d", h, got)
		}
		if h.OfDay() < 0 || h.OfDay() >= series.HoursPerDay {
			t.Errorf("hour %d is hour %d of its day", h, h.OfDay())
		}
	}
}

func TestIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := series.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		s := id.String()
		if s != hex.EncodeToString(id[:]) || s != strings.ToLower(s) {
			t.Fatalf("% x is written %q", id[:], s)
		}
		got, err := series.ParseID(s)
		if err != nil || got != id {
			t.Fatalf("ParseID(%q) = %v, %v", s, got, err)
		}
	})
}

func TestParseIDRefuses(t *testing.T) {
	good := "7c9ee0e2000102030405060708090a0b"
	if _, err := series.ParseID(good); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"", "0", good[1:], good + "0", good + "\n", " " + good[1:], "g" + good[1:], "-" + good[1:],
		"0x" + good[2:], good[:31] + "é"[:1], strings.Repeat("é", 16), strings.Repeat("0", 1<<20)} {
		if _, err := series.ParseID(s); !errors.Is(err, series.ErrNoID) {
			t.Errorf("ParseID(%.40q) gave %v, want ErrNoID", s, err)
		}
	}
}
