package admin

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// Operators answers whose token it is, or a fault INVALID_API_KEY.
type Operators interface {
	Operator(ctx context.Context, token access.Token) (name string, err error)
}

// Workspaces reads and changes workspaces, which are named by id or name. Fault WORKSPACE_NOT_FOUND.
type Workspaces interface {
	ListWorkspaces(ctx context.Context) ([]operator.Workspace, error)
	Workspace(ctx context.Context, idOrName string) (operator.Workspace, error)
	// CreateWorkspace makes one, or answers created false and the one that has the name.
	CreateWorkspace(ctx context.Context, name string, metered bool) (made operator.Workspace, created bool, err error)
	SuspendWorkspace(ctx context.Context, idOrName string, suspended bool) (operator.Workspace, error)
	LimitWorkspace(ctx context.Context, idOrName string, limits operator.Limits) (operator.Workspace, error)
}

// Deleter begins to delete a workspace; again it answers the same.
type Deleter interface {
	DeleteWorkspace(ctx context.Context, idOrName string) (operator.Workspace, error)
}

// Granter gives credits once for each reference: true if this call did it. Fault IDEMPOTENCY_CONFLICT for another amount.
type Granter interface {
	Grant(ctx context.Context, workspace uuid.UUID, reference string, amount credit.Amount) (granted bool, err error)
}

// Keys makes, reads and ends API keys. Fault ROUTE_NOT_FOUND for a key that the workspace doesn't have.
type Keys interface {
	ListKeys(ctx context.Context, workspace uuid.UUID) ([]operator.Key, error)
	// CreateKeyOnce makes one key for each reference; the key in clear is nil when the reference had made it before.
	// Fault IDEMPOTENCY_CONFLICT for a reference that has made another key.
	CreateKeyOnce(ctx context.Context, workspace uuid.UUID, ask operator.KeyAsk) (operator.Key, *access.Key, error)
	RevokeKey(ctx context.Context, workspace uuid.UUID, id string) error
}

// Acts reads the log of acts.
type Acts interface {
	Acts(ctx context.Context, query operator.ActQuery) (operator.ActPage, error)
}

// Health judges the service.
type Health interface {
	Check(ctx context.Context) (recall.Verdict, error)
}

// Work reads what is open.
type Work interface {
	Work(ctx context.Context) (operator.Work, error)
}

// Deps are what the API serves, all of them required.
type Deps struct {
	Operators  Operators
	Workspaces Workspaces
	Deleter    Deleter
	Granter    Granter
	Keys       Keys
	Acts       Acts
	Health     Health
	Work       Work
	Bulk       Bulk
	Pauses     Pauses
}

const (
	root = "/admin/v1"
	// maxBody is above the longest body: a key's name, reference and permissions.
	maxBody = 4 << 10
)

//go:embed openapi.json
var document []byte

// New returns the API, to be mounted into an httpapi.Server.
func New(deps Deps) (httpapi.Mount, error) {
	if deps.Operators == nil || deps.Workspaces == nil || deps.Deleter == nil || deps.Granter == nil || deps.Keys == nil ||
		deps.Acts == nil || deps.Health == nil || deps.Work == nil || deps.Bulk == nil || deps.Pauses == nil {
		return httpapi.Mount{}, errors.New("admin: all of its dependencies are required")
	}
	a := &api{deps: deps, mux: http.NewServeMux()}
	a.mux.HandleFunc("GET "+root+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // a reader that has gone is all that can be wrong
	})
	for pattern, handler := range a.routes() {
		a.mux.Handle(pattern, a.guarded(handler))
	}
	return httpapi.Mount{Path: root + "/", Public: true, MaxBody: maxBody, Handler: a}, nil
}

// handler answers a request of an operator with a status and what is sent as JSON.
type handler func(r *http.Request) (status int, body any, err error)

type api struct {
	deps Deps
	mux  *http.ServeMux
}

