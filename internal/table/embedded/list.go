package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// tableList is the list of tables: names and the numbers that stand for them in keys.
type tableList struct {
	mu     sync.RWMutex
	byName map[string]uint32
	next   uint32
}

func (l *tableList) load(db *pebble.DB) error {
	l.byName, l.next = map[string]uint32{}, 1
	prefix := nameKey("")
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		l.byName[string(it.Key()[len(prefix):])] = binary.BigEndian.Uint32(value)
	}
	if err := it.Error(); err != nil {
		return err
	}
	value, closer, err := db.Get(nextKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	l.next = binary.BigEndian.Uint32(value)
	return closer.Close()
}

func (l *tableList) number(name string) (uint32, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	n, ok := l.byName[name]
	return n, ok
}

func (l *tableList) names() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var names []string
	for name := range l.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (l *tableList) create(db *pebble.DB, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.byName[name]; ok {
		return nil
	}
	number := l.next
	b := db.NewBatch()
	defer b.Close()
	err := errors.Join(
		b.Set(nameKey(name), binary.BigEndian.AppendUint32(nil, number), nil),
		b.Set(nextKey(), binary.BigEndian.AppendUint32(nil, number+1), nil),
		b.Commit(pebble.NoSync))
	if err != nil {
		return fmt.Errorf("creating table %q: %w", name, err)
	}
	l.byName[name], l.next = number, number+1
	return nil
}

func (l *tableList) drop(db *pebble.DB, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	number, ok := l.byName[name]
	if !ok {
		return nil
	}
	prefix := tablePrefix(number)
	b := db.NewBatch()
	defer b.Close()
	err := errors.Join(
		b.Delete(nameKey(name), nil),
		b.DeleteRange(prefix, prefixEnd(prefix), nil),
		b.Commit(pebble.NoSync))
	if err != nil {
		return fmt.Errorf("dropping table %q: %w", name, err)
	}
	delete(l.byName, name)
	return nil
}

func nameKey(name string) []byte { return append([]byte{0, 0, 0, 0, 't'}, name...) }
func nextKey() []byte            { return []byte("\x00\x00\x00\x00next") }

func tablePrefix(number uint32) []byte { return binary.BigEndian.AppendUint32(nil, number) }

func partitionPrefix(number uint32, partition string) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 128), number)
	return append(append(b, partition...), 0)
}

// entityPrefix is a slice of its own, with room for a property's name behind it.
func entityPrefix(partition []byte, row string) []byte {
	b := make([]byte, 0, len(partition)+len(row)+32)
	return append(append(append(b, partition...), row...), 0)
}

// prefixEnd is the first key behind all that begin with prefix.
func prefixEnd(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// pebbleLogger passes on what Pebble has to say.
type pebbleLogger struct{ log *slog.Logger }

func (l pebbleLogger) Infof(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }

func (l pebbleLogger) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }

// Fatalf must not return: Pebble calls it where it cannot go on.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	l.log.Error("the embedded table cannot go on: " + message)
	panic(message)
}
