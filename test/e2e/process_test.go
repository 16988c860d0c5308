package e2e

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// How long a process may take to end after SIGTERM, and how much of its log a failed test shows.
const (
	stopWithin = 30 * time.Second
	logShown   = 16 << 10
)

// process is a program that a test started. It is ended with the test, whatever the outcome.
type process struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and err is set
	err    error         // what Wait said
}

// start starts a program. Its output is shown when the test fails.
func start(t *testing.T, name, bin string, args ...string) *process {
	t.Helper()
	var out log
	p := &process{name: name, cmd: exec.Command(bin, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &out, &out
	p.cmd.WaitDelay = 5 * time.Second
	endWithParent(p.cmd)
	started := make(chan error)
	go func() {
		// endWithParent means the thread that starts the process: it has to live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("log of %s (process %d):\n%s", name, p.cmd.Process.Pid, out.end())
		}
	})
	return p
}

// stop asks the process to end and waits until it did, which it must do in time and with status 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("stopping %s: %v", p.name, err)
	}
	select {
	case <-p.exited:
		if p.err != nil {
			t.Fatalf("%s ended with: %v", p.name, p.err)
		}
	case <-time.After(stopWithin):
		t.Fatalf("%s did not end within %s of SIGTERM", p.name, stopWithin)
	}
}

// kill ends the process as kill -9 does and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only where it has ended already
	<-p.exited
}

// running is nil as long as the process lives.
func (p *process) running() error {
	select {
	case <-p.exited:
		return errors.Join(errors.New(p.name+" ended by itself"), p.err)
	default:
		return nil
	}
}

// log collects what a process prints.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) end() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buf.Bytes()
	return bytes.Clone(b[max(0, len(b)-logShown):])
}

// freeAddress is a loopback address nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// writeFile writes text into a file that goes away with the test, and gives its name.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := t.TempDir() + "/" + name
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually looks again and again until check gives nil, and fails the test when that takes too long.
func eventually(t *testing.T, within time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
