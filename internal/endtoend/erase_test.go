package endtoend

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// gone is a user and a word of his that an erase must leave nowhere.
const gone = "xylophone-4712"

type eraseResult struct {
	Deleted   int    `json:"deleted"`
	Cancelled int    `json:"cancelled"`
	EventID   string `json:"event_id"`
}

// past gives the user one event in each state that an erase meets: stored, failed, and running in the model.
func (s *system) past(t *testing.T) (running string, hold *stubmodel.Hold) {
	t.Helper()
	s.succeeded(s.add("stored", conversation(gone, "FACT: "+gone+" one", "FACT: "+gone+" two")))
	s.stub.Always(stubmodel.With("nonsense"), stubmodel.Reply(stubmodel.Content("nonsense")))
	if e := s.ended(s.add("failed", conversation(gone, "nonsense "+gone))); e.Status != "FAILED" {
		t.Fatalf("event %+v", e)
	}
	hold = s.stub.Hold(stubmodel.With("patience"))
	running = s.add("running", conversation(gone, "FACT: patience "+gone))
	<-hold.Arrived()
	s.add("queued", conversation(gone, "FACT: "+gone+" queued"))
	return running, hold
}

func (s *system) wantGone(t *testing.T) {
	t.Helper()
	if found := one[string](s, everywhereSQL, gone); found != "" {
		t.Errorf("the erased text is in %s", found)
	}
	if n := one[int64](s, `SELECT count(*) FROM erasures`); n != 0 {
		t.Errorf("%d fences are left", n)
	}
}

// TestErase erases a user over HTTP while his events are in every state.
func TestErase(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_LOG_LEVEL=debug", "HOLDFAST_OUTPUT_RETRIES=0")
	api := s.startAPI()
	worker := s.startWorker()
	other := s.add("other", conversation("other", "FACT: other"))
	s.succeeded(other)
	running, hold := s.past(t)
	if a := s.do("DELETE", "/v1/memories", "e", nil); a.status != http.StatusBadRequest {
		t.Fatalf("without a scope: %d %s", a.status, a.body)
	}
	a := s.do("DELETE", "/v1/memories?user_id="+gone, "e", nil)
	var erased eraseResult
	if a.into(t, &erased); a.status != http.StatusOK || erased.Deleted != 2 || erased.Cancelled != 2 {
		t.Fatalf("erased: %d %s", a.status, a.body)
	}
	hold.Release()
	s.wantGone(t)
	if e := s.event(running); e.Status != "FAILED" || e.Error.Code != "CANCELLED" || e.Error.Retryable {
		t.Errorf("the running event is %+v", e)
	}
	for _, id := range []string{erased.EventID, running} {
		shown := string(s.do("GET", "/v1/events/"+id, "", nil).body)
		if !strings.Contains(shown, `"scope":null`) || !strings.Contains(shown, `"erased":true`) {
			t.Errorf("an erased event shows %s", shown)
		}
	}
	if a := s.do("POST", "/v1/events/"+running+"/retry", "", map[string]any{"generation": 1}); a.status != http.StatusGone {
		t.Errorf("retry: %d %s", a.status, a.body)
	}
	s.succeeded(s.add("later", conversation(gone, "FACT: later")))
	again := s.do("DELETE", "/v1/memories?user_id="+gone, "e", nil)
	if again.status != http.StatusOK || again.header.Get("Idempotent-Replayed") != "true" || string(again.body) != string(a.body) {
		t.Errorf("the replay answers %d %s", again.status, again.body)
	}
	if got := s.texts(gone) + s.texts("other"); got != "laterother" {
		t.Errorf("left are %q", got)
	}
	if a := s.do("DELETE", "/v1/entities/user/"+gone, "", nil); a.status != http.StatusOK {
		t.Errorf("by entity: %d %s", a.status, a.body)
	}
	s.wantGone(t)
	s.sound(6)
	for _, text := range []string{api.Stderr(), worker.Stderr()} {
		if strings.Contains(text, gone) {
			t.Error("the erased text is in a log")
		}
	}
}

// TestEraserKilled kills the API right after it has accepted an erase, and then one worker after another behind or in
// its pieces. What comes meanwhile stays.
func TestEraserKilled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worker.after_piece", "erase.in_tx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_OUTPUT_RETRIES=0", "HOLDFAST_LEASE_TTL=1s")
			s.startAPI(point("erase.committed", "kill"))
			first := s.startWorker()
			_, hold := s.past(t)
			first.Kill()
			hold.Release()
			if a, err := s.try("DELETE", "/v1/memories?user_id="+gone, "e", nil); err == nil {
				t.Fatalf("the API answered %d %s", a.status, a.body)
			}
			s.startAPI()
			s.add("later", conversation(gone, "FACT: later"))
			deaths := 0
			for ; deaths < 3; deaths++ {
				doomed := s.startWorker(point(name, "kill"))
				announced(doomed, name)
				doomed.Wait(patience)
				if name == "erase.in_tx" { // it has moved nothing; let the next one get further
					s.startWorker(point("worker.after_piece", "kill")).Wait(patience)
				}
			}
			s.startWorker()
			s.until("the erase ends", func() bool {
				return one[int64](s, `SELECT count(*) FROM tasks WHERE kind = 'scope_erase' AND status = 'succeeded'`) == 1
			})
			a := s.do("DELETE", "/v1/memories?user_id="+gone, "e", nil)
			var erased eraseResult
			if a.into(t, &erased); a.status != http.StatusOK || erased.Deleted != 2 || erased.Cancelled != 2 {
				t.Errorf("the replay: %d %s", a.status, a.body)
			}
			s.until("the later one ends", func() bool { return s.texts(gone) == "later" })
			s.exec(`UPDATE memories SET user_id = NULL`)
			s.exec(`UPDATE tasks SET user_id = NULL`)
			s.wantGone(t)
		})
	}
}

// TestEraseTakesLonger holds a lane, so that the erase outlasts its caller's patience.
func TestEraseTakesLonger(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t))
	s.startAPI()
	s.startWorker()
	s.succeeded(s.add("k", conversation(gone, "FACT: "+gone)))
	block, err := s.sql.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := block.Exec(t.Context(), `SELECT FROM lanes FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	a := s.do("DELETE", "/v1/memories?user_id="+gone, "e", nil)
	if err := block.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var receipt eraseResult
	a.into(t, &receipt)
	if a.status != http.StatusAccepted || a.header.Get("Location") != "/v1/events/"+receipt.EventID {
		t.Fatalf("answered %d %s", a.status, a.body)
	}
	s.succeeded(receipt.EventID)
	var erased eraseResult
	a = s.do("DELETE", "/v1/memories?user_id="+gone, "e", nil)
	if a.into(t, &erased); a.status != http.StatusOK || erased.Deleted != 1 || erased.EventID != receipt.EventID {
		t.Errorf("the replay: %d %s", a.status, a.body)
	}
	s.wantGone(t)
}
