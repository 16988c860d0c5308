package crash

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// disk is a small file system of its own, with a file on it that takes what room the test wants taken.
type disk struct {
	t       *testing.T
	path    string
	ballast string
}

const mebi = 1 << 20

// newDisk mounts a small disk. Where that is not allowed the test fails: it may not be skipped unseen.
func newDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, path: t.TempDir()}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "daybook-crash", d.path).CombinedOutput(); err != nil {
		t.Fatalf("mounting a small disk (this test has to run as root, with leave to mount a tmpfs): %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", d.path).CombinedOutput(); err != nil {
			t.Errorf("unmounting the small disk: %v: %s", err, out)
		}
	})
	d.ballast = filepath.Join(d.path, "ballast")
	return d
}

// data is where daybook keeps its data on the disk.
func (d *disk) data() string { return filepath.Join(d.path, "data") }

func (d *disk) free() int64 {
	d.t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.path, &s); err != nil {
		d.t.Fatal(err)
	}
	return int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // another type on other systems
}

// fill takes all room on the disk but some.
func (d *disk) fill(leave int64) {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 256<<10)
	for n := d.free() - leave; n > 0; n = d.free() - leave {
		_, err := f.Write(piece[:min(n, int64(len(piece)))])
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
}

// leave has the ballast take or give room, so that some is left.
func (d *disk) leave(room int64) {
	d.t.Helper()
	d.fill(room)
	info, err := os.Stat(d.ballast)
	if err == nil {
		err = os.Truncate(d.ballast, max(0, info.Size()-max(0, room-d.free())))
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// clear gives the room back.
func (d *disk) clear() {
	d.t.Helper()
	if err := os.Remove(d.ballast); err != nil {
		d.t.Fatal(err)
	}
}

// awaitWrites waits until writes are taken.
func (d *daybook) awaitWrites(t *testing.T, tracks []*track) {
	t.Helper()
	w := new(write)
	for _, k := range tracks {
		w.add(k, k.forward(dice0(), 1))
	}
	await(t, 20*time.Second, "a write is taken", func() error {
		if a := w.post(reading, d.url); !a.ok() {
			return errors.New(a.text)
		}
		return nil
	})
}

// awaitRefusal waits until a write is answered with 503, and gives the answer.
func (d *daybook) awaitRefusal(t *testing.T, tracks []*track) (a answer) {
	t.Helper()
	await(t, 20*time.Second, "a write is answered with 503", func() error {
		w := new(write)
		for _, k := range tracks {
			w.add(k, k.forward(dice0(), 3))
		}
		if a = w.post(reading, d.url); a.status != 503 {
			return errors.New("it was taken")
		}
		return nil
	})
	return a
}
