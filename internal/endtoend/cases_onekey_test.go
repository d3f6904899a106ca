package endtoend

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func oneKeyCases() map[string]func(*system) {
	return map[string]func(*system){"SecondEndpointWithTheSameKey": oneKeyForAllWrites}
}

// keyedWrite is one kind of write with its key.
type keyedWrite struct {
	name string
	send func(key string) answer
	sent bool // under its name, already
}

// stateSQL is everything that a refused command could have changed.
const stateSQL = `
SELECT concat_ws(' ', (SELECT count(*) FROM tasks), (SELECT count(*) FROM idempotency_keys), (SELECT count(*) FROM task_runs),
       (SELECT count(*) FROM memory_history), (SELECT md5(string_agg(to_jsonb(m)::text, ',' ORDER BY m.id)) FROM memories m),
       (SELECT string_agg(available || '/' || held, ',' ORDER BY workspace_id) FROM credit_accounts))`

// oneKeyForAllWrites gives each kind of write a key, and then sends every other kind under it: each is refused, nothing
// changes, and the first answers as before.
func oneKeyForAllWrites(s *system) {
	writes := s.keyedWrites()
	for _, w := range writes {
		if w.sent {
			continue
		}
		if a := w.send(w.name); a.status > 299 || a.header.Get("Idempotent-Replayed") != "" {
			s.t.Fatalf("%s: %d %s", w.name, a.status, a.body)
		}
		s.until(w.name+" has ended", func() bool { return one[int64](s, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`) == 0 })
	}
	before := one[string](s, stateSQL)
	for _, first := range writes {
		for _, w := range writes {
			if w.name != first.name {
				s.conflicts(fmt.Sprintf("%s under the key of %s", w.name, first.name), w.send(first.name), "evt_")
			}
		}
		s.replays(first.name, first.send(first.name))
	}
	if after := one[string](s, stateSQL); after != before {
		s.t.Fatalf("refused and repeated commands changed %s to %s", before, after)
	}
}

// keyedWrites are all kinds of write that take a key, of both dialects in which a key names a command.
func (s *system) keyedWrites() []keyedWrite {
	s.t.Helper()
	var export struct {
		EventID string `json:"event_id"`
	}
	s.do("POST", "/v1/exports", "empty", nil).into(s.t, &export) // an import takes an empty workspace only
	s.succeeded(export.EventID)
	snapshot := s.do("GET", "/v1/exports/"+export.EventID, "", nil)
	s.want(snapshot, http.StatusOK)
	imports := keyedWrite{"import", func(key string) answer { return s.sendSnapshot(key, snapshot.body) }, true}
	s.want(imports.send(imports.name), http.StatusAccepted)
	s.until("the import has ended", func() bool { return one[int64](s, `SELECT count(*) FROM tasks WHERE completed_at IS NULL`) == 0 })

	s.stub.Always(withMarker("one-key-broken"), stubmodel.Reply(stubmodel.Content("broken")))
	failed := s.add("one-key-failed", conversation("one-key", "one-key-broken"))
	s.ended(failed)
	ids := s.remember("one-key", "a", "b", "c", "d", "e", "f", "g", "h")
	s.remember("one-key-erased", "gone")
	s.remember("one-key-entity", "gone")
	s.remember("one-key-mem0", "gone")
	native := func(name, method, path string, body any) keyedWrite {
		return keyedWrite{name: name, send: func(key string) answer { return s.do(method, path, key, body) }}
	}
	mem0 := func(name, method, path, body string) keyedWrite {
		return keyedWrite{name: name, send: func(key string) answer { return s.mem0(method, path, body, "Idempotency-Key", key) }}
	}
	plain := func(id string) string { return strings.TrimPrefix(id, "mem_") }
	writes := []keyedWrite{
		native("add", "POST", "/v1/memories", conversation("one-key", "FACT: added")),
		native("verbatim", "POST", "/v1/memories", map[string]any{"user_id": "one-key", "content": "stored", "infer": false}),
		native("put", "PUT", "/v1/memories/"+ids[0], map[string]any{"content": "changed"}),
		native("delete", "DELETE", "/v1/memories/"+ids[1], nil),
		native("erase", "DELETE", "/v1/memories?user_id=one-key-erased", nil),
		native("entity", "DELETE", "/v1/entities/user/one-key-entity", nil),
		native("batch-put", "PUT", "/v1/memories/batch", map[string]any{"memories": []map[string]any{{"id": ids[2], "content": "changed c"}}}),
		native("batch-delete", "DELETE", "/v1/memories/batch", map[string]any{"ids": []string{ids[3]}}),
		native("export", "POST", "/v1/exports", nil),
		native("retry", "POST", "/v1/events/"+failed+"/retry", nil),
		mem0("mem0-add", "POST", "/v3/memories/add/", `{"messages":"FACT: mem0","user_id":"one-key"}`),
		mem0("mem0-verbatim", "POST", "/v3/memories/add/", `{"messages":"mem0 verbatim","user_id":"one-key","infer":false}`),
		mem0("mem0-put", "PUT", "/v1/memories/"+plain(ids[4])+"/", `{"text":"changed e"}`),
		mem0("mem0-delete", "DELETE", "/v1/memories/"+plain(ids[5])+"/", ""),
		mem0("mem0-erase", "DELETE", "/v1/memories/?user_id=one-key-mem0", ""),
		mem0("mem0-batch-put", "PUT", "/v1/batch/", `{"memories":[{"memory_id":"`+plain(ids[6])+`","text":"changed g"}]}`),
		mem0("mem0-batch-delete", "DELETE", "/v1/batch/", `{"memories":[{"memory_id":"`+plain(ids[7])+`"}]}`),
	}
	return append(writes, imports)
}
