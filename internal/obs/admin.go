package obs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readyBound is how long one look at the dependencies may take: a platform's probe gives up soon after.
	readyBound = 2 * time.Second
	// adminReadBound and adminWriteBound are for small requests and answers on a near network.
	adminReadBound  = 5 * time.Second
	adminWriteBound = 15 * time.Second
	// profileBound is for the longest profile that is of use, one minute, and its transfer.
	profileBound = 75 * time.Second
)

// ErrNotReady is why a process that is starting or stopping answers 503.
var ErrNotReady = errors.New("starting or stopping")

// Admin serves /metrics, /healthz (the process is alive) and /readyz (it can do its work). It starts not ready.
type Admin struct {
	metrics  *Metrics
	check    func(context.Context) error
	listener net.Listener
	ready    atomic.Bool
	profiles bool

	mu      sync.Mutex
	server  *http.Server
	stopped bool
}

// NewAdmin returns a server for listener, which it closes in Stop. Check tells whether the dependencies can be
// used; it is asked only while the process is ready.
func NewAdmin(listener net.Listener, metrics *Metrics, check func(context.Context) error) (*Admin, error) {
	if listener == nil || metrics == nil || check == nil {
		return nil, errors.New("admin server: listener, metrics and check are required")
	}
	return &Admin{metrics: metrics, check: check, listener: listener}, nil
}

// Addr returns where it listens.
func (a *Admin) Addr() string { return a.listener.Addr().String() }

// SetReady turns /readyz on, and off before anything else stops.
func (a *Admin) SetReady(ready bool) { a.ready.Store(ready) }

// ShowProfiles adds /debug/pprof. It is called before Start. Profiles hold no text of a caller, but taking one slows the
// process down, so that they are for a listener that only operators reach.
func (a *Admin) ShowProfiles() { a.profiles = true }

// Handler serves the routes.
func (a *Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := a.Ready(r.Context()); err != nil {
			say(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		say(w, http.StatusOK, "ready")
	})
	if a.profiles { // not cmdline: flags can hold secrets
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// Ready answers why the process cannot do its work now, nil when it can.
func (a *Admin) Ready(ctx context.Context) error {
	if !a.ready.Load() {
		return ErrNotReady
	}
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	return a.check(ctx)
}

// Start serves until Stop and returns at once. The server starts once.
func (a *Admin) Start(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil || a.stopped {
		return errors.New("admin server: it was started or stopped before")
	}
	server := &http.Server{
		Handler: a.Handler(), ReadHeaderTimeout: adminReadBound, ReadTimeout: adminReadBound, WriteTimeout: adminWriteBound,
	}
	if a.profiles {
		server.WriteTimeout = profileBound
	}
	a.server = server
	go func() { _ = server.Serve(a.listener) }() // ends with Stop; a broken listener shows in the platform's probes
	return nil
}

// Stop ends it. It may be called again, or before Start.
func (a *Admin) Stop(ctx context.Context) error {
	a.SetReady(false)
	a.mu.Lock()
	server, again := a.server, a.stopped
	a.stopped = true
	a.mu.Unlock()
	switch {
	case again:
		return nil
	case server == nil:
		return a.listener.Close()
	}
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("admin server: requests did not end: %w", err), server.Close())
	}
	return nil
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a probe that has gone needs no answer
}
