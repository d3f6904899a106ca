package endtoend

import (
	"net/http"
	"strings"
	"sync"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func keyCases() map[string]func(*system) {
	return map[string]func(*system){
		"OneKeyWithAnotherBody":            anotherBody,
		"SameBodyAtAnotherAddress":         anotherAddress,
		"SecondRequestWhileTheFirstIsSlow": secondWhileSlow,
		"RetryOvertakesTheFirst":           retryOvertakes,
		"TwoEndpointsRaceForOneKey":        endpointsRace,
		"CrashBetweenClaimAndAnswer":       crashBeforeAnswer,
		"ReplayOfAFailure":                 replayOfFailure,
		"RefusalTakesNoKey":                refusalTakesNoKey,
		"RefusedForWantOfCredits":          refusedWithoutCredits,
		"OneKeyInTwoWorkspaces":            oneKeyInTwo,
		"AnswerToTheCommitIsLost":          commitAnswerLost,
	}
}

// conflicts fails unless the answer says that the key belongs to another command, and shows nothing of that one.
func (s *system) conflicts(what string, a answer, secret string) {
	s.t.Helper()
	if a.status != http.StatusConflict || !strings.Contains(string(a.body), "IDEMPOTENCY_CONFLICT") || strings.Contains(string(a.body), secret) {
		s.t.Errorf("%s: %d %s", what, a.status, a.body)
	}
	if a.header.Get("Idempotent-Replayed") != "" {
		s.t.Errorf("%s: refused and replayed", what)
	}
}

// replays fails unless the answer is that of a command which is known already.
func (s *system) replays(what string, a answer) {
	s.t.Helper()
	if a.status < 200 || a.status > 299 || a.header.Get("Idempotent-Replayed") != "true" {
		s.t.Errorf("%s: no replay: %d %s", what, a.status, a.body)
	}
}

// anotherBody changes one member after the other: each makes another command, and the first stays as it was.
func anotherBody(s *system) {
	body := func() map[string]any {
		return map[string]any{
			"user_id": "bodies", "messages": []map[string]string{{"role": "user", "content": "FACT: the first body"}}, "ordered": true,
			"metadata": map[string]any{"a": 1}, "instructions": "short", "event_date": "2026-01-01T00:00:00Z",
		}
	}
	id := s.add("bodies", body())
	for name, value := range map[string]any{
		"user_id": "other", "agent_id": "more", "infer": false, "ordered": false, "metadata": map[string]any{"a": 2},
		"instructions": "long", "event_date": "2026-01-01T00:00:01Z",
		"messages": []map[string]string{{"role": "assistant", "content": "FACT: the first body"}},
	} {
		changed := body()
		changed[name] = value
		s.conflicts(name, s.do("POST", "/v1/memories", "bodies", changed), "the first body")
	}
	e := s.succeeded(id)
	s.replays("the first body", s.do("POST", "/v1/memories", "bodies", body()))
	if len(e.Results) != 1 || s.tasksOf("bodies")+s.tasksOf("other") != 1 || s.texts("bodies") != "the first body" {
		s.t.Fatalf("event %+v, records %q", e, s.texts("bodies"))
	}
}

// anotherAddress sends the same body, or none, under one key to another record or scope: that is another command.
func anotherAddress(s *system) {
	ids := s.remember("addresses-a", "one", "two")
	s.remember("addresses-b", "three")
	change := map[string]any{"content": "put elsewhere"}
	s.want(s.do("PUT", "/v1/memories/"+ids[0], "address-put", change), http.StatusOK)
	s.conflicts("another record", s.do("PUT", "/v1/memories/"+ids[1], "address-put", change), "put elsewhere")
	s.want(s.do("DELETE", "/v1/memories/"+ids[0], "address-delete", nil), http.StatusOK)
	s.conflicts("another record to delete", s.do("DELETE", "/v1/memories/"+ids[1], "address-delete", nil), "put elsewhere")
	s.want(s.do("GET", "/v1/memories/"+ids[1], "", nil), http.StatusOK, `"two"`)
	s.want(s.do("DELETE", "/v1/memories?user_id=addresses-a", "address-erase", nil), http.StatusOK)
	for _, query := range []string{"user_id=addresses-b", "user_id=addresses-a&run_id=r", "agent_id=addresses-a"} {
		s.conflicts(query, s.do("DELETE", "/v1/memories?"+query, "address-erase", nil), "addresses-a")
	}
	s.conflicts("an entity", s.do("DELETE", "/v1/entities/user/addresses-b", "address-erase", nil), "addresses-a")
	s.replays("the same scope", s.do("DELETE", "/v1/memories?user_id=addresses-a", "address-erase", nil))
	if got := s.texts("addresses-b"); got != "three" {
		s.t.Fatalf("records of b %q", got)
	}
}

// secondWhileSlow repeats a request while the model thinks: nothing runs twice, and no loser pays the model.
func secondWhileSlow(s *system) {
	hold := s.stub.Hold(withMarker("slow-first"))
	body := conversation("slow-first", "FACT: slow-first")
	id := s.add("slow-first", body)
	<-hold.Arrived()
	for _, a := range s.atOnce(10, func(int) string { return "slow-first" }, body) {
		if again := s.receipt(a); again != id {
			s.t.Fatalf("the same request again is %s, not %s", again, id)
		}
		s.replays("while it runs", a)
	}
	for _, a := range s.atOnce(5, func(int) string { return "slow-first" }, conversation("slow-first", "FACT: another")) {
		s.conflicts("another body while it runs", a, "slow-first")
	}
	hold.Release()
	s.succeeded(id)
	if n := s.stub.Count(withMarker("slow-first")); n != 1 || s.texts("slow-first") != "slow-first" {
		s.t.Fatalf("%d extractions, records %q", n, s.texts("slow-first"))
	}
}

// retryOvertakes sends a write that is done at once ten times together.
func retryOvertakes(s *system) {
	body := map[string]any{"user_id": "overtakes", "content": "one status", "infer": false}
	first, seen := 0, map[string]bool{}
	for _, a := range s.atOnce(10, func(int) string { return "overtakes" }, body) {
		s.want(a, http.StatusOK)
		var v stored
		a.into(s.t, &v)
		if a.header.Get("Idempotent-Replayed") == "" {
			first++
		}
		seen[v.EventID+" "+v.Results[0].ID+" "+v.Results[0].Event] = true
		s.succeeded(v.EventID)
	}
	if first != 1 || len(seen) != 1 || s.tasksOf("overtakes") != 1 || s.texts("overtakes") != "one status" {
		s.t.Fatalf("%d are the first, answers %v, records %q", first, seen, s.texts("overtakes"))
	}
}

// endpointsRace lets two kinds of write claim one key together: one wins, and each loser is told so at once.
func endpointsRace(s *system) {
	record := s.remember("race", "before")[0]
	var mu sync.Mutex
	answers := map[string]int{}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			kind, a, err := "add", answer{}, error(nil)
			if i%2 == 0 {
				a, err = s.try("POST", "/v1/memories", "race", conversation("race", "FACT: added"))
			} else {
				kind = "change"
				a, err = s.try("PUT", "/v1/memories/"+record, "race", map[string]any{"content": "changed"})
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				s.t.Errorf("%s: %v", kind, err)
			case a.status == http.StatusConflict && strings.Contains(string(a.body), "IDEMPOTENCY_CONFLICT"):
				answers[kind+" refused"]++
			case a.status < 300:
				answers[kind+" taken"]++
			default:
				s.t.Errorf("%s: %d %s", kind, a.status, a.body)
			}
		})
	}
	wg.Wait()
	added := answers["add taken"] == 10 && answers["change refused"] == 10
	changed := answers["change taken"] == 10 && answers["add refused"] == 10
	if added == changed {
		s.t.Fatalf("answers %v", answers)
	}
	s.until("the winner has ended", func() bool {
		return one[int64](s, `SELECT count(*) FROM tasks WHERE user_id = 'race' AND completed_at IS NULL`) == 0
	})
	if want := map[bool]string{true: "added|before", false: "changed"}[added]; s.texts("race") != want {
		s.t.Fatalf("records %q, want %q", s.texts("race"), want)
	}
}

