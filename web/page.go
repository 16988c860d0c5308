package web

import (
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// The page's files are built from web/page and not kept in the repository: without them only the folder is there.
//
//go:embed all:page/dist
var built embed.FS

// contentPolicy lets the page load nothing from elsewhere and run no script or style that is not a file of its own.
const contentPolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

const noPage = `daybook is running, but this binary was built without its page.

Build both with
    make build
in daybook's repository (it needs Node.js), and start bin/daybook again.
The API works all the same: /api/v1/query, /api/v1/chart, /metrics.
`

// page serves the page at / and its files: those in folders, whose names hold a hash of what they hold, for ever.
func (s *Server) page(zip echo.MiddlewareFunc) {
	files := s.cfg.Page
	if files == nil {
		files = builtPage()
	}
	index, err := fs.ReadFile(files, "index.html")
	if errors.Is(err, fs.ErrNotExist) {
		s.echo.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, noPage) })
		return
	}
	s.echo.GET("/", func(c echo.Context) error {
		guard(c.Response().Header(), "no-cache")
		return c.HTMLBlob(http.StatusOK, index)
	}, zip)
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic(err) // an fs.FS that has a file has its folder
	}
	// One route for each, as one for all would also match addresses of the API that take no GET.
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			s.echo.GET("/"+e.Name()+"/*", file(files, "public, max-age=31536000, immutable"), zip)
		default:
			s.echo.GET("/"+e.Name(), file(files, "no-cache"), zip)
		}
	}
}

func builtPage() fs.FS {
	files, err := fs.Sub(built, "page/dist")
	if err != nil {
		panic(err) // only for a malformed name
	}
	return files
}

func file(files fs.FS, cache string) echo.HandlerFunc {
	handler := http.FileServerFS(files)
	return func(c echo.Context) error {
		name := strings.TrimPrefix(c.Request().URL.Path, "/")
		if info, err := fs.Stat(files, name); err != nil || info.IsDir() {
			return echo.ErrNotFound
		}
		guard(c.Response().Header(), cache)
		handler.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

func guard(h http.Header, cache string) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", cache)
}

// refusesGzip tells whether the client says that it wants no gzip (gzip;q=0), which the middleware would overlook.
func refusesGzip(c echo.Context) (refuses bool) {
	defer func() {
		if refuses { // the middleware says it of what it has a hand in
			c.Response().Header().Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
		}
	}()
	for _, one := range strings.Split(c.Request().Header.Get(echo.HeaderAcceptEncoding), ",") {
		encoding, params, _ := strings.Cut(one, ";")
		if strings.TrimSpace(encoding) != "gzip" {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q="), 64)
		return err == nil && q == 0
	}
	return false
}
