// Package web is HTTP in and HTTP out: routes, parameters, status codes from errors, answers as JSON, and the page. It
// decides nothing about data. All of echo is in here.
//
// A Server answers from the moment it listens: until Ready is called, everything but /-/healthy and /metrics is 503.
package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"daybook/ingest"
	"daybook/query"
)

// Config says how requests are answered.
type Config struct {
	MaxBody  int // bytes of a write's body as it comes
	Registry *prometheus.Registry
	Logger   *slog.Logger
	Now      func() time.Time
	Page     fs.FS // the files of the page; nil for those that were built into the binary
}

// Backend is what requests are answered from.
type Backend struct {
	Ingester *ingest.Ingester
	Reader   *query.Reader
}

// Server is the HTTP server.
type Server struct {
	cfg      Config
	echo     *echo.Echo
	http     *http.Server
	backend  atomic.Pointer[Backend]
	stopping atomic.Bool
	requests *prometheus.HistogramVec
	patience time.Duration // for a client that sends its body, and again for one that takes its answer
}

// A client that sends nothing holds no more than a connection, and that not for ever.
const (
	headerWithin = 10 * time.Second
	idleWithin   = 5 * time.Minute
	bodyWithin   = 2 * time.Minute
)

// New makes a Server. Serve starts it.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, echo: echo.New(), patience: bodyWithin, requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "daybook_http_request_seconds", Help: "How long requests took, by route and status code.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"route", "code"})}
	cfg.Registry.MustRegister(s.requests)
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.measure, middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: s.panicked, DisableErrorHandler: true}))
	s.routes()
	s.http = &http.Server{
		Handler: s.echo, ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin,
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	return s
}

func (s *Server) routes() {
	e := s.echo
	probes := []string{http.MethodGet, http.MethodHead}
	e.Match(probes, "/-/healthy", func(c echo.Context) error { return c.String(http.StatusOK, "daybook is alive.\n") })
	e.Match(probes, "/-/ready", s.ready)
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{Registry: s.cfg.Registry})))

	api := e.Group("/api/v1")
	for _, path := range []string{"/write", "/push"} {
		api.POST(path, s.with(write))
	}
	zip := middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024, Skipper: refusesGzip})
	both := []string{http.MethodGet, http.MethodPost}
	api.Match(both, "/query", s.with(instantQuery), zip)
	api.Match(both, "/query_range", s.with(rangeQuery), zip)
	api.Match(both, "/series", s.with(seriesList), zip)
	api.Match(both, "/labels", s.with(labelNames), zip)
	api.GET("/label/:name/values", s.with(labelValues), zip)
	api.GET("/chart", s.with(chart), zip)
	api.GET("/inspect", s.with(inspect), zip)
	s.page(zip)
}

// Ready lets requests in.
func (s *Server) Ready(b *Backend) { s.backend.Store(b) }

// Serve answers requests until Stop. It returns nil after Stop.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", l.Addr(), err)
	}
	return nil
}

// Stop takes no more requests and returns when those under way are answered, or ctx has ended.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	if err := s.http.Shutdown(ctx); err != nil {
		return fmt.Errorf("waiting for requests to end: %w", errors.Join(err, s.http.Close()))
	}
	return nil
}

func (s *Server) ready(c echo.Context) error {
	if s.stopping.Load() {
		c.Response().Header().Set("X-Prometheus-Stopping", "true")
		return c.String(http.StatusServiceUnavailable, "daybook is stopping.\n")
	}
	if s.backend.Load() == nil {
		return c.String(http.StatusServiceUnavailable, "daybook is reading its store.\n")
	}
	return c.String(http.StatusOK, "daybook is ready.\n")
}

// call is one request with what it is answered from.
type call struct {
	echo.Context
	*Backend
	server *Server
}

// with gives a handler its backend, or answers 503 while there is none.
func (s *Server) with(handle func(*call) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		b := s.backend.Load()
		if b == nil {
			c.Response().Header().Set("Retry-After", "1")
			return &apiError{http.StatusServiceUnavailable, unavailable, errStarting}
		}
		return handle(&call{c, b, s})
	}
}

var errStarting = errors.New("daybook is starting and reads its store; try again in a moment")

// measure counts requests by route, not by address, which anybody may make up, and answers with what went wrong.
func (s *Server) measure(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		err := next(c)
		half := err != nil && c.Response().Committed
		if err != nil {
			c.Error(err) // answers now, so that the status is known
		}
		route := c.Path()
		if route == "" {
			route = "none"
		}
		s.requests.WithLabelValues(route, fmt.Sprint(c.Response().Status)).Observe(time.Since(start).Seconds())
		if half {
			panic(http.ErrAbortHandler) // closes the connection: half an answer must not look like a whole one
		}
		return nil
	}
}

func (s *Server) panicked(c echo.Context, err error, stack []byte) error {
	s.cfg.Logger.Error("a request handler panicked", "path", c.Request().URL.Path, "err", err, "stack", string(stack))
	return &apiError{http.StatusInternalServerError, internal, errPanic}
}

var errPanic = errors.New("internal error; daybook's log has the details")
