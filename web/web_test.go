package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/prometheus/promql"

	"daybook/internal/table/tabletest"
)

func TestProbes(t *testing.T) {
	r := start(t, options{notReady: true})
	probe := func(method, path string, status int) answer {
		t.Helper()
		got := r.do(r.request(method, path, nil))
		if got.status != status || (method == http.MethodHead) != (got.body == "") {
			t.Errorf("%s %s: %d %q, want %d", method, path, got.status, got.body, status)
		}
		return got
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		probe(method, "/-/healthy", http.StatusOK)
		probe(method, "/-/ready", http.StatusServiceUnavailable)
	}
	for _, path := range []string{"/api/v1/query?query=1", "/api/v1/chart?match[]=up", "/api/v1/labels"} {
		r.get(path).fails(t, http.StatusServiceUnavailable, unavailable)
	}
	probe(http.MethodGet, "/metrics", http.StatusOK)
	r.server.Ready(r.backend)
	probe(http.MethodGet, "/-/ready", http.StatusOK)
	if got := r.get("/api/v1/query?query=1"); got.status != http.StatusOK {
		t.Errorf("ready, and yet %d %s", got.status, got.body)
	}
	r.server.stopping.Store(true)
	if got := probe(http.MethodGet, "/-/ready", http.StatusServiceUnavailable); got.header.Get("X-Prometheus-Stopping") != "true" {
		t.Errorf("stopping: %v", got.header)
	}
	probe(http.MethodGet, "/-/healthy", http.StatusOK)
}

func TestRequestsAreCountedByRoute(t *testing.T) {
	r := start(t, options{})
	r.get("/api/v1/label/made-up/values")
	r.get("/api/v1/label/made-up-too/values")
	r.get("/api/v1/query?query=(")
	r.stop()
	if n := r.counted("/api/v1/label/:name/values", "200"); n != 2 {
		t.Errorf("%d", n)
	}
	if n := r.counted("/api/v1/query", "400"); n != 1 {
		t.Errorf("%d", n)
	}
}

func TestPanic(t *testing.T) {
	r := start(t, options{})
	r.server.echo.GET("/panic", func(echo.Context) error { panic("secret of the handler") })
	text := r.get("/panic").fails(t, http.StatusInternalServerError, internal)
	if strings.Contains(text, "secret") || strings.Contains(text, "goroutine") {
		t.Errorf("the answer tells too much: %s", text)
	}
	if log := r.log.String(); !strings.Contains(log, "secret of the handler") || !strings.Contains(log, "web_test.go") {
		t.Errorf("the log tells too little: %s", log)
	}
	r.stop()
	if r.counted("/panic", "500") != 1 {
		t.Error("the panic is not counted")
	}
}

// When something goes wrong in the middle of an answer, the client sees that it is not whole.
func TestHalfAnAnswer(t *testing.T) {
	for name, zip := range map[string]string{"plain": "", "gzip": "gzip"} {
		t.Run(name, func(t *testing.T) {
			r := start(t, options{})
			half := func(c *call) error {
				return c.succeed(func(s *jsonStream) {
					s.strings([]string{strings.Repeat("a", streamBuffer+1), "b"})
					panic("half way")
				}, nil, nil)
			}
			r.server.echo.GET("/half", r.server.with(half))
			request := r.request(http.MethodGet, "/half", nil)
			request.Header.Set("Accept-Encoding", zip)
			response, err := client.Do(request)
			if err != nil {
				return // the connection was closed before anything was let out
			}
			defer response.Body.Close()
			if _, err := io.ReadAll(response.Body); err == nil {
				t.Error("the answer looks whole")
			}
		})
	}
}

// blocked makes reads of the table wait. What is returned tells when one is there.
func (r *rig) blocked() (struck chan struct{}) {
	struck = make(chan struct{}, 100)
	never := make(chan struct{})
	for _, read := range reads {
		r.table.Add(tabletest.Fault{
			Method: read, Effect: tabletest.Pass, Wait: never, Struck: func() { struck <- struct{}{} },
		})
	}
	return struck
}

