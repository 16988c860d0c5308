package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"daybook/internal/datadir"
)

var update = flag.Bool("update", false, "write the golden files anew")

// daybook runs a command to its end.
func daybook(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	err = run(t.Context(), args, &out, &log)
	if t.Failed() {
		t.Log(log.String())
	}
	return out.String(), err
}

func TestCommands(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		out  string // part of what it prints
		err  string // part of its error, "" for none
	}{
		"version":              {[]string{"version"}, "daybook unreleased", ""},
		"version, as a flag":   {[]string{"--version"}, "daybook unreleased", ""},
		"help":                 {[]string{"--help"}, "check-config", ""},
		"help of a command":    {[]string{"inspect", "--help"}, "node_load1", ""},
		"check-config":         {[]string{"check-config", "--config", shipped}, `flush.interval = "5m"`, ""},
		"unknown command":      {[]string{"sreve"}, "", `there is no command "sreve"; did you mean serve? (daybook --help lists all)`},
		"no command at all":    {[]string{"frobnicate"}, "", `there is no command "frobnicate" (daybook --help lists all)`},
		"unknown flag":         {[]string{"--flush-intervall=1m"}, "", "unknown flag: --flush-intervall; did you mean --flush.interval?"},
		"flag of a command":    {[]string{"serve", "--datadir=x"}, "", "unknown flag: --datadir; did you mean --data-dir?"},
		"nothing like it":      {[]string{"--frobnicate"}, "", "unknown flag: --frobnicate (daybook --help lists all)"},
		"flag without value":   {[]string{"check-config", "--listen"}, "", "flag needs an argument: --listen"},
		"too many words":       {[]string{"serve", "now"}, "", "now"},
		"no selector":          {[]string{"inspect"}, "", "accepts 1 arg(s), received 0"},
		"a wrong value":        {[]string{"check-config", "--log.format=xml"}, "", "the flag --log.format: log.format"},
		"serve, a wrong value": {[]string{"--log.format=xml"}, "", "the flag --log.format: log.format"},
		"inspect, a wrong one": {[]string{"inspect", "up", "--log.format=xml"}, "", "the flag --log.format: log.format"},
		"no file":              {[]string{"check-config", "--config=nowhere.toml"}, "", "nowhere.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := daybook(t, c.args...)
			if !strings.Contains(out, c.out) {
				t.Errorf("it printed %q, want %q in it", out, c.out)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("the error is %v, want %q in it", err, c.err)
			}
		})
	}
}

// check-config prints a settings' file that says the same again.
func TestCheckConfigPrintsAll(t *testing.T) {
	out, err := daybook(t, "check-config", "--flush.interval=90s", "--log.level=WARN", "--data-dir", `C:\da"ta`)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Flush.Interval, want.Log.Level, want.DataDir = duration(90*time.Second), 4, `C:\da"ta`
	got, err := load(t, out, nil)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestMisspeltVariable(t *testing.T) {
	t.Setenv("DAYBOOK_FLUSH_INTERVALL", "1m")
	for _, command := range []string{"serve", "check-config"} {
		_, err := daybook(t, command, "--data-dir", t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "DAYBOOK_FLUSH_INTERVALL: there is no such setting; did you mean DAYBOOK_FLUSH_INTERVAL?") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// server is a daybook that serves.
type server struct {
	t       *testing.T
	dir     string
	address string
	stop    func()
	ended   chan error
}

// serving starts daybook in a folder and waits until it is ready; its own log says when and where.
func serving(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{t: t, dir: dir, stop: cancel, ended: make(chan error, 1)}
	args = append(args, "--listen=127.0.0.1:0", "--data-dir", dir, "--log.format=json", "--flush.interval=24h", "--retention.raw=0s",
		"--wal.min-free-disk=1MiB")
	go func() {
		err := run(ctx, args, io.Discard, writer)
		writer.CloseWithError(io.EOF)
		s.ended <- err
	}()
	t.Cleanup(func() { cancel(); reader.Close() })
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("the log has a line that is no JSON: %q", lines.Bytes())
		}
		if line.Address != "" {
			s.address = line.Address
		}
		if line.Msg == "daybook is ready" {
			go io.Copy(io.Discard, reader)
			return s
		}
	}
	t.Fatalf("daybook ended: %v", <-s.ended)
	return nil
}

// end stops the server as SIGTERM does.
func (s *server) end() {
	s.t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Fatalf("daybook ended with: %v", err)
	}
}

func (s *server) get(path string) (status int, body string) {
	s.t.Helper()
	answer, err := http.Get("http://" + s.address + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (s *server) write(name string, from time.Time, values ...float64) {
	s.t.Helper()
	series := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name}, {Name: "job", Value: "test"}}}
	for i, v := range values {
		series.Samples = append(series.Samples, prompb.Sample{Timestamp: from.UnixMilli() + int64(i)*15_000, Value: v})
	}
	message, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series}}).Marshal()
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.Post("http://"+s.address+"/api/v1/write", "application/x-protobuf", bytes.NewReader(snappy.Encode(nil, message)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(answer.Body)
		s.t.Fatalf("a write was answered with %s: %s", answer.Status, text)
	}
}

