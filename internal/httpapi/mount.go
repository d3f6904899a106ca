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
	at := mounted{s, m, &operation{id: m.Path, public: m.Public, permission: m.Permission}}
	if below, ok := strings.CutSuffix(m.Path, "/"); ok {
		s.echo.Any(below, at.serve)
		s.echo.Any(below+"/*", at.serve)
		return nil
	}
	s.echo.Any(m.Path, at.serve)
	return nil
}

// mounted is a mount at its path.
type mounted struct {
	server *Server
	mount  Mount
	op     *operation
}

func (m mounted) serve(c echo.Context) error {
	this := callOf(c.Request().Context())
	this.route, this.server = m.mount.Path, m.server
	ctx, cancel := context.WithTimeout(c.Request().Context(), requestBound+maxWait)
	defer cancel()
	c.SetRequest(c.Request().WithContext(ctx))
	if !m.op.public {
		if err := m.server.authorise(c, m.op, this); err != nil {
			return err
		}
	}
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, m.mount.MaxBody)
	m.mount.Handler.ServeHTTP(c.Response(), r)
	return nil
}
