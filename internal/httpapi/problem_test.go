package httpapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// statuses is the table of API.md, "Errors".
func statuses() map[fault.Code]int {
	return map[fault.Code]int{
		fault.InvalidBody: 400, fault.InvalidRequest: 400, fault.ScopeRequired: 400, fault.IdempotencyKeyRequired: 400,
		fault.InvalidIdempotencyKey: 400, fault.InvalidCursor: 400, fault.InvalidFilter: 400,
		fault.InvalidAPIKey: 401, fault.APIKeyExpired: 401, fault.InsufficientCredits: 402, fault.InsufficientPermission: 403,
		fault.MemoryNotFound: 404, fault.EventNotFound: 404, fault.RouteNotFound: 404, fault.MethodNotAllowed: 405,
		fault.IdempotencyConflict: 409, fault.IdempotencyInProgress: 409, fault.VersionConflict: 409,
		fault.NotRetryable: 409, fault.NotCancellable: 409, fault.WorkspaceNotEmpty: 409, fault.InputExpired: 410, fault.PayloadTooLarge: 413,
		fault.UnsupportedMediaType: 415, fault.RateLimited: 429, fault.TooManyPending: 429, fault.InternalError: 500,
		fault.WebhookNotFound: 404, fault.WorkspaceNotFound: 404, fault.WebhookURLRefused: 400, fault.TooManyWebhooks: 409,
		fault.NotImplemented: 501, fault.UnavailableNow: 503, fault.AcceptanceUnknown: 503,
	}
}

func TestProblem(t *testing.T) {
	t.Parallel()
	const body = `{"user_id":"u","content":"x"}`
	for _, code := range fault.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.failWith(fmt.Errorf("accept: %w", fault.Wrap(code, errors.New(canary))))
			refused := w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", "k"))
			status, listed := statuses()[code]
			if !listed {
				t.Fatal("the code has no status")
			}
			refused.want(t, status, code)
			described, p := fault.Describe(code), refused.problem
			if p.Title != described.Title || p.Message != described.Message || p.Detail != described.Message ||
				p.Retryable != described.Retryable || !strings.HasSuffix(p.Type, "#"+strings.ToLower(string(code))) || p.Details != nil {
				t.Fatalf("got %+v", p)
			}
			wait := status == 429 || status == 503 || code == fault.IdempotencyInProgress
			if (refused.Header().Get("Retry-After") == "1") != wait {
				t.Fatalf("Retry-After is %q", refused.Header().Get("Retry-After"))
			}
			if (refused.Header().Get("WWW-Authenticate") != "") != (status == 401) {
				t.Fatal("WWW-Authenticate belongs to 401")
			}
			if refused.Header().Get("Content-Type") != problemType || refused.Header().Get("Cache-Control") != "no-store" {
				t.Fatalf("headers %v", refused.Header())
			}
		})
	}
	t.Run("DetailsAndRetryAfterAreTheFaults", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		broke := fault.New(fault.InsufficientCredits)
		broke.Details = map[string]any{"required": 2, "available": 1}
		w.failWith(broke)
		refused := w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", "k"))
		if d := refused.problem.Details; d["required"] != 2.0 || d["available"] != 1.0 || len(d) != 2 {
			t.Fatalf("details %v", d)
		}
		busy := fault.New(fault.TooManyPending)
		busy.RetryAfter = 2100 * time.Millisecond
		w.failWith(busy)
		refused = w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", "k"))
		if refused.Header().Get("Retry-After") != "3" {
			t.Fatalf("Retry-After is %q", refused.Header().Get("Retry-After"))
		}
	})
	t.Run("AnythingElseIsInternalAndLoggedOnceWithoutItsText", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.failWith(fmt.Errorf("insert: %w", stateError{}))
		w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", "k")).want(t, 500, fault.InternalError)
		text := w.logs.String()
		if strings.Count(text, `"level":"error"`) != 1 || !strings.Contains(text, `"sqlstate":"XX000"`) || !strings.Contains(text, "stateError") {
			t.Fatalf("logged %s", text)
		}
	})
	t.Run("AnOutageIsLoggedWithItsStepAndReason", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		down := fmt.Errorf("read: %w", stepped{fault.Wrap(fault.UnavailableNow, fault.Plain("the database connection failed"))})
		w.failWith(down)
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 503, fault.UnavailableNow)
		w.do(t, "", "GET", "/v1/health", "").want(t, 200, "")
		if n := strings.Count(w.logs.String(), `"code":"UNAVAILABLE","step":"read balance","reason":"the database connection failed"`); n != 2 {
			t.Fatalf("logged %s", w.logs.String())
		}
	})
	t.Run("RunningOutOfTimeIsUnavailable", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.failWith(fmt.Errorf("read: %w", context.DeadlineExceeded))
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 503, fault.UnavailableNow)
	})
	t.Run("APanicIsInternalAndItsValueIsNotLogged", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.server.deps.Credits = panics{w}
		w.do(t, "all", "GET", "/v1/credits", "").want(t, 500, fault.InternalError)
		if text := w.logs.String(); !strings.Contains(text, `"panic":"string"`) || !strings.Contains(text, `"stack"`) {
			t.Fatalf("logged %s", text)
		}
		w.do(t, "all", "GET", "/v1/events", "").want(t, 200, "")
	})
}

// stepped is an error that knows its step.
type stepped struct{ error }

func (s stepped) Unwrap() error { return s.error }
func (stepped) Step() string    { return "read balance" }

// stateError looks like a database error whose text holds a row.
type stateError struct{}

func (stateError) Error() string    { return canary }
func (stateError) SQLState() string { return "XX000" }

// TestErrorsPage holds the page of the codes, which the type of a problem leads to, against their statuses.
func TestErrorsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for _, code := range fault.Codes() {
		_, section, found := strings.Cut(rest, "\n### "+string(code)+"\n")
		status, _, _ := strings.Cut(strings.TrimSpace(section), ".")
		if !found || strings.TrimSuffix(status, ", retryable") != fmt.Sprint(statuses()[code]) {
			t.Errorf("docs/errors.md doesn't explain %s with its status", code)
		}
	}
}
