package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/slot"
	"daybook/keys"
)

// Exemplars are those of one series, ascending.
type Exemplars struct {
	Labels    labels.Labels
	Exemplars []series.Exemplar
}

// Exemplars gives the exemplars from..to (both included) of the series that the selectors of an expression match, sorted
// by labels. Series without any are left out.
func (r *Reader) Exemplars(ctx context.Context, expr parser.Expr, from, to series.Millis) ([]Exemplars, error) {
	found, err := r.Series(ctx, parser.ExtractSelectors(expr), from, to)
	if err != nil {
		return nil, err
	}
	p := r.plan(from, to)
	all := make([]Exemplars, len(found))
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, entry := range found {
		group.Go(func() error {
			fresh := r.head.Exemplars(nil, entry.ID, from, to) // before the table: see Head
			stored, err := r.storedExemplars(ctx, entry, p)
			all[i] = Exemplars{entry.Labels, exemplarsOf(slot.MergeExemplars(stored, fresh), from, to)}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("reading exemplars: %w", err)
	}
	return slices.DeleteFunc(all, func(one Exemplars) bool { return len(one.Exemplars) == 0 }), nil
}

// storedExemplars gives what the tables hold. The ring is read before the pages: what is overwritten there while this
// runs is in a page by then.
func (r *Reader) storedExemplars(ctx context.Context, entry *index.Series, p plan) (all []series.Exemplar, err error) {
	if p.ring {
		if all, err = r.store.RingExemplars(ctx, nil, entry.ID, p.ringFrom, p.to); err != nil {
			return nil, err
		}
	}
	for day := p.firstPage; day <= p.lastPage; {
		month := keys.MonthOf(day)
		last := min(lastOf(month), p.lastPage)
		if entry.Listed(month) {
			pages, err := r.store.PagesExemplars(ctx, nil, entry.ID, day, last, p.from, p.to)
			if err != nil {
				return nil, err
			}
			all = slot.MergeExemplars(pages, all)
		}
		day = last + 1
	}
	return all, nil
}

// exemplarsOf gives those from..to.
func exemplarsOf(all []series.Exemplar, from, to series.Millis) []series.Exemplar {
	return slices.DeleteFunc(all, func(x series.Exemplar) bool { return x.T < from || x.T > to })
}
