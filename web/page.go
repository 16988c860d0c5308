package web

import (
	"embed"
	"errors"
	"io/fs"
	"net/http"
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

// page serves the built page at / and its files, whose names hold a hash of what they hold, under /assets.
func (s *Server) page(zip echo.MiddlewareFunc) {
	files, err := fs.Sub(built, "page/dist")
	if err != nil {
		panic(err) // only for a malformed name
	}
	handler := http.FileServerFS(files)
	index, err := fs.ReadFile(files, "index.html")
	if errors.Is(err, fs.ErrNotExist) {
		s.echo.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, noPage) })
		return
	}
	s.echo.GET("/", func(c echo.Context) error {
		guard(c.Response().Header(), "no-cache")
		return c.HTMLBlob(http.StatusOK, index)
	}, zip)
	s.echo.GET("/*", func(c echo.Context) error {
		name := strings.TrimPrefix(c.Request().URL.Path, "/")
		if info, err := fs.Stat(files, name); err != nil || info.IsDir() || strings.HasPrefix(name, ".") {
			return echo.ErrNotFound
		}
		cache := "no-cache"
		if strings.HasPrefix(name, "assets/") {
			cache = "public, max-age=31536000, immutable"
		}
		guard(c.Response().Header(), cache)
		handler.ServeHTTP(c.Response(), c.Request())
		return nil
	}, zip)
}

func guard(h http.Header, cache string) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", cache)
}
