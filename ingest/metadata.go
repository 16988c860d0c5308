package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"daybook/internal/index"
	"daybook/internal/series"
	"daybook/internal/store"
)

// Tags of prometheus.MetricMetadata.
const (
	tagMetadataType   = 1<<3 | wireVarint // in both versions
	tagMetadataFamily = 2<<3 | wireBytes
	tagMetadataHelp   = 4<<3 | wireBytes
	tagMetadataUnit   = 5<<3 | wireBytes
)

// metadata is what a message says of a metric family.
type metadata struct {
	given              bool
	kind               int // one of metricTypes
	family, help, unit []byte
	helpRef, unitRef   uint32 // of version 2.0
}

// metricTypes are the words for the numbers by which both versions name the types.
var metricTypes = [...]model.MetricType{
	model.MetricTypeUnknown, model.MetricTypeCounter, model.MetricTypeGauge, model.MetricTypeHistogram,
	model.MetricTypeGaugeHistogram, model.MetricTypeSummary, model.MetricTypeInfo, model.MetricTypeStateset,
}

func typeOf(n uint64) int {
	n &= math.MaxUint32
	if n >= uint64(len(metricTypes)) {
		return 0 // of a later version
	}
	return int(n)
}

// set takes a field of a prometheus.MetricMetadata.
func (m *metadata) set(f field) {
	switch f.tag {
	case tagMetadataType:
		m.kind = typeOf(f.n)
	case tagMetadataFamily:
		m.family = f.data
	case tagMetadataHelp:
		m.help = f.data
	case tagMetadataUnit:
		m.unit = f.data
	}
}

// append writes it as a field of a request of version 1.0.
func (m *metadata) append(request []byte) []byte {
	body := binary.AppendUvarint([]byte{tagMetadataType}, uint64(m.kind))
	body = appendBytes(body, tagMetadataFamily, m.family)
	body = appendBytes(body, tagMetadataHelp, m.help)
	body = appendBytes(body, tagMetadataUnit, m.unit)
	return appendBytes(request, tagMetadata, body)
}

// ofSeries finds the family that a series of version 2.0 belongs to, which only its metric name tells. A classic
// histogram or a summary has series with suffixes. A counter's _total stays: families are named so in the text format
// and by senders of version 1.0, and those who look for the metadata of a counter have the name of its series.
func (m *metadata) ofSeries(of *message) {
	m.given = m.kind != 0 || len(m.help) > 0 || len(m.unit) > 0
	if !m.given {
		return
	}
	m.family = metricName(of.labels)
	if len(of.histograms) > 0 {
		return // a native histogram has one series, whatever it is called
	}
	var suffixes []string
	switch metricTypes[m.kind] {
	case model.MetricTypeHistogram:
		suffixes = histogramSuffixes
	case model.MetricTypeGaugeHistogram:
		suffixes = gaugeHistogramSuffixes
	case model.MetricTypeSummary:
		suffixes = summarySuffixes
	}
	for _, suffix := range suffixes {
		if n := len(m.family) - len(suffix); n > 0 && string(m.family[n:]) == suffix {
			m.family = m.family[:n]
			return
		}
	}
}

var (
	histogramSuffixes      = []string{"_bucket", "_count", "_sum"}
	gaugeHistogramSuffixes = []string{"_bucket", "_gcount", "_gsum"}
	summarySuffixes        = []string{"_count", "_sum"}
)

// metricName finds the metric name among label fields; nil where there is none.
func metricName(fields []byte) []byte {
	for len(fields) > 0 {
		f, rest, err := nextField(fields)
		if err != nil {
			return nil
		}
		fields = rest
		name, value := []byte(nil), []byte(nil)
		for b := f.data; len(b) > 0; {
			if f, b, err = nextField(b); err != nil {
				return nil
			}
			switch f.tag {
			case tagName:
				name = f.data
			case tagLabelValue:
				value = f.data
			}
		}
		if string(name) == model.MetricNameLabel {
			return value
		}
	}
	return nil
}

// The most that is kept of metadata: of one family, and how many families beside as many as there are series.
const (
	maxMetadataBytes = 16 << 10
	maxFamilies      = 100_000
)

