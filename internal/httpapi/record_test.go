package httpapi

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestChangeRecord(t *testing.T) {
	t.Parallel()
	withRecord := func(t *testing.T) (*world, memory.Record) {
		t.Helper()
		w := setup(t)
		record := memory.Record{ID: uuid.New(), Text: "old", Version: 3}
		w.records = []memory.Record{record}
		return w, record
	}
	at := func(r memory.Record) string { return "/v1/memories/" + memoryID(r.ID) }

	t.Run("PutAnswersWhatItDid", func(t *testing.T) {
		t.Parallel()
		w, record := withRecord(t)
		body := `{"content":" new ","metadata":{"b":1.50,"a":{"user_id":"bob"}},"expires_at":"2030-01-01T01:00:00+01:00","version":3}`
		reply := w.do(t, "all", "PUT", at(record), body, header("Idempotency-Key", "k"))
		reply.want(t, 200, "")
		var result contract.ChangeResult
		reply.into(t, &result)
		if result.Id != memoryID(record.ID) || result.Event != "UPDATE" || *result.Memory != " new " || result.Version != 4 ||
			!strings.HasPrefix(result.EventId, "evt_") {
			t.Errorf("answer %s", reply.Body)
		}
		c := w.changes[0]
		if *c.Content != " new " || string(c.Metadata) != `{"b":1.50,"a":{"user_id":"bob"}}` || *c.Version != 3 || c.Delete || c.NeverExpires ||
			!c.ExpiresAt.Equal(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("change %+v", c)
		}
		again := w.do(t, "all", "PUT", at(record), body, header("Idempotency-Key", "k"))
		if again.want(t, 200, ""); again.Header().Get("Idempotent-Replayed") != "true" {
			t.Error("a replay doesn't say so")
		}
	})

	t.Run("WhatIsAbsentIsNotAskedFor", func(t *testing.T) {
		t.Parallel()
		w, record := withRecord(t)
		w.do(t, "all", "PUT", at(record), `{"expires_at":null}`).want(t, 200, "")
		w.do(t, "all", "PUT", at(record), `{"metadata":{}}`).want(t, 200, "")
		first, second := w.changes[0], w.changes[1]
		if !first.NeverExpires || first.Content != nil || first.Metadata != nil || first.ExpiresAt != nil || first.Version != nil {
			t.Errorf("change %+v", first)
		}
		if second.NeverExpires || string(second.Metadata) != "{}" {
			t.Errorf("change %+v", second)
		}
	})

	t.Run("RefusesWhatBreaksARule", func(t *testing.T) {
		t.Parallel()
		w, record := withRecord(t)
		for body, pointer := range map[string]string{
			`{}`: "", `{"version":1}`: "", `{"content":""}`: "/content", `{"content":" \u200b"}`: "/content", `{"content":null}`: "/content",
			`{"content":"x","version":0}`: "/version", `{"content":"x","version":"1"}`: "/version", `{"metadata":null}`: "/metadata",
			`{"metadata":[]}`: "/metadata", `{"expires_at":"tomorrow"}`: "/expires_at", `{"expires_at":5}`: "/expires_at",
			`{"content":"x","user_id":"` + canary + `"}`: "", `{"content":"x","` + canary + `":1}`: "",
		} {
			refused := w.do(t, "all", "PUT", at(record), body)
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["pointer"] != pointer && (pointer != "" || refused.problem.Details["pointer"] != nil) {
				t.Errorf("%s is refused at %v", body, refused.problem.Details)
			}
		}
		if len(w.changes) != 0 {
			t.Errorf("changes %+v", w.changes)
		}
		w.do(t, "all", "PUT", "/v1/memories/"+uuid.NewString(), `{"content":"x"}`).want(t, 404, fault.MemoryNotFound)
		w.do(t, "all", "PUT", "/v1/memories/nonsense", `{"content":"x"}`).want(t, 404, fault.MemoryNotFound)
	})

	t.Run("DeleteAnswersTheEnd", func(t *testing.T) {
		t.Parallel()
		w, record := withRecord(t)
		reply := w.do(t, "all", "DELETE", at(record), "")
		reply.want(t, 200, "")
		var result contract.ChangeResult
		reply.into(t, &result)
		if result.Event != "DELETE" || result.Memory != nil || result.Version != 4 || !w.changes[0].Delete {
			t.Errorf("answer %s", reply.Body)
		}
	})

	t.Run("ConflictsAreProblems", func(t *testing.T) {
		t.Parallel()
		w, record := withRecord(t)
		for code, status := range map[fault.Code]int{fault.VersionConflict: 409, fault.IdempotencyConflict: 409, fault.UnavailableNow: 503} {
			w.failWith(fault.New(code))
			w.do(t, "all", "PUT", at(record), `{"content":"x"}`).want(t, status, code)
		}
	})
}

