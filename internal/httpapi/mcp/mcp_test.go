package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/mcp"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// world is what the tools talk to in these tests: use cases that fail and wait as no real one does on demand. What the
// tools do with real ones is tested end to end.
type world struct {
	key    access.Key
	log    bytes.Buffer
	logged sync.Mutex

	search func(ctx context.Context) ([]memory.Record, error)
	accept func() (write.Receipt, error)
	wait   func(ctx context.Context) (recall.Event, error)
}

func (w *world) Authenticate(context.Context, access.Key) (access.Caller, error) {
	return access.Caller{
		Permissions: access.Permissions(), Workspace: access.Workspace{ID: uuid.New(), FingerprintKey: make([]byte, 32)},
	}, nil
}

func (w *world) Search(ctx context.Context, _ uuid.UUID, _ recall.SearchQuery) ([]memory.Record, error) {
	return w.search(ctx)
}

func (w *world) Accept(context.Context, access.Caller, command.Key, command.Add) (write.Receipt, error) {
	return w.accept()
}

// events waits as the world says.
type events struct {
	httpapi.Events
	w *world
}

func (e events) Get(context.Context, uuid.UUID, uuid.UUID) (recall.Event, error) {
	return recall.Event{}, errors.New("nobody asks")
}

func (e events) Wait(ctx context.Context, _, _ uuid.UUID, _ time.Duration, _ func(recall.Event) bool) (recall.Event, error) {
	return e.w.wait(ctx)
}

// Write keeps the log.
func (w *world) Write(p []byte) (int, error) {
	w.logged.Lock()
	defer w.logged.Unlock()
	return w.log.Write(p)
}

func (w *world) logText() string {
	w.logged.Lock()
	defer w.logged.Unlock()
	return w.log.String()
}

// setup serves the tools over HTTP.
func setup(t *testing.T) (*world, *httpapi.Server, string) {
	t.Helper()
	key, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{key: key, search: func(context.Context) ([]memory.Record, error) { return nil, nil }}
	mount, err := mcp.New(mcp.Deps{
		Accepter: w, Searcher: w, Events: events{w: w}, Changer: struct{ httpapi.Changer }{}, Memories: struct{ httpapi.Memories }{},
	}, mcp.Config{Version: "test", Origins: []string{"https://console.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(w.deps(), httpapi.Config{Mounts: []httpapi.Mount{mount}, MaxInFlight: 2})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	return w, server, listening.URL + "/mcp"
}

// ask sends one message and returns the answer's body.
func (w *world) ask(ctx context.Context, address, message string, headers ...string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(message))
	if err != nil {
		return "", err
	}
	r.Header = http.Header{
		"Authorization": {"Bearer " + w.key.Reveal()}, "X-Holdfast-User-Id": {"u"}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"},
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if session := response.Header.Get("Mcp-Session-Id"); session != "" {
		return "", errors.New("a session begins")
	}
	return string(body), err
}

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	find  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_memory","arguments":{"query":"canary-question"}}}`
	keep  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_memory","arguments":{"text":"canary-text","wait":25}}}`
)

func TestTools(t *testing.T) {
	t.Parallel()
	t.Run("PanicEndsOneCallAndNothingElse", func(t *testing.T) {
		t.Parallel()
		w, _, address := setup(t)
		w.search = func(context.Context) ([]memory.Record, error) { panic("canary-panic") }
		said, err := w.ask(t.Context(), address, find)
		if err != nil || !strings.Contains(said, `\"code\":\"INTERNAL\"`) || strings.Contains(said, "canary") {
			t.Fatalf("%s %v", said, err)
		}
		if log := w.logText(); strings.Contains(log, "canary") || !strings.Contains(log, `"tool panicked"`) {
			t.Fatalf("log %s", log)
		}
	})
	t.Run("FailureIsLoggedWithoutItsTextAndKeepsTheKey", func(t *testing.T) {
		t.Parallel()
		w, _, address := setup(t)
		w.accept = func() (write.Receipt, error) { return write.Receipt{}, errors.New("canary-row") }
		said, err := w.ask(t.Context(), address, keep)
		if err != nil || !strings.Contains(said, `\"code\":\"INTERNAL\"`) || !strings.Contains(said, `\"idempotency_key\":\"`) {
			t.Fatalf("%s %v", said, err)
		}
		if log := w.logText(); strings.Contains(log+said, "canary-row") || !strings.Contains(log, `"message":"request failed"`) {
			t.Fatalf("log %s", log)
		}
	})
	t.Run("CallEndsWhenItsClientLeaves", func(t *testing.T) {
		t.Parallel()
		w, _, address := setup(t)
		begun, ended := make(chan struct{}), make(chan error, 1)
		w.search = func(ctx context.Context) ([]memory.Record, error) {
			close(begun)
			select {
			case <-ctx.Done():
				ended <- nil
			case <-time.After(patience):
				ended <- errors.New("the call goes on")
			}
			return nil, ctx.Err()
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = w.ask(ctx, address, find) }()
		<-begun
		leave()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	})
	t.Run("OriginFromTheSettingsIsLetIn", func(t *testing.T) {
		t.Parallel()
		w, _, address := setup(t)
		for origin, want := range map[string]string{
			"https://console.example.com": `"memories\":[]`, "https://other.example.com": "INSUFFICIENT_PERMISSION",
			"http://console.example.com": "INSUFFICIENT_PERMISSION",
		} {
			if said, err := w.ask(t.Context(), address, find, "Origin", origin); err != nil || !strings.Contains(said, want) {
				t.Fatalf("%s: %s %v", origin, said, err)
			}
		}
		if _, err := mcp.New(mcp.Deps{
			Accepter: w, Searcher: w, Events: events{w: w}, Changer: struct{ httpapi.Changer }{}, Memories: struct{ httpapi.Memories }{},
		}, mcp.Config{Origins: []string{"https://console.example.com/"}}); err == nil {
			t.Fatal("an origin with a path is taken")
		}
	})
}

func TestWait(t *testing.T) {
	t.Parallel()
	// held begins waits that end with their context alone.
	held := func(w *world, begun chan<- struct{}) {
		w.accept = func() (write.Receipt, error) {
			return write.Receipt{EventID: uuid.New(), Status: task.EventPending}, nil
		}
		w.wait = func(ctx context.Context) (recall.Event, error) {
			begun <- struct{}{}
			<-ctx.Done()
			return recall.Event{Status: task.EventRunning}, nil
		}
	}
	t.Run("HoldsNoPlaceAmongTheWorkingOnes", func(t *testing.T) {
		t.Parallel()
		w, _, address := setup(t) // has two places
		begun := make(chan struct{})
		held(w, begun)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() { _, _ = w.ask(ctx, address, keep) })
			select {
			case <-begun:
			case <-time.After(patience):
				t.Fatal("a wait doesn't begin")
			}
		}
		if said, err := w.ask(t.Context(), address, find); err != nil || !strings.Contains(said, `memories`) {
			t.Errorf("%s %v", said, err)
		}
		leave()
		waiting.Wait()
	})
	t.Run("EndsWithTheServer", func(t *testing.T) {
		t.Parallel()
		w, server, address := setup(t)
		begun := make(chan struct{}, 1)
		held(w, begun)
		go func() {
			<-begun
			_ = server.Stop(context.Background())
		}()
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		defer cancel()
		if said, err := w.ask(ctx, address, keep); err != nil || !strings.Contains(said, `\"status\":\"RUNNING\"`) {
			t.Fatalf("%s %v", said, err)
		}
	})
	t.Run("ThatFailsLeavesTheReceipt", func(t *testing.T) {
		t.Parallel()
		w, _, address := setup(t)
		held(w, nil)
		w.wait = func(context.Context) (recall.Event, error) { return recall.Event{}, errors.New("down") }
		said, err := w.ask(t.Context(), address, keep)
		if err != nil || !strings.Contains(said, `\"status\":\"PENDING\"`) || strings.Contains(said, `"isError":true`) {
			t.Fatalf("%s %v", said, err)
		}
	})
}

