package query

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
)

// maxInspected is how many series Inspect prints.
const maxInspected = 10

// Inspect prints what the tables hold of the series that a selector matches, and what of it is in memory only.
func (r *Reader) Inspect(ctx context.Context, out io.Writer, selector string) error {
	return inspect(ctx, out, r.store, r.index, selector, r.head)
}

// Inspect prints what the tables hold of the series that a selector matches.
func Inspect(ctx context.Context, out io.Writer, s *store.Store, x *index.Index, selector string) error {
	return inspect(ctx, out, s, x, selector, nil)
}

func inspect(ctx context.Context, out io.Writer, s *store.Store, x *index.Index, selector string, head Head) error {
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	if err != nil {
		return fmt.Errorf("%w: the selector %s: %w", ErrBadQuery, selector, err)
	}
	found, err := x.Select(ctx, index.AllMonths, matchers...)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b *index.Series) int { return labels.Compare(a.Labels, b.Labels) })
	w := &textWriter{out: out}
	w.printf("%d series match %s. Days up to %s are closed: their pages are written.\n",
		len(found), selector, s.Closed().Time().Format(time.DateOnly))
	for i, entry := range found {
		if i == maxInspected {
			w.printf("\n%d more are not shown.\n", len(found)-i)
			break
		}
		described, err := s.Describe(ctx, entry.ID)
		if err != nil {
			return err
		}
		w.printf("\n%s\n  id %v, partition %q\n", entry.Labels, entry.ID, described[0].Key.Partition)
		for _, d := range described {
			w.entity(d, s.RingTable())
		}
		if head != nil {
			unflushed := head.Samples(nil, entry.ID, -1<<62, 1<<62)
			w.printf("  in memory and in the write-ahead log only: %d samples\n", len(unflushed))
		}
	}
	return w.err
}

// textWriter keeps the first error.
type textWriter struct {
	out io.Writer
	err error
}

func (w *textWriter) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.out, format, args...)
	}
}

func (w *textWriter) entity(d store.Description, ring string) {
	var counts, sizes [len(series.Kinds)]int
	for _, one := range d.Slots {
		counts[one.Info.Kind] += one.Info.Count
		sizes[one.Info.Kind] += one.Bytes
	}
	what := "page"
	if d.Table == ring {
		what = "ring"
	}
	w.printf("  %s, table %s, row %s: %d slots", what, d.Table, d.Key.Row, len(d.Slots))
	for _, kind := range series.Kinds {
		if n := counts[kind]; n > 0 {
			w.printf(", %d %s, %d bytes, %.2f %s", n, words[kind].many, sizes[kind], float64(sizes[kind])/float64(n), words[kind].one)
		}
	}
	w.printf("\n")
	for _, kind := range series.Kinds {
		w.slots(kind, d.Slots)
	}
}

// words are what the kinds are called.
var words = [...]struct{ one, many string }{
	series.Floats:     {"a sample", "samples"},
	series.Histograms: {"a histogram", "histograms"},
	series.Exemplars:  {"an exemplar", "exemplars"},
}

// slots prints a table of the slots of one kind, where there are any.
func (w *textWriter) slots(kind series.Kind, all []store.SlotDescription) {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	first := true
	for _, one := range all {
		if one.Info.Kind != kind {
			continue
		}
		if first {
			fmt.Fprintf(columns, "    slot\tholds\t%s\tbytes\tencoding\tfirst\t\tlast\t\n", words[kind].many)
			first = false
		}
		fmt.Fprintf(columns, "    %s\t%s\t%d\t%d\t%s\t%s\t%v\t%s\t%v\n", one.Property, holds(one), one.Info.Count, one.Bytes,
			encoding(one), one.Info.First.Time().Format(timeOfDay), valueText(kind, one.First),
			one.Info.Last.Time().Format(timeOfDay), valueText(kind, one.Last))
	}
	if err := columns.Flush(); w.err == nil {
		w.err = err
	}
}

func encoding(one store.SlotDescription) string {
	if one.Info.Kind == series.Floats {
		return one.Info.Encoding.String()
	}
	if one.Info.Packed {
		return "packed"
	}
	return "plain"
}

// valueText gives one thing of a slot in a few words.
func valueText(kind series.Kind, v store.Value) string {
	switch {
	case kind == series.Exemplars:
		return fmt.Sprintf("%v %s", v.Exemplar.V, v.Exemplar.Labels)
	case v.Histogram.Int != nil:
		h := v.Histogram.Int
		return histogramText("integer", h.Schema, len(h.PositiveBuckets)+len(h.NegativeBuckets), float64(h.Count), h.Sum)
	case v.Histogram.Float != nil:
		h := v.Histogram.Float
		return histogramText("float", h.Schema, len(h.PositiveBuckets)+len(h.NegativeBuckets), h.Count, h.Sum)
	}
	return fmt.Sprint(v.Sample.V)
}

func histogramText(kind string, schema int32, buckets int, count, sum float64) string {
	if value.IsStaleNaN(sum) {
		return "stale"
	}
	return fmt.Sprintf("%s, schema %d, %d buckets, count %v, sum %v", kind, schema, buckets, count, sum)
}

const timeOfDay = "15:04:05.000"

func holds(one store.SlotDescription) string {
	if one.Day {
		return "the day " + one.Info.Start.Start().Time().Format(time.DateOnly)
	}
	return "the hour " + one.Info.Start.Start().Time().Format("2006-01-02 15:00")
}

// Write implements io.Writer for the columns.
func (w *textWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	return w.out.Write(b)
}
