package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-memory/holdfast/internal/access"
)

// Mount is a handler of a protocol of its own, behind the same door as the routes: the request has its id, its log
// line, its time and, unless the mount is public, a caller.
type Mount struct {
	// Path is the handler's only path, or all paths below it when it ends in a slash.
	Path string
	// Public needs no key.
	Public bool
	// Permission is what the key must allow; empty takes every key, and the handler checks what it does itself.
	Permission access.Permission
	// MaxBody bounds the body that the handler may read, in bytes; zero takes none.
	MaxBody int64
	Handler http.Handler
}

// CallerOf returns who makes the request that ctx belongs to; the zero Caller for a public one.
func CallerOf(ctx context.Context) access.Caller { return callOf(ctx).caller }

// attach adds a mount's path.
func (s *Server) attach(m Mount) error {
	if !strings.HasPrefix(m.Path, "/") || m.Handler == nil {
		return fmt.Errorf("httpapi: mount %q has no path or no handler", m.Path)
	}
	op := &operation{id: m.Path, public: m.Public, permission: m.Permission}
	serve := func(c echo.Context) error {
		this := callOf(c.Request().Context())
		this.route = m.Path
		ctx, cancel := context.WithTimeout(c.Request().Context(), requestBound+maxWait)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		if !op.public {
			if err := s.authorise(c, op, this); err != nil {
				return err
			}
		}
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), r.Body, m.MaxBody)
		m.Handler.ServeHTTP(c.Response(), r)
		return nil
	}
	if below, ok := strings.CutSuffix(m.Path, "/"); ok {
		s.echo.Any(below, serve)
		s.echo.Any(below+"/*", serve)
		return nil
	}
	s.echo.Any(m.Path, serve)
	return nil
}
