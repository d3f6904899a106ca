package holdfast_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	holdfast "github.com/holdfast-memory/holdfast/clients/go"
)

const apiKey = "hfk_canary-of-the-client-tests"

// script is a server whose answers are laid down; the last one is repeated.
type script struct {
	t      *testing.T
	url    string
	server *httptest.Server

	mu      sync.Mutex
	seen    []seen
	answers []http.HandlerFunc
}

// seen is a request that the server got.
type seen struct {
	method, target, key, body string
	header                    http.Header
}

func newScript(t *testing.T, answers ...http.HandlerFunc) *script {
	t.Helper()
	s := &script{t: t, answers: answers}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.url = s.server.URL
	t.Cleanup(s.server.Close)
	return s
}

func (s *script) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a request that breaks off is seen all the same
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, seen{r.Method, r.URL.RequestURI(), r.Header.Get("Idempotency-Key"), string(body), r.Header.Clone()})
	answer := s.answers[min(n, len(s.answers)-1)]
	s.mu.Unlock()
	answer(w, r)
}

func (s *script) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// client returns a client that doesn't sleep, and its clock.
func (s *script) client(opts ...holdfast.Option) (*holdfast.Client, *clock) {
	s.t.Helper()
	c := &clock{}
	client, err := holdfast.New(s.url, apiKey, append([]holdfast.Option{holdfast.WithClock(c.now, c.sleep)}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return client, c
}

// clock goes on when somebody sleeps by it, and at once.
type clock struct {
	mu     sync.Mutex
	ahead  time.Duration
	pauses []time.Duration
	during func() // what happens in a pause
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.ahead += d
	c.pauses = append(c.pauses, d)
	during := c.during
	c.mu.Unlock()
	if during != nil {
		during()
	}
	return ctx.Err()
}

func (c *clock) slept() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.pauses)
}

func replies(status int, contentType, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // who has left needs no answer
	}
}

func problem(status int, code string, retryable bool, header ...string) http.HandlerFunc {
	return replies(status, "application/problem+json", fmt.Sprintf(
		`{"type":"t","title":"t","status":%d,"detail":"d","code":%q,"message":"m","request_id":"req-7","retryable":%t}`,
		status, code, retryable), header...)
}

func accepted(header ...string) http.HandlerFunc {
	return replies(202, "application/json", `{"message":"Accepted.","status":"PENDING","event_id":"evt_1"}`, header...)
}

func eventIs(status string, header ...string) http.HandlerFunc {
	failure := "null"
	if status == "FAILED" {
		failure = `{"code":"PROVIDER_TIMEOUT","class":"provider_timeout","message":"m","retryable":true,"action":"a"}`
	}
	return replies(200, "application/json", `{"id":"evt_1","status":"`+status+`","generation":1,"results":[],"error":`+failure+`}`, header...)
}

// reset ends the connection with a reset, before any of the answer.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes Close a reset
	}
	_ = conn.Close()
}

// halves sends the head of an answer and a part of its body.
func halves(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)+10))
		w.WriteHeader(202)
		_, _ = io.WriteString(w, body)
		panic(http.ErrAbortHandler)
	}
}

// hangs answers nothing until the client has gone.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var tea = holdfast.AddRequest{Scope: holdfast.User("ada"), Content: "I like <tea> & milk."}
