package query

import (
	"fmt"
	"time"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
	"daybook/keys"
)

// plan says which entities of a series hold what a span wants.
type plan struct {
	span     store.Span
	ring     bool
	from, to series.Hour // the ring's part of the hours
	months   []pages     // the earliest first
	until    series.Hour // the pages' part ends before it: the ring has the rest
}

// pages are the days of one month whose pages are wanted.
type pages struct {
	month       keys.Month
	first, last series.Day
	days        int // wanted of first..last
	written     int // that can be in the table by now
}

// plan reads as little as it can. The ring has all of the last 24 h, and all hours of days that are not closed; pages
// have all hours of closed days. A range may begin long before there were samples and end long after: it is cut to
// the days that a key can name, and nothing is looked for in the future, which no sample may lie in.
func (r *Reader) plan(span store.Span) plan {
	now := series.MillisOf(r.cfg.Now()).Hour()
	recent := now - (keys.RingSlots - 2)
	open := min(recent, r.store.FirstOpen().FirstHour())
	from, to := r.cut(span)
	p := plan{span: span, to: to.Hour(), from: max(from.Hour(), open), until: recent}
	p.ring = p.to >= open && span.Wants(p.from.Start(), (p.to+1).Start()-1)
	if from.Hour() >= recent {
		return p
	}
	last := min(p.to, recent-1).Day()
	for day := from.Day(); day <= last; {
		month := pages{month: keys.MonthOf(day), first: day}
		month.last = min(lastOf(month.month), last)
		month.written = int(min(lastOf(month.month), now.Day())-firstOf(month.month)) + 1
		for d := month.first; d <= month.last; d++ {
			if span.WantsDay(d) {
				month.days++
			}
		}
		if month.days > 0 {
			p.months = append(p.months, month)
		}
		day = month.last + 1
	}
	return p
}

// cut gives the part of a span in which samples can lie.
func (r *Reader) cut(span store.Span) (from, to series.Millis) {
	end := (series.MillisOf(r.cfg.Now()).Hour() + 2).Start()
	from = min(max(span.From, keys.FirstDay.Start()), end)
	return from, min(max(span.To, from), end)
}

// within are the months of a range of time in which samples can lie.
func (r *Reader) within(from, to series.Millis) index.Months {
	from, to = r.cut(store.Span{From: from, To: to})
	return index.Months{First: keys.MonthOf(from.Day()), Last: keys.MonthOf(to.Day())}
}

// rows is how many rows reading some series takes.
func (p *plan) rows(found []*index.Series) (n int64) {
	if p.ring {
		n = int64(len(found))
	}
	for _, m := range p.months {
		for _, s := range found {
			if s.In(m.month) {
				n += int64(m.days)
			}
		}
	}
	return n
}

// tooManyRows says that a query would read more than the configuration allows.
func (r *Reader) tooManyRows(rows int64) error {
	return fmt.Errorf("%w: it would read %d rows of the tables (a row is a day of a series), at most %d are allowed "+
		"(query.max_rows): ask for less time or fewer series", ErrTooMuch, rows, r.cfg.MaxRows)
}

// firstOf is the first day of a month.
func firstOf(m keys.Month) series.Day {
	return series.MillisOf(time.Date(int(m/12), time.Month(m%12+1), 1, 0, 0, 0, 0, time.UTC)).Day()
}

// lastOf is the last day of a month.
func lastOf(m keys.Month) series.Day { return firstOf(m+1) - 1 }
