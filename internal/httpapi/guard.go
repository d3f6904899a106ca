package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// keyHeader is Idempotency-Key in its canonical form.
const keyHeader = "Idempotency-Key"

// guard runs before every handler: who calls and may they, then is the request what the contract says. A key
// without a right to the route learns nothing of what the body would have led to, and a stranger doesn't reach
// the parser.
func (s *Server) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		op := s.operations.find(c.Request().Method, c.Path())
		if op == nil {
			return next(c) // Echo answers that there is no such route or method
		}
		this := callOf(c.Request().Context())
		this.route = c.Path()
		bound := requestBound
		if op.waits {
			bound += maxWait
		}
		if op.streams {
			bound = streamBound
		}
		if op.follows {
			bound = s.config.Streams.bound()
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), bound)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		if !op.public {
			if err := s.authorise(c, op, this); err != nil {
				return err
			}
		}
		if err := takeHeaders(c.Request(), op, this); err != nil {
			return err
		}
		if err := s.takeID(c, op, this); err != nil {
			return err
		}
		leave, err := s.takeLarge(c.Request(), op)
		if err != nil {
			return err
		}
		defer leave()
		if op.streams && op.takesBody {
			err = takeLines(c, op)
		} else {
			err = takeBody(c.Request(), op)
		}
		if err != nil {
			return err
		}
		if err := validate(c, op); err != nil {
			return err
		}
		return next(c)
	}
}

// authorise finds the caller by the key and checks that the key allows the operation.
func (s *Server) authorise(c echo.Context, op *operation, this *call) error {
	key, err := s.keyOf(c.Request().Header)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	caller, err := s.deps.Authenticator.Authenticate(ctx, key)
	if err != nil {
		return err
	}
	this.caller = caller
	log := zerolog.Ctx(ctx).With().Stringer("workspace_id", caller.Workspace.ID).Logger()
	ctx = access.As(ctx, access.Actor{Name: "key:" + caller.KeyID, Origin: originOf(c.Request()), RequestID: this.requestID})
	c.SetRequest(c.Request().WithContext(log.WithContext(ctx)))
	if err := s.admit(c.Response().Header(), this); err != nil {
		return err
	}
	this.secret = key
	if op.permission == "" {
		return nil
	}
	return caller.Require(op.permission)
}

// originOf is the address of whoever is connected: behind a proxy, the proxy's.
func originOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// keyOf reads the key from the one Authorization header, with the scheme Bearer or that of a guest, or, without such
// a header, from the one X-API-Key.
func (s *Server) keyOf(header http.Header) (access.Key, error) {
	lines := header.Values("Authorization")
	if plain := header.Values("X-Api-Key"); len(lines) == 0 && len(plain) == 1 {
		return access.ParseKey(plain[0])
	}
	if len(lines) != 1 {
		return access.Key{}, fault.New(fault.InvalidAPIKey)
	}
	scheme, text, _ := strings.Cut(lines[0], " ")
	known := strings.EqualFold(scheme, "Bearer")
	for _, g := range s.guests {
		known = known || strings.EqualFold(scheme, g.Scheme)
	}
	if !known {
		return access.Key{}, fault.New(fault.InvalidAPIKey)
	}
	return access.ParseKey(strings.TrimLeft(text, " "))
}

// takeHeaders reads the idempotency key, and joins the lines of headers that are lists, as RFC 9110 allows.
func takeHeaders(r *http.Request, op *operation, this *call) error {
	for _, name := range []string{"Prefer", "If-None-Match"} {
		if lines := r.Header.Values(name); len(lines) > 1 {
			r.Header.Set(name, strings.Join(lines, ", "))
		}
	}
	if !op.takesKey {
		return nil
	}
	key, err := command.ParseKey(r.Header.Values(keyHeader))
	this.key = key
	return err
}

// takeID replaces the path's id by its plain form. What can't be an id is answered like an unknown one.
func (s *Server) takeID(c echo.Context, op *operation, this *call) error {
	if len(c.ParamValues()) == 0 {
		return nil
	}
	if op.named {
		return takeName(c)
	}
	if id := c.Param("id"); id == "" || strings.Contains(id, "/") { // Echo's last parameter takes the rest of the path
		return fault.New(fault.RouteNotFound)
	}
	if op.prefix == eventPrefix && command.IsItemEvent(c.Param("id")) {
		return s.takeItemEvent(c, this)
	}
	id, ok := parseID(op.prefix, c.Param("id"))
	if !ok {
		return fault.New(op.notFound)
	}
	if op.prefix == eventPrefix {
		this.event = id
	}
	c.SetParamValues(id.String())
	return nil
}

// takeName puts the escaped forms of the path's last two segments where the generated code unescapes them: Echo has
// them in one form or the other, as the client wrote them.
func takeName(c echo.Context) error {
	segments := strings.Split(c.Request().URL.EscapedPath(), "/")
	pattern := strings.Split(c.Path(), "/")
	if len(segments) != len(pattern) || segments[len(segments)-1] == "" {
		return fault.New(fault.RouteNotFound)
	}
	last := segments[len(segments)-2:]
	name, err := url.PathUnescape(last[1])
	if err != nil || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return in("path", "/id", "valid UTF-8 without NUL")
	}
	c.SetParamValues(last...)
	c.Request().URL.RawPath = c.Request().URL.EscapedPath() // what the generated code tells escaped values by
	return nil
}
