package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestServer(t *testing.T) {
	t.Parallel()
	listen := func(c *Config) { c.Address = "127.0.0.1:0" }
	get := func(t *testing.T, url string) (*http.Response, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, body
	}
	t.Run("ServesFromStartToStop", func(t *testing.T) {
		t.Parallel()
		w := setup(t, listen)
		if err := w.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		response, body := get(t, "http://"+w.server.Addr()+"/v1/openapi.json")
		if response.StatusCode != 200 || response.Header.Get("Content-Type") != jsonType {
			t.Fatalf("got %d %v", response.StatusCode, response.Header)
		}
		doc, err := openapi3.NewLoader().LoadFromData(body)
		if err != nil || doc.Validate(t.Context()) != nil || doc.OpenAPI != "3.0.3" || !json.Valid(body) {
			t.Fatalf("the document doesn't load: %v", err)
		}
		if err := w.server.Start(t.Context()); err == nil {
			t.Fatal("started twice")
		}
		if err := w.server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Stop(t.Context()); err != nil {
			t.Fatalf("the second stop: %v", err)
		}
		select {
		case err := <-w.server.Failed():
			t.Fatalf("a stop isn't a failure: %v", err)
		default:
		}
	})
	t.Run("StopsBeforeItStarts", func(t *testing.T) {
		t.Parallel()
		w := setup(t, listen)
		if err := w.server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Start(t.Context()); err == nil {
			t.Fatal("a stopped server started")
		}
	})
	t.Run("StopAnswersTheWaiting", func(t *testing.T) {
		t.Parallel()
		w := setup(t, listen)
		if err := w.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		event := w.put("all", eventIn(task.EventPending))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.server.Addr()+path(event.ID)+"?wait=60", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+w.keys["all"].Reveal())
		status := make(chan int, 1)
		go func() {
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				status <- 0
				return
			}
			defer response.Body.Close()
			status <- response.StatusCode
		}()
		<-w.waiting
		if err := w.server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-status; got != 200 {
			t.Fatalf("the waiting request got %d", got)
		}
	})
	t.Run("SaysWhichStopWasTooLong", func(t *testing.T) {
		t.Parallel()
		w := setup(t, listen)
		blocked, begun := make(chan struct{}), make(chan struct{})
		w.server.deps.Searcher = blocks{begun: begun, until: blocked}
		if err := w.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.server.Addr()+"/v1/memories/search",
			strings.NewReader(`{"query":"q","user_id":"u"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+w.keys["all"].Reveal())
		request.Header.Set("Content-Type", jsonType)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if response, err := http.DefaultClient.Do(request); err == nil {
				response.Body.Close()
			}
		}()
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.server.Stop(ctx); err == nil {
			t.Fatal("a request was cut off in silence")
		}
		close(blocked)
		<-ended
	})
	t.Run("NeedsEveryUseCase", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		deps := w.server.deps
		deps.Searcher = nil
		if _, err := New(deps, Config{}); err == nil || !strings.Contains(err.Error(), "searcher") {
			t.Fatalf("got %v", err)
		}
		if _, err := New(w.server.deps, Config{MaxWaiting: -1}); err == nil {
			t.Fatal("a bound below 1 was taken")
		}
	})
	t.Run("TellsTheObserverTheRouteNotThePath", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "GET", "/v1/events/"+canary, "")
		if got := <-w.seen; got != (observed{"/v1/events/:id", "GET", 404}) {
			t.Fatalf("got %+v", got)
		}
	})
}

// TestAnswersOfTheHTTPServer holds what docs/errors.md says of requests that never reach the API.
func TestAnswersOfTheHTTPServer(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *Config) { c.Address = "127.0.0.1:0" })
	if err := w.server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.server.Stop(context.WithoutCancel(t.Context())) })
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"ControlCharacter": {"GET /v1/health HTTP/1.1\r\nHost: x\r\nX-Note: a\x01b\r\n\r\n", 400},
		"NoHost":           {"GET /v1/health HTTP/1.1\r\n\r\n", 400},
		"HugeAddress":      {"GET /v1/health?" + strings.Repeat("a", maxHeader+8<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"OtherExpectation": {"POST /v1/memories HTTP/1.1\r\nHost: x\r\nExpect: a-miracle\r\nContent-Length: 2\r\n\r\n{}", 417},
		"OtherEncoding":    {"POST /v1/memories HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
		"OtherVersion":     {"GET /v1/health HTTP/3.7\r\nHost: x\r\n\r\n", 505},
		"LargestAddress":   {"GET /v1/health?" + strings.Repeat("a", maxHeader-1<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 400}, // the API's own
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.server.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			own := name == "LargestAddress"
			if response.StatusCode != c.status || (response.Header.Get("X-Request-Id") != "") != own || (response.Header.Get("Content-Type") == problemType) != own {
				t.Fatalf("got %d %v", response.StatusCode, response.Header)
			}
		})
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	w := setup(t)
	t.Run("EveryOperationIsServed", func(t *testing.T) {
		t.Parallel()
		served := map[string]bool{}
		for _, route := range w.server.echo.Routes() {
			served[route.Method+" "+route.Path] = true
		}
		for key := range w.server.operations {
			if !served[key] {
				t.Errorf("%s is in the document only", key)
			}
			delete(served, key)
		}
		for key := range served {
			t.Errorf("%s is not in the document", key)
		}
	})
	t.Run("KnowsEveryTypeAndStatus", func(t *testing.T) {
		t.Parallel()
		schemas := w.server.operations["GET /v1/events"].route.Spec.Components.Schemas
		for _, kind := range []task.Kind{task.Infer, task.Add} {
			if err := schemas["EventType"].Value.VisitJSON(string(kind)); err != nil {
				t.Error(err)
			}
		}
		for _, status := range []task.EventStatus{task.EventPending, task.EventRunning, task.EventRetrying, task.EventSucceeded, task.EventFailed} {
			if err := schemas["EventStatus"].Value.VisitJSON(string(status)); err != nil {
				t.Error(err)
			}
		}
	})
	var _ contract.StrictServerInterface = w.server
}