// replayOfFailure repeats a request that has failed for good: it is told so each time, and nothing runs again by itself.
func replayOfFailure(s *system) {
	s.stub.Always(withMarker("fails-for-good"), stubmodel.Reply(stubmodel.Content("broken")))
	body := conversation("fails-for-good", "fails-for-good")
	id := s.add("fails-for-good", body)
	before := s.ended(id)
	for range 3 {
		a := s.do("POST", "/v1/memories", "fails-for-good", body)
		s.want(a, http.StatusAccepted, id, `"status":"FAILED"`)
		s.replays("a failure", a)
	}
	s.want(s.do("GET", "/v1/events", "fails-for-good", nil), http.StatusOK, id, `"FAILED"`)
	if e := s.event(id); e.Status != "FAILED" || e.Attempts != before.Attempts || e.Generation != 1 || s.stub.Count(withMarker("fails-for-good")) != 1 {
		s.t.Fatalf("event %+v after %d extractions", e, s.stub.Count(withMarker("fails-for-good")))
	}
}

// refusalTakesNoKey refuses a request for each reason, and then accepts another one under its key.
func refusalTakesNoKey(s *system) {
	record := s.remember("refused", "stays")[0]
	done := s.add("refused-done", conversation("refused", "FACT: done"))
	s.succeeded(done)
	reader := s.keyWith(access.MemoryRead)
	before := one[int64](s, `SELECT count(*) FROM tasks WHERE user_id = 'refused'`)
	for code, refused := range map[string]func(key string) answer{
		"INVALID_BODY":    func(key string) answer { return s.send("POST", "/v1/memories", key, `{"user_id":"refused","content":`) },
		"INVALID_REQUEST": func(key string) answer { return s.do("POST", "/v1/memories", key, conversation("refused", " \n")) },
		"SCOPE_REQUIRED":  func(key string) answer { return s.do("DELETE", "/v1/memories", key, nil) },
		"PAYLOAD_TOO_LARGE": func(key string) answer {
			return s.do("POST", "/v1/memories", key, conversation("refused", strings.Repeat("a", 250_000)))
		},
		"MEMORY_NOT_FOUND": func(key string) answer {
			return s.do("PUT", "/v1/memories/mem_01920000-0000-7000-8000-000000000000", key, map[string]any{"content": "x"})
		},
		"EVENT_NOT_FOUND": func(key string) answer {
			return s.do("POST", "/v1/events/evt_01920000-0000-7000-8000-000000000000/retry", key, nil)
		},
		"VERSION_CONFLICT": func(key string) answer {
			return s.do("PUT", "/v1/memories/"+record, key, map[string]any{"content": "x", "version": 7})
		},
		"NOT_RETRYABLE": func(key string) answer { return s.do("POST", "/v1/events/"+done+"/retry", key, nil) },
		"INSUFFICIENT_PERMISSION": func(key string) (a answer) {
			other := s.of(s.t)
			other.key = reader
			return other.do("POST", "/v1/memories", key, conversation("refused", "FACT: x"))
		},
	} {
		key := "refused-" + code
		s.want(refused(key), map[string]int{
			"PAYLOAD_TOO_LARGE": 413, "MEMORY_NOT_FOUND": 404, "EVENT_NOT_FOUND": 404, "VERSION_CONFLICT": 409, "NOT_RETRYABLE": 409,
			"INSUFFICIENT_PERMISSION": 403, "INVALID_BODY": 400, "INVALID_REQUEST": 400, "SCOPE_REQUIRED": 400,
		}[code], code)
		s.want(s.do("GET", "/v1/events", key, nil), http.StatusOK, `"results":[]`)
		if n := one[int64](s, `SELECT count(*) FROM tasks WHERE user_id = 'refused'`); n != before {
			s.t.Errorf("%s left %d commands", code, n-before)
		}
		a := s.do("POST", "/v1/memories", key, conversation("accepted", "FACT: "+code))
		if id := s.receipt(a); a.header.Get("Idempotent-Replayed") != "" {
			s.t.Errorf("after %s: %s is a replay", code, id)
		}
	}
}

