package frame

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

const workspacePrefix = "ws_"

// Visit is one request of somebody who is signed in and may make it.
type Visit struct {
	Request *http.Request
	Visitor access.Visitor
	// Caller is who acts in the workspace: the key, or for an operator a caller who may all. Its workspace is zero on a
	// page that is about none.
	Caller access.Caller
	// Live says that only the part that renews itself is wanted, if it is another one than Seen.
	Live bool

	root    string
	csrf    string
	seen    string
	session [sha256.Size]byte
}

// Context is the request's, in which the visitor acts.
func (v *Visit) Context() context.Context { return v.Request.Context() }

// Operator tells whether the visitor is one.
func (v *Visit) Operator() bool { return v.Visitor.Operator != "" }

// Workspace is the id of the workspace that the page is about.
func (v *Visit) Workspace() uuid.UUID { return v.Caller.Workspace.ID }

// May tells whether the visitor may do what needs the permission here.
func (v *Visit) May(p access.Permission) bool { return p == "" || v.Caller.Require(p) == nil }

// Link is the address of a path of the workspace's pages.
func (v *Visit) Link(path string) string { return v.root + path }

// Query is a value of the address, empty for what no page would send.
func (v *Visit) Query(name string) string {
	text := strings.TrimSpace(v.Request.URL.Query().Get(name))
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > maxQuery {
		return ""
	}
	return text
}

// maxQuery is above the longest idempotency key, scope value and cursor that is asked for.
const maxQuery = 4 << 10

// RootOf is the path of a workspace's pages.
func RootOf(workspace uuid.UUID) string { return Root + "/w/" + workspacePrefix + workspace.String() }

// home is where a visitor begins.
func (v *Visit) home(pages []Page) string {
	root := ""
	if !v.Operator() {
		root = RootOf(v.Visitor.Caller.Workspace.ID)
	}
	for _, page := range pages {
		first := page.Routes[0]
		switch {
		case page.Name == "" || first.Operators || first.Workspace == v.Operator():
		case v.Operator() || slices.Contains(v.Visitor.Caller.Permissions, page.Needs) || page.Needs == "":
			return strings.Replace(pathOf(first), Root+"/w/{workspace}", root, 1)
		}
	}
	return Root + "/sign-in"
}

// admit answers who makes the request, and whether it may be made. The visit is nil when nobody is signed in.
func (f *Frame) admit(w http.ResponseWriter, r *http.Request, route Route) (*Visit, error) {
	secret, ok := secretOf(r)
	if !ok {
		return nil, fault.New(fault.InvalidAPIKey)
	}
	v := &Visit{Request: r, session: idOf(secret), csrf: csrfOf(secret)}
	if !f.familiar.take(string(v.session[:])) {
		return nil, fault.New(fault.RateLimited)
	}
	var err error
	if v.Visitor, err = f.store.Session(r.Context(), v.session); err != nil {
		return nil, err
	}
	v.Caller = v.Visitor.Caller
	v.Live, v.seen = r.Header.Get("Hx-Request") == "true", r.URL.Query().Get("seen")
	ctx := access.As(r.Context(), access.Actor{
		Name: v.Visitor.Actor(), Origin: originOf(r), RequestID: w.Header().Get("X-Request-Id"),
	})
	v.Request = r.WithContext(ctx)
	if err := f.enter(ctx, v, route); err != nil {
		return v, err
	}
	if route.Method != http.MethodGet {
		if err := v.sent(); err != nil {
			return v, err
		}
	}
	return v, nil
}

// enter takes the visitor into the workspace of the route. Whoever has no business there is told that it isn't there.
func (f *Frame) enter(ctx context.Context, v *Visit, route Route) error {
	if !route.Workspace {
		if !route.Open && !v.Operator() {
			return fault.New(fault.RouteNotFound)
		}
		return nil
	}
	if route.Operators && !v.Operator() {
		return fault.New(fault.RouteNotFound)
	}
	id, err := uuid.Parse(strings.TrimPrefix(v.Request.PathValue("workspace"), workspacePrefix))
	if err != nil {
		return fault.New(fault.WorkspaceNotFound)
	}
	if v.Operator() {
		workspace, err := f.store.CalledWorkspace(ctx, id)
		if err != nil {
			return err
		}
		v.Caller = access.Caller{Workspace: workspace, Permissions: access.Permissions()}
	} else if id != v.Visitor.Caller.Workspace.ID {
		return fault.New(fault.WorkspaceNotFound)
	}
	v.root = RootOf(id)
	if route.Needs == "" {
		return nil
	}
	return v.Caller.Require(route.Needs)
}
