package stubmodel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model/offline"
)

// Bounds of the server.
const (
	maxBody  = 8 << 20 // a conversation is 250 kB at most, a batch of texts to embed a few MB
	maxCalls = 50_000  // calls remembered; a load test stays below, and older ones go first
)

// Server is a running stub. All methods are safe for concurrent use.
type Server struct {
	url      string
	http     *http.Server
	embedder *offline.Embedder
	ended    chan struct{} // closed by Close, which ends every hold
	served   chan struct{} // closed when the listener has stopped
	close    sync.Once

	mu      sync.Mutex
	calls   []Call
	dropped int           // calls that are no longer remembered
	changed chan struct{} // closed and replaced with every call
	queue   []rule
	always  []rule
	holds   []*Hold
}

// Start listens on addr, which must be a loopback address; an empty one means a free port of 127.0.0.1.
func Start(addr string) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("stub model: address: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, errors.New("stub model: it listens on loopback only, such as 127.0.0.1:0")
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("stub model: listen: %w", err)
	}
	s := &Server{
		url:      "http://" + listener.Addr().String(),
		embedder: offline.NewEmbedder(),
		ended:    make(chan struct{}),
		served:   make(chan struct{}),
		changed:  make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve(Chat))
	mux.HandleFunc("POST /v1/messages", s.serve(Messages))
	mux.HandleFunc("POST /v1/embeddings", s.serve(Embeddings))
	mux.HandleFunc("GET /v1/models", s.serve(Models))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second} // a client on loopback is faster
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // Close makes it return; nothing else can
	}()
	return s, nil
}

// URL is the server's address without a path, the base URL of the anthropic adapter.
func (s *Server) URL() string { return s.url }

// OpenAIURL is the base URL of the openai adapter.
func (s *Server) OpenAIURL() string { return s.url + "/v1" }

// Close ends every hold, cuts every connection and frees the port. It may be called twice.
func (s *Server) Close() error {
	var err error
	s.close.Do(func() {
		close(s.ended)
		err = s.http.Close()
		<-s.served
	})
	return err
}

func (s *Server) serve(endpoint Endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
		if err != nil {
			return // the client has gone
		}
		call := newCall(endpoint, r.Header, body)
		behavior, holds := s.record(&call)
		for _, hold := range holds {
			if !hold.wait(r.Context(), s.ended) {
				panic(http.ErrAbortHandler)
			}
		}
		answer := Answer{}
		if behavior != nil {
			answer = behavior(call)
		}
		s.reply(r.Context(), w, call, answer)
	}
}

// record remembers the call and takes what the script has for it.
func (s *Server) record(call *Call) (Behavior, []*Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Number = s.dropped + len(s.calls) + 1
	s.calls = append(s.calls, *call)
	if len(s.calls) > maxCalls {
		s.calls = s.calls[1:]
		s.dropped++
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return s.take(*call), s.holding(*call)
}

// Calls returns the calls that match, oldest first.
func (s *Server) Calls(match Match) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Call
	for _, call := range s.calls {
		if match.fits(call) {
			found = append(found, call)
		}
	}
	return found
}

// Count returns how many calls match.
func (s *Server) Count(match Match) int { return len(s.Calls(match)) }

// Times returns when the calls that match arrived, oldest first.
func (s *Server) Times(match Match) []time.Time {
	var times []time.Time
	for _, call := range s.Calls(match) {
		times = append(times, call.At)
	}
	return times
}

// Await returns once n calls match, or when ctx ends.
func (s *Server) Await(ctx context.Context, match Match, n int) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		got := s.Count(match)
		if got >= n {
			return nil
		}
		select {
		case <-changed:
		case <-s.ended:
			return errors.New("stub model: closed")
		case <-ctx.Done():
			return fmt.Errorf("stub model: %d of %d calls: %w", got, n, ctx.Err())
		}
	}
}
