package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// Guest is a set of routes with shapes of their own, for clients that were written for another service. A request
// whose Authorization has the guest's scheme belongs to it on every path; any other request does on paths that no
// native route has.
type Guest struct {
	// Scheme is the scheme of the Authorization header, in any case: it selects the guest.
	Scheme string
	Routes []GuestRoute
	// Refuse returns the body of a refusal, which is sent as JSON with the problem's status.
	Refuse func(contract.Problem) any
}

// GuestRoute is one route of a guest.
type GuestRoute struct {
	Method string
	// Path has segments like {id}, which are one segment of the request's path, and may end in {name...}, which is all
	// the rest of it. Of several paths that fit, the one with most plain segments is taken. A rest is refused whose
	// slashes weren't those of the request: it would be another name.
	Path string
	// Permission is what the key must allow; empty takes every key.
	Permission access.Permission
	// Body reads a JSON body if there is one.
	Body bool
	// Waits may wait for the end of an event.
	Waits   bool
	Handler GuestHandler
}

// GuestHandler answers a call that was let through.
type GuestHandler func(ctx context.Context, call GuestCall) (GuestAnswer, error)

// GuestAnswer is what is sent as JSON. A Status of 0 is 200.
type GuestAnswer struct {
	Status int
	Header map[string]string
	Body   any
}

// GuestCall is a request of a guest: its key allows the route, its body, if there is one, is strict JSON.
type GuestCall struct {
	Caller access.Caller
	// Key is what the Idempotency-Key header said, nil without one.
	Key *command.Key
	// Query holds valid text without NUL.
	Query url.Values
	// Body is nil without one.
	Body []byte
	// URL is what the client has asked for, as far as that can be known: scheme, host, path and query.
	URL url.URL

	params map[string]string
	server *Server
}

// Param returns what the request's path has for a segment of the route's, valid text without NUL.
func (c GuestCall) Param(name string) string { return c.params[name] }

// Wait answers the event when it has ended, or as it is after that time at most. While it waits, the request takes
// no place among the working ones.
func (c GuestCall) Wait(ctx context.Context, event uuid.UUID, within time.Duration) (recall.Event, error) {
	found, _, err := c.server.await(ctx, event, min(within, maxWait), nil)
	return found, err
}

// guest is a guest that is served.
type guest struct {
	Guest
	server *Server
}

// invite checks a guest and adds it.
func (s *Server) invite(g Guest) error {
	if g.Scheme == "" || g.Refuse == nil {
		return errors.New("httpapi: a guest needs a scheme and a form of refusals")
	}
	known := map[string]bool{}
	for _, route := range g.Routes {
		place := route.Method + " " + route.Path
		_, real := access.ParsePermission(string(route.Permission))
		if route.Permission != "" && !real || route.Handler == nil || known[place] {
			return fmt.Errorf("httpapi: %s has an unknown permission, no handler, or is there twice", place)
		}
		known[place] = true
	}
	s.guests = append(s.guests, guest{g, s})
	return nil
}

// guestOf returns the guest that a request is for, nil if it is for the native routes.
func (s *Server) guestOf(r *http.Request) *guest {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for i := range s.guests {
		if strings.EqualFold(scheme, s.guests[i].Scheme) {
			return &s.guests[i]
		}
	}
	if len(s.guests) == 0 || s.native(r) {
		return nil
	}
	for i := range s.guests {
		if route, _ := s.guests[i].find(r); route != nil {
			return &s.guests[i]
		}
	}
	return nil
}

// native tells whether a native route has the request's path, for this method or another.
func (s *Server) native(r *http.Request) bool {
	c := s.echo.AcquireContext()
	defer s.echo.ReleaseContext(c)
	c.Reset(r, nil)
	s.echo.Router().Find(r.Method, echo.GetPath(r), c)
	return c.Path() != ""
}

// serve answers a request of the guest.
func (g *guest) serve(w http.ResponseWriter, r *http.Request) {
	this := callOf(r.Context())
	c := g.server.echo.NewContext(r, w)
	if err := g.answer(c, this); err != nil { //nolint:contextcheck // c has the request, and with it the context
		g.server.refuse(err, c)
	}
}

