package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A moment is when daybook is killed.
type moment struct {
	name string
	// await returns when it is time, and says whether daybook was seen to do what the moment is named for.
	await func(d *daybook, dir string, r *rand.Rand) bool
	// before prepares the folder, before the process starts.
	before func(dir string) error
}

// The moments. Where a moment is waited for, it is taken from the files that daybook makes: the kill lands within a
// fraction of a millisecond of what it aims at.
var (
	anyTime = moment{name: "any time", await: func(_ *daybook, _ string, r *rand.Rand) bool {
		time.Sleep(upTo(r, 1500*time.Millisecond))
		return true
	}}
	// The write-ahead log has just begun a new segment.
	atRotation = moment{name: "rotation", await: func(_ *daybook, dir string, r *rand.Rand) bool {
		time.Sleep(upTo(r, 700*time.Millisecond))
		before := newest(segments(dir))
		return awaitFiles(func() bool { return newest(segments(dir)) != before })
	}}
	// Some of the buckets are flushed.
	inFlush = moment{name: "flush", await: func(_ *daybook, dir string, r *rand.Rand) bool {
		return awaitFiles(func() bool {
			before := newest(segments(dir))
			awaitFiles(func() bool { return newest(segments(dir)) != before })
			time.Sleep(upTo(r, 50*time.Millisecond))
			return len(segments(dir)) > 1
		})
	}}
	// The table writes what is in its memory to a file.
	inTableFlush = moment{name: "table flush", await: func(_ *daybook, dir string, r *rand.Rand) bool {
		time.Sleep(upTo(r, 700*time.Millisecond))
		before := newest(tables(dir))
		seen := awaitFiles(func() bool { return newest(tables(dir)) != before })
		time.Sleep(upTo(r, 3*time.Millisecond))
		return seen
	}}
	// Segments are being removed.
	atDrop = moment{name: "drop", await: func(_ *daybook, dir string, r *rand.Rand) bool {
		time.Sleep(upTo(r, 700*time.Millisecond))
		before := oldest(segments(dir))
		return awaitFiles(func() bool { return oldest(segments(dir)) != before })
	}}
	// Yesterday's pages are being written.
	inClosing = moment{name: "closing", before: reopenYesterday, await: func(d *daybook, _ string, r *rand.Rand) bool {
		seen := awaitFiles(func() bool { return d.metric("daybook_rollup_pages_total") > 0 })
		time.Sleep(upTo(r, 300*time.Millisecond))
		return seen
	}}
	// Late hours are being folded into their pages.
	inSealing = moment{name: "sealing", await: func(d *daybook, _ string, r *rand.Rand) bool {
		seen := awaitFiles(func() bool { return d.metric("daybook_rollup_seals_total") > 0 })
		time.Sleep(upTo(r, 20*time.Millisecond))
		return seen
	}}
)

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// awaitFiles looks very often, for at most 20 s, and says whether it was seen.
func awaitFiles(seen func() bool) bool {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		if seen() {
			return true
		}
	}
	return false
}

func segments(dir string) []string { return names(filepath.Join(dir, "wal"), ".wal") }
func tables(dir string) []string   { return names(filepath.Join(dir, "table"), ".sst") }

// names are the files of a folder with a suffix, sorted.
func names(dir, suffix string) (found []string) {
	entries, _ := os.ReadDir(dir) // files come and go
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			found = append(found, e.Name())
		}
	}
	slices.Sort(found)
	return found
}

func newest(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

func oldest(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// landing is what the killed process left.
type landing struct {
	segments int   // of the log; more than one: a flush was under way
	tail     int64 // bytes of the newest
	damaged  int   // segments set aside as damaged, of which there must be none
}

func landed(dir string) (l landing) {
	all := segments(dir)
	l.segments = len(all)
	if info, err := os.Stat(filepath.Join(dir, "wal", newest(all))); err == nil {
		l.tail = info.Size()
	}
	l.damaged = len(names(filepath.Join(dir, "wal"), ".damaged"))
	return l
}

func (l landing) String() string {
	where := "between flushes"
	if l.segments > 1 {
		where = "during a flush"
	}
	return fmt.Sprintf("%s, %d segments, %d bytes in the newest", where, l.segments, l.tail)
}
