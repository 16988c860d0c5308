package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"golang.org/x/sync/errgroup"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
)

// Chart is what a plot of some series over one span needs.
type Chart struct {
	Span     string
	From, To series.Millis
	Series   []Line
	Left     int // series that were left out, as there are too many for one chart
}

// Line is one series of a chart in columns: at T[i] the value is V[i], NaN for none: a gap, a stale series, or a value
// that cannot be drawn. Where samples are missing there is one NaN in between, so that no line is drawn across.
type Line struct {
	ID     series.ID
	Labels labels.Labels
	T      []series.Millis
	V      []float64
}

// spans are the charts that are one point read for each series.
var spans = map[string]time.Duration{"24h": 24 * time.Hour}

// parallelReads is how many series of a chart are read at the same time.
const parallelReads = 8

// Chart reads the span that ends now, of at most limit series (0 for as many as the configuration allows).
func (r *Reader) Chart(ctx context.Context, found []*index.Series, span string, limit int) (*Chart, error) {
	length, ok := spans[span]
	if !ok {
		return nil, fmt.Errorf("%w: invalid parameter \"span\": %q, only 24h is known", ErrBadQuery, span)
	}
	now := r.cfg.Now()
	c := &Chart{Span: span, From: series.MillisOf(now.Add(-length)), To: series.MillisOf(now)}
	if limit <= 0 || limit > r.cfg.MaxChart {
		limit = r.cfg.MaxChart
	}
	c.Left = max(0, len(found)-limit)
	found = found[:len(found)-c.Left]
	c.Series = make([]Line, len(found))
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i, entry := range found {
		group.Go(func() error {
			run, err := r.read(ctx, entry, c.From, c.To)
			if err == nil {
				c.Series[i] = line(entry, run.Floats)
				r.recycle(run)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("reading a chart: %w", err)
	}
	return c, nil
}

// read gives the samples of one series from..to.
func (r *Reader) read(ctx context.Context, entry *index.Series, from, to series.Millis) (*store.Run, error) {
	f := fetch{reader: r, plan: r.plan(store.Span{From: from, To: to})}
	runs, err := f.read(ctx, []*index.Series{entry})
	if err != nil {
		return nil, err
	}
	return runs[0], nil
}

// Find gives the series with an id, none where there is no such series.
func (r *Reader) Find(id series.ID) []*index.Series {
	if entry := r.index.Get(id); entry != nil {
		return []*index.Series{entry}
	}
	return nil
}

func line(entry *index.Series, samples []series.Sample) Line {
	l := Line{ID: entry.ID, Labels: entry.Labels, T: make([]series.Millis, 0, len(samples)), V: make([]float64, 0, len(samples))}
	usual := usualDistance(samples)
	for i, s := range samples {
		if i > 0 && usual > 0 && s.T-samples[i-1].T > gapAfter*usual && !math.IsNaN(l.V[len(l.V)-1]) {
			l.T, l.V = append(l.T, samples[i-1].T+usual), append(l.V, math.NaN())
		}
		v := s.V
		if math.IsInf(v, 0) {
			v = math.NaN()
		}
		l.T, l.V = append(l.T, s.T), append(l.V, v)
	}
	return l
}

// gapAfter is how many times the usual distance between samples makes a gap.
const gapAfter = 5

// usualDistance is the median distance between neighbouring samples, 0 where there are none.
func usualDistance(samples []series.Sample) series.Millis {
	if len(samples) < 3 {
		return 0
	}
	distances := make([]series.Millis, 0, len(samples)-1)
	for i := 1; i < len(samples); i++ {
		distances = append(distances, samples[i].T-samples[i-1].T)
	}
	slices.Sort(distances)
	return distances[len(distances)/2]
}
