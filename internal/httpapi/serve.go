package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	requestIDHeader = "X-Request-Id"
	// maxRequestID is the longest request id that is taken from a client: a UUID, a ULID or a trace id fits.
	maxRequestID = 64
	// maxStack is how much of a panic's stack is logged: enough for the frames of ours.
	maxStack = 4 << 10
	// unmatched is the route of requests without one, so that paths of a scanner don't become metrics.
	unmatched = "unmatched"
)

// call is what is known of one request. It rides in the request's context.
type call struct {
	requestID string
	path      string // as it was given, escaped
	route     string
	caller    access.Caller
	key       *command.Key
	code      fault.Code                 // of the refusal, empty without one
	event     uuid.UUID                  // that it made or is about, nil for none
	leave     func()                     // gives the request's place among the working ones back; may be called again
	left      func() bool                // tells whether the client has gone
	refuse    func(contract.Problem) any // the form of a guest's refusals, nil for the native one
	server    *Server                    // of a mount's request
	head      bool                       // only the answer's head is wanted
	secret    access.Key                 // what the caller is known by; zero for a public route
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{leave: func() {}, left: func() bool { return false }}
}

// serve gives a request its id and its place, and writes one log line when it is answered.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	began, asked := time.Now(), method(r)
	client := r.Context()
	c := &call{requestID: requestID(r), path: r.URL.EscapedPath(), route: unmatched, leave: func() {}, left: func() bool { return client.Err() != nil }}
	traced, followed := s.follow(client, r.Header, asked)
	log := logOf(traced, s.deps.Log, c)
	r = r.WithContext(log.WithContext(context.WithValue(traced, callKey{}, c)))
	r.URL = tidy(r.URL)
	answer := &recorder{ResponseWriter: w}
	if r.Method == http.MethodHead { // it is the GET, whose body is kept back
		r.Method, answer.silent, c.head = http.MethodGet, true, true
	}
	answer.Header().Set(requestIDHeader, c.requestID)
	answer.Header().Set("Cache-Control", "no-store")
	answer.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() {
		s.recovered(answer, r, recover())
		c.leave()
		took := time.Since(began)
		if s.config.Observe != nil {
			s.config.Observe(c.route, asked, answer.status, took)
		}
		followed(c.route, answer.status, string(c.code), c.event)
		line := log.Info().Str("route", c.route).Str("method", asked).Int("status", answer.status).
			Int64("duration_ms", took.Milliseconds())
		if c.caller.Workspace.ID != uuid.Nil {
			line = line.Stringer("workspace_id", c.caller.Workspace.ID)
		}
		if c.event != uuid.Nil {
			line = line.Stringer("event_id", c.event)
		}
		if c.code != "" {
			line = line.Str("code", string(c.code))
		}
		line.Msg("request")
	}()
	guest := s.guestOf(r)
	if guest != nil {
		c.refuse = guest.Refuse
	}
	if !s.enter(c) {
		s.shed("in_flight")
		s.problem(answer, r, fault.New(fault.UnavailableNow))
		return
	}
	if guest != nil {
		guest.serve(answer, r)
		return
	}
	s.echo.ServeHTTP(answer, r)
}

// follow begins the span of a request, if anybody wants one. Of its headers only traceparent is looked at.
func (s *Server) follow(ctx context.Context, header http.Header, asked string) (context.Context, Ended) {
	if s.config.Trace == nil {
		return ctx, func(string, int, string, uuid.UUID) {}
	}
	parent := ""
	if given := header.Values("Traceparent"); len(given) == 1 {
		parent = given[0]
	}
	return s.config.Trace(ctx, asked, parent)
}

// logOf is the log of a request, with its trace if it has one.
func logOf(ctx context.Context, log zerolog.Logger, c *call) zerolog.Logger {
	with := log.With().Str("request_id", c.requestID)
	if at := task.OriginOf(ctx); !at.IsZero() {
		with = with.Str("trace_id", at.TraceID())
	}
	return with.Logger()
}

// enter takes a place among the working requests; false if there is none.
func (s *Server) enter(c *call) bool {
	select {
	case s.inFlight <- struct{}{}:
		var once sync.Once
		c.leave = func() { once.Do(func() { <-s.inFlight }) }
		return true
	default:
		return false
	}
}

// recovered answers INTERNAL for a panic. Neither its value nor anything of the request is logged.
func (s *Server) recovered(answer *recorder, r *http.Request, value any) {
	if value == nil {
		return
	}
	if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(http.ErrAbortHandler)
	}
	stack := debug.Stack()
	zerolog.Ctx(r.Context()).Error().Str("code", string(fault.InternalError)).Str("panic", fmt.Sprintf("%T", value)).
		Bytes("stack", stack[:min(len(stack), maxStack)]).Msg("request panicked")
	if answer.status == 0 {
		s.problem(answer, r, fault.New(fault.InternalError))
	}
}

// requestID takes the client's id if it is harmless and makes one otherwise.
func requestID(r *http.Request) string {
	given := r.Header.Values(requestIDHeader)
	if len(given) == 1 && given[0] != "" && len(given[0]) <= maxRequestID && strings.IndexFunc(given[0], strange) < 0 {
		return given[0]
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil.String()
	}
	return id.String()
}

func strange(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// method returns the request's method if it is a usual one, so that made-up ones don't become metrics.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead,
		http.MethodOptions:
		return r.Method
	}
	return "OTHER"
}

// tidy returns the address without doubled slashes and without those at its end, which mean nothing here. A slash
// that is part of a name is escaped, so it stays.
func tidy(u *url.URL) *url.URL {
	given := u.EscapedPath()
	path := given
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if path = strings.TrimRight(path, "/"); path == "" {
		path = "/"
	}
	plain, err := url.PathUnescape(path)
	if path == given || err != nil {
		return u
	}
	tidied := *u
	tidied.Path, tidied.RawPath = plain, ""
	if tidied.EscapedPath() != path {
		tidied.RawPath = path
	}
	return &tidied
}

// recorder remembers the status of an answer, zero before it began. A silent one keeps the body back.
type recorder struct {
	http.ResponseWriter
	status int
	silent bool
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.silent {
		return len(p), nil
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
