package httpapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// The use cases fit what the adapter asks for.
var (
	_ Accepter  = (*write.Accepter)(nil)
	_ Writer    = (*write.Writer)(nil)
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
	return strings.ReplaceAll(op.route.Path, "{id}", uuid.NewString())
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
			if allowed := w.do(t, "with", op.route.Method, target(op), ""); allowed.Code == 401 || allowed.Code == 403 {
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
			"GET /v1/credits/entries": access.CreditsRead,
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
		for _, path := range []string{"/", "/v1", "/v2/memories", "/v1/memories/", "/v1/events/", "/v1/events/x/y", "/v1/memories/a/b/c"} {
			w.do(t, "all", "GET", path, "").want(t, 404, fault.RouteNotFound)
		}
		refused := w.do(t, "all", "PATCH", "/v1/memories", "{}")
		refused.want(t, 405, fault.MethodNotAllowed)
		if allow := refused.Header().Get("Allow"); !strings.Contains(allow, "POST") {
			t.Errorf("Allow is %q", allow)
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
