package index

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"daybook/internal/series"
)

// Metadata is what is known of metric families, the newest of each. It is filled from the store at start and by package
// ingest afterwards. Its methods may be called from many goroutines.
type Metadata struct {
	mu       sync.RWMutex
	byFamily map[string]series.Metadata
}

// NewMetadata makes an empty one.
func NewMetadata() *Metadata { return &Metadata{byFamily: map[string]series.Metadata{}} }

// Len is how many families there are.
func (m *Metadata) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.byFamily)
}

// Set takes the metadata of a family, and tells whether it is other than before.
func (m *Metadata) Set(one series.Metadata) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.byFamily[one.Family]; ok && have == one {
		return false
	}
	m.byFamily[one.Family] = one
	return true
}

// Get finds the metadata of a family.
func (m *Metadata) Get(family string) (series.Metadata, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	one, ok := m.byFamily[family]
	return one, ok
}

// Has tells whether just this is known of a family. It makes no strings.
func (m *Metadata) Has(family []byte, kind string, help, unit []byte) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	one, ok := m.byFamily[string(family)]
	return ok && one.Type == kind && one.Help == string(help) && one.Unit == string(unit)
}

// All gives the metadata of all families, in order of their names.
func (m *Metadata) All() []series.Metadata {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.SortedFunc(maps.Values(m.byFamily), func(a, b series.Metadata) int { return cmp.Compare(a.Family, b.Family) })
}
