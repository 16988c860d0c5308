package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/labels"

	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/keys"
)

// Listed is a series in the catalogue.
type Listed struct {
	ID     series.ID
	Labels labels.Labels
}

// MaxLabelBytes is how long all names and values of a series may be together, with a few bytes for each of them,
// so that they fit in one property.
const MaxLabelBytes = 60 << 10

const (
	labelsProperty = "labels"
	labelsVersion  = 1
)

// ErrCatalogue says that an entry of the catalogue cannot be read.
var ErrCatalogue = errors.New("the catalogue entry is damaged")

// List enters series of one bucket into a month's catalogue. What a slot is written for must be listed first.
func (s *Store) List(ctx context.Context, bucket int, month keys.Month, entries []Listed) error {
	groups := make([][]table.Operation, 0, len(entries))
	for _, e := range entries {
		groups = append(groups, []table.Operation{{
			Kind: table.InsertOrReplace, Row: string(keys.SeriesRow(e.ID)),
			Properties: []table.Property{{Name: labelsProperty, Value: appendLabels(nil, e.Labels)}},
		}})
	}
	return s.transact(ctx, s.cfg.Tables.Catalogue(month), s.partition(bucket), groups)
}

// Months lists the months that the catalogue has, the earliest first.
func (s *Store) Months(ctx context.Context) (months []keys.Month, err error) {
	names, err := s.svc.Tables(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	for _, name := range names {
		if month, ok := s.cfg.Tables.CatalogueMonth(name); ok {
			s.made.Store(name, true)
			months = append(months, month)
		}
	}
	return months, nil
}

// Catalogue calls each for every entry of a month, of one bucket after the other.
func (s *Store) Catalogue(ctx context.Context, month keys.Month, each func(series.ID, labels.Labels) error) error {
	name := s.cfg.Tables.Catalogue(month)
	for bucket := range s.Buckets() {
		if err := s.catalogueBucket(ctx, name, bucket, each); err != nil {
			return fmt.Errorf("reading the catalogue %q: %w", name, err)
		}
	}
	return nil
}

func (s *Store) catalogueBucket(ctx context.Context, name string, bucket int, each func(series.ID, labels.Labels) error) error {
	return s.rows(ctx, name, bucket, []string{labelsProperty}, func(e table.Entity) error {
		id, err := keys.SeriesOf(keys.Row(e.Key.Row))
		if err != nil {
			return err
		}
		ls, err := decodeLabels(e.Property(labelsProperty))
		if err != nil {
			return fmt.Errorf("row %q: %w", e.Key.Row, err)
		}
		return each(id, ls)
	})
}

// rows calls each for all rows of a bucket's partition.
func (s *Store) rows(ctx context.Context, name string, bucket int, project []string, each func(table.Entity) error) error {
	return s.query(ctx, name, table.Query{Partition: s.partition(bucket), Project: project}, each)
}

// query calls each for all rows of a query, however many pages they come in.
func (s *Store) query(ctx context.Context, name string, q table.Query, each func(table.Entity) error) error {
	for {
		page, err := s.svc.Query(ctx, name, q)
		if err != nil {
			return err
		}
		for _, e := range page.Entities {
			if err := each(e); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.Token = page.Next
	}
}

// appendLabels writes a version byte and, for each label, its name and its value, each with its length before it.
func appendLabels(b []byte, ls labels.Labels) []byte {
	b = append(b, labelsVersion)
	ls.Range(func(l labels.Label) {
		for _, s := range []string{l.Name, l.Value} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	})
	return b
}

func decodeLabels(b []byte) (labels.Labels, error) {
	if len(b) == 0 || b[0] != labelsVersion {
		return labels.EmptyLabels(), fmt.Errorf("no version that this program knows: %w", ErrCatalogue)
	}
	builder := labels.NewScratchBuilder(16)
	for b = b[1:]; len(b) > 0; {
		var pair [2]string
		for i := range pair {
			n, width := binary.Uvarint(b)
			if width <= 0 || n > math.MaxInt32 || int(n) > len(b)-width {
				return labels.EmptyLabels(), fmt.Errorf("labels cut short: %w", ErrCatalogue)
			}
			pair[i], b = string(b[width:width+int(n)]), b[width+int(n):]
		}
		builder.Add(pair[0], pair[1])
	}
	return builder.Labels(), nil
}