func TestBatches(t *testing.T) {
	t.Parallel()
	t.Run("AnswerAReceipt", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		one, two := uuid.New(), uuid.New()
		body := fmt.Sprintf(`{"memories":[{"id":"mem_%s","content":"x","version":2},{"id":"%s","metadata":{"a":1}}]}`, one, two)
		reply := w.do(t, "all", "PUT", "/v1/memories/batch", body)
		reply.want(t, 202, "")
		var receipt contract.AddReceipt
		reply.into(t, &receipt)
		if receipt.Status != "PENDING" || reply.Header().Get("Location") != "/v1/events/"+receipt.EventId || reply.Header().Get("Retry-After") == "" {
			t.Errorf("receipt %s, headers %v", reply.Body, reply.Header())
		}
		if c := w.changes; len(c) != 2 || c[0].ID != one || *c[0].Version != 2 || c[1].ID != two || c[0].Delete {
			t.Errorf("changes %+v", c)
		}
		w.do(t, "all", "DELETE", "/v1/memories/batch", fmt.Sprintf(`{"ids":["mem_%s","%s"]}`, one, two)).want(t, 202, "")
		if c := w.changes; len(c) != 4 || !c[2].Delete || c[3].ID != two {
			t.Errorf("changes %+v", c)
		}
	})

	t.Run("RefuseWhatBreaksARule", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := uuid.NewString()
		many := make([]string, command.MaxBatch+1)
		for i := range many {
			many[i] = `"` + uuid.NewString() + `"`
		}
		for body, want := range map[string]string{
			`{"ids":[]}`: "/ids", `{"ids":["` + id + `","mem_` + id + `"]}`: "/ids/1", `{"ids":["` + canary + `"]}`: "/ids/0",
			`{"ids":["evt_` + id + `"]}`: "/ids/0", `{"ids":[5]}`: "/ids/0", `{"ids":[` + strings.Join(many, ",") + `]}`: "/ids",
		} {
			refused := w.do(t, "all", "DELETE", "/v1/memories/batch", body)
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["pointer"] != want {
				t.Errorf("%.60s is refused at %v, want %s", body, refused.problem.Details, want)
			}
		}
		for body, want := range map[string]string{
			`{"memories":[{"id":"` + id + `"}]}`:                                  "/memories/0",
			`{"memories":[{"content":"x"}]}`:                                      "/memories/0/id",
			`{"memories":[{"id":"` + id + `","content":""}]}`:                     "/memories/0/content",
			`{"memories":[{"id":"` + id + `","content":"x","expires_at":"now"}]}`: "/memories/0/expires_at",
			`{"memories":[{"id":"` + id + `","content":"x","delete":true}]}`:      "/memories/0",
		} {
			refused := w.do(t, "all", "PUT", "/v1/memories/batch", body)
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["pointer"] != want {
				t.Errorf("%s is refused at %v, want %s", body, refused.problem.Details, want)
			}
		}
		w.do(t, "all", "DELETE", "/v1/memories/batch", "").want(t, 400, fault.InvalidBody)
		if len(w.changes) != 0 {
			t.Errorf("changes %+v", w.changes)
		}
	})

	t.Run("ShowTheResultOfEachItem", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		event := eventIn(task.EventSucceeded)
		event.Kind, event.Outcome = task.BatchUpdate, task.Stored
		text := "new"
		event.Results = []memory.Result{
			{RecordID: uuid.New(), Change: memory.Updated, Text: &text},
			{Ordinal: 1, RecordID: uuid.New(), Change: memory.None, Error: string(fault.VersionConflict)},
		}
		w.put("all", event)
		reply := w.do(t, "all", "GET", "/v1/events/"+event.ID.String(), "")
		var shown contract.Event
		reply.want(t, 200, "")
		reply.into(t, &shown)
		if len(shown.Results) != 2 || shown.Results[0].Error != nil || shown.Results[1].Error == nil ||
			shown.Results[1].Error.Code != "VERSION_CONFLICT" || shown.Results[1].Error.Message == "" {
			t.Errorf("event %s", reply.Body)
		}
	})
}

