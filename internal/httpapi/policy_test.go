package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// worldSettings keeps the policy of the world's workspaces and the feedback on its records.
type worldSettings struct{ *world }

func (w worldSettings) Change(_ context.Context, _ access.Caller, change command.PolicyChange) (command.ExtractionPolicy, error) {
	return command.ExtractionPolicy{Instructions: *change.Instructions, Categories: *change.Categories}, w.fail
}

func (w worldSettings) Give(_ context.Context, _ access.Caller, feedback command.Feedback) (*time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.records) == 0 || w.records[0].ID != feedback.Memory {
		return nil, fault.New(fault.MemoryNotFound)
	}
	if feedback.Verdict == nil {
		return nil, nil
	}
	at := time.Date(2026, 3, 4, 6, 6, 7, 0, time.FixedZone("", 3600))
	return &at, nil
}

func TestExtractionPolicy(t *testing.T) {
	t.Parallel()
	const path = "/v1/extraction-policy"

	t.Run("PutReplacesAllOfIt", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		reply := w.do(t, "all", "PUT", path, `{"categories":[{"name":" work ","description":"What people do."},{"name":"home"}]}`)
		reply.want(t, 200, "")
		want := `{"categories":[{"description":"What people do.","name":"work"},{"name":"home"}],"instructions":""}`
		if got := strings.TrimSpace(reply.Body.String()); got != want {
			t.Errorf("answer %s", got)
		}
	})

	t.Run("GetShowsWhatTheKeysWorkspaceHas", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		empty := w.do(t, "all", "GET", path, "")
		empty.want(t, 200, "")
		if got := strings.TrimSpace(empty.Body.String()); got != `{"categories":[],"instructions":""}` {
			t.Errorf("the empty policy is %s", got)
		}
		id := w.keys["all"].ID()
		caller := w.callers[id]
		caller.Workspace.Extraction = []byte(`{"instructions":"In French.","categories":[{"name":"work"}]}`)
		w.callers[id] = caller
		reply := w.do(t, "all", "GET", path, "")
		if got := strings.TrimSpace(reply.Body.String()); got != `{"categories":[{"name":"work"}],"instructions":"In French."}` {
			t.Errorf("answer %s", got)
		}
	})

	t.Run("RefusesWhatBreaksARule", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for body, pointer := range map[string]string{
			`{"instructions":"` + strings.Repeat("x", 5001) + `"}`:                                   "/instructions",
			`{"categories":[{"name":"  "}]}`:                                                         "/categories/0/name",
			`{"categories":[{"name":"` + strings.Repeat("x", 101) + `"}]}`:                           "/categories/0/name",
			`{"categories":[{"name":"a"},{"name":"A"}]}`:                                             "/categories/1/name",
			`{"categories":[{"name":"a","description":"` + strings.Repeat(canary, 50) + `"}]}`:       "/categories/0/description",
			`{"categories":[` + strings.Repeat(`{"name":"a"},`, 100) + `{"name":"` + canary + `"}]}`: "/categories",
			`{"categories":[{"name":5}]}`:                                                            "/categories/0/name",
			`{"categories":[{"name":"a","` + canary + `":1}]}`:                                       "/categories/0",
		} {
			refused := w.do(t, "all", "PUT", path, body)
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["pointer"] != pointer {
				t.Errorf("%.60s is refused at %v", body, refused.problem.Details)
			}
			if strings.Contains(refused.Body.String(), canary) {
				t.Errorf("the refusal quotes: %s", refused.Body)
			}
		}
	})

	t.Run("NeedsAnAdministratorToChange", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.addCaller(t, "reader", uuid.New(), access.MemoryRead, access.MemoryWrite)
		w.do(t, "reader", "GET", path, "").want(t, 200, "")
		w.do(t, "reader", "PUT", path, `{}`).want(t, 403, fault.InsufficientPermission)
	})

	t.Run("ACommandBringsCategoriesOfItsOwn", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "POST", "/v1/memories", `{"content":"x","user_id":"u","categories":[{"name":"work","description":"d"}]}`,
			header("Idempotency-Key", "k")).want(t, 202, "")
		if got := w.adds[0].Categories; len(got) != 1 || got[0] != (memory.Category{Name: "work", Description: "d"}) {
			t.Errorf("categories %+v", got)
		}
	})
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	withRecord := func(t *testing.T) (*world, string) {
		t.Helper()
		w := setup(t)
		w.records = []memory.Record{{ID: uuid.New(), Text: "x", Version: 1}}
		return w, "/v1/memories/" + memoryID(w.records[0].ID) + "/feedback"
	}

	t.Run("IsKeptAndTakenBack", func(t *testing.T) {
		t.Parallel()
		w, path := withRecord(t)
		reply := w.do(t, "all", "PUT", path, `{"feedback":"VERY_NEGATIVE","reason":"wrong city"}`)
		reply.want(t, 200, "")
		var said contract.Feedback
		reply.into(t, &said)
		if said.Id != memoryID(w.records[0].ID) || *said.Feedback != "VERY_NEGATIVE" || *said.Reason != "wrong city" ||
			said.UpdatedAt.Format(time.RFC3339) != "2026-03-04T05:06:07Z" {
			t.Errorf("answer %s", reply.Body)
		}
		reply = w.do(t, "all", "PUT", path, `{"feedback":null,"reason":"never mind"}`)
		reply.want(t, 200, "")
		var none contract.Feedback
		reply.into(t, &none)
		if none.Feedback != nil || none.Reason != nil || none.UpdatedAt != nil {
			t.Errorf("answer %s", reply.Body)
		}
	})

	t.Run("RefusesWhatBreaksARule", func(t *testing.T) {
		t.Parallel()
		w, path := withRecord(t)
		for body, pointer := range map[string]string{
			`{}`: "/feedback", `{"feedback":"` + canary + `"}`: "/feedback",
			`{"feedback":"POSITIVE","reason":"` + strings.Repeat("x", 5001) + `"}`: "/reason",
		} {
			refused := w.do(t, "all", "PUT", path, body)
			if refused.want(t, 400, fault.InvalidRequest); refused.problem.Details["pointer"] != pointer {
				t.Errorf("%.60s is refused at %v", body, refused.problem.Details)
			}
		}
		w.do(t, "all", "PUT", "/v1/memories/"+uuid.NewString()+"/feedback", `{"feedback":"POSITIVE"}`).want(t, 404, fault.MemoryNotFound)
		w.do(t, "all", "PUT", "/v1/memories/nonsense/feedback", `{"feedback":"POSITIVE"}`).want(t, 404, fault.MemoryNotFound)
	})
}