// refusedWithoutCredits sends one key before and after a top-up, the second time with another body.
func refusedWithoutCredits(s *system) {
	poor := s.purse(1)
	body := conversation("poor", "FACT: poor")
	for range 3 {
		a := poor.do("POST", "/v1/memories", "poor", body)
		s.want(a, http.StatusPaymentRequired, "INSUFFICIENT_CREDITS", `"required":2`, `"available":1`)
		s.want(poor.do("GET", "/v1/events", "poor", nil), http.StatusOK, `"results":[]`)
	}
	rows := one[int64](s, `SELECT (SELECT count(*) FROM tasks WHERE workspace_id = $1) + (SELECT count(*) FROM idempotency_keys WHERE workspace_id = $1)
		+ (SELECT count(*) FROM task_runs WHERE workspace_id = $1) + (SELECT count(*) FROM lanes WHERE workspace_id = $1)`, poor.ws)
	if rows != 0 {
		s.t.Fatalf("%d rows left", rows)
	}
	poor.grant("top-up", 1)
	a := poor.do("POST", "/v1/memories", "poor", conversation("poor", "FACT: richer"))
	poor.succeeded(s.receipt(a))
	if a.header.Get("Idempotent-Replayed") != "" || s.texts("poor") != "richer" {
		s.t.Fatalf("%v, records %q", a.header, s.texts("poor"))
	}
	poor.balance(0, 0)
}

// oneKeyInTwo sends one request under one key to two workspaces: neither hears of the other, before and after.
func oneKeyInTwo(s *system) {
	other := s.purse(10)
	body := conversation("two-workspaces", "FACT: told to both")
	mine, theirs := s.add("two-workspaces", body), other.add("two-workspaces", body)
	if mine == theirs {
		s.t.Fatal("one event for two workspaces")
	}
	a, b := s.succeeded(mine), other.succeeded(theirs)
	if len(a.Results) != 1 || len(b.Results) != 1 || a.Results[0].ID == b.Results[0].ID {
		s.t.Fatalf("events %+v and %+v", a, b)
	}
	for owner, id := range map[*system]string{s: mine, other: theirs} {
		again := owner.do("POST", "/v1/memories", "two-workspaces", body)
		owner.want(again, http.StatusAccepted, id)
		owner.replays("its own", again)
		owner.want(owner.do("GET", "/v1/events", "two-workspaces", nil), http.StatusOK, id)
	}
	squatted := other.add("squatted", conversation("squat", "FACT: squatted"))
	if id := s.add("squatted", conversation("squat-mine", "FACT: mine")); id == squatted {
		s.t.Fatal("a key of another workspace is taken")
	}
	other.succeeded(squatted)
	other.balance(6, 0)
}
