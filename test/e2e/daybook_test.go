package e2e

import (
	"fmt"
	"testing"
	"time"
)

// How long a daybook may take until it is ready. A crash of a full one is to be mended in 2 s; the rest is for a busy
// machine.
const readyWithin = 30 * time.Second

// daybook is a running daybook with data of its own. It keeps address and data when it is started again.
type daybook struct {
	api
	*process
	bin  string
	args []string
}

// startDaybook starts a daybook without data that flushes at the given interval, and waits until it is ready.
func startDaybook(t *testing.T, flushInterval string) *daybook {
	t.Helper()
	address := freeAddress(t)
	config := writeFile(t, "config.toml", fmt.Sprintf("[flush]\ninterval = %q\n", flushInterval))
	d := &daybook{
		api:  api("http://" + address),
		bin:  daybookBinary(t),
		args: []string{"serve", "--listen", address, "--data-dir", t.TempDir(), "--config", config},
	}
	d.start(t)
	return d
}

// start starts the program on the data that is there.
func (d *daybook) start(t *testing.T) {
	t.Helper()
	d.process = start(t, "daybook", d.bin, d.args...)
	eventually(t, readyWithin, "daybook is ready", func() error {
		if err := d.running(); err != nil {
			t.Fatal(err)
		}
		return d.ready()
	})
}

// restart ends the program as an administrator does and starts it again.
func (d *daybook) restart(t *testing.T) {
	t.Helper()
	d.stop(t)
	d.start(t)
}

// crash ends the program with kill -9 and starts it again.
func (d *daybook) crash(t *testing.T) {
	t.Helper()
	d.kill()
	d.start(t)
}

// flushes is the number of flush cycles this process has finished.
func (d *daybook) flushes(t *testing.T) float64 {
	t.Helper()
	return d.metrics(t).sum(t, "daybook_flush_cycles_total")
}

// awaitFlushes waits until the process has finished n flush cycles.
func (d *daybook) awaitFlushes(t *testing.T, n float64, within time.Duration) {
	t.Helper()
	eventually(t, within, fmt.Sprintf("daybook has flushed %g times", n), func() error {
		if got := d.flushes(t); got < n {
			return fmt.Errorf("%g flushes so far", got)
		}
		return nil
	})
}
