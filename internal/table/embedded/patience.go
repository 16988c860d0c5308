package embedded

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// patience slows Pebble down where it cannot write: it repeats a failed flush at once and for ever, thousands of times
// a second, each with an error in the log.
type patience struct {
	vfs.FS
	failures *atomic.Int32 // in a row
}

// Between two attempts; the pause doubles with each failure.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 5 * time.Second
)

func pause(failures int32) time.Duration {
	if failures <= 0 {
		return 0
	}
	return min(firstPause<<min(failures-1, 10), lastPause)
}

// Create is where an attempt begins: with the file to flush or to compact into. No lock is held here.
func (p patience) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") {
		time.Sleep(pause(p.failures.Load()))
	}
	return p.FS.Create(name, category)
}

// Unwrap implements vfs.FS.
func (p patience) Unwrap() vfs.FS { return p.FS }
