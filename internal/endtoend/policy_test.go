package endtoend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// policy sets the workspace's extraction policy.
func (s *system) policy(instructions string, categories ...map[string]string) {
	s.t.Helper()
	a := s.do("PUT", "/v1/extraction-policy", "", map[string]any{"instructions": instructions, "categories": append([]map[string]string{}, categories...)})
	if a.status != http.StatusOK {
		s.t.Fatalf("set the policy: %d %s", a.status, a.body)
	}
}

// filed answers the categories of a memory.
func (s *system) filed(id string) []string {
	s.t.Helper()
	var m struct {
		Categories []string `json:"categories"`
	}
	s.do("GET", "/v1/memories/"+id, "", nil).into(s.t, &m)
	return m.Categories
}

// tokenCall sends a request as the mem0 clients do.
func (s *system) tokenCall(method, path string, body any) (int, map[string]any) {
	s.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.api+path, bytes.NewReader(encoded))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Token "+s.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(read, &answer); err != nil {
		s.t.Fatalf("%s %s answers %d %s", method, path, response.StatusCode, read)
	}
	return response.StatusCode, answer
}

// TestExtractionPolicy changes how a workspace's conversations are read while one waits and one has failed.
func TestExtractionPolicy(t *testing.T) {
	t.Parallel()

	t.Run("WhatIsAcceptedKeepsIt", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, testkit.NewDatabase(t))
		s.startAPI()
		s.policy("Answer in Latin.", map[string]string{"name": "food", "description": "What people eat."}, map[string]string{"name": "work"})
		before := conversation("a", "FACT: User likes figs, said before the change")
		before["instructions"] = "Keep dates."
		first := s.add("k1", before)
		failing := s.add("k2", conversation("b", "this one fails at first"))
		s.policy("Answer in Greek.")
		second := s.add("k3", conversation("c", "FACT: User likes plums, said after the change"))
		s.stub.Queue(stubmodel.With("before the change"), stubmodel.Reply(stubmodel.FactList([]stubmodel.Fact{
			{Text: "User likes figs", Categories: []any{"work", "FOOD", "nonsense", 7}},
		})))
		s.stub.Queue(stubmodel.With("fails at first"), stubmodel.Reply(stubmodel.Refused()), stubmodel.Reply(stubmodel.Facts("User failed once")))
		s.startWorker()
		e := s.succeeded(first)
		if got := s.filed(e.Results[0].ID); !slices.Equal(got, []string{"food", "work"}) {
			t.Errorf("the record is filed under %q", got)
		}
		if got := s.filed(s.succeeded(second).Results[0].ID); got == nil || len(got) != 0 {
			t.Errorf("the later record is filed under %q", got)
		}
		if e := s.ended(failing); e.Status != "FAILED" {
			t.Fatalf("event %+v", e)
		}
		s.do("POST", "/v1/events/"+failing+"/retry", "", map[string]any{"generation": 1})
		s.succeeded(failing)

		call := s.stub.Calls(stubmodel.With("before the change"))[0]
		if !strings.Contains(call.System, `"Answer in Latin.\n\nKeep dates."`) || strings.Contains(call.System, "Greek") ||
			!strings.Contains(call.System, `{"name":"food","description":"What people eat."}`) || !bytes.Contains(call.Body, []byte(`["food","work"]`)) {
			t.Errorf("the prompt of the first is %s", call.System)
		}
		if call = s.stub.Calls(stubmodel.With("after the change"))[0]; !strings.Contains(call.System, "Answer in Greek.") ||
			strings.Contains(call.System, "Latin") || strings.Contains(call.System, "categories") {
			t.Errorf("the prompt of the second is %s", call.System)
		}
		retried := s.stub.Calls(stubmodel.With("fails at first"))
		if last := retried[len(retried)-1]; !strings.Contains(last.System, "Answer in Latin.") || strings.Contains(last.System, "Greek") {
			t.Errorf("the prompt of the retry is %s", last.System)
		}
		s.sound(6)
	})

	t.Run("CategoriesAreFoundByEverybody", func(t *testing.T) {
		t.Parallel()
		s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline")
		s.startAPI()
		s.startWorker()
		s.policy("", map[string]string{"name": "food", "description": "Pizza, figs and whatever else people eat."},
			map[string]string{"name": "home_town"})
		e := s.succeeded(s.add("k", conversation("u", "I love pizza. I live in the town of Ulm.")))
		if len(e.Results) != 2 {
			t.Fatalf("event %+v", e)
		}
		for filter, want := range map[string]string{"food": "pizza", "home_town": "Ulm"} {
			found := s.search(map[string]any{"query": "user", "user_id": "u", "filters": map[string]any{"categories": filter}})
			if len(found.Results) != 1 || !strings.Contains(found.texts(), want) {
				t.Errorf("%s finds %q", filter, found.texts())
			}
		}
		own := conversation("v", "I love pizza.")
		own["categories"] = []map[string]string{{"name": "pizza"}}
		if got := s.filed(s.succeeded(s.add("own", own)).Results[0].ID); !slices.Equal(got, []string{"pizza"}) {
			t.Errorf("a command's own categories: %q", got)
		}
	})
}