func TestHistoryAndEntities(t *testing.T) {
	t.Parallel()
	t.Run("HistoryComesInPages", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := uuid.New()
		for v := 1; v <= 7; v++ {
			text := fmt.Sprint("version ", v)
			w.history = append(w.history, memory.HistoryEntry{
				ID: uuid.New(), MemoryID: id, Event: memory.Updated, Version: v, NewText: &text, At: time.Unix(int64(v), 0),
			})
		}
		path := "/v1/memories/" + id.String() + "/history"
		if n := walk(t, w, path+"?limit=3"); n != 7 {
			t.Errorf("%d entries", n)
		}
		w.do(t, "other", "GET", path, "").want(t, 404, fault.MemoryNotFound)
		w.do(t, "all", "GET", "/v1/memories/"+uuid.NewString()+"/history", "").want(t, 404, fault.MemoryNotFound)
		w.do(t, "all", "GET", path+"?cursor=abc", "").want(t, 400, fault.InvalidCursor)
	})

	t.Run("WhatWasSupersededNamesItsSuccessor", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id, successor, ended := uuid.New(), uuid.New(), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		w.history = []memory.HistoryEntry{
			{ID: uuid.New(), MemoryID: id, Event: memory.Added, Version: 1},
			{ID: uuid.New(), MemoryID: id, Event: memory.Invalidated, Version: 2, ValidTo: &ended, SupersededBy: &successor},
		}
		body := w.do(t, "all", "GET", "/v1/memories/"+id.String()+"/history", "").Body.String()
		if strings.Count(body, "superseded_by") != 1 || !strings.Contains(body, `"superseded_by":"`+memoryID(successor)+`"`) ||
			!strings.Contains(body, `"valid_to":"2026-01-02T00:00:00Z"`) {
			t.Error(body)
		}
	})

	t.Run("EntitiesComeInPages", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for i := range 7 {
			w.entities = append(w.entities, recall.Entity{Type: recall.User, ID: strings.Repeat("<ü>", 170) + fmt.Sprint(i), Memories: 1})
		}
		if n := walk(t, w, "/v1/entities?limit=2"); n != 7 {
			t.Errorf("%d entities", n)
		}
		w.do(t, "all", "GET", "/v1/entities?type=robot", "").want(t, 400, fault.InvalidRequest)
	})

	t.Run("AnyIDCanBeNamed", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		ids := []string{"plain", "a/b", "100%", "a%2Fb", "with space", "a,b;c=d", "ü", "..", "?x#y", "+", uuid.NewString()}
		for _, id := range ids {
			w.entities = append(w.entities, recall.Entity{Type: recall.Run, ID: id, Memories: 2})
		}
		for _, id := range ids {
			reply := w.do(t, "all", "GET", "/v1/entities/run/"+url.PathEscape(id), "")
			var entity contract.Entity
			reply.want(t, 200, "")
			if reply.into(t, &entity); entity.Id != id || entity.Type != "run" || entity.TotalMemories != 2 {
				t.Errorf("%s is answered with %s", id, reply.Body)
			}
			w.do(t, "all", "GET", "/v1/entities/user/"+url.PathEscape(id), "").want(t, 404, fault.MemoryNotFound)
		}
		for _, path := range []string{"run/a/b", "run/", "run"} {
			w.do(t, "all", "GET", "/v1/entities/"+path, "").want(t, 404, fault.RouteNotFound)
		}
		w.do(t, "all", "GET", "/v1/entities/robot/x", "").want(t, 400, fault.InvalidRequest)
		w.do(t, "all", "GET", "/v1/entities/run/%FF", "").want(t, 400, fault.InvalidRequest)
		w.do(t, "all", "GET", "/v1/entities/run/%20", "").want(t, 404, fault.MemoryNotFound)
	})
}
