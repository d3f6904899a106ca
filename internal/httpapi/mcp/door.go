package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// connection is what the tools know of the request that called them.
type connection struct {
	scope   memory.Scope
	refused error           // why there is no scope
	left    context.Context // ends when the client leaves; a call's own context doesn't in older protocol versions
}

type connectionKey struct{}

func connectionOf(ctx context.Context) connection {
	if c, ok := ctx.Value(connectionKey{}).(connection); ok {
		return c
	}
	return connection{refused: fault.New(fault.ScopeRequired), left: ctx}
}

// door lets one message of an allowed origin through and fixes its scope.
type door struct {
	allowed origins
	next    http.Handler
}

func (d door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpapi.Refuse(w, r, fault.New(fault.MethodNotAllowed))
		return
	}
	if !d.allowed.allow(r) {
		refused := fault.New(fault.InsufficientPermission)
		refused.Details = map[string]any{"in": "header", "pointer": "/Origin", "rule": "no page of another host"}
		httpapi.Refuse(w, r, refused)
		return
	}
	if err := takeMessage(r); err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	c := connection{left: r.Context()}
	c.scope, c.refused = scopeOf(r.Header)
	answer := &quiet{to: w}
	d.next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), connectionKey{}, c)))
	answer.send()
}

// takeMessage reads the body. A batch, which only old versions of the protocol know, is refused: one request would
// stand for thousands of calls.
func takeMessage(r *http.Request) error {
	raw, err := io.ReadAll(r.Body) // bounded by the mount
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			refused := fault.New(fault.PayloadTooLarge)
			refused.Details = map[string]any{"limit": maxMessage}
			return refused
		}
		return fault.At(fault.InvalidBody, "", command.CompleteJSON)
	}
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("[")) {
		return fault.At(fault.InvalidBody, "", "one message, not a batch")
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return nil
}

// The headers that fix a connection's scope.
const (
	userHeader  = "X-Holdfast-User-Id"
	agentHeader = "X-Holdfast-Agent-Id"
	runHeader   = "X-Holdfast-Run-Id"
	appHeader   = "X-Holdfast-App-Id"
)

// scopeOf reads the scope from its headers, one line each.
func scopeOf(header http.Header) (memory.Scope, error) {
	ids := [4]*string{}
	for i, name := range []string{userHeader, agentHeader, runHeader, appHeader} {
		lines := header.Values(name)
		switch len(lines) {
		case 0:
		case 1:
			ids[i] = &lines[0]
		default:
			return memory.Scope{}, inHeader(name, "one header line")
		}
	}
	scope, err := command.NewScope(ids[0], ids[1], ids[2], ids[3])
	if fault.Is(err, fault.InvalidRequest) {
		return memory.Scope{}, inHeader("X-Holdfast-…-Id", "1 to 512 characters of valid UTF-8 after trimming")
	}
	return scope, err
}

func inHeader(name, rule string) error {
	f := fault.At(fault.InvalidRequest, "/"+name, rule)
	f.Details = map[string]any{"in": "header"}
	return f
}

// inside tells whether what has the scope of belongs to the connection: every id that the connection fixes is its.
func inside(fixed, of memory.Scope) bool {
	fits := func(want, is string) bool { return want == "" || want == is }
	return !fixed.Empty() && fits(fixed.UserID, of.UserID) && fits(fixed.AgentID, of.AgentID) &&
		fits(fixed.RunID, of.RunID) && fits(fixed.AppID, of.AppID)
}

// origins are the pages that may call from a browser beside the server's own.
type origins []string

func newOrigins(given []string) (origins, error) {
	for _, text := range given {
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != text {
			return nil, fmt.Errorf("mcp: an origin must be like https://host:port, without a path: %q", text)
		}
	}
	return given, nil
}

// allow judges the page that a browser names. Other programs name none. The server's own host will do, but over the
// loopback interface only under a loopback name: any site can have its own name lead to 127.0.0.1.
func (o origins) allow(r *http.Request) bool {
	lines := r.Header.Values("Origin")
	if len(lines) == 0 {
		return true
	}
	if len(lines) > 1 {
		return false
	}
	if slices.Contains(o, lines[0]) {
		return true
	}
	u, err := url.Parse(lines[0])
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	local, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return known && !isLoopback(local.String()) || isLoopback(r.Host)
}

// isLoopback tells whether a host, with or without a port, is this machine by its name or number.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