// TestFeedback says something of a memory and erases it.
func TestFeedback(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline")
	s.startAPI()
	id := s.remember("u", "one")[0]
	a := s.do("PUT", "/v1/memories/"+id+"/feedback", "", map[string]any{"feedback": "NEGATIVE", "reason": "marker-4711"})
	if a.status != http.StatusOK || !bytes.Contains(a.body, []byte(`"reason":"marker-4711"`)) {
		t.Fatalf("feedback: %d %s", a.status, a.body)
	}
	if n := one[int64](s, `SELECT count(*) FROM memory_feedback`); n != 1 {
		t.Fatalf("%d feedbacks", n)
	}
	if e := s.erases("u"); e.Deleted != 1 {
		t.Fatalf("erase %+v", e)
	}
	if n := one[int64](s, `SELECT count(*) FROM memory_feedback`); n != 0 {
		t.Errorf("%d feedbacks are left", n)
	}
	if a = s.do("PUT", "/v1/memories/"+id+"/feedback", "", map[string]any{"feedback": "POSITIVE"}); a.status != http.StatusNotFound {
		t.Errorf("feedback on what is erased: %d %s", a.status, a.body)
	}
}

// TestMem0Settings goes through project, feedback and exports as the mem0 clients do.
func TestMem0Settings(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline")
	s.startAPI()
	ids := s.remember("u", "one", "two")
	s.remember("v", "three")
	_, ping := s.tokenCall("GET", "/v1/ping/", nil)
	project := "/api/v1/orgs/organizations/" + ping["org_id"].(string) + "/projects/" + ping["project_id"].(string) + "/"
	want := func(what string, got any, want string) {
		t.Helper()
		encoded, err := json.Marshal(got)
		if err != nil || string(encoded) != want {
			t.Errorf("%s: %s, want %s", what, encoded, want)
		}
	}

	_, shown := s.tokenCall("GET", project+"?fields=custom_instructions&fields=custom_categories", nil)
	want("the empty project", shown, `{"custom_categories":[],"custom_instructions":null}`)
	status, updated := s.tokenCall("PATCH", project, map[string]any{
		"custom_instructions": "In Latin.", "custom_categories": []any{map[string]string{"food": "What is eaten."}, map[string]string{"work": ""}}, "decay": false,
	})
	if message, _ := updated["message"].(string); status != http.StatusOK || message == "" {
		t.Errorf("update: %d %v", status, updated)
	}
	status, refused := s.tokenCall("PATCH", project, map[string]any{"custom_instructions": "lost", "memory_depth": "high"})
	if status != http.StatusNotImplemented || refused["error"] != refused["detail"] {
		t.Errorf("an unknown setting: %d %v", status, refused)
	}
	_, shown = s.tokenCall("GET", project+"?fields=custom_instructions&fields=custom_categories&fields=name", nil)
	want("the project", shown, `{"custom_categories":[{"food":"What is eaten."},{"work":""}],"custom_instructions":"In Latin.","name":"test"}`)
	s.tokenCall("PATCH", project, map[string]any{"custom_instructions": nil})
	_, shown = s.tokenCall("GET", project, nil)
	want("what is left", shown["custom_categories"], `[{"food":"What is eaten."},{"work":""}]`)
	want("cleared", shown["custom_instructions"], `null`)
	if status, refused = s.tokenCall("GET", strings.Replace(project, "org_", "org_0", 1), nil); status != http.StatusNotFound {
		t.Errorf("another organisation: %d %v", status, refused)
	}

	bare := strings.TrimPrefix(ids[0], "mem_")
	_, given := s.tokenCall("POST", "/v1/feedback/", map[string]any{"memory_id": bare, "feedback": "VERY_NEGATIVE", "feedback_reason": "wrong"})
	want("feedback", given, `{"feedback":"VERY_NEGATIVE","feedback_reason":"wrong","id":"`+bare+`"}`)
	_, given = s.tokenCall("POST", "/v1/feedback/", map[string]any{"memory_id": bare, "feedback": nil})
	want("no feedback", given, `{"feedback":null,"feedback_reason":null,"id":"`+bare+`"}`)
	for what, body := range map[string]map[string]any{
		"no verdict": {"memory_id": bare}, "no id": {"feedback": "POSITIVE"}, "no such verdict": {"memory_id": bare, "feedback": "SO_SO"},
		"no memory id": {"memory_id": "undefined", "feedback": "POSITIVE"},
	} {
		if status, refused = s.tokenCall("POST", "/v1/feedback/", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v", what, status, refused)
		}
	}

	filters := map[string]any{"AND": []any{map[string]any{"user_id": "u"}}}
	status, created := s.tokenCall("POST", "/v1/exports/", map[string]any{"schema": map[string]any{"type": "object"}, "filters": filters})
	if id, _ := created["id"].(string); status != http.StatusCreated || id == "" || created["message"] == "" {
		t.Fatalf("export: %d %v", status, created)
	}
	for what, body := range map[string]map[string]any{"by id": {"memory_export_id": created["id"]}, "by filters": {"filters": filters}} {
		status, got := s.tokenCall("POST", "/v1/exports/get/", body)
		list, _ := got["memories"].([]any)
		if status != http.StatusOK || len(list) != 2 || got["count"] != 2.0 || got["truncated"] != false {
			t.Errorf("%s: %d %v", what, status, got)
		}
	}
	for what, body := range map[string]map[string]any{
		"unknown id": {"memory_export_id": "7d9ad2ad-0000-4000-8000-000000000000"}, "no id": {"memory_export_id": "x"},
		"other filters": {"filters": map[string]any{"user_id": "v"}},
	} {
		if status, refused = s.tokenCall("POST", "/v1/exports/get/", body); status != http.StatusNotFound || refused["error"] == "" {
			t.Errorf("%s: %d %v", what, status, refused)
		}
	}
	for what, body := range map[string]map[string]any{
		"everything": {"schema": map[string]any{}}, "empty filters": {"filters": map[string]any{}}, "unknown key": {"filters": map[string]any{"userid": "u"}}, "anybody": {"filters": map[string]any{"categories": "x"}},
	} {
		if status, refused = s.tokenCall("POST", "/v1/exports/", body); status != http.StatusBadRequest {
			t.Errorf("an export of %s: %d %v", what, status, refused)
		}
	}
	s.erases("u")
	if status, _ = s.tokenCall("POST", "/v1/exports/get/", map[string]any{"memory_export_id": created["id"]}); status != http.StatusNotFound {
		t.Errorf("an export after an erase: %d", status)
	}
}
