package mem0

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestAdd(t *testing.T) {
	t.Parallel()
	t.Run("ShapesByVersionAndInfer", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.event.ID.String()
		w.send("POST", "/v3/memories/add/", `{"messages":"x","user_id":"u"}`).want(t, 202, `"status":"PENDING"`, `"event_id":"`+id+`"`, `"message":`)
		w.send("POST", "/v3/memories/add", `{"messages":"x","user_id":"u","infer":false}`).want(t, 200, `"status":"SUCCEEDED"`, `"event_id":"`+id+`"`, `"data":{"memory":"x"}`, `"event":"ADD"`)
		w.send("POST", "/v1/memories/", `{"messages":"x","user_id":"u"}`).want(t, 202, `[{"message":`, `"event_id":"`+id+`"`)
		w.send("POST", "/v1/memories/", `{"messages":"x","user_id":"u","output_format":"v1.1"}`).want(t, 202, `{"results":[{"message":`, `"relations":[]`)
		w.send("POST", "/v1/memories/", `{"messages":"x","user_id":"u","infer":false}`).want(t, 200, `[{"id":`, `"data":{"memory":"x"}`)
		w.send("POST", "/v1/memories/", `{"messages":"x","user_id":"u","infer":false,"output_format":"v1.1"}`).want(t, 200, `{"results":[{"id":`)
	})
	t.Run("AsyncModeFalseWaitsForTheEnd", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		const ask = `{"messages":"x","user_id":"u","async_mode":false}`
		w.send("POST", "/v1/memories/", ask).want(t, 202, `[{"message":`, `"status":"PENDING"`)
		text := "fact"
		w.event.Status, w.event.Results = task.EventSucceeded, []memory.Result{{RecordID: uuid.New(), Change: memory.Added, Text: &text}}
		w.event.Outcome = task.Stored
		w.send("POST", "/v1/memories/", ask).want(t, 200, `[{"id":`, `"data":{"memory":"fact"}`)
		w.send("POST", "/v3/memories/add/", ask).want(t, 200, `"status":"SUCCEEDED"`, `"outcome":"STORED"`, `"results":[{"id":`)
		w.event.Results, w.event.Outcome = nil, task.NoMemory
		w.send("POST", "/v3/memories/add/", ask).want(t, 200, `"status":"SUCCEEDED"`, `"outcome":"NO_MEMORY"`, `"results":[]`)
		w.event.Status, w.event.ErrorCode = task.EventFailed, task.CodeAttemptsExhausted
		w.send("POST", "/v1/memories/", ask).want(t, 200, `"status":"FAILED"`, `"error":"`)
	})
	t.Run("ARepeatAnswersAReceiptThatIsTrue", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		const ask = `{"messages":"x","user_id":"u","idempotency_key":"k"}`
		for _, ended := range []task.EventStatus{task.EventSucceeded, task.EventFailed} {
			w.accepted = ended
			a := w.send("POST", "/v3/memories/add/", ask)
			a.want(t, 202, `"status":"`+string(ended)+`"`, `"event_id":"`+w.event.ID.String()+`"`, messageEnded)
			if a.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s is no replay: %v", ended, a.header)
			}
		}
		w.accepted = task.EventRetrying
		w.send("POST", "/v3/memories/add/", ask).want(t, 202, `"status":"RUNNING"`, messagePending)
	})
	t.Run("ReadsWhatTheClientsSend", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.send("POST", "/v3/memories/add/", `{
			"messages":[{"role":"user","content":"a <b>","name":"Ada","function_name":"f"},
				{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},
				{"role":"tool","tool_call_id":"1","content":"result"},
				{"role":"user","content":[{"type":"text","text":"p1"},{"type":"text","text":"p2"}]},
				{"role":"user","content":{"type":"text","text":"one"}}],
			"user_id":" u ","agent_id":null,"filters":{"runId":"r"},"metadata":{"a":1.50},"infer":true,"custom_instructions":"only food",
			"agent_custom_instructions":"not its jokes","includes":"food","excludes":["health","money"],
			"custom_categories":[{"food":"what they eat"},"work"],"timestamp":1700000000,"expiration_date":"2030-01-31",
			"enable_graph":true,"version":"v2","org_id":"o","project_id":"p","output_format":"v1.1","unknown":{"x":1}}`).want(t, 202)
		if len(w.adds) != 1 {
			t.Fatalf("%d adds", len(w.adds))
		}
		add := w.adds[0]
		want := []command.Message{
			{Role: "user", Name: "Ada", Content: "a <b>"},
			{Role: "tool", Content: "result"},
			{Role: "user", Content: "p1\np2"},
			{Role: "user", Content: "one"},
		}
		if len(add.Messages) != len(want) {
			t.Fatalf("messages %+v", add.Messages)
		}
		for i := range want {
			if add.Messages[i] != want[i] {
				t.Errorf("message %d: %+v", i, add.Messages[i])
			}
		}
		if add.Scope != (memory.Scope{UserID: "u", RunID: "r"}) || string(add.Metadata) != `{"a":1.50}` || !add.Infer || !add.Ordered {
			t.Errorf("add %+v", add)
		}
		if add.Instructions != "only food\nAbout what the assistant says: not its jokes\nRemember only: food\nNever remember: health, money" {
			t.Errorf("instructions %q", add.Instructions)
		}
		if add.EventDate == nil || add.EventDate.Unix() != 1_700_000_000 || add.ExpiresAt == nil || !add.ExpiresAt.Equal(time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("said %v, expires %v", add.EventDate, add.ExpiresAt)
		}
		if len(add.Categories) != 2 || add.Categories[0] != (memory.Category{Name: "food", Description: "what they eat"}) || add.Categories[1].Name != "work" {
			t.Errorf("categories %+v", add.Categories)
		}
		w.send("POST", "/v1/memories/", `{"messages":{"role":"user","content":"one"},"filters":{"user_id":"u"},"metadata":null}`).want(t, 202)
		w.send("POST", "/v1/memories/", `{"messages":"just text","userId":"u"}`).want(t, 202)
		if got := w.adds[1:]; got[0].Messages[0].Content != "one" || got[0].Metadata != nil || got[1].Messages[0] != (command.Message{Role: "user", Content: "just text"}) || got[1].Scope.UserID != "u" {
			t.Errorf("adds %+v", got)
		}
	})
	t.Run("RefusesWhatWouldChangeTheMeaning", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for body, words := range map[string]string{
			`{"user_id":"u"}`:                                                      "/messages",
			`{"messages":"x"}`:                                                     "SCOPE_REQUIRED",
			`{"messages":[],"user_id":"u"}`:                                        "/messages",
			`{"messages":7,"user_id":"u"}`:                                         "/messages",
			`{"messages":"  ","user_id":"u"}`:                                      "/messages",
			`{"messages":"x","user_id":7}`:                                         "/user_id",
			`{"messages":"x","user_id":"a","filters":{"user_id":"b"}}`:             "/user_id",
			`{"messages":"x","user_id":"a","filters":{"created_at":"2020-01-01"}}`: "INVALID_FILTER",
			`{"messages":[{"role":"user","content":{"type":"image_url","image_url":{"url":"` + canary + `"}}}],"user_id":"u"}`:                     "/messages/0/content",
			`{"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"pdf_url"}]}],"user_id":"u"}`: "/messages/1/content/1",
			`{"messages":[{"role":"user","content":[{"type":"input_audio","text":"x"}]}],"user_id":"u"}`:                                           "/messages/0/content/0",
			`{"messages":[{"role":"user","content":null}],"user_id":"u"}`:                                                                          "/messages/0/content",
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[1]}],"user_id":"u"}`:                                                    "/messages",
			`{"messages":"x","user_id":"u","infer":"false"}`:                                                                                       "/infer",
			`{"messages":"x","user_id":"u","async_mode":"no"}`:                                                                                     "/async_mode",
			`{"messages":"x","user_id":"u","immutable":true}`:                                                                                      "/immutable",
			`{"messages":"x","user_id":"u","structured_data_schema":{"a":"b"}}`:                                                                    "/structured_data_schema",
			`{"messages":"x","user_id":"u","timestamp":"` + canary + `"}`:                                                                          "/timestamp",
			`{"messages":"x","user_id":"u","timestamp":1e18}`:                                                                                      "",
			`{"messages":"x","user_id":"u","expiration_date":"31.1.2030"}`:                                                                         "/expiration_date",
			`{"messages":"x","user_id":"u","custom_categories":"` + canary + `"}`:                                                                  "/custom_categories",
			`{"messages":"x","user_id":"u","custom_instructions":"` + strings.Repeat("x", 5_001) + `"}`:                                            "/custom_instructions",
			`{"messages":"x","user_id":"u","metadata":[]}`:                                                                                         "/metadata",
			`{"messages":"x","user_id":"u","idempotency_key":"a b"}`:                                                                               "/idempotency_key",
			`{"messages":"x","user_id":"u","idempotencyKey":7}`:                                                                                    "/idempotencyKey",
			`{"messages":"x","user_id":"u","idempotency_key":"a","idempotencyKey":"b"}`:                                                            "/idempotency_key",
			`{"messages":"x","user_id":"u","idempotency_key":7}`:                                                                                   "/idempotency_key",
		} {
			a := w.send("POST", "/v3/memories/add/", body)
			a.want(t, 400, words)
			a.five(t)
			if strings.Contains(a.body, canary) {
				t.Errorf("%s quotes the caller", a.body)
			}
		}
		w.send("POST", "/v3/memories/add/", `{"messages":"x","user_id":"u","immutable":false}`).want(t, 202)
		if len(w.adds) != 1 {
			t.Errorf("%d adds", len(w.adds))
		}
	})
	t.Run("KeysComeFromTheHeaderThenTheBodyThenNowhere", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		const ask, keyed = `{"messages":"x","user_id":"u"}`, `{"messages":"x","user_id":"u","idempotency_key":"k1"}`
		w.send("POST", "/v3/memories/add/", keyed)
		w.send("POST", "/v3/memories/add/", ask, "Idempotency-Key", "k1")
		w.send("POST", "/v3/memories/add/", keyed, "Idempotency-Key", "k2")
		w.send("POST", "/v3/memories/add/", ask)
		w.send("POST", "/v3/memories/add/", ask)
		if k := w.keys; len(k) != 5 || k[0] != k[1] || k[1] == k[2] || k[3] == k[4] || k[3] == "" {
			t.Errorf("keys %q", k)
		}
		w.send("POST", "/v1/memories/", `{"messages":"x","user_id":"u","idempotencyKey":"k1"}`) // npm 2.4.6 converts no names
		w.send("POST", "/v1/memories/", `{"messages":"x","user_id":"u","idempotencyKey":"k1","idempotency_key":"k1"}`)
		if k := w.keys; len(k) != 7 || k[5] != k[0] || k[6] != k[0] {
			t.Errorf("keys in camel case %q", k)
		}
		w.keys = nil
		id := uuid.NewString()
		w.send("PUT", "/v1/memories/"+id+"/", `{"text":"x","idempotency_key":"k1"}`)
		w.send("PUT", "/v1/batch/", `{"memories":[{"memory_id":"`+id+`","text":"x"}],"idempotency_key":"k1"}`)
		w.send("DELETE", "/v1/memories/"+id+"/", "", "Idempotency-Key", "k1")
		w.send("DELETE", "/v1/memories/?user_id=u", "", "Idempotency-Key", "k1")
		w.send("DELETE", "/v1/memories/"+id+"/", "")
		if k := w.keys; len(k) != 5 || k[0] == "" || k[0] != k[1] || k[1] != k[2] || k[2] != k[3] || k[4] != "" {
			t.Errorf("keys %q", k)
		}
	})
}

func TestChange(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := uuid.New()
	path := "/v1/memories/" + id.String() + "/"
	expires := time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC)
	w.records = []memory.Record{{ID: id, Text: "x", Scope: memory.Scope{UserID: "u", RunID: "r"}, Metadata: json.RawMessage(`{"b":1,"a":2}`), ExpiresAt: &expires, Categories: []string{"food"}}}
	w.send("GET", path, "").want(t, 200, `"memory":"x"`, `"user_id":"u"`, `"run_id":"r"`, `"session_id":"r"`, `"agent_id":null`,
		`"metadata":{"b":1,"a":2}`, `"categories":["food"]`, `"expiration_date":"2030-01-31"`, `"structured_attributes":null`, `"synthesized":false`)
	w.send("PUT", path, `{"text":"y","metadata":{"c":1},"expiration_date":"2031-12-31"}`).want(t, 200, `"memory":"x"`)
	w.send("PUT", "/v1/memories/mem_"+id.String(), `{"expiration_date":null}`).want(t, 200)
	w.send("PUT", path, `{"text":"y","metadata":null,"timestamp":null}`).want(t, 200)
	w.send("PUT", path, `{"timestamp":1700000000}`).want(t, 200)
	if c := w.changes; len(c) != 4 || c[3].Content != nil || c[3].EventDate == nil || c[3].EventDate.Unix() != 1_700_000_000 || c[2].EventDate != nil {
		t.Errorf("changes %+v", c)
	}
	w.changes = w.changes[:3]
	if c := w.changes; len(c) != 3 || *c[0].Content != "y" || string(c[0].Metadata) != `{"c":1}` || !c[0].ExpiresAt.Equal(time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)) ||
		!c[1].NeverExpires || c[1].Content != nil || c[2].NeverExpires || c[2].Metadata != nil {
		t.Errorf("changes %+v", c)
	}
	for _, body := range []string{"", `{}`, `{"text":""}`, `{"text":7}`, `{"timestamp":"soon","text":"x"}`, `{"text":"x","expiration_date":"never"}`, `{"metadata":7}`} {
		w.send("PUT", path, body).want(t, 400)
	}
	w.send("DELETE", path+"?delete_linked=true", "").want(t, 200, `"message":"Memory deleted successfully!"`)
	if c := w.changes; len(c) != 4 || !c[3].Delete || c[3].ID != id {
		t.Errorf("changes %+v", c)
	}
	w.send("GET", path+"history/", "").want(t, 200, `[{"id":`, `"memory_id":"`+id.String()+`"`, `"input":[]`, `"old_memory":null`, `"new_memory":"new"`, `"event":"ADD"`, `"user_id":"u"`)
	w.expired = true
	w.send("GET", path, "").want(t, 200, `"memory":"x"`, `"lifecycle_state":"expired"`)
	w.deleted = true
	w.send("GET", path, "").want(t, 404, "Memory not found!")
	w.send("GET", path+"history/", "").want(t, 200, `"user_id":"u"`, `"session_id":"r"`, `"metadata":{"b":1,"a":2}`)
	w.fail = fault.New(fault.MemoryNotFound)
	w.send("DELETE", path, "").want(t, 404, "Memory not found!")
}

func TestBatch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a, b := uuid.NewString(), uuid.NewString()
	updates := `{"memories":[{"memory_id":"` + a + `","text":"x"},{"memory_id":"mem_` + b + `","metadata":{"k":1}}]}`
	w.send("PUT", "/v1/batch/", updates).want(t, http.StatusAccepted, `"status":"PENDING"`, `"event_id":`)
	w.event.Status = task.EventSucceeded
	w.event.Results = []memory.Result{{RecordID: uuid.New(), Change: memory.Updated}, {RecordID: uuid.New(), Change: memory.None, Error: "MEMORY_NOT_FOUND"}}
	w.send("PUT", "/v1/batch/", updates).want(t, 200, "updated 1 of 2 memories", `"error":"MEMORY_NOT_FOUND"`)
	w.event.Results = w.event.Results[:1]
	w.send("DELETE", "/v1/batch/", `{"memories":[{"memory_id":"`+a+`"}]}`).want(t, 200, `"message":"Successfully deleted 1 memories"`)
	if n := w.batches; len(n) != 3 || n[0].Delete || !n[2].Delete || *n[0].Changes[0].Content != "x" || n[0].Changes[1].ID.String() != b {
		t.Errorf("batches %+v", n)
	}
	w.send("PUT", "/v1/batch/", `{"memories":[{"memory_id":"`+a+`","text":""}]}`).want(t, 400, `"/memories/0/text"`)
	many := strings.Repeat(`{"memory_id":"`+a+`"},`, 1_001)
	for _, body := range []string{
		"", `{}`, `{"memories":[]}`, `{"memories":"x"}`, `{"memories":[{"memory_id":"x","text":"y"}]}`, `{"memories":[{"text":"y"}]}`,
		`{"memories":[{"memory_id":"` + a + `"}]}`, `{"memories":[{"memory_id":"` + a + `","text":"x"},{"memory_id":"` + a + `","text":"y"}]}`, `{"memories":[` + strings.TrimSuffix(many, ",") + `]}`,
	} {
		w.send("PUT", "/v1/batch/", body).want(t, 400)
	}
}
