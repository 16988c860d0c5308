package keys

import (
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"

	"daybook/internal/series"
)

// Row is a RowKey.
type Row string

// Days outside these bounds are clipped to them before they are reversed (the years 601 and 3338).
const (
	FirstDay series.Day = -500_000
	LastDay  series.Day = 499_999
)

// SeriesRow is the row of a series where it has one row only: in the ring and in the catalogue.
func SeriesRow(id series.ID) Row { return Row(hexID(id)) }

// PageRow is the row of one day's page of a series. The rows of a series sort from the newest page to the oldest.
func PageRow(id series.ID, day series.Day) Row {
	reversed := int64(LastDay) - int64(min(max(day, FirstDay), LastDay))
	b := append(hexID(id), '-')
	for width := int64(100_000); width > 1 && reversed < width; width /= 10 {
		b = append(b, '0')
	}
	return Row(strconv.AppendInt(b, reversed, 10))
}

// MetadataRow is the row of what is known of a metric family: a hash of its name, XXH3 of 128 bits. The name itself is
// in the entity, so that a collision of hashes is noticed.
func MetadataRow(family string) Row {
	sum := xxh3.HashString128(family).Bytes()
	return Row(hexID(sum))
}

// IsMetadataRow tells the row of a metric family from the rows that hold pieces of one with a long text.
func IsMetadataRow(row Row) bool { return len(row) == 2*len(series.ID{}) }

// SpillRow is the n-th row that holds a piece of a property too large for the entity at row.
func SpillRow(row Row, property string, n int) Row {
	return Row(fmt.Sprintf("%s-%s-%02d", row, property, n))
}

// SeriesOf is the id that a row begins with.
func SeriesOf(row Row) (series.ID, error) {
	const digits = 2 * len(series.ID{})
	if len(row) < digits {
		return series.ID{}, fmt.Errorf("row %q: %w", row, series.ErrNoID)
	}
	id, err := series.ParseID(string(row[:digits]))
	if err != nil {
		return series.ID{}, fmt.Errorf("row %q: %w", row, err)
	}
	return id, nil
}

// IsSeriesRow tells the row of a series itself from the rows that hold pieces of its large properties.
func IsSeriesRow(row Row) bool { return len(row) == 2*len(series.ID{}) }

// OwnerOf is the id of the series that a row of the ring, or a page, belongs to; ok is false for rows that hold pieces of
// large properties, and for any other row.
func OwnerOf(row Row) (id series.ID, ok bool) {
	if !IsSeriesRow(row) && len(row) != pageRowLength {
		return id, false
	}
	id, err := SeriesOf(row)
	return id, err == nil
}

// pageRowLength is that of an id, a dash and six digits.
const pageRowLength = 2*len(series.ID{}) + 7