func (g *guest) answer(c echo.Context, this *call) error {
	route, params := g.find(c.Request())
	if route == nil {
		return fault.New(fault.RouteNotFound)
	}
	this.route = route.Path
	bound := requestBound
	if route.Waits {
		bound += maxWait
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), bound)
	defer cancel()
	c.SetRequest(c.Request().WithContext(ctx))
	err := g.server.authorise(c, &operation{id: route.Path, permission: route.Permission}, this)
	if err != nil {
		return err
	}
	asked, err := g.read(c.Request(), route, params, this)
	if err != nil {
		return err
	}
	reply, err := route.Handler(c.Request().Context(), asked)
	if err != nil {
		return err
	}
	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	return answer{status: reply.Status, header: reply.Header, body: reply.Body}.write(c.Response())
}

// read takes the parts of a request and refuses what no route takes.
func (g *guest) read(r *http.Request, route *GuestRoute, params map[string]string, this *call) (GuestCall, error) {
	var err error
	asked := GuestCall{Caller: this.caller, params: params, URL: address(r), server: g.server}
	for _, value := range params {
		if !storable(value) {
			return GuestCall{}, in("path", "", "valid UTF-8 without NUL")
		}
	}
	if strings.HasSuffix(route.Path, "...}") && !whole(route.Path, r.URL.EscapedPath(), this.path) {
		return GuestCall{}, in("path", "", "a name with its slashes escaped where one is first, last or beside another")
	}
	if this.key, err = command.ParseKey(r.Header.Values(keyHeader)); err != nil {
		return GuestCall{}, err
	}
	asked.Key = this.key
	if asked.Query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return GuestCall{}, inQuery("", "a well-formed query")
	}
	for _, values := range asked.Query {
		for _, value := range values {
			if !storable(value) {
				return GuestCall{}, inQuery("", "valid UTF-8 without NUL")
			}
		}
	}
	if route.Body {
		asked.Body, err = readBody(r, command.MaxBody)
	}
	return asked, err
}

func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// find returns the guest's route for a request, and what its path has for the route's named segments.
func (g *guest) find(r *http.Request) (route *GuestRoute, params map[string]string) {
	path := strings.Split(r.URL.EscapedPath(), "/")
	for _, segment := range path {
		if segment == "." || segment == ".." { // never a name: clients take such segments out of an address
			return nil, nil
		}
	}
	best := -1
	for i := range g.Routes {
		if g.Routes[i].Method != r.Method {
			continue
		}
		found, plain, fits := match(strings.Split(g.Routes[i].Path, "/"), path)
		if fits && plain > best {
			route, params, best = &g.Routes[i], found, plain
		}
	}
	return route, params
}

// whole tells whether the rest of a path that a route takes stands in the path as it was given, but for one slash at
// its end. What tidying took out of it may have been part of the name.
func whole(pattern, tidied, given string) bool {
	rest := strings.Join(strings.Split(tidied, "/")[strings.Count(pattern, "/"):], "/")
	before, found := strings.CutSuffix(strings.TrimSuffix(given, "/"), "/"+rest)
	return found && !strings.HasSuffix(before, "/")
}

// match holds a path's segments against a route's and counts the plain ones.
func match(pattern, path []string) (params map[string]string, plain int, fits bool) {
	params = map[string]string{}
	for i, want := range pattern {
		if i >= len(path) {
			return nil, 0, false
		}
		name, named := strings.CutPrefix(want, "{")
		if !named {
			if want != path[i] {
				return nil, 0, false
			}
			plain++
			continue
		}
		name, rest := strings.CutSuffix(strings.TrimSuffix(name, "}"), "...")
		text := path[i]
		if rest {
			text = strings.Join(path[i:], "/")
		}
		value, err := url.PathUnescape(text)
		if err != nil || value == "" {
			return nil, 0, false
		}
		params[name] = value
		if rest {
			return params, plain, true
		}
	}
	return params, plain, len(path) == len(pattern)
}

// address is the request's address as its client knows it: behind a proxy the scheme is what the proxy says.
func address(r *http.Request) url.URL {
	u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		u.Scheme = "https"
	}
	return u
}
