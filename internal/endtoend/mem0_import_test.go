package endtoend

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// mem0Export is a page of memories as mem0's API answers them: not in the order of their ids, with members that mean
// nothing here.
const mem0Export = `{"count": 3, "next": null, "previous": null, "results": [
 {"id": "7c1bb1a5-8a2f-4a38-9c0d-111111111111", "memory": "Ada prefers oolong over coffee", "user_id": "ada", "agent_id": null,
  "app_id": "kitchen", "run_id": null, "hash": "d41d8cd98f00b204e9800998ecf8427e",
  "metadata": {"z": 1.50, "source": {"mail": ["a", null, true]}, "n": 9007199254740991},
  "categories": ["food", "user_preferences"], "created_at": "2025-02-27T16:33:20.557123-07:00",
  "updated_at": "2025-03-01T08:00:00.000001Z", "expiration_date": null, "immutable": false, "score": 0.43},
 {"id": "02f4b1a5-8a2f-4a38-9c0d-222222222222", "memory": "Die Straße heißt „Am Wörth“ 🦊", "user_id": "ada", "session_id": "run-7",
  "metadata": null, "categories": null, "created_at": "2024-07-26T08:44:41.039788Z", "updated_at": null, "expiration_date": "2099-12-31"},
 {"id": "02f4b1a5-8a2f-4a38-9c0d-333333333333", "memory": "Deploys go out on Tuesdays", "agent_id": "ops", "metadata": {},
  "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-01T00:00:00Z"}]}
`

func (s *system) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// TestMem0Import moves memories in from mem0 with the real command and reads them back.
func TestMem0Import(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	file := s.file("export.json", mem0Export)

	for name, text := range map[string]string{
		"no entity": strings.Replace(mem0Export, `"agent_id": "ops",`, "", 1),
		"twice":     strings.Replace(mem0Export, "333333333333", "222222222222", 1),
		"no time":   strings.Replace(mem0Export, "2025-01-01T00:00:00Z", "soon", 1),
		"no text":   strings.Replace(mem0Export, `"Deploys go out on Tuesdays"`, `{"text":"x"}`, 1),
		"cut off":   mem0Export[:len(mem0Export)-10],
		"empty":     `{"results":[]}`,
	} {
		if out := s.holdfast(2, "import", "--from", "mem0", s.file("bad.json", text)); out != "" {
			t.Errorf("%s: %s", name, out)
		}
	}
	s.holdfast(2, "import", "--dry-run", file)
	if out := s.holdfast(0, "import", "--from", "mem0", "--dry-run", file); !strings.Contains(out, "3 memories of 1 users, 1 agents, 1 apps and 1 runs") {
		t.Errorf("dry run: %s", out)
	}
	if n := one[int](s, `SELECT count(*) FROM tasks`); n != 0 {
		t.Fatalf("%d tasks after checks", n)
	}

	s.holdfast(0, "import", "--from", "mem0", "--idempotency-key", "k", file)
	s.holdfast(0, "import", "--from", "mem0", "--idempotency-key", "k", file) // the same event
	if n := one[int](s, `SELECT count(*) FROM memories m JOIN memory_vectors v ON v.memory_id = m.id JOIN memory_history h ON h.memory_id = m.id`); n != 3 {
		t.Fatalf("%d memories are there with their vectors and history", n)
	}
	type shown struct {
		Memory     string          `json:"memory"`
		UserID     *string         `json:"user_id"`
		AgentID    *string         `json:"agent_id"`
		AppID      *string         `json:"app_id"`
		RunID      *string         `json:"run_id"`
		Metadata   json.RawMessage `json:"metadata"`
		Categories []string        `json:"categories"`
		CreatedAt  time.Time       `json:"created_at"`
		UpdatedAt  time.Time       `json:"updated_at"`
		ExpiresAt  *time.Time      `json:"expires_at"`
	}
	get := func(id string) (m shown) {
		a := s.do("GET", "/v1/memories/"+id, "", nil)
		s.want(a, http.StatusOK)
		a.into(t, &m)
		return m
	}
	first := get("7c1bb1a5-8a2f-4a38-9c0d-111111111111")
	if first.Memory != "Ada prefers oolong over coffee" || *first.UserID != "ada" || *first.AppID != "kitchen" || first.RunID != nil ||
		string(first.Metadata) != `{"z":1.50,"source":{"mail":["a",null,true]},"n":9007199254740991}` ||
		strings.Join(first.Categories, " ") != "food user_preferences" ||
		!first.CreatedAt.Equal(time.Date(2025, 2, 27, 23, 33, 20, 557_123_000, time.UTC)) ||
		!first.UpdatedAt.Equal(time.Date(2025, 3, 1, 8, 0, 0, 1_000, time.UTC)) {
		t.Errorf("%+v %s", first, first.Metadata)
	}
	second := get("02f4b1a5-8a2f-4a38-9c0d-222222222222")
	if second.Memory != "Die Straße heißt „Am Wörth“ 🦊" || *second.RunID != "run-7" || second.ExpiresAt == nil ||
		!second.ExpiresAt.Equal(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) || !second.UpdatedAt.Equal(second.CreatedAt) {
		t.Errorf("%+v", second)
	}
	if third := get("02f4b1a5-8a2f-4a38-9c0d-333333333333"); *third.AgentID != "ops" || third.UserID != nil {
		t.Errorf("%+v", third)
	}
	if got := s.search(map[string]any{"query": "oolong", "user_id": "ada"}); !strings.Contains(got.texts(), "oolong") {
		t.Errorf("the search finds %q", got.texts())
	}
}
