package frame

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

// Root is the path of the console.
const Root = "/console"

// maxBody is above the longest form: a few ids and a message of the playground.
const maxBody = 256 << 10

// Store keeps sessions and knows who may open one.
type Store interface {
	// Authenticate answers who a key stands for, Operator whose token it is; else a fault INVALID_API_KEY or API_KEY_EXPIRED.
	Authenticate(ctx context.Context, key access.Key) (access.Caller, error)
	Operator(ctx context.Context, token access.Token) (name string, err error)
	OpenSession(ctx context.Context, id [sha256.Size]byte, holder access.Holder, life time.Duration) error
	// Session answers who is signed in as of now, a fault INVALID_API_KEY when nobody is.
	Session(ctx context.Context, id [sha256.Size]byte) (access.Visitor, error)
	CloseSession(ctx context.Context, id [sha256.Size]byte) error
	// CalledWorkspace answers a workspace for an operator, or a fault WORKSPACE_NOT_FOUND.
	CalledWorkspace(ctx context.Context, workspace uuid.UUID) (access.Workspace, error)
}

// Page is one section of the console.
type Page struct {
	// Name is what the navigation calls it; empty for a page that is reached from others.
	Name string
	// Key is the letter that opens it after g.
	Key string
	// Needs hides its entry from keys without the permission; its routes have their own.
	Needs  access.Permission
	Routes []Route
	// Templates holds the files that the routes' answers name. Each defines "main", and "live" for a part that renews itself.
	Templates fs.FS
}

// Route is one path of a page. The first one of a page is what its navigation entry leads to.
type Route struct {
	Method string
	// Path is below /console, or with a workspace below its own part: "/events/{id}".
	Path string
	// Workspace says that the page is about one workspace. Without it the route is for operators alone, or Open.
	Workspace bool
	// Operators says that a page about one workspace is for operators alone.
	Operators bool
	// Open is for everybody who is signed in.
	Open bool
	// Needs is what a key must allow. Operators may all.
	Needs   access.Permission
	Handler func(v *Visit) (Answer, error)
}

// Answer is what a handler says: a template with its data, or another place to go to.
type Answer struct {
	// To is where the browser is sent with a GET, a path below /console.
	To string
	// Status is 200 if it is zero.
	Status   int
	Title    string
	Template string
	Data     any
	// Every is how often the part "live" is asked for again; zero is never.
	Every time.Duration
	// Said is what a screen reader is told when it changes.
	Said string
}

// Frame serves the console.
type Frame struct {
	store    Store
	pages    []Page
	mux      *http.ServeMux
	sheets   map[string]*sheet
	files    map[string]file
	strange  *paces // attempts to sign in that failed, by address
	familiar *paces // requests, by session
}

// New returns the console with its pages, to be mounted into an httpapi.Server.
func New(store Store, pages []Page) (httpapi.Mount, error) {
	if store == nil || len(pages) == 0 {
		return httpapi.Mount{}, errors.New("console: a store and pages are required")
	}
	f := &Frame{
		store: store, pages: pages, mux: http.NewServeMux(), sheets: map[string]*sheet{},
		strange: newPaces(failedPerMinute, failedBurst), familiar: newPaces(requestsPerMinute, requestsBurst),
	}
	var err error
	if f.files, err = loadFiles(); err != nil {
		return httpapi.Mount{}, err
	}
	if err := f.loadSheets(); err != nil {
		return httpapi.Mount{}, err
	}
	f.mux.HandleFunc("GET "+Root+"/assets/{name}", f.serveFile)
	f.mux.HandleFunc("GET "+Root, f.home)
	f.mux.HandleFunc("GET "+Root+"/sign-in", f.askWho)
	f.mux.HandleFunc("POST "+Root+"/sign-in", f.signIn)
	f.mux.HandleFunc("POST "+Root+"/sign-out", f.signOut)
	for i := range pages {
		for _, route := range pages[i].Routes {
			f.mux.HandleFunc(route.Method+" "+pathOf(route), func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, &pages[i], route) })
		}
	}
	return httpapi.Mount{Path: Root + "/", Public: true, MaxBody: maxBody, Handler: f}, nil
}

func pathOf(route Route) string {
	if route.Workspace {
		return Root + "/w/{workspace}" + route.Path
	}
	return Root + route.Path
}

// ServeHTTP answers what no page has with a page too.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())
	if _, pattern := f.mux.Handler(r); pattern == "" {
		f.refuse(w, r, nil, fault.New(fault.RouteNotFound))
		return
	}
	f.mux.ServeHTTP(w, r)
}

// harden says what a browser may do with what it gets from here. The referrer stays within the console, and must be sent
// there: without it browsers hide where a form comes from.
func harden(header http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Referrer-Policy": "same-origin", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		header.Set(name, value)
	}
}

// serve answers a route of a page.
func (f *Frame) serve(w http.ResponseWriter, r *http.Request, page *Page, route Route) {
	v, err := f.admit(w, r, route)
	if err != nil {
		f.refuse(w, r, v, err)
		return
	}
	answer, err := route.Handler(v)
	if err != nil {
		f.refuse(w, r, v, err)
		return
	}
	if answer.To != "" {
		http.Redirect(w, r, answer.To, http.StatusSeeOther)
		return
	}
	f.draw(w, v, page, answer)
}

// home leads to the first page that there is for who is signed in.
func (f *Frame) home(w http.ResponseWriter, r *http.Request) {
	v, err := f.admit(w, r, Route{Method: http.MethodGet, Open: true})
	if err != nil {
		f.refuse(w, r, v, err)
		return
	}
	http.Redirect(w, r, v.home(f.pages), http.StatusSeeOther) // #nosec G710 -- a path of ours
}
