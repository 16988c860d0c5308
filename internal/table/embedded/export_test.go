package embedded

// WithMemTable gives a Config under which memtables are flushed after so many bytes.
func (c Config) WithMemTable(bytes uint64) Config {
	c.memTable = bytes
	return c
}

// Pause is how long the next attempt to flush waits.
var Pause = pause
