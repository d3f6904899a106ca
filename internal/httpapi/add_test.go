package httpapi

import (
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
)

func TestAdd(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[{"role":"user","content":"I like tea <b>"}],"user_id":" u ","metadata":{"b":1.50,"a":[null]}}`
	t.Run("AnswersAReceipt", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		answer := w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", "k"))
		answer.want(t, 202, "")
		var receipt contract.AddReceipt
		answer.into(t, &receipt)
		if receipt.Status != "PENDING" || !strings.HasPrefix(receipt.EventId, "evt_") || receipt.Message == "" {
			t.Fatalf("got %+v", receipt)
		}
		if answer.Header().Get("Location") != "/v1/events/"+receipt.EventId || answer.Header().Get("Retry-After") != "1" ||
			answer.Header().Get("Idempotent-Replayed") != "" {
			t.Fatalf("headers %v", answer.Header())
		}
		if add := w.adds[0]; add.Scope.UserID != "u" || string(add.Metadata) != `{"b":1.50,"a":[null]}` || !add.Infer || !add.Ordered ||
			add.Messages[0] != (command.Message{Role: "user", Content: "I like tea <b>"}) {
			t.Fatalf("accepted %+v", add)
		}
		if got := w.do(t, "all", "GET", answer.Header().Get("Location"), ""); got.Code != 200 {
			t.Fatalf("the location answers %d", got.Code)
		}
	})
	t.Run("AReplayAnswersTheSameReceipt", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		first := w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", `"k"`))
		again := w.do(t, "all", "POST", "/v1/memories",
			"\n{ \"infer\" : true, \"metadata\":{\"a\":[null],\"b\":1.5}, \"user_id\":\"u\",\"messages\":\"I like tea <b>\"}", header("Idempotency-Key", "k"))
		again.want(t, 202, "")
		if again.Body.String() != first.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
			t.Fatalf("got %s, first %s", again.Body, first.Body)
		}
	})
	t.Run("AnotherBodyIsAConflict", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", "k"))
		w.do(t, "all", "POST", "/v1/memories", `{"user_id":"u","content":"`+canary+`"}`, header("Idempotency-Key", "k")).
			want(t, 409, fault.IdempotencyConflict)
	})
	t.Run("NeedsAKeyUnlessVerbatim", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "POST", "/v1/memories", body).want(t, 400, fault.IdempotencyKeyRequired)
		w.do(t, "all", "POST", "/v1/memories", `{"user_id":"u","content":"x","infer":false}`).want(t, 200, "")
	})
	t.Run("RefusesEveryOtherKey", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for _, lines := range [][]string{
			{""}, {"a", "a"}, {"a, b"}, {"a,b"}, {strings.Repeat("k", 201)}, {canary + "é"}, {`"` + canary}, {"a b"}, {`""`},
		} {
			w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", lines...)).want(t, 400, fault.InvalidIdempotencyKey)
		}
		w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", `"a,b"`)).want(t, 202, "")
		w.do(t, "all", "POST", "/v1/memories", body, header("Idempotency-Key", strings.Repeat("k", 200))).want(t, 202, "")
	})
	t.Run("VerbatimAnswersItsRecords", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		send := func() reply {
			return w.do(t, "all", "POST", "/v1/memories",
				`{"user_id":"u","infer":false,"messages":[{"role":"user","content":"system"},{"role":"assistant","content":" "},{"role":"user","content":" a "}]}`,
				header("Idempotency-Key", "k"))
		}
		answer := send()
		var result contract.AddResult
		answer.into(t, &result)
		if len(result.Results) != 2 || *result.Results[0].Memory != "system" || *result.Results[1].Memory != " a " ||
			result.Results[0].Event != "ADD" || !strings.HasPrefix(result.Results[0].Id, "mem_") || !strings.HasPrefix(result.EventId, "evt_") {
			t.Fatalf("got %s", answer.Body)
		}
		if send().Header().Get("Idempotent-Replayed") != "true" {
			t.Fatal("a replay doesn't say so")
		}
	})
}