// query gives the values of a query's result, as they stand in the answer.
func (s *server) query(expr string, at time.Time) string {
	s.t.Helper()
	_, body := s.get("/api/v1/query?" + url.Values{"query": {expr}, "time": {at.Format(time.RFC3339)}}.Encode())
	var values []string
	for _, m := range regexp.MustCompile(`"value":\[[0-9.]+,"([^"]*)"\]`).FindAllStringSubmatch(body, -1) {
		values = append(values, m[1])
	}
	return strings.Join(values, " ")
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What is written is there at once, after it was flushed at the end, and after a start. serve is the default.
func TestServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	now := time.Now().Truncate(time.Second)
	s := serving(t, dir)
	for path, want := range map[string]int{"/-/healthy": 200, "/-/ready": 200, "/metrics": 200, "/api/v1/nothing": 404, "/": 200} {
		if status, body := s.get(path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	s.write("served", now, 1, 2)
	if got := s.query("served", now.Add(20*time.Second)); got != "2" {
		t.Errorf("before flushing: %q", got)
	}
	if len(segments(t, dir)) == 0 {
		t.Error("nothing is in the write-ahead log")
	}
	s.end()
	if left := segments(t, dir); len(left) > 0 {
		t.Errorf("the log was not flushed: %v", left)
	}

	s = serving(t, dir, "serve")
	if got := s.query("served", now.Add(20*time.Second)); got != "2" {
		t.Errorf("after a restart: %q", got)
	}
	_, metrics := s.get("/metrics")
	for _, want := range []string{"daybook_build_info{", "daybook_table_operations_total{", "daybook_table_disk_bytes", "go_goroutines", "process_"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	s.end()
}

func TestSecondServer(t *testing.T) {
	s := serving(t, t.TempDir())
	_, err := daybook(t, "serve", "--listen=127.0.0.1:0", "--data-dir", s.dir)
	if !errors.Is(err, datadir.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("(process %d)", os.Getpid())) {
		t.Errorf("on the same directory: %v", err)
	}
	_, err = daybook(t, "serve", "--listen", s.address, "--data-dir", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), s.address) {
		t.Errorf("at the same address: %v", err)
	}
	if status, _ := s.get("/-/ready"); status != http.StatusOK {
		t.Errorf("the first is disturbed: %d", status)
	}
	s.end()
}

func TestServeRefusesAStoreOfAnotherShape(t *testing.T) {
	s := serving(t, t.TempDir())
	s.end()
	_, err := daybook(t, "--listen=127.0.0.1:0", "--data-dir", s.dir, "--table.buckets=16")
	if err == nil || !strings.Contains(err.Error(), "this store has 256 buckets, the configuration says 16") {
		t.Errorf("%v", err)
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// today is what in the output of inspect depends on the day of the test.
var today = regexp.MustCompile(`Days up to [0-9-]+ are closed`)

func (s *server) inspect(selector string) string {
	s.t.Helper()
	out, err := daybook(s.t, "inspect", selector, "--data-dir", s.dir, "--listen", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	return today.ReplaceAllString(out, "Days up to yesterday are closed")
}

// inspect asks a running daybook, and reads the directory of one that has stopped.
func TestInspect(t *testing.T) {
	s := serving(t, t.TempDir())
	longAgo := time.Date(2020, 2, 28, 23, 59, 30, 0, time.UTC)
	s.write("inspected", longAgo, 1, 1.5, 2, 2.25, 3)
	s.write("inspected", longAgo.Add(24*time.Hour), 7)
	golden(t, "inspect_running.txt", s.inspect("inspected"))
	golden(t, "inspect_nothing_running.txt", s.inspect(`{job="nothing"}`))
	_, err := daybook(t, "inspect", "{", "--data-dir", s.dir, "--listen", s.address)
	if err == nil || !strings.Contains(err.Error(), "400 Bad Request: ") || strings.Contains(err.Error(), "errorType") {
		t.Errorf("no selector, running: %v", err)
	}
	s.end()
	golden(t, "inspect_stopped.txt", s.inspect(`inspected{job="test"}`))
	golden(t, "inspect_nothing_stopped.txt", s.inspect(`{job="nothing"}`))
	if _, err = daybook(t, "inspect", "{", "--data-dir", s.dir); err == nil || !strings.Contains(err.Error(), "the selector {") {
		t.Errorf("no selector, stopped: %v", err)
	}
	s = serving(t, s.dir) // inspecting harmed nothing
	if got := s.query("inspected", longAgo.Add(time.Minute)); got != "3" {
		t.Errorf("after it was inspected: %q", got)
	}
	s.end()
}

func TestInspectNothing(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "missing")} {
		if _, err := daybook(t, "inspect", "up", "--data-dir", dir); err == nil || !strings.Contains(err.Error(), "there is nothing to inspect") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("inspecting left behind %v %v", left, err)
	}
}

// The running daybook may listen elsewhere than the settings say.
func TestInspectAtTheWrongAddress(t *testing.T) {
	s := serving(t, t.TempDir())
	_, err := daybook(t, "inspect", "up", "--data-dir", s.dir, "--listen=127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "set --listen to where it listens") {
		t.Errorf("%v", err)
	}
	s.end()
}

func TestNewLogger(t *testing.T) {
	var out bytes.Buffer
	newLogger(logConfig{Level: 4, Format: "json"}, &out).Warn("hello", "a", 1)
	newLogger(logConfig{Level: 4, Format: "text"}, &out).Warn("again")
	newLogger(logConfig{Level: 4, Format: "text"}, &out).Info("too little")
	if got := out.String(); !strings.Contains(got, `"msg":"hello","a":1`) || !strings.Contains(got, "msg=again") || strings.Contains(got, "little") {
		t.Error(got)
	}
}
