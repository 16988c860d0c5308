// Package series is the vocabulary the other packages share: what a series is called, what a sample is, and
// how time is counted. It holds no behaviour beyond that and imports nothing of daybook.
//
// Times are milliseconds since 1970 in UTC, as in Prometheus. An Hour and a Day are whole numbers of hours and
// days since 1970; a time before 1970 belongs to the hour and the day that began before it (a time is floored,
// never truncated).
package series

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Millis is a point in time in milliseconds since 1970-01-01T00:00:00Z.
type Millis int64

// Lengths of time in milliseconds.
const (
	MillisPerHour Millis = 3_600_000
	MillisPerDay  Millis = 24 * MillisPerHour
)

// Hour counts hours since 1970-01-01T00:00Z.
type Hour int32

// Day counts days since 1970-01-01 (UTC).
type Day int32

// HoursPerDay is how many hours a day has: days are UTC, so always 24.
const HoursPerDay = 24

// Sample is one value of a series at one moment. The value is kept bit for bit: NaN payloads (Prometheus's stale
// marker is one), -0 and infinities are values like any other.
type Sample struct {
	T Millis
	V float64
}

// ID names a series: the first 32 bits are a hash of the metric name, the other 96 of the tenant and all labels
// (package keys computes it). Two series with one ID would be a collision of hashes; the catalogue holds the labels,
// so that it is noticed.
type ID [16]byte

// ErrNoID is returned by ParseID for text that is not a series id.
var ErrNoID = errors.New("a series id is 32 hexadecimal digits")

// String gives the id as 32 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Compare orders ids as their rows are ordered: by the metric's hash first.
func (id ID) Compare(other ID) int { return bytes.Compare(id[:], other[:]) }

// ParseID reads what ID.String wrote.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != hex.EncodedLen(len(id)) {
		return id, fmt.Errorf("%q: %w", s, ErrNoID)
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return id, fmt.Errorf("%q: %w", s, ErrNoID)
	}
	return id, nil
}

// MillisOf converts a time.Time.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time converts back to a time.Time in UTC.
func (t Millis) Time() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Hour is the hour that t lies in.
func (t Millis) Hour() Hour { return Hour(floorDiv(int64(t), int64(MillisPerHour))) }

// Day is the UTC day that t lies in.
func (t Millis) Day() Day { return Day(floorDiv(int64(t), int64(MillisPerDay))) }

// Start is the first millisecond of the hour.
func (h Hour) Start() Millis { return Millis(h) * MillisPerHour }

// Day is the UTC day that the hour lies in.
func (h Hour) Day() Day { return Day(floorDiv(int64(h), HoursPerDay)) }

// OfDay is the number of the hour within its day, 0 to 23.
func (h Hour) OfDay() int { return int(h) - int(h.Day())*HoursPerDay }

// Start is the first millisecond of the day.
func (d Day) Start() Millis { return Millis(d) * MillisPerDay }

// FirstHour is the day's hour 0.
func (d Day) FirstHour() Hour { return Hour(d) * HoursPerDay }

// Time is the day's midnight in UTC.
func (d Day) Time() time.Time { return d.Start().Time() }

// floorDiv rounds towards minus infinity, where Go's / rounds towards zero.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
