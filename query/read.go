package query

import (
	"context"
	"slices"
	"time"

	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/keys"
)

// plan says which entities of a series hold the samples from..to.
type plan struct {
	from, to  series.Hour
	ring      bool
	ringFrom  series.Hour // the ring's part of the hours
	firstPage series.Day  // the pages' days, none where lastPage is before
	lastPage  series.Day
}

// plan reads as little as it can. The ring has all of the last 24 h, and all hours of days that are not closed; pages
// have all hours of closed days. A range may begin long before there were samples and end long after: it is cut to
// the days that a key can name, and nothing is looked for in the future, which no sample may lie in.
func (r *Reader) plan(from, to series.Millis) plan {
	now := series.MillisOf(r.cfg.Now()).Hour()
	recent := now - (keys.RingSlots - 2)
	open := min(recent, r.store.FirstOpen().FirstHour())
	from = min(max(from, series.Millis(keys.FirstDay)*series.MillisPerDay), (now + 2).Start())
	to = min(max(to, from), (now + 2).Start())
	p := plan{from: from.Hour(), to: to.Hour(), firstPage: from.Day()}
	p.ring = p.to >= open
	p.ringFrom = max(p.from, open)
	p.lastPage = min(p.to, recent-1).Day()
	if p.from >= recent {
		p.lastPage = p.firstPage - 1
	}
	return p
}

// samples appends to dst the samples of a series from..to (both included), ascending, each time once.
func (r *Reader) samples(ctx context.Context, dst []series.Sample, id series.ID, from, to series.Millis) ([]series.Sample, error) {
	fresh := r.head.Samples(nil, id, from, to) // before the table: see Head
	base := len(dst)
	dst, err := r.stored(ctx, dst, id, r.plan(from, to))
	if err != nil {
		return dst, err
	}
	before := len(dst)
	dst = slot.Join(append(dst, fresh...), base, before)
	return cut(dst, base, from, to), nil
}

// stored appends what the tables hold. The ring is read before the pages: what is overwritten there while this runs is
// in a page by then.
func (r *Reader) stored(ctx context.Context, dst []series.Sample, id series.ID, p plan) (_ []series.Sample, err error) {
	base := len(dst)
	if p.ring {
		if dst, err = r.store.RingSamples(ctx, dst, id, p.ringFrom, p.to); err != nil {
			return dst, err
		}
	}
	if p.lastPage < p.firstPage {
		return dst, nil
	}
	recent := slices.Clone(dst[base:])
	if dst, err = r.pages(ctx, dst[:base], id, p); err != nil {
		return dst, err
	}
	before := len(dst)
	return slot.Join(append(dst, recent...), base, before), nil
}

// manyPages is how many days of a month make one range read cheaper than a point read for each.
const manyPages = 3

// pages reads the days that the plan wants, of those months that the catalogue has the series in.
func (r *Reader) pages(ctx context.Context, dst []series.Sample, id series.ID, p plan) ([]series.Sample, error) {
	var err error
	base := len(dst)
	entry := r.index.Get(id)
	for day := p.firstPage; day <= p.lastPage; {
		month := keys.MonthOf(day)
		last := min(lastOf(month), p.lastPage)
		if entry == nil || entry.Listed(month) {
			before := len(dst)
			if last-day+1 >= manyPages {
				dst, err = r.store.PagesSamples(ctx, dst, id, day, last, p.from, p.to)
			} else {
				for d := day; d <= last && err == nil; d++ {
					dst, err = r.store.PageSamples(ctx, dst, id, d, p.from, p.to)
				}
			}
			if err != nil {
				return dst, err
			}
			dst = slot.Join(dst, base, before)
		}
		day = last + 1
	}
	return dst, nil
}

// lastOf is the last day of a month.
func lastOf(m keys.Month) series.Day {
	return series.MillisOf(time.Date(int(m/12), time.Month(m%12+2), 0, 0, 0, 0, 0, time.UTC)).Day()
}

// cut removes from dst[base:] what lies outside from..to.
func cut(dst []series.Sample, base int, from, to series.Millis) []series.Sample {
	first := base
	for first < len(dst) && dst[first].T < from {
		first++
	}
	last := len(dst)
	for last > first && dst[last-1].T > to {
		last--
	}
	if first == base {
		return dst[:last]
	}
	return append(dst[:base], dst[first:last]...)
}
