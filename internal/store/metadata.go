package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"daybook/internal/series"
	"daybook/internal/table"
	"daybook/keys"
)

const (
	familyProperty  = "family"
	metadataVersion = 1

	// What is said of a family stands in its entity up to this length, and in rows of its own beyond.
	metadataInline = 512 << 10
)

// MaxMetadata is how many bytes the name, type, help and unit of a family may have together.
const MaxMetadata = MaxSlot - 64

// ErrMetadata says that what is stored of a metric family cannot be read, or is too long to be stored.
var ErrMetadata = errors.New("bad metadata")

// ErrSameHash says that two metric families have the same hash; only the one that was first is kept.
var ErrSameHash = errors.New("two metric families have the same hash")

// PutMetadata stores what is known of metric families, in place of what was known before: the newest wins. It may be
// repeated. One that cannot be stored does not keep the others from it.
func (s *Store) PutMetadata(ctx context.Context, families []series.Metadata) error {
	var refused []error
	newest := map[keys.Row]series.Metadata{}
	var order []keys.Row
	for _, m := range families {
		row := keys.MetadataRow(m.Family)
		if err := s.mayPutMetadata(ctx, row, m); err != nil {
			if !errors.Is(err, ErrMetadata) && !errors.Is(err, ErrSameHash) {
				return err
			}
			refused = append(refused, err)
			continue
		}
		if _, twice := newest[row]; !twice {
			order = append(order, row)
		}
		newest[row] = m
	}
	var groups [][]table.Operation
	for _, row := range order {
		one := entity{row: row}
		one.add(familyProperty, appendMetadata(nil, newest[row]), metadataInline)
		groups = append(groups, one.groups()...)
	}
	err := s.transact(ctx, s.cfg.Tables.Meta(), string(keys.MetadataPartition(s.cfg.Tenant)), groups)
	return errors.Join(append(refused, err)...)
}

// mayPutMetadata refuses what is too long and what would take the place of another family.
func (s *Store) mayPutMetadata(ctx context.Context, row keys.Row, m series.Metadata) error {
	if n := len(m.Family) + len(m.Type) + len(m.Help) + len(m.Unit); n > MaxMetadata {
		return fmt.Errorf("%w: what is said of the family %.100q has %d bytes, at most %d are possible", ErrMetadata, m.Family, n, MaxMetadata)
	}
	key := table.Key{Partition: string(keys.MetadataPartition(s.cfg.Tenant)), Row: string(row)}
	e, err := s.svc.Get(ctx, s.cfg.Tables.Meta(), key, nil)
	if errors.Is(err, table.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what is known of the family %q: %w", m.Family, err)
	}
	// Where what is there is damaged, what is put in its place makes it good.
	if have, err := s.metadataOf(ctx, e); err == nil && have.Family != m.Family {
		return fmt.Errorf("%w: %q is left out, as %q is stored", ErrSameHash, m.Family, have.Family)
	}
	return nil
}

// Metadata calls each for every metric family of which something is known.
func (s *Store) Metadata(ctx context.Context, each func(series.Metadata) error) error {
	q := table.Query{Partition: string(keys.MetadataPartition(s.cfg.Tenant))}
	err := s.query(ctx, s.cfg.Tables.Meta(), q, func(e table.Entity) error {
		if !keys.IsMetadataRow(keys.Row(e.Key.Row)) {
			return nil
		}
		m, err := again(func() (series.Metadata, error) { return s.metadataOf(ctx, e) })
		if err != nil {
			return err
		}
		return each(m)
	})
	if err != nil {
		return fmt.Errorf("reading the metadata: %w", err)
	}
	return nil
}

func (s *Store) metadataOf(ctx context.Context, e table.Entity) (series.Metadata, error) {
	data, err := s.wholeValue(ctx, s.cfg.Tables.Meta(), e, familyProperty)
	if err != nil {
		return series.Metadata{}, fmt.Errorf("row %q: %w", e.Key.Row, err)
	}
	m, err := decodeMetadata(data)
	if err != nil {
		return m, fmt.Errorf("row %q: %w", e.Key.Row, err)
	}
	return m, nil
}

// appendMetadata writes a version byte, and family, type, help and unit, each with its length before it.
func appendMetadata(b []byte, m series.Metadata) []byte {
	b = append(b, metadataVersion)
	for _, text := range []string{m.Family, m.Type, m.Help, m.Unit} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

func decodeMetadata(b []byte) (m series.Metadata, err error) {
	if len(b) == 0 || b[0] != metadataVersion {
		return m, fmt.Errorf("%w: no version that this program knows", ErrMetadata)
	}
	b = b[1:]
	for _, text := range []*string{&m.Family, &m.Type, &m.Help, &m.Unit} {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)-width) {
			return series.Metadata{}, fmt.Errorf("%w: it is cut short", ErrMetadata)
		}
		*text, b = string(b[width:width+int(n)]), b[width+int(n):]
	}
	if len(b) > 0 {
		return series.Metadata{}, fmt.Errorf("%w: %d bytes too many", ErrMetadata, len(b))
	}
	return m, nil
}