// routes are all but the document.
func (a *api) routes() map[string]handler {
	return map[string]handler{
		"GET " + root + "/workspaces":                                a.listWorkspaces,
		"PUT " + root + "/workspaces/{workspace}":                    a.createWorkspace,
		"GET " + root + "/workspaces/{workspace}":                    a.readWorkspace,
		"DELETE " + root + "/workspaces/{workspace}":                 a.deleteWorkspace,
		"PATCH " + root + "/workspaces/{workspace}/limits":           a.limitWorkspace,
		"PUT " + root + "/workspaces/{workspace}/suspension":         a.suspend,
		"DELETE " + root + "/workspaces/{workspace}/suspension":      a.resume,
		"PUT " + root + "/workspaces/{workspace}/pause":              a.pauseWorkspace,
		"DELETE " + root + "/workspaces/{workspace}/pause":           a.unpauseWorkspace,
		"POST " + root + "/workspaces/{workspace}/bulks/preview":     a.previewBulk,
		"PUT " + root + "/workspaces/{workspace}/bulks/{bulk}":       a.runBulk,
		"PUT " + root + "/providers/{provider}/pause":                a.pauseProvider,
		"DELETE " + root + "/providers/{provider}/pause":             a.resumeProvider,
		"PUT " + root + "/workspaces/{workspace}/grants/{reference}": a.grant,
		"GET " + root + "/workspaces/{workspace}/keys":               a.listKeys,
		"POST " + root + "/workspaces/{workspace}/keys":              a.createKey,
		"DELETE " + root + "/workspaces/{workspace}/keys/{key}":      a.revokeKey,
		"GET " + root + "/acts":                                      a.listActs,
		"GET " + root + "/health":                                    a.readHealth,
	}
}

// ServeHTTP answers with problem documents also for what the mux doesn't know.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, pattern := a.mux.Handler(r)
	if pattern != "" {
		a.mux.ServeHTTP(w, r) // which also sets the path's values
		return
	}
	probe := &allowed{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", probe.header.Get("Allow"))
		httpapi.Refuse(w, r, fault.New(fault.MethodNotAllowed))
		return
	}
	httpapi.Refuse(w, r, fault.New(fault.RouteNotFound))
}

// allowed takes what the mux says of a method that a path doesn't have.
type allowed struct {
	header http.Header
	status int
}

func (a *allowed) Header() http.Header         { return a.header }
func (a *allowed) WriteHeader(status int)      { a.status = status }
func (a *allowed) Write(p []byte) (int, error) { return len(p), nil }

// guarded lets an operator through and acts in its name.
func (a *api) guarded(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, err := a.operatorOf(r)
		if err != nil {
			httpapi.Refuse(w, r, err)
			return
		}
		ctx := access.As(r.Context(), access.Actor{
			Name: "operator:" + name, Origin: originOf(r), RequestID: w.Header().Get("X-Request-Id"),
		})
		status, body, err := h(r.WithContext(ctx))
		if err != nil {
			httpapi.Refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store") // an answer may hold a secret
		w.WriteHeader(status)
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(body); err != nil {
			zerolog.Ctx(ctx).Debug().Msg("the client left before its answer")
		}
	})
}

// operatorOf reads the token from the one Authorization header.
func (a *api) operatorOf(r *http.Request) (string, error) {
	lines := r.Header.Values("Authorization")
	if len(lines) != 1 {
		return "", fault.New(fault.InvalidAPIKey)
	}
	scheme, text, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", fault.New(fault.InvalidAPIKey)
	}
	token, err := access.ParseToken(strings.TrimLeft(text, " "))
	if err != nil {
		return "", err
	}
	return a.deps.Operators.Operator(r.Context(), token)
}

// originOf is the address of whoever is connected: behind a proxy, the proxy's.
func originOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// read decodes a strict body whose members are all known. An empty one is an empty object.
func read(r *http.Request, into any) error {
	raw, err := io.ReadAll(r.Body) // bounded by the mount
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fault.New(fault.PayloadTooLarge)
		}
		return fault.At(fault.InvalidBody, "", command.CompleteJSON)
	}
	if len(raw) == 0 {
		return nil
	}
	if raw, err = command.ReadJSON(raw); err != nil {
		return err
	}
	reader := json.NewDecoder(strings.NewReader(string(raw)))
	reader.DisallowUnknownFields()
	if err := reader.Decode(into); err != nil {
		return fault.At(fault.InvalidRequest, "", "an object of the members and types that the document names")
	}
	return nil
}
