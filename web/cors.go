package web

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

const apiPrefix = "/api/v1"

// writePaths take what other sites' pages must not send: to them no page of another origin is let in.
var writePaths = []string{"/write", "/push"}

// anyOrigin is the expression that lets in pages of all origins.
const anyOrigin = "^(?:.*)$"

// CompileOrigins compiles an expression for the whole of the Origin header of pages that may read answers.
func CompileOrigins(expr string) (*regexp.Regexp, error) { return regexp.Compile("^(?:" + expr + ")$") }

// cors lets pages of other origins read what the API answers, errors too, as Prometheus does: those whose origin the
// configuration matches. OPTIONS is answered for the whole API: browsers ask so before they send what is no plain form.
func (s *Server) cors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path, isAPI := strings.CutPrefix(c.Request().URL.Path, apiPrefix)
		if !isAPI || !strings.HasPrefix(path, "/") || slices.Contains(writePaths, path) {
			return next(c)
		}
		s.allowOrigin(c.Response().Header(), c.Request().Header.Get(echo.HeaderOrigin))
		if c.Request().Method == http.MethodOptions {
			return c.NoContent(http.StatusNoContent)
		}
		return next(c)
	}
}

func (s *Server) allowOrigin(h http.Header, origin string) {
	h.Add(echo.HeaderVary, echo.HeaderOrigin)
	if origin == "" {
		return
	}
	h.Set(echo.HeaderAccessControlAllowHeaders, "Accept, Authorization, Content-Type, Origin")
	h.Set(echo.HeaderAccessControlAllowMethods, "GET, POST, OPTIONS")
	h.Set(echo.HeaderAccessControlExposeHeaders, "Date")
	switch origins := s.cfg.Origins; {
	case origins == nil:
	case origins.String() == anyOrigin:
		h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	case origins.MatchString(origin):
		h.Set(echo.HeaderAccessControlAllowOrigin, origin)
	}
}
