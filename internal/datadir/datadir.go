// Package datadir is the folder on the local disk that a daybook process has to itself: locked against a second one,
// marked with the version of its layout, and watched for room.
//
//	data/LOCK      held by the process; holds its process id
//	data/FORMAT    "daybook data directory, format 1"
//	data/wal/      the write-ahead log, package ingest/wal
//	data/table/    the embedded table, package internal/table/embedded
package datadir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Format is the version of the layout.
const Format = 1

// ErrLocked says that another process has the folder.
var ErrLocked = errors.New("another daybook is using the data directory")

// ErrNewer says that a newer daybook wrote the folder.
var ErrNewer = errors.New("the data directory was written by a newer version of daybook: use that version or a later one")

// ErrForeign says that the folder holds something else than a daybook's data.
var ErrForeign = errors.New("this is not a daybook data directory: choose an empty one")

// ErrNoRoom says that the disk is too full.
var ErrNoRoom = errors.New("the disk is too full")

// Dir is a folder that this process has to itself.
type Dir struct {
	path string
	lock *os.File
}

// Open locks the folder, making it where there is none, and checks its format.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	// Nothing is left behind in a folder that is not ours.
	if err := Check(path); err != nil && !errors.Is(err, errNew) {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	d := &Dir{path, lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(lock.Name())
		return nil, errors.Join(fmt.Errorf("%s: %w%s", path, ErrLocked, process(owner)), lock.Close())
	}
	if err := d.mark(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// process names the process that has the folder, when it has written that down already.
func process(owner []byte) string {
	if owner = bytes.TrimSpace(owner); len(owner) == 0 {
		return ""
	}
	return fmt.Sprintf(" (process %s)", owner)
}

const (
	lockFile   = "LOCK"
	formatFile = "FORMAT"
	unfinished = formatFile + ".new" // what claim died over
)

// errNew says that a folder is empty.
var errNew = errors.New("there is no data in it yet")

// Check says whether there is a data directory that this program can read.
func Check(path string) error {
	text, err := os.ReadFile(filepath.Join(path, formatFile))
	if err == nil {
		return checkFormat(path, string(text))
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the format of the data directory: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("reading the data directory: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{lockFile, unfinished, "lost+found"}, e.Name()) {
			return fmt.Errorf("%s holds %q: %w", path, e.Name(), ErrForeign)
		}
	}
	return fmt.Errorf("%s: %w", path, errNew)
}

// mark writes down who has the folder, and its format where it is new.
func (d *Dir) mark() error {
	err := Check(d.path) // once more, now that nobody else can change it
	if errors.Is(err, errNew) {
		err = d.claim()
	}
	if err != nil {
		return err
	}
	if err := d.folders(); err != nil {
		return fmt.Errorf("making the folders of the data directory: %w", err)
	}
	err = errors.Join(d.lock.Truncate(0), writeAt(d.lock, fmt.Sprintf("%d\n", os.Getpid())))
	if err != nil && !errors.Is(err, syscall.ENOSPC) { // the id is only for people
		return fmt.Errorf("marking the data directory: %w", err)
	}
	return nil
}

// claim makes a new folder daybook's. The format is whole on the disk or not there at all: with half of it a later
// start would take the folder for somebody else's.
func (d *Dir) claim() error {
	name := filepath.Join(d.path, unfinished)
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("marking the data directory: %w", err)
	}
	_, err = fmt.Fprintf(f, "daybook data directory, format %d\n", Format)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(name, filepath.Join(d.path, formatFile))
	}
	if err != nil {
		return fmt.Errorf("marking the data directory: %w", err)
	}
	return nil
}

// folders makes what is in the folder, and makes the names durable: a file that is synced is lost all the same when
// the folder that it is in has no name after a crash.
func (d *Dir) folders() error {
	err := errors.Join(os.MkdirAll(d.WAL(), 0o777), os.MkdirAll(d.Table(), 0o777))
	if err != nil {
		return err
	}
	if err := syncDir(d.path); err != nil {
		return err
	}
	err = syncDir(filepath.Dir(filepath.Clean(d.path)))
	if errors.Is(err, os.ErrPermission) { // then it is not this process that made the folder
		return nil
	}
	return err
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func checkFormat(path, text string) error {
	var format int
	if _, err := fmt.Sscanf(strings.TrimSpace(text), "daybook data directory, format %d", &format); err != nil || format < 1 {
		return fmt.Errorf("%s: its FORMAT file says %q: %w", path, abbreviate(text), ErrForeign)
	}
	if format > Format {
		return fmt.Errorf("%s has format %d, this program knows up to %d: %w", path, format, Format, ErrNewer)
	}
	return nil
}

func abbreviate(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// WAL is the folder of the write-ahead log.
func (d *Dir) WAL() string { return filepath.Join(d.path, "wal") }

// Table is the folder of the embedded table.
func (d *Dir) Table() string { return filepath.Join(d.path, "table") }

// Free is how many bytes the disk has left for this process.
func (d *Dir) Free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.path, &s); err != nil {
		return 0, fmt.Errorf("asking for the room on the disk: %w", err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // other systems have other types here
}

// CheckFree gives ErrNoRoom when less than least bytes are left.
func (d *Dir) CheckFree(least int64) error {
	free, err := d.Free()
	if err != nil {
		return err
	}
	if free < least {
		return fmt.Errorf("%s: %d bytes are left, %d are kept free (wal.min_free_disk); make room: %w", d.path, free, least, ErrNoRoom)
	}
	return nil
}

// AwaitRoom returns true when the disk has bytes left, and false when ctx has ended before.
func (d *Dir) AwaitRoom(ctx context.Context, bytes int64) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if free, err := d.Free(); err != nil || free >= bytes {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// Close lets go of the folder.
func (d *Dir) Close() error { return d.lock.Close() }
