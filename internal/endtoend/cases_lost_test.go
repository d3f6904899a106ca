package endtoend

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

// withMarker matches the extractions of a case.
func withMarker(marker string) stubmodel.Match {
	return stubmodel.Match{Endpoint: stubmodel.Chat, Marker: marker}
}

func lostWriteCases() map[string]func(*system) {
	return map[string]func(*system){
		"OutputTruncatedForGood":     truncatedForGood,
		"OutputTruncatedOnce":        truncatedOnce,
		"OutputCutMidArray":          cutMidArray,
		"NothingToRemember":          nothingToRemember,
		"FormOfAnEventInEveryState":  formInEveryState,
		"ReadRightAfterAccepted":     readRightAfter,
		"TextBeyondTwoThousandChars": beyondTwoThousand,
		"BodyBeyondTheLimit":         beyondTheLimit,
	}
}

// failsWhole fails unless the event ends as failed with a reason, stores nothing and gives its credits back.
func (s *system) failsWhole(id, user string) {
	s.t.Helper()
	e := s.ended(id)
	if e.Status != "FAILED" || e.Error == nil || e.Error.Code != "OUTPUT_INVALID" || !e.Error.Retryable || len(e.Results) != 0 {
		s.t.Fatalf("event %+v", e)
	}
	if e.Usage.ProviderCalls != 2 || e.Usage.Released != 2 || e.Usage.Settled != 0 || s.texts(user) != "" {
		s.t.Fatalf("usage %+v, records %q", e.Usage, s.texts(user))
	}
}

func truncatedForGood(s *system) {
	s.stub.Always(withMarker("always-truncated"), stubmodel.Reply(stubmodel.Truncated()))
	s.failsWhole(s.add("always-truncated", conversation("always-truncated", "always-truncated "+strings.Repeat("abcdefg ", 450))), "always-truncated")
}

// truncatedOnce is answered in full the second time: two extractions and one call for the vectors.
func truncatedOnce(s *system) {
	s.stub.Queue(withMarker("once-truncated"), stubmodel.Reply(stubmodel.Truncated()))
	e := s.succeeded(s.add("once-truncated", conversation("once-truncated", "FACT: once-truncated one", "FACT: once-truncated two")))
	if len(e.Results) != 2 || e.Usage.ProviderCalls != 3 || e.Usage.Settled != 2 {
		s.t.Fatalf("event %+v", e)
	}
}

func cutMidArray(s *system) {
	s.stub.Always(withMarker("mid-array"), stubmodel.Reply(stubmodel.Content(`{"facts":["a","b`)))
	s.failsWhole(s.add("mid-array", conversation("mid-array", "mid-array")), "mid-array")
}

func nothingToRemember(s *system) {
	e := s.succeeded(s.add("nothing", conversation("nothing", "Nice weather today.")))
	s.outcomeIs(e, "NO_MEMORY")
	if len(e.Results) != 0 || e.Usage.ProviderCalls != 1 {
		s.t.Fatalf("event %+v", e)
	}
}

func formInEveryState(s *system) {
	hold := s.stub.Hold(withMarker("every-form"))
	id := s.add("every-form", conversation("every-form", "FACT: every-form"))
	<-hold.Arrived()
	running := s.do("GET", "/v1/events/"+id, "", nil)
	s.want(running, http.StatusOK, `"status":"RUNNING"`, `"results":[]`)
	hold.Release()
	s.succeeded(id)
	s.stub.Always(withMarker("broken-form"), stubmodel.Reply(stubmodel.Content("broken")))
	failing := s.add("broken-form", conversation("every-form", "broken-form"))
	s.ended(failing)
	for _, other := range []string{id, failing} {
		a := s.do("GET", "/v1/events/"+other, "", nil)
		if s.members(a) != s.members(running) {
			s.t.Fatalf("%s has other members than %s", a.body, running.body)
		}
	}
}

func readRightAfter(s *system) {
	id := s.add("right-after", conversation("right-after", "FACT: right after"))
	s.event(id)
	e := s.succeeded(id)
	memory := e.Results[0].ID
	s.want(s.do("GET", "/v1/memories/"+memory, "", nil), http.StatusOK, `"right after"`)
	s.want(s.do("GET", "/v1/memories?user_id=right-after", "", nil), http.StatusOK, memory)
	s.want(s.do("POST", "/v1/memories/search", "", map[string]any{"query": "right after", "user_id": "right-after"}), http.StatusOK, memory)
}

func beyondTwoThousand(s *system) {
	text := strings.Repeat("é", 2001)
	if v := s.store("long", "", text, nil); v.Results[0].Memory != text {
		s.t.Fatalf("stored %+v", v)
	}
	s.succeeded(s.add("long", conversation("long", "FACT: "+text+" too")))
	if got := s.texts("long"); got != text+"|"+text+" too" {
		s.t.Fatalf("records of %d bytes", len(got))
	}
}