// TestConnections leaves hundreds of connections without a word. It isn't parallel: it counts goroutines.
func TestConnections(t *testing.T) { //nolint:paralleltest // counts the goroutines of the whole process
	w, _, address := setup(t)
	ask := func() {
		for _, message := range []string{hello, find} {
			if said, err := w.ask(t.Context(), address, message); err != nil || !strings.Contains(said, `"result"`) {
				t.Fatalf("%s %v", said, err)
			}
		}
	}
	ask()
	before := runtime.NumGoroutine() // those of the connection in use are among them
	for range 300 {
		ask()
	}
	http.DefaultClient.CloseIdleConnections()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for bound := time.After(20 * time.Second); runtime.NumGoroutine() > before+10; {
		select {
		case <-look.C:
		case <-bound:
			t.Fatalf("%d goroutines before 300 connections and %d after", before, runtime.NumGoroutine())
		}
	}
}

// deps are those of a server whose native routes nobody calls here.
func (w *world) deps() httpapi.Deps {
	return httpapi.Deps{
		Authenticator: w, Searcher: w, Log: zerolog.New(w), Accepter: w, Writer: struct{ httpapi.Writer }{},
		Changer: struct{ httpapi.Changer }{}, Batcher: struct{ httpapi.Batcher }{}, Eraser: struct{ httpapi.Eraser }{},
		Retrier: struct{ httpapi.Retrier }{}, Canceller: struct{ httpapi.Canceller }{}, Events: events{w: w},
		ItemEvents: struct{ httpapi.ItemEvents }{}, Memories: struct{ httpapi.Memories }{}, Entities: struct{ httpapi.Entities }{},
		Mover: struct{ httpapi.Mover }{}, Exports: struct{ httpapi.Exports }{}, Credits: struct{ httpapi.Credits }{},
		Health:   struct{ httpapi.Health }{},
		Webhooks: struct{ httpapi.Webhooks }{}, WebhookReader: struct{ httpapi.WebhookReader }{}, Replayer: struct{ httpapi.Replayer }{},
		Streams: struct{ httpapi.Streams }{}, Policies: struct{ httpapi.Policies }{}, Feedbacks: struct{ httpapi.Feedbacks }{},
	}
}
