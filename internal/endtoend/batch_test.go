package endtoend

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// remember stores texts as they are and waits until they are searchable; it answers the ids of the records.
func (s *system) remember(user string, texts ...string) []string {
	s.t.Helper()
	messages := make([]map[string]string, len(texts))
	for i, text := range texts {
		messages[i] = map[string]string{"role": "user", "content": text}
	}
	a := s.do("POST", "/v1/memories", "", map[string]any{"user_id": user, "messages": messages, "infer": false})
	if a.status != http.StatusOK {
		s.t.Fatalf("store: %d %s", a.status, a.body)
	}
	var stored struct {
		EventID string `json:"event_id"`
		Results []struct {
			ID string `json:"id"`
		} `json:"results"`
	}
	a.into(s.t, &stored)
	s.succeeded(stored.EventID)
	ids := make([]string, len(stored.Results))
	for i, r := range stored.Results {
		ids[i] = r.ID
	}
	return ids
}

func (s *system) batch(method, key string, body map[string]any) string {
	s.t.Helper()
	a := s.do(method, "/v1/memories/batch", key, body)
	if a.status != http.StatusAccepted {
		s.t.Fatalf("batch: %d %s", a.status, a.body)
	}
	var receipt struct {
		EventID string `json:"event_id"`
	}
	a.into(s.t, &receipt)
	return receipt.EventID
}

// TestBatchKilled kills a worker at each point of a batch of 250 and lets another one go on: no item is done twice.
func TestBatchKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"batch.in_tx", "batch.committed", "worker.after_piece"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t))
			s.startAPI()
			first := s.startWorker()
			texts := make([]string, 250)
			for i := range texts {
				texts[i] = fmt.Sprintf("old %03d", i)
			}
			ids := s.remember("u", texts...)
			first.Signal(syscall.SIGTERM)
			first.Wait(patience)
			changes := make([]map[string]any, len(ids))
			for i, id := range ids {
				changes[i] = map[string]any{"id": id, "content": fmt.Sprintf("new %03d", i), "version": 1}
			}
			doomed := s.startWorker(point(name, "kill"))
			id := s.batch("PUT", "k", map[string]any{"memories": changes})
			announced(doomed, name)
			doomed.Wait(patience)
			if again := s.batch("PUT", "k", map[string]any{"memories": changes}); again != id {
				t.Fatalf("the same batch again is %s, not %s", again, id)
			}
			s.startWorker()
			e := s.succeeded(id)
			if *e.Outcome != "STORED" || len(e.Results) != 250 {
				t.Fatalf("outcome %s with %d results", *e.Outcome, len(e.Results))
			}
			for i, r := range e.Results {
				if r.ID != ids[i] || r.Event != "UPDATE" || r.Memory == nil || *r.Memory != fmt.Sprintf("new %03d", i) {
					t.Fatalf("result %d is %+v", i, r)
				}
			}
			if n := one[int64](s, `SELECT count(*) FROM memories m WHERE version <> 2 OR (SELECT count(*) FROM memory_history h WHERE h.memory_id = m.id) <> 2`); n != 0 {
				t.Errorf("%d records were not changed exactly once", n)
			}
			if n := one[int64](s, `SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM memory_vectors v WHERE v.memory_id = m.id AND v.version = m.version)`); n != 0 {
				t.Errorf("%d records have no vector", n)
			}
			s.sound(1)
		})
	}
}

// TestChangeHeals changes and ends records while the embedder is away: what is read is right at once, what is found
// by meaning follows.
func TestChangeHeals(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	ids := s.remember("u", "drinks tea", "likes cats", "plays chess")
	s.stub.Always(stubmodel.At(stubmodel.Embeddings), stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down")))
	a := s.do("PUT", "/v1/memories/"+ids[0], "k", map[string]any{"content": "drinks coffee", "version": 1})
	var changed struct {
		EventID string `json:"event_id"`
		Memory  string `json:"memory"`
		Version int    `json:"version"`
	}
	if a.into(t, &changed); a.status != http.StatusOK || changed.Version != 2 || changed.Memory != "drinks coffee" {
		t.Fatalf("put: %d %s", a.status, a.body)
	}
	again := s.do("PUT", "/v1/memories/"+ids[0], "k", map[string]any{"content": "drinks coffee", "version": 1})
	if again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(a.body) {
		t.Errorf("replay %d %s of %s", again.status, again.body, a.body)
	}
	batch := s.batch("PUT", "", map[string]any{"memories": []map[string]any{{"id": ids[1], "content": "likes dogs"}}})
	if a = s.do("DELETE", "/v1/memories/"+ids[2], "", nil); a.status != http.StatusOK {
		t.Fatalf("delete: %d %s", a.status, a.body)
	}
	if got := string(s.do("GET", "/v1/memories?user_id=u", "", nil).body); !strings.Contains(got, "coffee") || strings.Contains(got, "chess") {
		t.Errorf("list %s", got)
	}
	s.until("both wait for the embedder", func() bool {
		return s.event(changed.EventID).Status == "RETRYING" && s.event(batch).Status == "RETRYING"
	})
	s.stub.Always(stubmodel.At(stubmodel.Embeddings), nil)
	s.succeeded(changed.EventID)
	s.succeeded(batch)
	if got := one[string](s, `SELECT string_agg(m.text || ' ' || m.version, '|' ORDER BY m.text) FROM memories m JOIN memory_vectors v ON v.memory_id = m.id AND v.version = m.version`); got != "drinks coffee 2|likes dogs 2" {
		t.Errorf("with vectors: %s", got)
	}
	history := string(s.do("GET", "/v1/memories/"+ids[2]+"/history", "", nil).body)
	if !strings.Contains(history, "plays chess") || strings.Count(history, `"event"`) != 2 {
		t.Errorf("history %s", history)
	}
	if got := string(s.do("GET", "/v1/entities/user/u", "", nil).body); !strings.Contains(got, `"total_memories":2`) {
		t.Errorf("entity %s", got)
	}
	s.sound(1)
}
