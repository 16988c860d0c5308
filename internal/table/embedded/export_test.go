package embedded

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// WithMemTable gives a Config under which memtables are flushed after so many bytes.
func (c Config) WithMemTable(bytes uint64) Config {
	c.memTable = bytes
	return c
}

// Pause is how long the next attempt to flush waits.
var Pause = pause

// Orphans counts properties of tables that are not in the list: nothing would ever find or remove them.
func (t *Table) Orphans() (n int, err error) {
	listed := map[uint32]bool{}
	for _, name := range t.tables.names() {
		number, _ := t.tables.number(name)
		listed[number] = true
	}
	it, err := t.db.NewIter(&pebble.IterOptions{LowerBound: tablePrefix(1)})
	if err != nil {
		return 0, err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if !listed[binary.BigEndian.Uint32(it.Key())] {
			n++
		}
	}
	return n, it.Error()
}
