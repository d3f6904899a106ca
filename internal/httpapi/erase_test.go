package httpapi

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// worldErases notes what was to be erased.
type worldErases struct{ *world }

func (w worldErases) Erase(_ context.Context, _ access.Caller, key *command.Key, scope memory.Scope) (write.Erased, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return write.Erased{}, w.fail
	}
	w.erases = append(w.erases, scope)
	erased := w.erased
	erased.Replayed = key != nil && len(w.erases) > 1
	return erased, nil
}

func TestErase(t *testing.T) {
	t.Parallel()

	t.Run("AnswersTheCounts", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := uuid.Must(uuid.NewV7())
		w.erased = write.Erased{EventID: id, Deleted: 3, Cancelled: 1, Finished: true}
		got := w.do(t, "all", "DELETE", "/v1/memories?user_id=%20u%20&app_id=a", "")
		got.want(t, 200, "")
		if want := `{"cancelled":1,"deleted":3,"event_id":"` + eventID(id) + `"}`; strings.TrimSpace(got.Body.String()) != want {
			t.Errorf("answered %s, want %s", got.Body, want)
		}
		if w.erases[0] != (memory.Scope{UserID: "u", AppID: "a"}) {
			t.Errorf("erased %+v", w.erases)
		}
	})

	t.Run("WhatTakesLongerIsAccepted", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.erased = write.Erased{EventID: uuid.Must(uuid.NewV7())}
		got := w.do(t, "all", "DELETE", "/v1/memories?user_id=u", "", header("Idempotency-Key", "k"))
		got.want(t, 202, "")
		if got.Header().Get("Location") == "" || got.Header().Get("Retry-After") == "" || got.Header().Get(replayedHeader) != "" {
			t.Errorf("headers %v", got.Header())
		}
		again := w.do(t, "all", "DELETE", "/v1/memories?user_id=u", "", header("Idempotency-Key", "k"))
		if again.want(t, 202, ""); again.Header().Get(replayedHeader) != "true" {
			t.Errorf("headers %v", again.Header())
		}
	})

	t.Run("WithoutAScopeNothingIsAsked", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.do(t, "all", "DELETE", "/v1/memories", "").want(t, 400, fault.ScopeRequired)
		for _, query := range []string{"?user_id=", "?user_id=%20", "?user_id=%E2%80%8B", "?user_id=u&bogus=1", "?user_id=u&user_id=v", "?user=u"} {
			w.do(t, "all", "DELETE", "/v1/memories"+query, "").want(t, 400, fault.InvalidRequest)
		}
		if len(w.erases) != 0 {
			t.Errorf("erased %+v", w.erases)
		}
	})

	t.Run("ByEntity", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.erased = write.Erased{EventID: uuid.Must(uuid.NewV7()), Finished: true}
		for path, want := range map[string]memory.Scope{
			"user/a%2Fb": {UserID: "a/b"}, "agent/x": {AgentID: "x"}, "run/%20r%20": {RunID: "r"}, "app/z": {AppID: "z"},
		} {
			w.erases = nil
			w.do(t, "all", "DELETE", "/v1/entities/"+path, "").want(t, 200, "")
			if len(w.erases) != 1 || w.erases[0] != want {
				t.Errorf("%s erased %+v", path, w.erases)
			}
		}
		w.do(t, "all", "DELETE", "/v1/entities/nobody/x", "").want(t, 400, fault.InvalidRequest)
		w.do(t, "all", "DELETE", "/v1/entities/user/%20", "").want(t, 404, fault.MemoryNotFound)
	})
}
