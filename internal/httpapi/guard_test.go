package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// The use cases fit what the adapter asks for.
var (
	_ Accepter  = (*write.Accepter)(nil)
	_ Writer    = (*write.Writer)(nil)
	_ Changer   = (*write.Changer)(nil)
	_ Eraser    = (*write.Eraser)(nil)
	_ Batcher   = (*write.Batcher)(nil)
	_ Mover     = (*write.Mover)(nil)
	_ Exports   = (*recall.Exports)(nil)
	_ Entities  = (*recall.Entities)(nil)
	_ Retrier   = (*write.Retrier)(nil)
	_ Canceller = (*write.Canceller)(nil)
	_ Events    = (*recall.Events)(nil)
	_ Memories  = (*recall.Memories)(nil)
	_ Credits   = (*recall.Credits)(nil)
	_ Health    = (*recall.Health)(nil)
	_ Searcher  = (*recall.Searcher)(nil)
)

// target fills a route's path.
func target(op *operation) string {
	return strings.NewReplacer("{id}", uuid.NewString(), "{type}", "user").Replace(op.route.Path)
}

func TestGuard(t *testing.T) {
	t.Parallel()
	t.Run("EveryRouteButHealthAndDocumentNeedsItsPermission", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		workspace := uuid.New()
		public := 0
		for _, op := range w.server.operations {
			if op.public {
				public++
				continue
			}
			rest := slices.DeleteFunc(access.Permissions(), func(p access.Permission) bool { return p == op.permission })
			w.addCaller(t, "without", workspace, rest...)
			w.addCaller(t, "with", workspace, op.permission)
			w.do(t, "", op.route.Method, target(op), "").want(t, 401, fault.InvalidAPIKey)
			w.do(t, "without", op.route.Method, target(op), "").want(t, 403, fault.InsufficientPermission)
			method := op.route.Method
			if op.follows { // its answer would not end
				method = http.MethodHead
			}
			if allowed := w.do(t, "with", method, target(op), ""); allowed.Code == 401 || allowed.Code == 403 {
				t.Errorf("%s: refused with its permission: %s", op.id, allowed.Body)
			}
		}
		if public != 2 {
			t.Errorf("%d routes need no key, want health and document", public)
		}
	})

	t.Run("PermissionsAreTheOnesOfTheContract", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for route, permission := range map[string]access.Permission{
			"POST /v1/memories": access.MemoryWrite, "GET /v1/memories": access.MemoryRead,
			"GET /v1/memories/:id": access.MemoryRead, "POST /v1/memories/search": access.MemoryRead,
			"GET /v1/events": access.OperationsRead, "GET /v1/events/:id": access.OperationsRead,
			"POST /v1/events/:id/retry": access.OperationsRetry, "POST /v1/events/:id/cancel": access.OperationsRetry,
			"GET /v1/operations": access.OperationsRead, "GET /v1/operations/:id": access.OperationsRead,
			"POST /v1/operations/:id/retry": access.OperationsRetry, "GET /v1/credits": access.CreditsRead,
			"GET /v1/credits/entries": access.CreditsRead, "PUT /v1/memories/:id": access.MemoryWrite,
			"DELETE /v1/memories/:id": access.MemoryWrite, "PUT /v1/memories/batch": access.MemoryWrite,
			"DELETE /v1/memories/batch": access.MemoryWrite, "GET /v1/memories/:id/history": access.MemoryRead,
			"GET /v1/entities": access.MemoryRead, "GET /v1/entities/:type/:id": access.MemoryRead,
			"POST /v1/exports": access.Admin, "GET /v1/exports/:id": access.Admin, "POST /v1/imports": access.Admin,
			"DELETE /v1/memories": access.Admin, "DELETE /v1/entities/:type/:id": access.Admin,
		} {
			if op := w.server.operations[route]; op == nil || op.permission != permission {
				t.Errorf("%s doesn't ask for %s", route, permission)
			}
		}
	})

	t.Run("RefusesEveryOtherAuthorization", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		good := w.keys["all"].Reveal()
		unknown, err := access.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		for name, lines := range map[string][]string{
			"Absent": nil, "Empty": {""}, "SchemeOnly": {"Bearer"}, "KeyOnly": {good}, "Basic": {"Basic " + good},
			"Token": {"Token " + good}, "Cut": {"Bearer " + good[:len(good)-1]}, "Longer": {"Bearer " + good + "a"},
			"Unknown": {"Bearer " + unknown.Reveal()}, "TwoLines": {"Bearer " + good, "Bearer " + good},
			"NotAKey": {"Bearer " + canary},
		} {
			refused := w.do(t, "", "GET", "/v1/credits", "", header("Authorization", lines...))
			if refused.want(t, 401, fault.InvalidAPIKey); refused.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("%s: no WWW-Authenticate", name)
			}
		}
		w.do(t, "", "GET", "/v1/credits", "", header("Authorization", "bearer "+good)).want(t, 200, "")
	})

	t.Run("AStrangerDoesNotReachTheParser", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "", "POST", "/v1/memories", "{").want(t, 401, fault.InvalidAPIKey)
	})

	t.Run("OtherRoutesAndMethodsAreProblemsToo", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, path := range []string{"/", "/v1", "/v2/memories", "/v1/events/x/y", "/v1/memories/a/b/c"} {
			w.do(t, "all", "GET", path, "").want(t, 404, fault.RouteNotFound)
		}
		refused := w.do(t, "all", "PATCH", "/v1/memories", "{}")
		refused.want(t, 405, fault.MethodNotAllowed)
		if allow := refused.Header().Get("Allow"); !strings.Contains(allow, "POST") || !strings.Contains(allow, "HEAD") {
			t.Errorf("Allow is %q", allow)
		}
		refused = w.do(t, "all", "HEAD", "/v1/events/"+uuid.NewString()+"/cancel", "")
		if allow := refused.Header().Get("Allow"); refused.Code != 405 || strings.Contains(allow, "HEAD") || refused.Body.Len() != 0 {
			t.Errorf("HEAD of a POST route: %d, Allow is %q", refused.Code, allow)
		}
	})

	t.Run("SlashesAtTheEndAndDoubledOnesMeanNothing", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		for _, path := range []string{"/v1/events/", "//v1//events", "/v1/events//" + event.ID.String(), "/v1/events/" + event.ID.String() + "//", "/v1/entities/user/a%2Fb/", "/v1//entities/user/a%2F%2Fb"} {
			if answer := w.do(t, "all", "GET", path, ""); answer.Code == 405 || answer.problem.Code == fault.RouteNotFound {
				t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
			}
		}
		w.do(t, "all", "POST", "/v1/memories/search/", `{"query":"q","user_id":"u"}`).want(t, 200, "")
		w.do(t, "all", "DELETE", "/v1/memories//", "").want(t, 400, fault.ScopeRequired)
	})

	t.Run("HEADAnswersAsGETDoesWithoutTheBody", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := w.put("all", eventIn(task.EventPending))
		for _, path := range []string{"/v1/credits", "/v1/events/" + event.ID.String(), "/v1/events/" + uuid.NewString()} {
			got := w.do(t, "all", "GET", path, "", header("X-Request-Id", "same"))
			head := w.do(t, "all", "HEAD", path, "", header("X-Request-Id", "same"))
			if head.Code != got.Code || head.Body.Len() != 0 {
				t.Errorf("%s: GET %d, HEAD %d with %d bytes", path, got.Code, head.Code, head.Body.Len())
			}
			if !maps.EqualFunc(head.Header(), got.Header(), slices.Equal) {
				t.Errorf("%s: headers %v, of GET %v", path, head.Header(), got.Header())
			}
		}
		<-w.seen
		if seen := <-w.seen; seen.method != "HEAD" || seen.route != "/v1/credits" {
			t.Errorf("observed %+v", seen)
		}
	})

	t.Run("TooManyAtOnceAreRefusedWithNothingKept", func(t *testing.T) {
		t.Parallel()
		w := setup(t, func(c *Config) { c.MaxInFlight = 1 })
		w.server.inFlight <- struct{}{}
		refused := w.do(t, "all", "GET", "/v1/credits", "")
		if refused.want(t, 503, fault.UnavailableNow); refused.Header().Get("Retry-After") != "1" {
			t.Error("no Retry-After")
		}
		<-w.server.inFlight
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 200, "")
	})
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for given, taken := range map[string]bool{
		"abc_DEF-123": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a b": false,
		`"><script>`: false, "a.b": false, "é": false,
	} {
		got := w.do(t, "", "GET", "/v1/health", "", header("X-Request-Id", given)).Header().Get("X-Request-Id")
		if (got == given) != taken {
			t.Errorf("%q was answered with %q", given, got)
		}
		if !taken {
			if id, err := uuid.Parse(got); err != nil || id.Version() != 7 {
				t.Errorf("%q is no UUIDv7", got)
			}
		}
	}
	got := w.do(t, "", "GET", "/v1/health", "", header("X-Request-Id", "one", "two")).Header().Get("X-Request-Id")
	if got == "one" || got == "two" {
		t.Error("one of two ids was taken")
	}
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.do(t, "all", "GET", "/v1/memories?user_id="+canary+"&bogus=1", "")
	w.do(t, "all", "GET", "/"+canary, "")
	w.do(t, "all", canary, "/v1/memories", "")
	text := w.logs.String()
	for _, part := range []string{`"route":"/v1/memories"`, `"status":400`, `"code":"INVALID_REQUEST"`, `"workspace_id":"` + w.workspace("all").String(), `"request_id"`, `"route":"unmatched"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the log lacks %s: %s", part, text)
		}
	}
	if n := strings.Count(text, "\n"); n != 3 {
		t.Errorf("three requests made %d lines", n)
	}
	key := w.keys["all"].Reveal()
	if strings.Contains(text, key[17:60]) {
		t.Error("the log holds the key")
	}
}
