package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startWithin = 60 * time.Second
	stopWithin  = 20 * time.Second
	logShown    = 8 << 10
)

// daybook is a running daybook. It is ended with the test, whatever the outcome.
type daybook struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *output
	begun  time.Time
	exited chan struct{} // closed when the process is gone and err is set
	err    error         // what Wait said
	url    string        // known when it listens
}

// launch starts a daybook on dir and does not wait for anything.
func launch(t *testing.T, dir string, flags ...string) *daybook {
	t.Helper()
	args := []string{"serve", "--listen=127.0.0.1:0", "--data-dir=" + dir, "--log.format=json", "--log.level=debug"}
	d := &daybook{t: t, cmd: exec.Command(program, append(args, flags...)...), log: new(output), exited: make(chan struct{})}
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.WaitDelay = 5 * time.Second
	d.cmd.Env = environment()
	endWithParent(d.cmd)
	d.begun = time.Now()
	started := make(chan error)
	go func() {
		// endWithParent means the thread that starts the process: it has to live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		started <- err
		if err == nil {
			d.err = d.cmd.Wait()
			close(d.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting daybook: %v", err)
	}
	t.Cleanup(func() {
		d.kill()
		if strings.Contains(d.log.text(), "DATA RACE") {
			t.Errorf("a data race in daybook:\n%s", d.log.text())
		}
		d.show()
	})
	return d
}

// shown counts the logs that a failed test has shown, the newest first.
var shown sync.Map // of *testing.T: int

// show prints the end of the log of the last processes of a failed test.
func (d *daybook) show() {
	before, _ := shown.LoadOrStore(d.t, 0)
	if !d.t.Failed() || before.(int) >= 2 {
		return
	}
	shown.Store(d.t, before.(int)+1)
	d.t.Logf("the end of the log of process %d:\n%s", d.cmd.Process.Pid, d.log.end())
}

// environment is the test's own without settings of daybook.
func environment() (env []string) {
	for _, one := range os.Environ() {
		if !strings.HasPrefix(one, "DAYBOOK_") {
			env = append(env, one)
		}
	}
	return env
}

// start starts a daybook on dir and waits until it is ready.
func start(t *testing.T, dir string, flags ...string) *daybook {
	t.Helper()
	d := launch(t, dir, flags...)
	d.awaitReady()
	return d
}

// listens says whether the process has an address already.
func (d *daybook) listens() bool {
	for _, line := range d.log.lines() {
		if line.Msg == "daybook is listening" {
			d.url = "http://" + line.Address
			return true
		}
	}
	return false
}

// awaitReady waits for /-/ready.
func (d *daybook) awaitReady() {
	d.t.Helper()
	await(d.t, startWithin, "/-/ready", func() error {
		if !d.listens() {
			return d.running()
		}
		if status, body, err := d.get("/-/ready"); err != nil || status != http.StatusOK {
			return errors.Join(err, fmt.Errorf("status %d, %s", status, body), d.running())
		}
		return nil
	})
}

// running fails the test when the process has ended. Its error is for await: what is waited for is not there yet.

func (d *daybook) running() error {
	d.t.Helper()
	select {
	case <-d.exited:
		d.t.Fatalf("daybook ended by itself: %v", d.err)
	default:
	}
	return errors.New("not yet")
}

// get asks for a page outside the API.
func (d *daybook) get(path string) (status int, body string, err error) {
	resp, err := reading.Get(d.url + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// reading is the client for everything but writes.
var reading = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// metric reads one metric without labels; -1 where it cannot be had now.
func (d *daybook) metric(name string) float64 {
	resp, err := reading.Get(d.url + "/metrics")
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// kill ends the process as kill -9 does and waits until it is gone.
func (d *daybook) kill() {
	_ = d.cmd.Process.Kill() // fails only where it has ended already
	<-d.exited
}

// term asks the process to end and waits until it did, which it must do in time and with status 0.
func (d *daybook) term() (took time.Duration) {
	d.t.Helper()
	begun := time.Now()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatalf("SIGTERM: %v", err)
	}
	select {
	case <-d.exited:
	case <-time.After(stopWithin):
		d.t.Fatalf("it did not end within %v of SIGTERM", stopWithin)
	}
	if d.err != nil {
		d.t.Fatalf("after SIGTERM it ended with: %v", d.err)
	}
	return time.Since(begun)
}

// fails waits until the process has ended with an error, and gives all that it printed.
func (d *daybook) fails(within time.Duration) string {
	d.t.Helper()
	select {
	case <-d.exited:
	case <-time.After(within):
		d.t.Fatalf("it still runs after %v and should have ended with an error", within)
	}
	if d.err == nil {
		d.t.Fatalf("it ended with status 0 and should have failed")
	}
	return d.log.text()
}

// logLine is what the tests read of a line of the log.
type logLine struct {
	Level   string `json:"level"`
	Msg     string `json:"msg"`
	Address string `json:"address"`
	Err     string `json:"err"`
}

// errors are the messages at error level.
func (d *daybook) errors() (messages []string) {
	for _, line := range d.log.lines() {
		if line.Level == "ERROR" {
			messages = append(messages, line.Msg+": "+line.Err)
		}
	}
	return messages
}

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) end() string {
	var text strings.Builder
	for line := range strings.Lines(o.text()) {
		if !strings.Contains(line, `"level":"DEBUG"`) {
			text.WriteString(line)
		}
	}
	return text.String()[max(0, text.Len()-logShown):]
}

// lines are the whole lines that are a log's.
func (o *output) lines() (lines []logLine) {
	for text := range strings.Lines(o.text()) {
		var line logLine
		if strings.HasSuffix(text, "\n") && json.Unmarshal([]byte(text), &line) == nil {
			lines = append(lines, line)
		}
	}
	return lines
}
