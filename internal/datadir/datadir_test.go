package datadir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// refused checks that a folder is refused for a reason, in a message that says certain things.
func refused(t *testing.T, path string, reason error, says ...string) {
	t.Helper()
	d, err := Open(path)
	if err == nil {
		d.Close()
		t.Fatalf("%s was opened", path)
	}
	if reason != nil && !errors.Is(err, reason) {
		t.Errorf("%v, want %v", err, reason)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message %q does not say %q", err, want)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, path string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestNewFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some", "where")
	d := open(t, path)
	if got := strings.Join(names(t, path), " "); got != "FORMAT LOCK table wal" {
		t.Errorf("the folder holds %s", got)
	}
	text, err := os.ReadFile(filepath.Join(path, "FORMAT"))
	if err != nil || string(text) != "daybook data directory, format 1\n" {
		t.Errorf("%q %v", text, err)
	}
	if d.WAL() != filepath.Join(path, "wal") || d.Table() != filepath.Join(path, "table") {
		t.Error(d.WAL(), d.Table())
	}
}

// flock is per open file: a second open is refused in the same process too.
func TestLock(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	refused(t, path, ErrLocked, path, "(process "+strconv.Itoa(os.Getpid())+")")
	refused(t, path+"/../"+filepath.Base(path), ErrLocked)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	refused(t, path, ErrLocked)
}

// A folder that is in use is not changed by who comes second.
func TestSecondChangesNothing(t *testing.T) {
	path := t.TempDir()
	open(t, path)
	write(t, filepath.Join(path, "LOCK"), "12345\n")
	refused(t, path, ErrLocked, "(process 12345)")
	write(t, filepath.Join(path, "LOCK"), "")
	_, err := Open(path)
	if !errors.Is(err, ErrLocked) || strings.Contains(err.Error(), "process") {
		t.Errorf("without an id: %v", err)
	}
}

func TestFormat(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		reason error
		says   string
	}{
		"this":         {"daybook data directory, format 1\n", nil, ""},
		"without end":  {"daybook data directory, format 1", nil, ""},
		"newer":        {"daybook data directory, format 2\n", ErrNewer, "has format 2, this program knows up to 1"},
		"much newer":   {"daybook data directory, format 99999 (beta)\nand more\n", ErrNewer, "format 99999"},
		"zero":         {"daybook data directory, format 0\n", ErrForeign, "format 0"},
		"negative":     {"daybook data directory, format -1\n", ErrForeign, "format -1"},
		"empty":        {"", ErrForeign, `says ""`},
		"another's":    {"1\n", ErrForeign, `says "1\n"`},
		"cut short":    {"daybook data directory, form", ErrForeign, "form"},
		"garbage":      {strings.Repeat("\x00\xff", 1000), ErrForeign, `\xff`},
		"not a number": {"daybook data directory, format one\n", ErrForeign, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			write(t, filepath.Join(path, "FORMAT"), c.text)
			write(t, filepath.Join(path, "wal", "0000000000000001.wal"), "precious")
			if c.reason == nil {
				open(t, path)
				return
			}
			refused(t, path, c.reason, path, c.says)
			if text, _ := os.ReadFile(filepath.Join(path, "FORMAT")); string(text) != c.text {
				t.Errorf("FORMAT was changed to %q", text)
			}
			if _, err := Open(path); len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// Somebody else's folder is refused and left as it was.
func TestForeignFolder(t *testing.T) {
	path := t.TempDir()
	write(t, filepath.Join(path, "thesis.tex"), "precious")
	refused(t, path, ErrForeign, `"thesis.tex"`, "choose an empty one")
	if got := strings.Join(names(t, path), " "); got != "thesis.tex" {
		t.Errorf("the folder holds %s now", got)
	}
}

// What makes a folder not foreign: the root of a file system, and a first start that was cut off at any point.
func TestNearlyEmptyFolder(t *testing.T) {
	for name, files := range map[string][]string{
		"nothing":                 {},
		"lost+found":              {"lost+found/x"},
		"only the lock":           {"LOCK"},
		"half a format":           {"LOCK", "FORMAT.new"},
		"all, and lost and found": {"LOCK", "FORMAT.new", "lost+found/x"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			for _, f := range files {
				write(t, filepath.Join(path, f), "")
			}
			if err := open(t, path).Close(); err != nil {
				t.Fatal(err)
			}
			open(t, path) // and once more
		})
	}
}

func TestUnusablePath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	refused(t, file, nil, "making the data directory", file)
	refused(t, filepath.Join(file, "below"), nil, "making the data directory", file)

	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	refused(t, closed, os.ErrPermission, closed)
	refused(t, filepath.Join(closed, "below"), os.ErrPermission, closed)
}

func TestCheck(t *testing.T) {
	path := t.TempDir()
	if err := Check(path); err == nil || !strings.Contains(err.Error(), "there is no data in it yet") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := Check(filepath.Join(path, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if got := names(t, path); len(got) != 0 {
		t.Errorf("checking left %v behind", got)
	}
	open(t, path)
	if err := Check(path); err != nil {
		t.Errorf("a folder in use: %v", err)
	}
}

func TestFree(t *testing.T) {
	d := open(t, t.TempDir())
	free, err := d.Free()
	if err != nil || free <= 0 {
		t.Fatal(free, err)
	}
	if err := d.CheckFree(0); err != nil {
		t.Error(err)
	}
	err = d.CheckFree(1 << 62)
	if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "wal.min_free_disk") || !strings.Contains(err.Error(), d.path) {
		t.Errorf("%v", err)
	}
	gone := &Dir{path: filepath.Join(d.path, "gone")}
	if err := gone.CheckFree(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is gone: %v", err)
	}
}

func TestAwaitRoom(t *testing.T) {
	d := open(t, t.TempDir())
	d.AwaitRoom(t.Context(), 1) // there is room
	gone := &Dir{path: filepath.Join(d.path, "gone")}
	gone.AwaitRoom(t.Context(), 1<<62) // nobody knows: the write that follows will say
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		d.AwaitRoom(ctx, 1<<62)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("it waited for %v", took)
		}
	})
}
