package endtoend

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// TestOneCommand sends one request before, during and after its completion, each time fifty at once and half of
// them changed.
func TestOneCommand(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	hold := s.stub.Hold(stubmodel.With("coffee"))
	id := s.add("k", conversation("u", "FACT: likes coffee"))
	fifty := func(when string) {
		var mu sync.Mutex
		answers := map[string]int{}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				body := conversation("u", "FACT: likes coffee")
				if i%2 == 1 {
					body = conversation("u", "FACT: likes tea")
				}
				a, err := s.try("POST", "/v1/memories", "k", body)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Errorf("%s: %v", when, err)
				case a.status == http.StatusAccepted:
					var receipt struct {
						EventID string `json:"event_id"`
					}
					a.into(t, &receipt)
					answers[receipt.EventID]++
				default:
					answers[fmt.Sprint(a.status)]++
				}
			})
		}
		wg.Wait()
		if len(answers) != 2 || answers[id] != 25 || answers["409"] != 25 {
			t.Errorf("%s: %v", when, answers)
		}
	}
	fifty("before")
	s.startWorker()
	<-hold.Arrived()
	fifty("during")
	hold.Release()
	s.succeeded(id)
	fifty("after")
	if n := s.stub.Count(stubmodel.At(stubmodel.Chat)); n != 1 {
		t.Errorf("%d extractions", n)
	}
	if got := s.texts("u"); got != "likes coffee" {
		t.Errorf("records %q", got)
	}
	s.sound(2)
}

