package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// panics is a reader of accounts that breaks.
type panics struct{ Credits }

func (panics) Balance(context.Context, uuid.UUID) (credit.Balance, error) { panic(canary) }

func fillEvents(w *world, n int) {
	for i := range n {
		event := eventIn(task.EventPending)
		event.AcceptedAt = event.AcceptedAt.Add(time.Duration(i) * time.Second)
		if i%2 == 1 {
			event.Status = task.EventFailed
		}
		if i%5 == 0 {
			event.Kind = task.Add
		}
		w.put("all", event)
	}
}

// walk follows the cursors of a list to its end and counts what it sees.
func walk(t *testing.T, w *world, target string) int {
	t.Helper()
	seen := map[string]bool{}
	cursor := ""
	for range 100 {
		var page struct {
			Results []map[string]any `json:"results"`
			Next    *string          `json:"next_cursor"`
		}
		answer := w.do(t, "all", "GET", target+cursor, "")
		answer.want(t, 200, "")
		answer.into(t, &page)
		for _, result := range page.Results {
			key, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			if seen[string(key)] {
				t.Fatalf("seen twice: %s", key)
			}
			seen[string(key)] = true
		}
		if page.Next == nil {
			return len(seen)
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
	t.Fatal("the list has no end")
	return 0
}

func TestLists(t *testing.T) {
	t.Parallel()
	w := setup(t)
	fillEvents(w, 25)
	for i := range 3 {
		delivery := eventIn(task.EventSucceeded)
		delivery.AcceptedAt = delivery.AcceptedAt.Add(time.Duration(i) * time.Minute)
		delivery.Kind = task.Webhook
		w.put("all", delivery)
	}
	for i := range 7 {
		at := time.Date(2026, 1, 1, 0, 0, 10-i, 123456000, time.UTC)
		w.records = append(w.records, memory.Record{
			ID: uuid.New(), Scope: memory.Scope{UserID: "u"}, Text: fmt.Sprint(i), Version: 1, ValidFrom: at, CreatedAt: at, UpdatedAt: at,
			Metadata: json.RawMessage(`{"b": 1.50, "a": "<"}`), Score: 0.5,
		})
		event := uuid.New()
		w.entries = append(w.entries, credit.Entry{Type: credit.Hold, Amount: 2, TaskID: &event, Generation: i + 1, At: at})
	}
	w.entries = append(w.entries, credit.Entry{Type: credit.Grant, Amount: 1000, Reference: "r"})

	for target, want := range map[string]int{
		"/v1/events?limit=3": 20, "/v1/events?limit=100": 20, "/v1/events?type=memory_add&limit=2": 5, "/v1/operations?limit=7": 28,
		"/v1/operations?type=webhook_delivery&limit=2": 3,
		"/v1/events?status=FAILED&limit=4":             10, "/v1/operations?status=FAILED&type=memory_add&limit=1": 2,
		"/v1/memories?user_id=%20u%20&limit=2": 7, "/v1/memories?user_id=v&limit=2": 0, "/v1/credits/entries?limit=3": 8,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			if got := walk(t, w, target); got != want {
				t.Fatalf("saw %d, want %d", got, want)
			}
		})
	}
	t.Run("MetadataComesBackValueForValue", func(t *testing.T) {
		t.Parallel()
		body := w.do(t, "all", "GET", "/v1/memories?user_id=u", "").Body.String()
		if !strings.Contains(body, `"metadata":{"b":1.50,"a":"<"}`) {
			t.Fatalf("got %s", body)
		}
	})
	t.Run("SearchAnswersScores", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.records = []memory.Record{{ID: uuid.New(), Text: "x", Score: 0.25}}
		answer := w.do(t, "all", "POST", "/v1/memories/search", `{"query":"tea","user_id":"u","top_k":3,"latest_only":false,"min_score":0.1,"mode":"lexical"}`)
		answer.want(t, 200, "")
		if want := (recall.SearchQuery{Text: "tea", Scope: memory.Scope{UserID: "u"}, Limit: 3, MinScore: 0.1, Mode: recall.Lexical}); w.asked != want {
			t.Fatalf("asked %+v", w.asked)
		}
		if !strings.Contains(answer.Body.String(), `"score":0.25`) {
			t.Fatalf("got %s", answer.Body)
		}
		w.do(t, "all", "POST", "/v1/memories/search", `{"query":"tea","user_id":"u"}`)
		if want := (recall.SearchQuery{Text: "tea", Scope: memory.Scope{UserID: "u"}, Limit: 10, Mode: recall.Hybrid, LatestOnly: true}); w.asked != want {
			t.Fatalf("asked %+v", w.asked)
		}
	})
	t.Run("CreditsShowTheBalance", func(t *testing.T) {
		t.Parallel()
		var balance contract.Credits
		w.do(t, "all", "GET", "/v1/credits", "").into(t, &balance)
		if balance != (contract.Credits{Available: 7, Held: 2, Metered: true}) {
			t.Fatalf("got %+v", balance)
		}
	})
}

func TestEventOfKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var receipt contract.AddReceipt
	w.do(t, "all", "POST", "/v1/memories", `{"user_id":"u","content":"x"}`, header("Idempotency-Key", "k")).into(t, &receipt)
	find := func(name, key string) contract.EventPage {
		var page contract.EventPage
		answer := w.do(t, name, "GET", "/v1/events", "", header("Idempotency-Key", key))
		answer.want(t, 200, "")
		answer.into(t, &page)
		return page
	}
	if page := find("all", `"k"`); len(page.Results) != 1 || page.Results[0].Id != receipt.EventId || page.NextCursor != nil {
		t.Fatalf("got %+v", page)
	}
	if page := find("all", "unknown"); page.Results == nil || len(page.Results) != 0 {
		t.Fatalf("got %+v", page)
	}
	if page := find("other", "k"); len(page.Results) != 0 {
		t.Fatal("another workspace's key was found")
	}
	w.do(t, "all", "GET", "/v1/events?type=memory_add", "", header("Idempotency-Key", "k")).want(t, 400, fault.InvalidRequest)
	w.do(t, "all", "GET", "/v1/events", "", header("Idempotency-Key", "a", "b")).want(t, 400, fault.InvalidIdempotencyKey)
}

func TestCursor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	fillEvents(w, 25)
	var page contract.EventPage
	w.do(t, "all", "GET", "/v1/events?limit=1", "").into(t, &page)
	cursor := url.QueryEscape(*page.NextCursor)
	refused := w.do(t, "all", "GET", "/v1/events?cursor="+canary, "", header("X-Request-Id", "same"))
	refused.want(t, 400, fault.InvalidCursor)
	for name, c := range map[string]struct{ caller, target string }{
		"OfAnotherWorkspace": {"other", "/v1/events?cursor=" + cursor},
		"OfAnotherEndpoint":  {"all", "/v1/operations?cursor=" + cursor},
		"OfAnotherList":      {"all", "/v1/credits/entries?cursor=" + cursor},
		"OfAnotherStatus":    {"all", "/v1/events?status=FAILED&cursor=" + cursor},
		"OfAnotherType":      {"all", "/v1/events?type=memory_add&cursor=" + cursor},
		"OfAScope":           {"all", "/v1/memories?user_id=u&cursor=" + cursor},
		"Empty":              {"all", "/v1/events?cursor="},
		"Changed":            {"all", "/v1/events?cursor=" + swapLast(cursor)},
		"Cut":                {"all", "/v1/events?cursor=" + cursor[:len(cursor)-4]},
		"Padded":             {"all", "/v1/events?cursor=" + cursor + "%3D"},
		"Long":               {"all", "/v1/events?cursor=" + strings.Repeat("a", 4000)},
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			t.Parallel()
			if got := w.do(t, c.caller, "GET", c.target, "", header("X-Request-Id", "same")); got.Body.String() != refused.Body.String() {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
		})
	}
	t.Run("IsTheSameForAnotherLimit", func(t *testing.T) {
		t.Parallel()
		w.do(t, "all", "GET", "/v1/events?limit=9&type=memory_infer&cursor="+cursor, "").want(t, 200, "")
	})
}

func swapLast(text string) string {
	last := byte('A')
	if text[len(text)-6] == last {
		last = 'B'
	}
	return text[:len(text)-6] + string(last) + text[len(text)-5:]
}

func FuzzCursor(f *testing.F) {
	here := listing{endpoint: "events", query: []any{"a"}}
	here.workspace.FingerprintKey = []byte("secret")
	good, err := here.seal(positionOf(recall.Place{At: time.Unix(1, 0), ID: uuid.UUID{7}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`0123456789abcdef{"v":1}`)))
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := here.open(&cursor)
		if err != nil {
			if !fault.Is(err, fault.InvalidCursor) || p != nil {
				t.Fatal("a refusal must be INVALID_CURSOR")
			}
			return
		}
		if cursor != good {
			t.Fatal("a cursor was taken that was not made here")
		}
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	t.Run("TellsTheReasonsAndIsAskedOnceASecond", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.verdict = recall.Verdict{Reasons: []recall.Reason{recall.DueTooLong}, Facts: recall.Facts{OldestDue: 90 * time.Second, ExpiredLeases: 3}}
		var health contract.Health
		for range 3 {
			w.do(t, "", "GET", "/v1/health", "").into(t, &health)
		}
		if health.Status != "degraded" || health.Reasons[0] != "oldest_due_task" || health.Checks.OldestDueSeconds != 90 || health.Checks.ExpiredLeases != 3 {
			t.Fatalf("got %+v", health)
		}
		if w.checks != 1 {
			t.Fatalf("asked %d times", w.checks)
		}
	})
	t.Run("IsOKWithoutReasons", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		if body := w.do(t, "", "GET", "/v1/health", "").Body.String(); !strings.Contains(body, `"status":"ok"`) || !strings.Contains(body, `"reasons":[]`) {
			t.Fatalf("got %s", body)
		}
	})
	t.Run("IsDegradedWithoutADatabase", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.failWith(errors.New(canary))
		answer := w.do(t, "", "GET", "/v1/health", "")
		if answer.want(t, 200, ""); !strings.Contains(answer.Body.String(), "database_unreachable") || !strings.Contains(answer.Body.String(), `"checks":null`) {
			t.Fatalf("got %s", answer.Body)
		}
	})
}
