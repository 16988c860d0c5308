// Package web is HTTP in and HTTP out: routes, parameters, status codes from errors, answers as JSON, and the page. It
// decides nothing about data. All of echo is in here.
//
// A Server answers from the moment it listens: until Ready is called, everything but /-/healthy, /metrics and
// the state of the log's replay is 503.
package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"daybook/ingest"
	"daybook/internal/index"
	"daybook/query"
)

// Config says how requests are answered.
type Config struct {
	MaxBody  int // bytes of a write's body as it comes
	Registry *prometheus.Registry
	Logger   *slog.Logger
	Now      func() time.Time
	Page     fs.FS // the files of the page; nil for those that were built into the binary

	Origins        *regexp.Regexp // of pages that may read answers (CompileOrigins), nil for none but our own
	MaxReadSamples int            // in the answer to a remote read as one message; 0 for no limit
	MaxReadFrame   int            // bytes of chunks in a frame of a streamed remote read
	About          About
}

// Backend is what requests are answered from.
type Backend struct {
	Ingester *ingest.Ingester
	Reader   *query.Reader
	Metadata *index.Metadata
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
	reads    chan struct{} // one value for each remote read that is being answered
}

// A client that sends nothing holds no more than a connection, and that not for ever.
const (
	headerWithin = 10 * time.Second
	idleWithin   = 5 * time.Minute
	bodyWithin   = 2 * time.Minute
)

// New makes a Server. Serve starts it.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, echo: echo.New(), patience: bodyWithin, reads: make(chan struct{}, maxReads), requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "daybook_http_request_seconds", Help: "How long requests took, by route and status code.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
	}, []string{"route", "code"})}
	cfg.Registry.MustRegister(s.requests)
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.fail
	s.echo.Use(s.measure, s.cors, middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: s.panicked, DisableErrorHandler: true}))
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

	zip := middleware.GzipWithConfig(middleware.GzipConfig{MinLength: 1024, Skipper: refusesGzip})
	s.apiRoutes(zip)
	e.GET("/graph", s.with(oldLink))
	e.GET("/query", s.with(oldLink))
	s.page(zip)
}

func (s *Server) apiRoutes(zip echo.MiddlewareFunc) {
	api := s.echo.Group(apiPrefix)
	for _, path := range writePaths {
		api.POST(path, s.with(write))
	}
	api.POST("/read", s.with(remoteRead))
	getOrPost := func(path string, handle func(*call) error) {
		api.Match([]string{http.MethodGet, http.MethodPost}, path, s.with(handle), zip)
	}
	getOrPost("/query", instantQuery)
	getOrPost("/query_range", rangeQuery)
	getOrPost("/query_exemplars", exemplars)
	getOrPost("/format_query", formatQuery)
	getOrPost("/parse_query", parseQuery)
	getOrPost("/series", seriesList)
	getOrPost("/labels", labelNames)
	get := func(path string, handle func(*call) error) { api.GET(path, s.with(handle), zip) }
	get("/label/:name/values", labelValues)
	get("/metadata", metadata)
	get("/chart", chart)
	get("/inspect", inspect)
	get("/status/buildinfo", buildInfo)
	get("/status/config", statusConfig)
	get("/status/flags", statusFlags)
	get("/status/runtimeinfo", runtimeInfo)
	get("/status/tsdb", statusTSDB)
	api.GET("/status/walreplay", s.anytime(always(noReplay, nil)), zip)
	get("/rules", always(noRules, checkRules))
	get("/alerts", always(noAlerts, nil))
	get("/targets", always(noTargets, nil))
	get("/targets/metadata", always(noneOfAList, checkTargetMetadata))
	get("/alertmanagers", always(noAlertmanagers, nil))
	get("/scrape_pools", always(noScrapePools, nil))
	get("/notifications", always(noneOfAList, nil))
	get("/features", always(noFeatures, nil))
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

// anytime is for handlers that need no backend.
func (s *Server) anytime(handle func(*call) error) echo.HandlerFunc {
	return func(c echo.Context) error { return handle(&call{c, s.backend.Load(), s}) }
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
