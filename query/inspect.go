package query

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"daybook/internal/index"
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
	found, err := x.Select(ctx, matchers...)
	if err != nil {
		return err
	}
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
	samples, bytes := 0, 0
	for _, one := range d.Slots {
		samples, bytes = samples+one.Info.Count, bytes+one.Bytes
	}
	what := "page"
	if d.Table == ring {
		what = "ring"
	}
	w.printf("  %s, table %s, row %s: %d slots, %d samples, %d bytes", what, d.Table, d.Key.Row, len(d.Slots), samples, bytes)
	if samples > 0 {
		w.printf(", %.2f a sample", float64(bytes)/float64(samples))
	}
	w.printf("\n")
	if len(d.Slots) == 0 {
		return
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "    slot\tholds\tsamples\tbytes\tencoding\tfirst\t\tlast\t")
	for _, one := range d.Slots {
		fmt.Fprintf(columns, "    %s\t%s\t%d\t%d\t%s\t%s\t%v\t%s\t%v\n", one.Property, holds(one), one.Info.Count, one.Bytes,
			one.Info.Encoding, one.Info.First.Time().Format(timeOfDay), one.First.V, one.Info.Last.Time().Format(timeOfDay), one.Last.V)
	}
	if err := columns.Flush(); w.err == nil {
		w.err = err
	}
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
