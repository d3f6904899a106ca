package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func echoed(_ context.Context, call GuestCall) (GuestAnswer, error) {
	return GuestAnswer{Body: map[string]any{"id": call.Param("id"), "query": call.Query, "body": string(call.Body)}}, nil
}

// invited serves a guest with routes of every form.
func invited(c *Config) {
	c.Guests = []Guest{{Scheme: "Guest", Refuse: func(p contract.Problem) any { return map[string]any{"guest": p.Code} }, Routes: []GuestRoute{
		{Method: "GET", Path: "/v1/memories/{id}", Permission: access.MemoryRead, Handler: echoed},
		{Method: "POST", Path: "/own/{id}", Permission: access.MemoryWrite, Body: true, Handler: echoed},
		{Method: "GET", Path: "/own/plain", Handler: func(context.Context, GuestCall) (GuestAnswer, error) {
			return GuestAnswer{Status: http.StatusAccepted, Body: "plain"}, nil
		}},
		{Method: "GET", Path: "/own/rest/{id...}", Handler: echoed},
		{Method: "GET", Path: "/own/panic", Handler: func(context.Context, GuestCall) (GuestAnswer, error) { panic(canary) }},
		{Method: "GET", Path: "/own/wait", Waits: true, Handler: func(ctx context.Context, call GuestCall) (GuestAnswer, error) {
			id, err := uuid.Parse(call.Query.Get("event"))
			if err != nil {
				return GuestAnswer{}, err
			}
			event, err := call.Wait(ctx, id, time.Hour)
			return GuestAnswer{Body: string(event.Status)}, err
		}},
	}}}
}

func (w *world) guest(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "gUEST "+w.keys["all"].Reveal())
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(answer, r)
	return answer
}

func TestGuest(t *testing.T) {
	t.Parallel()
	t.Run("RoutesByMostPlainSegments", func(t *testing.T) {
		t.Parallel()
		w := setup(t, invited)
		for path, want := range map[string]string{
			"/own/plain": `"plain"`, "/own/rest/a/b%2Fc": `"id":"a/b/c"`, "/v1/memories/x%20y": `"id":"x y"`, "//own//rest/x+y/": `"id":"x+y"`,
		} {
			if a := w.guest("GET", path, ""); a.Code >= 300 || !strings.Contains(a.Body.String(), want) {
				t.Errorf("%s: %d %s", path, a.Code, a.Body)
			}
		}
		for _, path := range []string{"/own/rest//x", "/own/rest/x//", "/own/rest/x//y", "/own/rest/x//y/"} { // another name than x or x/y
			if a := w.guest("GET", path, ""); a.Code != 400 {
				t.Errorf("%s: %d %s", path, a.Code, a.Body)
			}
		}
		for _, path := range []string{"/own", "/own/rest", "/own/rest/", "/own/../own/plain", "/v1/memories/a/b", "/v1/health"} {
			if a := w.guest("GET", path, ""); a.Code != 404 || strings.TrimSpace(a.Body.String()) != `{"guest":"ROUTE_NOT_FOUND"}` {
				t.Errorf("%s: %d %s", path, a.Code, a.Body)
			}
		}
	})
	t.Run("ReadsStrictly", func(t *testing.T) {
		t.Parallel()
		w := setup(t, invited)
		for body, want := range map[string]int{"": 200, `{"a":1}`: 200, `{"a":1,"a":2}`: 400, `{"a":"\u0000"}`: 400, strings.Repeat(" ", 250_001): 413} {
			if a := w.guest("POST", "/own/x", body); a.Code != want {
				t.Errorf("%.20s: %d %s", body, a.Code, a.Body)
			}
		}
		for _, path := range []string{"/own/%ff", "/own/%00", "/own/x?a=%ff", "/own/x?a=%00", "/own/x?%zz"} {
			if a := w.guest("POST", path, ""); a.Code != 400 {
				t.Errorf("%s: %d %s", path, a.Code, a.Body)
			}
		}
		if a := w.guest("POST", "/own/x", `{}`, "Content-Type", "text/plain"); a.Code != 415 {
			t.Errorf("text: %d", a.Code)
		}
		if a := w.guest("POST", "/own/x", `{}`, "Idempotency-Key", "a b"); a.Code != 400 {
			t.Errorf("key: %d", a.Code)
		}
	})
	t.Run("PanicIsRefusedInItsForm", func(t *testing.T) {
		t.Parallel()
		w := setup(t, invited)
		if a := w.guest("GET", "/own/panic", ""); a.Code != 500 || strings.TrimSpace(a.Body.String()) != `{"guest":"INTERNAL"}` {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	})
	t.Run("ChecksKeyAndPermission", func(t *testing.T) {
		t.Parallel()
		w := setup(t, invited)
		w.addCaller(t, "reader", uuid.New(), access.MemoryRead)
		reader := "Guest " + w.keys["reader"].Reveal()
		if a := w.guest("POST", "/own/x", "", "Authorization", reader); a.Code != 403 {
			t.Errorf("reader: %d %s", a.Code, a.Body)
		}
		if a := w.guest("GET", "/own/plain", "", "Authorization", reader); a.Code != 202 {
			t.Errorf("any key: %d %s", a.Code, a.Body)
		}
		if a := w.guest("GET", "/own/plain", "", "Authorization", "Guest x"); a.Code != 401 {
			t.Errorf("no key: %d %s", a.Code, a.Body)
		}
	})
	t.Run("WaitHoldsNoPlace", func(t *testing.T) {
		t.Parallel()
		w := setup(t, invited, func(c *Config) { c.MaxInFlight = 1 })
		event := eventIn(task.EventPending)
		w.events[event.ID], w.owners[event.ID] = event, w.workspace("all")
		answered := make(chan *httptest.ResponseRecorder)
		go func() { answered <- w.guest("GET", "/own/wait?event="+event.ID.String(), "") }()
		<-w.waiting
		if a := w.guest("GET", "/own/plain", ""); a.Code != 202 {
			t.Errorf("beside a wait: %d %s", a.Code, a.Body)
		}
		w.server.drain()
		if a := <-answered; a.Code != 200 || !strings.Contains(a.Body.String(), "PENDING") {
			t.Errorf("the wait: %d %s", a.Code, a.Body)
		}
	})
	t.Run("FullHouseIsRefusedInItsForm", func(t *testing.T) {
		t.Parallel()
		w := setup(t, invited, func(c *Config) { c.MaxInFlight = 1 })
		w.server.inFlight <- struct{}{}
		if a := w.guest("GET", "/own/plain", ""); a.Code != 503 || strings.TrimSpace(a.Body.String()) != `{"guest":"UNAVAILABLE"}` || a.Header().Get("Retry-After") == "" {
			t.Errorf("%d %s", a.Code, a.Body)
		}
	})
	t.Run("MustBeWhole", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		whole := Config{}
		invited(&whole)
		for name, change := range map[string]func(*Guest){
			"scheme": func(g *Guest) { g.Scheme = "" }, "form": func(g *Guest) { g.Refuse = nil }, "handler": func(g *Guest) { g.Routes[0].Handler = nil },
			"permission": func(g *Guest) { g.Routes[0].Permission = "fly" }, "twice": func(g *Guest) { g.Routes = append(g.Routes, g.Routes[0]) },
		} {
			broken := whole.Guests[0]
			broken.Routes = slices.Clone(broken.Routes)
			change(&broken)
			if _, err := New(w.server.deps, Config{Guests: []Guest{broken}}); err == nil {
				t.Errorf("%s: taken", name)
			}
		}
	})
}