// TestProjectionHeals takes the embedder away: the records are readable, the event says RETRYING, and once the
// embedder is back the same records are found, without another extraction.
func TestProjectionHeals(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	s.stub.Always(stubmodel.At(stubmodel.Embeddings), stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down")))
	id := s.add("k", conversation("u", "FACT: one", "FACT: two"))
	s.until("the projection is retried", func() bool {
		e := s.event(id)
		return e.Status == "RETRYING" && e.Error != nil && e.Error.Class == "projection_failed" && len(e.Results) == 0
	})
	before := one[string](s, `SELECT string_agg(id::text, ',' ORDER BY id) FROM memories`)
	if got := string(s.do("GET", "/v1/memories?user_id=u", "", nil).body); !strings.Contains(got, `"one"`) {
		t.Errorf("the records are not readable: %s", got)
	}
	s.stub.Always(stubmodel.At(stubmodel.Embeddings), nil)
	e := s.succeeded(id)
	if len(e.Results) != 2 {
		t.Errorf("event %+v", e)
	}
	if after := one[string](s, `SELECT string_agg(id::text, ',' ORDER BY id) FROM memories`); after != before {
		t.Errorf("records changed from %s to %s", before, after)
	}
	if n := s.stub.Count(stubmodel.At(stubmodel.Chat)); n != 1 {
		t.Errorf("%d extractions", n)
	}
	if n := one[int64](s, `SELECT count(*) FROM memory_history`); n != 2 {
		t.Errorf("%d history rows", n)
	}
	s.sound(2)
}

// TestRefusedText lets the embedder refuse one of three texts for good: the event succeeds and the vector says so.
func TestRefusedText(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	s.stub.RefuseTexts("unspeakable")
	e := s.succeeded(s.add("k", conversation("u", "FACT: one", "FACT: unspeakable", "FACT: three")))
	if len(e.Results) != 3 {
		t.Errorf("event %+v", e)
	}
	if got := one[string](s, `SELECT string_agg(m.text || ' ' || v.skipped, ',' ORDER BY m.text) FROM memories m JOIN memory_vectors v ON v.memory_id = m.id`); got != "one false,three false,unspeakable true" {
		t.Errorf("vectors %s", got)
	}
	if got := string(s.do("GET", "/v1/health", "", nil).body); !strings.Contains(got, "vectors_skipped") {
		t.Errorf("health %s", got)
	}
	s.sound(2)
}

// another makes a second workspace with a key of its own.
func (s *system) another(permissions ...access.Permission) (key string, id uuid.UUID) {
	s.t.Helper()
	db, err := postgres.Open(s.t.Context(), postgres.Config{URL: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	w, err := db.CreateWorkspace(s.t.Context(), uuid.NewString(), true)
	if err != nil {
		s.t.Fatal(err)
	}
	made, err := db.CreateKey(s.t.Context(), w.ID, "other", permissions, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return made.Reveal(), w.ID
}

// as runs f with another key.
func (s *system) as(key string, f func()) {
	mine := s.key
	s.key = key
	defer func() { s.key = mine }()
	f()
}

// TestOtherWorkspaces asks for another workspace's things: the answer is that of things that don't exist.
func TestOtherWorkspaces(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline")
	s.startAPI()
	s.startWorker()
	id := s.add("secret-key", conversation("u", "My name is Ada and I live in Paris."))
	e := s.succeeded(id)
	if len(e.Results) == 0 {
		t.Fatalf("event %+v", e)
	}
	for i := range 3 {
		s.succeeded(s.add(fmt.Sprintf("more-%d", i), conversation("u", fmt.Sprintf("My favourite number is %d.", i))))
	}
	var page struct {
		Next *string `json:"next_cursor"`
	}
	s.do("GET", "/v1/events?limit=1", "", nil).into(t, &page)
	if page.Next == nil {
		t.Fatal("no cursor")
	}
	key, _ := s.another(access.Permissions()...)
	unknown := uuid.Must(uuid.NewV7()).String()
	same := func(what, method, path, other string, body any) {
		t.Helper()
		a, b := s.do(method, path, "", body), s.do(method, other, "", body)
		if a.status != http.StatusNotFound || a.status != b.status || withoutID(a) != withoutID(b) {
			t.Errorf("%s: %d %s, unknown %d %s", what, a.status, a.body, b.status, b.body)
		}
	}
	s.as(key, func() {
		same("event", "GET", "/v1/events/"+id, "/v1/events/evt_"+unknown, nil)
		same("operation", "GET", "/v1/operations/"+id, "/v1/operations/evt_"+unknown, nil)
		same("retry", "POST", "/v1/events/"+id+"/retry", "/v1/events/evt_"+unknown+"/retry", map[string]any{"generation": 1})
		same("cancel", "POST", "/v1/events/"+id+"/cancel", "/v1/events/evt_"+unknown+"/cancel", nil)
		same("memory", "GET", "/v1/memories/"+e.Results[0].ID, "/v1/memories/mem_"+unknown, nil)
		if a := s.do("GET", "/v1/events?limit=1&cursor="+*page.Next, "", nil); a.status != http.StatusBadRequest {
			t.Errorf("cursor: %d %s", a.status, a.body)
		}
		if a := s.do("GET", "/v1/events", "secret-key", nil); a.status != http.StatusOK || strings.Contains(string(a.body), "evt_") {
			t.Errorf("key: %d %s", a.status, a.body)
		}
		if a := s.do("GET", "/v1/memories?user_id=u", "", nil); a.status != http.StatusOK || strings.Contains(string(a.body), "mem_") {
			t.Errorf("list: %d %s", a.status, a.body)
		}
		search := map[string]any{"query": "where does Ada live", "user_id": "u"}
		if a := s.do("POST", "/v1/memories/search", "", search); a.status != http.StatusOK || strings.Contains(string(a.body), "mem_") {
			t.Errorf("search: %d %s", a.status, a.body)
		}
		if a := s.do("GET", "/v1/credits/entries", "", nil); a.status != http.StatusOK || strings.Contains(string(a.body), "evt_") {
			t.Errorf("journal: %d %s", a.status, a.body)
		}
	})
}

// withoutID is the body without what differs between any two requests.
func withoutID(a answer) string {
	id := a.header.Get("X-Request-Id")
	return strings.ReplaceAll(string(a.body), id, "")
}

// TestKeys checks permissions, and that revoked and expired keys are refused within a second.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	reader, workspace := s.another(access.MemoryRead)
	s.as(reader, func() {
		if a := s.do("GET", "/v1/memories?user_id=u", "", nil); a.status != http.StatusOK {
			t.Errorf("allowed: %d %s", a.status, a.body)
		}
		if a := s.do("POST", "/v1/memories", "k", conversation("u", "x")); a.status != http.StatusForbidden {
			t.Errorf("write: %d %s", a.status, a.body)
		}
		if a := s.do("GET", "/v1/events", "", nil); a.status != http.StatusForbidden {
			t.Errorf("events: %d %s", a.status, a.body)
		}
	})
	refusedSoon := func(what, code string) {
		t.Helper()
		changed := time.Now()
		s.as(reader, func() {
			s.until(what, func() bool {
				a := s.do("GET", "/v1/memories?user_id=u", "", nil)
				return a.status == http.StatusUnauthorized && strings.Contains(string(a.body), code)
			})
		})
		if took := time.Since(changed); took > time.Second {
			t.Errorf("%s: refused after %s", what, took)
		}
	}
	s.exec(`UPDATE api_keys SET expires_at = clock_timestamp() WHERE workspace_id = $1`, workspace)
	refusedSoon("the key has expired", "API_KEY_EXPIRED")
	s.exec(`UPDATE api_keys SET expires_at = NULL, revoked_at = clock_timestamp() WHERE workspace_id = $1`, workspace)
	refusedSoon("the key is revoked", "INVALID_API_KEY")
}

// TestCancelAndRetry cancels an event in the middle of its model call and runs it again by hand.
func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	hold := s.stub.Hold(stubmodel.With("one"))
	id := s.add("k", conversation("u", "FACT: one"))
	<-hold.Arrived()
	for range 2 {
		if a := s.do("POST", "/v1/events/"+id+"/cancel", "", nil); a.status != http.StatusAccepted {
			t.Fatalf("cancel: %d %s", a.status, a.body)
		}
	}
	e := s.event(id)
	if e.Status != "FAILED" || e.Error == nil || e.Error.Code != "CANCELLED" || e.Usage.Released != 2 {
		t.Errorf("cancelled %+v", e)
	}
	hold.Release()
	for range 2 {
		a := s.do("POST", "/v1/events/"+id+"/retry", "", map[string]any{"generation": 1})
		if a.status != http.StatusAccepted {
			t.Fatalf("retry: %d %s", a.status, a.body)
		}
	}
	e = s.succeeded(id)
	if e.Generation != 2 || e.Usage.Settled != 2 || len(e.Results) != 1 {
		t.Errorf("retried %+v", e)
	}
	if a := s.do("POST", "/v1/events/"+id+"/cancel", "", nil); a.status != http.StatusConflict {
		t.Errorf("cancel of a success: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "/v1/events/"+id+"/retry", "", map[string]any{"generation": 2}); a.status != http.StatusConflict {
		t.Errorf("retry of a success: %d %s", a.status, a.body)
	}
	s.sound(2)
}
