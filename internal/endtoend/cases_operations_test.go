package endtoend

import (
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func operationCases() map[string]func(*system) {
	return map[string]func(*system){
		"FailureIsAnAnswer":             failureIsAnswer,
		"RetryAfterOnEveryPoll":         retryAfterOnPolls,
		"TerminalStateIsRepeatable":     terminalRepeatable,
		"NoMemoryIDBeforeTheCommit":     noIDBeforeCommit,
		"ValuesAreNotInRefusals":        valuesNotInRefusals,
		"OtherSpellingsOfMembers":       otherSpellings,
		"WordsOfTheProviderAreNotShown": providerWords,
	}
}

// failureIsAnswer reads a failed event in every way: it is 200, and it says that it is over.
func failureIsAnswer(s *system) {
	s.stub.Always(withMarker("failed-operation"), stubmodel.Reply(stubmodel.Content("broken")))
	id := s.add("failed-operation", conversation("failed-operation", "failed-operation"))
	s.ended(id)
	for _, path := range []string{"/v1/events/" + id, "/v1/operations/" + id, "/v1/events/" + id + "?wait=25"} {
		a := s.do("GET", path, "", nil)
		s.want(a, http.StatusOK, `"status":"FAILED"`, `"code":"OUTPUT_INVALID"`, `"retryable":true`, `"action":"`, `"completed_at":"`)
		if a.header.Get("Retry-After") != "" {
			s.t.Errorf("%s: what is over asks for another poll: %v", path, a.header)
		}
	}
	s.want(s.do("GET", "/v1/events?status=FAILED", "", nil), http.StatusOK, id)
	s.want(s.do("POST", "/v1/events/"+id+"/cancel", "", nil), http.StatusConflict, "NOT_CANCELLABLE")
}

// retryAfterOnPolls reads an event until its end, through every state that it can be in, and one that waits behind it.
func retryAfterOnPolls(s *system) {
	hold := s.stub.Hold(withMarker("polled-first"))
	down := stubmodel.Reply(stubmodel.Refuse(http.StatusServiceUnavailable, "down"))
	s.stub.Queue(withMarker("polled-first"), down, down, down) // less than what pauses a provider
	id := s.add("polled-first", conversation("polled", "FACT: polled-first"))
	<-hold.Arrived()
	behind := s.add("polled-second", conversation("polled", "FACT: polled-second"))
	states := map[string]bool{}
	poll := func(id string) event {
		a := s.do("GET", "/v1/events/"+id, "", nil)
		var e event
		a.into(s.t, &e)
		over := e.Status == "SUCCEEDED" || e.Status == "FAILED"
		if a.status != http.StatusOK || over != (a.header.Get("Retry-After") == "") || a.header.Get("ETag") == "" {
			s.t.Errorf("%s: %d %v", e.Status, a.status, a.header)
		}
		states[e.Status] = true
		return e
	}
	poll(id)
	poll(behind)
	for path, key := range map[string]string{"/v1/operations/" + id: "", "/v1/events/" + id + "?wait=1": ""} {
		if a := s.do("GET", path, key, nil); a.status != http.StatusOK || a.header.Get("Retry-After") == "" {
			s.t.Errorf("%s: %d %v", path, a.status, a.header)
		}
	}
	replay := s.do("POST", "/v1/memories", "polled-first", conversation("polled", "FACT: polled-first"))
	s.replays("while it runs", replay)
	if replay.header.Get("Retry-After") == "" || replay.header.Get("Location") != "/v1/events/"+id {
		s.t.Errorf("the receipt says %v", replay.header)
	}
	hold.Release()
	s.until("it has ended", func() bool { return poll(id).Status == "SUCCEEDED" })
	s.until("the one behind has ended", func() bool { return poll(behind).Status == "SUCCEEDED" })
	for _, state := range []string{"RUNNING", "PENDING", "RETRYING", "SUCCEEDED"} {
		if !states[state] {
			s.t.Errorf("%s was not seen: %v", state, states)
		}
	}
}

// terminalRepeatable reads two ended events again and again, also after repair has been at work: each answer is the
// same to the byte.
func terminalRepeatable(s *system) {
	s.stub.Always(withMarker("repeatable-broken"), stubmodel.Reply(stubmodel.Content("broken")))
	ids := []string{
		s.add("repeatable", conversation("repeatable", "FACT: repeatable")),
		s.add("repeatable-broken", conversation("repeatable-broken", "repeatable-broken")),
	}
	first := make([]answer, len(ids))
	for i, id := range ids {
		s.ended(id)
		first[i] = s.do("GET", "/v1/events/"+id, "", nil)
	}
	for range 3 {
		for i, id := range ids {
			for _, path := range []string{"/v1/events/" + id, "/v1/operations/" + id, "/v1/events/" + id + "?wait=25"} {
				a := s.do("GET", path, "", nil)
				if a.status != http.StatusOK || string(a.body) != string(first[i].body) || a.header.Get("ETag") != first[i].header.Get("ETag") {
					s.t.Errorf("%s: %d %s, before %s", path, a.status, a.body, first[i].body)
				}
			}
		}
		s.repairOnce()
	}
}

// noIDBeforeCommit looks for ids of memories in all that is told of an add before its records are there.
func noIDBeforeCommit(s *system) {
	hold := s.stub.Hold(withMarker("no-id-yet"))
	body := conversation("no-id-yet", "FACT: no-id-yet")
	a := s.do("POST", "/v1/memories", "no-id-yet", body)
	id := s.receipt(a)
	<-hold.Arrived()
	for what, told := range map[string]answer{
		"receipt": a, "replay": s.do("POST", "/v1/memories", "no-id-yet", body), "event": s.do("GET", "/v1/events/"+id, "", nil),
		"operation": s.do("GET", "/v1/operations/"+id, "", nil), "by key": s.do("GET", "/v1/events", "no-id-yet", nil),
		"list": s.do("GET", "/v1/memories?user_id=no-id-yet", "", nil),
	} {
		if told.status > 299 || strings.Contains(string(told.body), "mem_") {
			s.t.Errorf("%s: %d %s", what, told.status, told.body)
		}
	}
	hold.Release()
	e := s.succeeded(id)
	if len(e.Results) != 1 {
		s.t.Fatalf("event %+v", e)
	}
	s.want(s.do("GET", "/v1/memories/"+e.Results[0].ID, "", nil), http.StatusOK, `"no-id-yet"`)
	if again := s.event(id); again.Results[0].ID != e.Results[0].ID {
		s.t.Fatalf("the id became %s", again.Results[0].ID)
	}
}

// valuesNotInRefusals breaks each rule with a value that can be told apart, in all three dialects.
func valuesNotInRefusals(s *system) {
	const canary = "canary-6021"
	record := s.remember("values", "stays")[0]
	for i, c := range []struct{ method, path, body string }{
		{"POST", "/v1/memories", `{"user_id":"values","content":"x","infer":"` + canary + `"}`},
		{"POST", "/v1/memories", `{"user_id":"values","content":"x","event_date":"` + canary + `"}`},
		{"POST", "/v1/memories", `{"user_id":"values","messages":[{"role":["` + canary + `"],"content":"x"}]}`},
		{"POST", "/v1/memories", `{"user_id":"values","messages":"` + canary + `\u0000"}`},
		{"POST", "/v1/memories", `{"user_id":"` + canary + strings.Repeat("x", 600) + `","content":"x"}`},
		{"POST", "/v1/memories", `{"user_id":"values","content":"x","metadata":"` + canary + `"}`},
		{"POST", "/v1/memories", `{"user_id":"values","content":"` + canary + `","content":"x"}`},
		{"POST", "/v1/memories", `{"user_id":"values","content":"` + canary + `"} trailing`},
		{"POST", "/v1/memories", `{"user_id":"values","content":"x","` + canary + `":1}`},
		{"PUT", "/v1/memories/" + record, `{"content":"` + canary + `","version":"` + canary + `"}`},
		{"POST", "/v1/memories/search", `{"query":"x","user_id":"values","mode":"` + canary + `"}`},
		{"POST", "/v1/memories/search", `{"query":"x","user_id":"values","filters":{"metadata.a":{"near":"` + canary + `"}}}`},
		{"GET", "/v1/memories?user_id=values&limit=" + canary, ""},
		{"GET", "/v1/memories?user_id=values&cursor=" + canary, ""},
		{"GET", "/v1/events?status=" + canary, ""},
		{"GET", "/v1/events/" + canary, ""},
		{"GET", "/v1/memories/" + canary, ""},
		{"POST", "/v1/webhooks", `{"url":"https://127.0.0.1/` + canary + `","event_types":["event.failed"]}`},
		{"PUT", "/v1/extraction-policy", `{"instructions":7,"categories":"` + canary + `"}`},
	} {
		a := s.send(c.method, c.path, "", c.body)
		if c.method == "POST" && c.path == "/v1/memories" {
			a = s.send(c.method, c.path, "values", c.body)
		}
		if a.status < 400 || a.status > 499 || strings.Contains(string(a.body), canary) {
			s.t.Errorf("%d: %d %s", i, a.status, a.body)
		}
	}
	a := s.do("POST", "/v1/memories", canary+" and more", conversation("values", "x"))
	s.want(a, http.StatusBadRequest, "INVALID_IDEMPOTENCY_KEY")
	for what, a := range map[string]answer{
		"a key":           a,
		"an item":         s.twin("add", "", `{"items":[{"text":"x","at":"`+canary+`"}]}`),
		"a pattern":       s.twin("grep", "", `{"pattern":"(`+canary+`","regex":true}`),
		"a mem0 filter":   s.mem0("POST", "/v3/memories/", `{"filters":{"user_id":"values","AND":"`+canary+`"}}`),
		"a mem0 add":      s.mem0("POST", "/v3/memories/add/", `{"messages":{"role":"`+canary+`"},"user_id":"values"}`),
		"a mem0 metadata": s.mem0("POST", "/v3/memories/add/", `{"messages":"x","user_id":"values","metadata":"`+canary+`"}`),
	} {
		if a.status < 400 || a.status > 499 || strings.Contains(string(a.body), canary) {
			s.t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
}

// otherSpellings writes members with other letters: none is taken for the one that it resembles.
func otherSpellings(s *system) {
	for i, body := range []string{
		`{"User_ID":"spelled","content":"x"}`, `{"user_id":"spelled","Content":"x"}`, `{"user_id":"spelled","content":"x","INFER":false}`,
		`{"user_id":"spelled","USER_ID":"other","content":"x"}`, `{"user_id":"spelled","user_\u0069d":"other","content":"x"}`,
		`{"user_id":"spelled","content":"x","uſer_id":"other"}`, `{"user_id":"spelled","messages":[{"Role":"user","content":"x"}]}`,
	} {
		if a := s.send("POST", "/v1/memories", "spelled", body); a.status != http.StatusBadRequest {
			s.t.Errorf("%d: %d %s", i, a.status, a.body)
		}
	}
	if n := s.tasksOf("spelled") + s.tasksOf("other"); n != 0 {
		s.t.Fatalf("%d commands", n)
	}
}

// providerWords lets the provider refuse in words of its own, which repeat what it was sent: nobody is told them.
func providerWords(s *system) {
	s.stub.Always(withMarker("provider-words"), stubmodel.Reply(stubmodel.BadRequest("provider-words is not what we like")))
	id := s.add("provider-words", conversation("provider", "provider-words"))
	s.until("the provider has refused", func() bool { return s.event(id).Error != nil })
	for _, path := range []string{"/v1/events/" + id, "/v1/operations/" + id, "/v1/events?limit=100", "/v1/health"} {
		a := s.do("GET", path, "", nil)
		if a.status != http.StatusOK || strings.Contains(string(a.body), stubmodel.ProviderWords) || strings.Contains(string(a.body), "like") {
			s.t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if found := one[string](s, everywhereSQL, stubmodel.ProviderWords); found != "" {
		s.t.Errorf("the provider's words are in %s", found)
	}
}