// reads are the methods by which a query reads the table.
var reads = []tabletest.Method{tabletest.Get, tabletest.Query}

var upNow = url.Values{"query": {"up"}, "time": {"2026-11-03T12:00:00Z"}}

func TestTimeout(t *testing.T) {
	r := start(t, options{})
	r.fill()
	r.blocked()
	form := url.Values{"timeout": {"50ms"}}
	for k, v := range upNow {
		form[k] = v
	}
	begin := time.Now()
	text := r.post("/api/v1/query", form).fails(t, http.StatusServiceUnavailable, timeout)
	if !strings.Contains(text, "timed out") {
		t.Error(text)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	r.get("/api/v1/query?query=up&timeout=0").fails(t, http.StatusBadRequest, badData)
	r.get("/api/v1/query?query=up&timeout=-1").fails(t, http.StatusBadRequest, badData)
}

// A client that leaves is neither an error of ours nor worth a line in the log, and the work for it stops.
func TestClientLeaves(t *testing.T) {
	for route, query := range map[string]string{
		"/api/v1/query":       upNow.Encode(),
		"/api/v1/query_range": "query=up&start=2026-11-03T11:59:00Z&end=2026-11-03T12:00:00Z&step=15",
		"/api/v1/chart":       "match[]=up",
	} {
		t.Run(route, func(t *testing.T) {
			r := start(t, options{})
			r.fill()
			struck := r.blocked()
			ctx, leave := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := client.Do(r.request(http.MethodGet, route+"?"+query, nil).WithContext(ctx))
				done <- err
			}()
			<-struck
			leave()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("the client got %v", err)
			}
			r.stop() // returns when the handler has
			if r.counted(route, "499") != 1 {
				t.Error("not counted as 499")
			}
			if log := r.log.String(); strings.Contains(log, "level=ERROR") {
				t.Errorf("logged: %s", log)
			}
		})
	}
}

// What the table fails with is not the client's fault, whatever it looks like.
func TestTableFails(t *testing.T) {
	for name, fault := range map[string]error{
		"cancelled, though the client is there": context.Canceled,
		"closing":                               errors.New("connection closing"),
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, options{})
			r.fill()
			for _, read := range reads {
				r.table.Add(tabletest.Fault{Method: read, Err: fault})
			}
			r.get("/api/v1/chart?match[]=up").fails(t, http.StatusInternalServerError, internal)
			r.get("/api/v1/query?query=up").fails(t, http.StatusInternalServerError, internal)
			if log := r.log.String(); !strings.Contains(log, "level=ERROR") || !strings.Contains(log, fault.Error()) {
				t.Errorf("not logged: %s", log)
			}
			r.table.Heal()
			if got := r.get("/api/v1/chart?match[]=up"); got.status != http.StatusOK {
				t.Errorf("after it healed: %d %s", got.status, got.body)
			}
		})
	}
}

func TestAnswerFor(t *testing.T) {
	storage := func(err error) error { return promql.ErrStorage{Err: err} }
	for _, c := range []struct {
		err    error
		status int
		kind   string
	}{
		{storage(errors.New("closing")), 500, internal},
		{storage(nil), 500, internal},
		{storage(context.Canceled), 499, canceled},
		{fmt.Errorf("expanding series: %w", storage(fmt.Errorf("reading: %w", context.DeadlineExceeded))), 503, timeout},
		{promql.ErrQueryTimeout("x"), 503, timeout},
		{promql.ErrQueryCanceled("x"), 499, canceled},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 503, timeout},
		{promql.ErrTooManySamples("x"), 422, execution},
		{errors.New("many-to-many"), 422, execution},
	} {
		if got := answerFor(evaluationError(c.err)); got.status != c.status || got.kind != c.kind {
			t.Errorf("%v: %d %s, want %d %s", c.err, got.status, got.kind, c.status, c.kind)
		}
	}
}

// A client that does not get on with its request is let go.
func TestSlowClient(t *testing.T) {
	for name, head := range map[string]string{
		"a write": "POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
		"a form": "POST /api/v1/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n" +
			"Content-Length: 100\r\n\r\nquery=",
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, options{patience: 20 * time.Millisecond})
			connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, head); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("answered with %s", response.Status)
			}
		})
	}
}