// check says why the metadata cannot be stored, "" for no reason.
func (m *metadata) check() string {
	switch {
	case len(m.family) == 0:
		return "metadata without the name of a metric family"
	case len(m.family)+len(m.help)+len(m.unit) > maxMetadataBytes:
		return fmt.Sprintf("metadata of %d bytes, at most %d are possible", len(m.family)+len(m.help)+len(m.unit), maxMetadataBytes)
	case !utf8.Valid(m.family) || !utf8.Valid(m.help) || !utf8.Valid(m.unit):
		return "metadata that is not valid UTF-8"
	}
	return ""
}

// copied gives the metadata in memory of its own.
func (m *metadata) copied() series.Metadata {
	return series.Metadata{
		Family: string(m.family), Type: string(metricTypes[m.kind]),
		Help: string(m.help), Unit: string(m.unit),
	}
}

// families are the metadata of metric families, the newest of each. Those that the table does not have yet are noted.
type families struct {
	known   *index.Metadata
	series  func() int   // how many series there are
	pending atomic.Int64 // how many there are in fresh

	mu    sync.Mutex
	fresh map[string]struct{}
}

func newFamilies(known *index.Metadata, series func() int) *families {
	if known == nil {
		known = index.NewMetadata()
	}
	return &families{known: known, series: series, fresh: map[string]struct{}{}}
}

// take takes what a message says of a family. It is news where it is not durable in the table: then the log must have
// it before it is acknowledged, even if another request brought it first. The reason says why it is not taken.
func (f *families) take(m *metadata) (news bool, reason string) {
	if f.known.Has(m.family, string(metricTypes[m.kind]), m.help, m.unit) {
		return f.isFresh(m.family), ""
	}
	if reason := m.check(); reason != "" {
		return false, reason
	}
	if _, ok := f.known.Get(string(m.family)); !ok && f.known.Len() >= maxFamilies+f.series() {
		return false, fmt.Sprintf("metadata of %d metric families is known, as many as are kept (%d, and one for each series)", f.known.Len(), maxFamilies)
	}
	f.put(m.copied())
	return true, ""
}

// put takes the metadata of a family, which the table may not have.
func (f *families) put(one series.Metadata) {
	if have, ok := f.known.Get(one.Family); ok && have == one {
		return
	}
	// First noted, then known: who finds it known finds it noted, too. Both at once, or settle might take the note for
	// that of what was known before.
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fresh[one.Family] = struct{}{}
	f.pending.Store(int64(len(f.fresh)))
	f.known.Set(one)
}

func (f *families) isFresh(family []byte) bool {
	if f.pending.Load() == 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.fresh[string(family)]
	return ok
}

// list gives what the table does not have.
func (f *families) list() (all []series.Metadata) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for family := range f.fresh {
		if one, ok := f.known.Get(family); ok {
			all = append(all, one)
		}
	}
	return all
}

// settle says that all this is durable in the table. What has changed meanwhile is not.
func (f *families) settle(written []series.Metadata) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range written {
		if now, ok := f.known.Get(one.Family); ok && now == one {
			delete(f.fresh, one.Family)
		}
	}
	f.pending.Store(int64(len(f.fresh)))
}

// write brings to the table what it does not have, and gives what that was.
func (f *families) write(ctx context.Context, to *store.Store, log *slog.Logger) ([]series.Metadata, error) {
	all := f.list()
	if len(all) == 0 {
		return nil, nil
	}
	err := to.PutMetadata(ctx, all)
	if isRefusal(err) {
		log.Error("metadata that cannot be stored is let go with the next restart", "err", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("writing the metadata of %d metric families: %w", len(all), err)
	}
	return all, nil
}

// isRefusal tells of an error of PutMetadata whether it is only about families that cannot be stored, ever.
func isRefusal(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // each of them must be one
	if !ok {
		return false
	}
	for _, one := range joined.Unwrap() {
		if !errors.Is(one, store.ErrMetadata) && !errors.Is(one, store.ErrSameHash) {
			return false
		}
	}
	return true
}
