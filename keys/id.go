package keys

import (
	"encoding/binary"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"

	"daybook/internal/series"
)

// SeriesID is the id of the series with these labels: 32 bits of a hash of the metric name, then 96 bits of a hash
// of tenant, names and values, each with its length before it so that no two label sets are spelled alike. The hash
// is XXH3 (https://github.com/Cyan4973/xxHash), whose values are fixed for good.
func SeriesID(tenant string, ls labels.Labels) series.ID {
	var stack [512]byte
	b := appendString(stack[:0], tenant)
	ls.Range(func(l labels.Label) {
		b = appendString(b, l.Name)
		b = appendString(b, l.Value)
	})
	all := xxh3.Hash128(b).Bytes()
	var id series.ID
	binary.BigEndian.PutUint32(id[:4], MetricHash(ls.Get(model.MetricNameLabel)))
	copy(id[4:], all[:12])
	return id
}

// MetricHash is what the ids of all series of a metric begin with.
func MetricHash(metric string) uint32 { return uint32(xxh3.HashString(metric)) }

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