func beyondTheLimit(s *system) {
	for _, infer := range []bool{true, false} {
		body := map[string]any{"user_id": "limit", "content": strings.Repeat("a", 250_000), "infer": infer}
		s.want(s.do("POST", "/v1/memories", fmt.Sprint("limit-", infer), body), http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
	}
	if n := s.tasksOf("limit"); n != 0 {
		s.t.Fatalf("%d commands", n)
	}
}

func noWorkerCases() map[string]func(*system) {
	return map[string]func(*system){
		"AcceptedWorkIsPendingAndHealthSaysSo": pendingAndDegraded,
		"OneMoreThanAQueueHolds":               everyReceiptHasARow,
		"PendingIsAnEventAndNoMemory":          pendingIsNoMemory,
	}
}

func pendingAndDegraded(s *system) {
	id := s.add("aged", conversation("aged", "FACT: aged"))
	s.exec(`UPDATE tasks SET run_after = clock_timestamp() - interval '2 minutes' WHERE user_id = 'aged'`)
	s.until("health is degraded", func() bool {
		body := string(s.do("GET", "/v1/health", "", nil).body)
		return strings.Contains(body, "degraded") && strings.Contains(body, "oldest_due_task")
	})
	if e := s.event(id); e.Status != "PENDING" || len(e.Results) != 0 {
		s.t.Fatalf("event %+v", e)
	}
}

func everyReceiptHasARow(s *system) {
	ids := map[string]bool{}
	for i := range 101 {
		ids[s.add(fmt.Sprint("row-", i), conversation("rows", fmt.Sprint("FACT: ", i)))] = true
	}
	if n := s.tasksOf("rows"); len(ids) != 101 || n != 101 {
		s.t.Fatalf("%d receipts for %d rows", len(ids), n)
	}
}

func pendingIsNoMemory(s *system) {
	id := s.add("pending", conversation("pending", "FACT: pending"))
	s.want(s.do("GET", "/v1/events", "pending", nil), http.StatusOK, id, `"PENDING"`)
	s.want(s.do("GET", "/v1/events?limit=100&status=PENDING", "", nil), http.StatusOK, `"PENDING"`)
	s.want(s.do("GET", "/v1/memories?user_id=pending", "", nil), http.StatusOK, `"results":[]`)
}

func restartCases() map[string]func(*system) {
	return map[string]func(*system){"AddDuringARestart": addDuringRestart}
}

// addDuringRestart adds before a worker starts, lets that one die with it, and starts another.
func addDuringRestart(s *system) {
	id := s.add("restart", conversation("restart", "FACT: restart"))
	doomed := s.startWorker(point("worker.before_inference", "kill"))
	announced(doomed, "worker.before_inference")
	doomed.Wait(patience)
	s.startWorker()
	if e := s.succeeded(id); len(e.Results) != 1 || s.texts("restart") != "restart" {
		s.t.Fatalf("event %+v", e)
	}
}

func slowModelCases() map[string]func(*system) {
	return map[string]func(*system){"AnswerAfterTheTimeout": answerAfterTimeout, "NoAnswerEver": noAnswerEver}
}

// noAnswerEver lets a model never answer: the add is retried, and when its budget is spent it has failed and cost
// nothing. The budget is cut short here, its length is the retry policy's own test.
func noAnswerEver(s *system) {
	s.stub.HoldAll(withMarker("no-answer"))
	id := s.add("no-answer", conversation("no-answer", "FACT: no-answer"))
	s.until("it is retried", func() bool { return s.event(id).Status == "RETRYING" })
	var e event
	s.until("it has failed", func() bool {
		s.exec(`UPDATE tasks SET spent = '{"provider_timeout": 10}' WHERE user_id = 'no-answer' AND status <> 'failed'`)
		e = s.event(id)
		return e.Status == "FAILED"
	})
	if e.Error == nil || e.Error.Code != "PROVIDER_TIMEOUT" || e.Usage.Released != 2 || e.Usage.Settled != 0 || s.texts("no-answer") != "" {
		s.t.Fatalf("event %+v, records %q", e, s.texts("no-answer"))
	}
}

// answerAfterTimeout lets a model answer too late: that is no success, and the next answer counts.
func answerAfterTimeout(s *system) {
	hold := s.stub.HoldAll(withMarker("late"))
	id := s.add("late", conversation("late", "FACT: late"))
	select {
	case <-hold.Left():
	case <-time.After(patience):
		s.t.Fatal("the worker waits for ever")
	}
	s.until("it is retried", func() bool {
		e := s.event(id)
		return e.Status == "RETRYING" && e.Error != nil && e.Error.Code == "PROVIDER_TIMEOUT" && len(e.Results) == 0
	})
	hold.Release()
	if e := s.succeeded(id); len(e.Results) != 1 || s.texts("late") != "late" {
		s.t.Fatalf("event %+v", e)
	}
}

func embedderCases() map[string]func(*system) {
	return map[string]func(*system){"VectorInsertFails": vectorInsertFails}
}

// vectorInsertFails lets the database refuse vectors: the event doesn't succeed until they are there.
func vectorInsertFails(s *system) {
	s.exec(`ALTER TABLE memory_vectors ADD CONSTRAINT refused CHECK (false) NOT VALID`)
	id := s.add("vector", conversation("vector", "FACT: vector"))
	s.until("it is retried", func() bool {
		e := s.event(id)
		return e.Status == "RETRYING" && e.Error != nil && len(e.Results) == 0
	})
	s.exec(`ALTER TABLE memory_vectors DROP CONSTRAINT refused`)
	e := s.succeeded(id)
	if len(e.Results) != 1 || one[int64](s, `SELECT count(*) FROM memory_vectors`) != 1 {
		s.t.Fatalf("event %+v", e)
	}
}
