package query

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"daybook/internal/series"
	"daybook/internal/store"
)

// Explanation is how a query was planned: what it would read, selector by selector. What it did read is a table.Cost.
type Explanation struct {
	mu        sync.Mutex
	selectors []SelectorPlan
}

// SelectorPlan is what is read for one selector.
type SelectorPlan struct {
	Selector  string
	Series    int
	From, To  series.Millis // of the samples that it may look at
	Step      series.Millis // where only what lies shortly before each step is read; otherwise 0
	Window    series.Millis // how long before each step
	RingHours int           // hours of the ring, 0 where it is not read
	PageDays  int           // days of pages
	Rows      int64         // of all series
	Scanned   int           // series whose neighbours are read with them, in range reads
	Groups    int           // that the series are aggregated to while they are read; 0 where the engine does that
}

type explanationKey struct{}

// WithExplanation gives a context under which queries say how they are planned.
func WithExplanation(ctx context.Context, e *Explanation) context.Context {
	return context.WithValue(ctx, explanationKey{}, e)
}

func explanationOf(ctx context.Context) *Explanation {
	e, _ := ctx.Value(explanationKey{}).(*Explanation)
	return e
}

type statisticsKey struct{}

// WithStatistics gives a context under which the engine evaluates queries alone, so that its statistics count all samples.
func WithStatistics(ctx context.Context) context.Context {
	return context.WithValue(ctx, statisticsKey{}, true)
}

func wantsStatistics(ctx context.Context) bool { return ctx.Value(statisticsKey{}) != nil }

// Selectors gives the plans in the order in which the engine asked.
func (e *Explanation) Selectors() []SelectorPlan {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.selectors)
}

// add notes a selection.
func (e *Explanation) add(matchers []*labels.Matcher, s *selection, rows int64, grouped *groupedSelection) {
	if e == nil {
		return
	}
	p := s.plan
	from, to := s.reader.cut(p.span)
	one := SelectorPlan{
		Selector: (&parser.VectorSelector{LabelMatchers: matchers}).String(), Series: len(s.found), From: from, To: to, Rows: rows,
		RingHours: p.ringHours(), Scanned: s.scanned(),
	}
	if grouped != nil {
		one.Groups = len(grouped.groups)
	}
	if p.span.Step > 0 && p.span.Step < store.Once {
		one.Step, one.Window = p.span.Step, p.span.Window
	}
	for _, m := range p.months {
		one.PageDays += m.days
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.selectors = append(e.selectors, one)
}

func (p *plan) ringHours() (n int) {
	for h := p.from; p.ring && h <= p.to; h++ {
		if p.span.Wants(h.Start(), (h+1).Start()-1) {
			n++
		}
	}
	return n
}

// scanned counts the series of the ring that are read with their neighbours.
func (s *selection) scanned() (n int) {
	for _, b := range s.batches {
		_ = s.groups(s.found[b.first:b.end], make([]*store.Run, b.end-b.first), func(g store.Group, metric string) error {
			if s.scans(g, metric) {
				n += len(g.IDs)
			}
			return nil
		})
	}
	return n
}