// A client that does not read its answer is let go, and what it asked for with it.
func TestClientThatDoesNotRead(t *testing.T) {
	r := start(t, options{patience: 20 * time.Millisecond})
	ended := make(chan error, 1)
	r.server.echo.GET("/large", r.server.with(func(c *call) error {
		piece := strings.Repeat("a", 1<<20)
		all := make([]string, 100) // more than the buffers of any connection
		for i := range all {
			all[i] = piece
		}
		err := c.succeed(func(s *jsonStream) { s.strings(all) }, nil, nil)
		ended <- err
		return err
	}))
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("answering ended with %v", err)
	}
}

// A body that came in time leaves no deadline behind that could end the handling of it.
func TestPatienceEndsWithTheBody(t *testing.T) {
	r := start(t, options{patience: 30 * time.Millisecond})
	r.fill()
	ended := make(chan error, 1)
	r.server.echo.POST("/waits", r.server.with(func(c *call) error {
		if _, err := c.form(); err != nil {
			return err
		}
		select {
		case <-c.Request().Context().Done():
			ended <- c.Request().Context().Err()
		case <-time.After(4 * c.server.patience):
			ended <- nil
		}
		return c.NoContent(http.StatusNoContent)
	}))
	r.post("/waits", upNow)
	if err := <-ended; err != nil {
		t.Errorf("the request was cut off: %v", err)
	}
}

func TestInspect(t *testing.T) {
	r := start(t, options{})
	r.fill()
	got := r.get("/api/v1/inspect?match[]=up")
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") ||
		!strings.Contains(got.body, "2 series match up") || !strings.Contains(got.body, "in memory and in the write-ahead log only: 5 samples") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.get("/api/v1/inspect?match[]=nothing"); got.status != http.StatusOK || !strings.HasPrefix(got.body, "0 series match nothing") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, path := range []string{"/api/v1/inspect", "/api/v1/inspect?match[]=a&match[]=b", "/api/v1/inspect?match[]={"} {
		r.get(path).fails(t, http.StatusBadRequest, badData)
	}
}

// Real numbers: of this process, at this time.
func TestRuntimeInfo(t *testing.T) {
	r := start(t, options{})
	var info struct {
		StartTime           time.Time `json:"startTime"`
		CWD                 string    `json:"CWD"`
		Hostname            string    `json:"hostname"`
		ServerTime          time.Time `json:"serverTime"`
		ReloadConfigSuccess bool      `json:"reloadConfigSuccess"`
		LastConfigTime      time.Time `json:"lastConfigTime"`
		CorruptionCount     int64     `json:"corruptionCount"`
		GoroutineCount      int       `json:"goroutineCount"`
		GOMAXPROCS          int       `json:"GOMAXPROCS"`
		GOMEMLIMIT          int64     `json:"GOMEMLIMIT"`
		GOGC                string    `json:"GOGC"`
		GODEBUG             string    `json:"GODEBUG"`
		StorageRetention    string    `json:"storageRetention"`
	}
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	r.get("/api/v1/status/runtimeinfo").succeeds(t, &info)
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if !info.StartTime.Equal(about.Started) || !info.ServerTime.Equal(noon) || info.CWD != folder || info.Hostname != host || info.GOGC != "123" {
		t.Errorf("%+v", info)
	}
	if info.GoroutineCount < 2 || info.GOMAXPROCS != runtime.GOMAXPROCS(0) || info.GOMEMLIMIT <= 0 || !info.ReloadConfigSuccess ||
		info.StorageRetention != "400d" {
		t.Errorf("%+v", info)
	}
}

// The log's replay is asked for while it is under way.
func TestReplayStatus(t *testing.T) {
	r := start(t, options{notReady: true})
	var replay map[string]int
	r.get("/api/v1/status/walreplay").succeeds(t, &replay)
	if len(replay) != 3 {
		t.Errorf("%v", replay)
	}
	r.get("/api/v1/status/buildinfo").fails(t, http.StatusServiceUnavailable, unavailable)
}
