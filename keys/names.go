package keys

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"daybook/internal/series"
)

// RingSlots is how many hours the ring holds: 24, the partial hour at each end, and one for clocks that run ahead.
const RingSlots = 26

// Tables gives tables their names; its value is the prefix that all tables of a store share.
type Tables string

// Meta is the table of what is true of the store as a whole.
func (p Tables) Meta() string { return string(p) + "meta" }

// Ring is the table of the rings.
func (p Tables) Ring() string { return string(p) + "ring" }

// Pages is the table of the raw pages of the month that day lies in.
func (p Tables) Pages(day series.Day) string { return string(p) + "raw" + MonthOf(day).String() }

// IsPages tells whether name is the name of a table of raw pages.
func (p Tables) IsPages(name string) bool { return strings.HasPrefix(name, string(p)+"raw") }

// Catalogue is the table of the labels of the series that have samples in a month.
func (p Tables) Catalogue(month Month) string { return string(p) + "cat" + month.String() }

// CatalogueMonth tells whether name is a catalogue table's, and of which month.
func (p Tables) CatalogueMonth(name string) (Month, bool) {
	digits, ok := strings.CutPrefix(name, string(p)+"cat")
	if !ok || len(digits) != 6 {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	month := Month(n/100*12 + n%100 - 1)
	return month, err == nil && month.String() == digits // Atoi takes "+02611", and there is no month 13
}

// Month counts calendar months (UTC) since the year 0.
type Month int32

// MonthOf is the month that a day lies in.
func MonthOf(day series.Day) Month {
	t := min(max(day, FirstDay), LastDay).Time()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// String gives year and month as six digits: 202611.
func (m Month) String() string { return fmt.Sprintf("%04d%02d", m/12, m%12+1) }

// RingSlot is the number of the ring's slot for an hour, 0 to 25.
func RingSlot(h series.Hour) int {
	n := int(h) % RingSlots
	if n < 0 {
		n += RingSlots
	}
	return n
}

// RingProperty is the ring's property for an hour's slot of a kind and a writer.
func RingProperty(kind series.Kind, h series.Hour, writer string) string {
	return hourProperty(kind, RingSlot(h), writer)
}

// HourProperty is a page's property for an hour's slot of a kind and a writer.
func HourProperty(kind series.Kind, h series.Hour, writer string) string {
	return hourProperty(kind, h.OfDay(), writer)
}

// DayProperty is a page's property for the whole day's slot of a kind and a writer.
func DayProperty(kind series.Kind, writer string) string { return dayPrefixes[kind] + "_" + writer }

// PartProperty is the property that holds the n-th part of a value too large for one property; part 0 is the
// property itself.
func PartProperty(property string, n int) string {
	if n == 0 {
		return property
	}
	return property + "_" + strconv.Itoa(n)
}

// What the names of the kinds' properties begin with, by kind.
var (
	hourLetters = [...]byte{series.Floats: 'h', series.Histograms: 'n', series.Exemplars: 'x'}
	dayPrefixes = [...]string{series.Floats: "d", series.Histograms: "dn", series.Exemplars: "dx"}
)

func hourProperty(kind series.Kind, n int, writer string) string {
	return string([]byte{hourLetters[kind], byte('0' + n/10), byte('0' + n%10), '_'}) + writer
}

// Property is what the name of a slot's property says.
type Property struct {
	Kind   series.Kind
	Day    bool   // a whole day's slot; otherwise an hour's
	Number int    // which hour's: of the day in a page, of the ring in the ring
	Writer string // whose
	Part   int    // which part of its value
}

// ParseProperty reads the name of a slot's property; ok is false for any other property. What it reads is written
// the same again, so no two names are read alike.
func ParseProperty(name string) (p Property, ok bool) {
	fields := strings.Split(name, "_")
	if len(fields) < 2 || len(fields) > 3 || CheckWriter(fields[1]) != nil {
		return p, false
	}
	p.Writer = fields[1]
	if len(fields) == 3 {
		n, err := strconv.Atoi(fields[2])
		if err != nil || n < 1 || strconv.Itoa(n) != fields[2] {
			return p, false
		}
		p.Part = n
	}
	ok = p.readHead(fields[0])
	return p, ok
}

// readHead reads what stands before the writer.
func (p *Property) readHead(head string) (ok bool) {
	if n := slices.Index(dayPrefixes[:], head); n >= 0 {
		p.Kind, p.Day = series.Kind(n), true
		return true
	}
	if len(head) != 3 || !only(head[1:], isDigit) {
		return false
	}
	n := slices.Index(hourLetters[:], head[0])
	if n < 0 {
		return false
	}
	p.Kind = series.Kind(n)
	p.Number = int(head[1]-'0')*10 + int(head[2]-'0')
	return p.Number < RingSlots
}
