package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

const (
	// headerBound is generous for a key and a few headers on a slow line.
	headerBound = 5 * time.Second
	// readBound leaves a slow client 250,000 bytes at 70 kbit/s.
	readBound = 30 * time.Second
	// requestBound is the time of one request apart from a wait it asked for. It is longer than what an acceptance
	// may take, so that the use case and not this bound decides what the caller learns.
	requestBound = 20 * time.Second
	// writeBound covers the longest wait, the request itself and sending the answer.
	writeBound = maxWait + requestBound + 10*time.Second
	// idleBound keeps connections of clients that poll once a minute.
	idleBound = 2 * time.Minute
	// maxHeader bounds the memory of a request's headers; a key, a cursor and a trace need 2 KiB.
	maxHeader = 32 << 10
)

// Config holds the settings of the API. The zero value serves requests through Handler and listens nowhere.
type Config struct {
	// Address is where Start listens, host and port. Ignored with a Listener.
	Address string
	// Listener, if set, is served by Start in place of Address, and closed by Stop.
	Listener net.Listener
	// MaxInFlight bounds the requests that are worked on at once, waiting ones left out; further ones are refused
	// with UNAVAILABLE. Default 512: each may hold 250,000 bytes and queue for a database connection.
	MaxInFlight int
	// MaxWaiting bounds the long-polls at once; further ones are answered without waiting. Default 10,000: each
	// holds a goroutine, a subscription and a connection.
	MaxWaiting int
	// RateLimit is how many requests a minute a workspace without a limit of its own may make here; 0 is no limit.
	RateLimit int
	// Shed, if set, is told of each request that was refused to keep the load down: "workspace_rate", "key_rate",
	// "pending" or "in_flight".
	Shed func(why string)
	// Streams holds the bounds of streams of events.
	Streams StreamConfig
	// Dialects are served beside the native routes.
	Dialects []Dialect
	// Mounts are handlers of other protocols.
	Mounts []Mount
	// Guests are served beside the native routes, in shapes of their own.
	Guests []Guest
	// Observe, if set, is told of each answered request: its route pattern ("unmatched" without one), method,
	// status and duration.
	Observe func(route, method string, status int, took time.Duration)
	// Trace, if set, begins the span of a request, given its method and its traceparent, and returns the context of its work.
	Trace func(ctx context.Context, method, traceparent string) (context.Context, Ended)
}

// Ended tells how a request of a route pattern was answered: with which status, the code of a refusal, and the event that
// it made or was about, if any.
type Ended = func(route string, status int, code string, event uuid.UUID)

func (c Config) withDefaults() (Config, error) {
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 512
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 10_000
	}
	if c.MaxInFlight < 1 || c.MaxWaiting < 1 {
		return c, errors.New("httpapi: MaxInFlight and MaxWaiting must be at least 1")
	}
	if c.RateLimit < 0 {
		return c, errors.New("httpapi: RateLimit must not be negative")
	}
	var err error
	c.Streams, err = c.Streams.withDefaults()
	return c, err
}

// Server serves the API.
type Server struct {
	deps       Deps
	config     Config
	operations operations
	document   []byte
	echo       *echo.Echo
	guests     []guest
	inFlight   chan struct{}
	waiting    chan struct{}
	large      chan struct{}
	paces      *paces
	health     healthCache
	following  following

	// draining is closed when the server begins to stop: waits end with it, other requests go on.
	draining chan struct{}
	drain    func()

	mu      sync.Mutex
	server  *http.Server
	address string
	stopped bool
	failed  chan error
}

// New checks deps and config and returns a server that has not started.
func New(deps Deps, config Config) (*Server, error) {
	if err := deps.validate(); err != nil {
		return nil, err
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	doc, err := loadDocument([]byte(document))
	if err != nil {
		return nil, err
	}
	table, err := newOperations(doc)
	if err != nil {
		return nil, err
	}
	s := &Server{
		deps: deps, config: config, operations: table, echo: echo.New(),
		inFlight: make(chan struct{}, config.MaxInFlight), waiting: make(chan struct{}, config.MaxWaiting),
		large: make(chan struct{}, maxLargeBodies), paces: newPaces(config.RateLimit), draining: make(chan struct{}), failed: make(chan error, 1),
	}
	s.following.each = map[uuid.UUID]int{}
	s.drain = sync.OnceFunc(func() { close(s.draining) })
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.refuse
	s.echo.Use(s.guard)
	contract.RegisterHandlers(s.echo, contract.NewStrictHandler(s, nil))
	for _, dialect := range config.Dialects {
		if err := s.mount(doc, dialect); err != nil {
			return nil, err
		}
	}
	for _, m := range config.Mounts {
		if err := s.attach(m); err != nil {
			return nil, err
		}
	}
	for _, g := range config.Guests {
		if err := s.invite(g); err != nil {
			return nil, err
		}
	}
	if s.document, err = doc.MarshalJSON(); err != nil {
		return nil, fmt.Errorf("httpapi: encode document: %w", err)
	}
	return s, nil
}

// Handler serves requests without a listener of its own, for tests and for embedding.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Start listens and returns once connections are taken. A server starts once.
func (s *Server) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil || s.stopped {
		return errors.New("httpapi: a server starts once")
	}
	listener := s.config.Listener
	if listener == nil {
		var err error
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Address); err != nil {
			return fmt.Errorf("httpapi: listen on %s: %w", s.config.Address, err)
		}
	}
	s.address = listener.Addr().String()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerBound, ReadTimeout: readBound, WriteTimeout: writeBound,
		IdleTimeout: idleBound, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(s.deps.Log.With().Str("from", "net/http").Logger(), "", 0),
	}
	s.server = server
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("httpapi: serve: %w", err)
		}
	}()
	return nil
}

// Addr returns the address that Start listens on, with its port; empty before.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// Failed tells of a listener that broke after Start; it is silent for a server that was stopped.
func (s *Server) Failed() <-chan error { return s.failed }

// Stop takes no new connections, ends the waits, and returns when all requests are answered; what still runs
// when ctx ends is cut off, and the error says so. It may be called again, or before Start.
func (s *Server) Stop(ctx context.Context) error {
	s.drain()
	s.mu.Lock()
	server, again := s.server, s.stopped
	s.stopped = true
	s.mu.Unlock()
	if again || server == nil {
		return nil
	}
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("httpapi: requests did not end: %w", err), server.Close())
	}
	return nil
}
