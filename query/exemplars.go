package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/sync/errgroup"

	"daybook/internal/series"
	"daybook/internal/store"
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
	f := fetch{reader: r, plan: r.plan(store.Span{From: from, To: to, Exemplars: true})}
	if rows := f.plan.rows(found); rows > r.cfg.MaxRows {
		return nil, r.tooManyRows(rows)
	}
	all := make([]Exemplars, len(found))
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, entry := range found {
		group.Go(func() error {
			runs, err := f.read(ctx, found[i:i+1])
			if err == nil {
				all[i] = Exemplars{entry.Labels, slices.Clone(runs[0].Exemplars)}
				r.recycle(runs...)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("reading exemplars: %w", err)
	}
	return slices.DeleteFunc(all, func(one Exemplars) bool { return len(one.Exemplars) == 0 }), nil
}
