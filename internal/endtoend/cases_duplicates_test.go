package endtoend

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
)

func duplicateCases() map[string]func(*system) {
	return map[string]func(*system){
		"TwoAddsAtOnceWithOneKey":        sameKeyAtOnce,
		"TwoAddsAtOnceWithTwoKeys":       twoKeysAtOnce,
		"TwoVerbatimAddsAtOnce":          verbatimAtOnce,
		"ClientTimesOutAndPostsAgain":    timesOutAndPostsAgain,
		"APIDiesAfterItsCommit":          apiDiesAfterCommit,
		"ClientRepeatsWithoutKey":        repeatsWithoutKey,
		"SameTurnCapturedOnEveryHook":    capturedOnEveryHook,
		"SameEpisodeAgain":               sameEpisodeAgain,
		"CallersOwnIdentity":             callersOwnIdentity,
		"SamePassageAgain":               samePassageAgain,
		"SameUpdateQueuedTwice":          sameUpdateQueuedTwice,
		"TimeoutIsNoFailure":             timeoutIsNoFailure,
		"LibraryRepeatsAfterReadTimeout": libraryRepeats,
	}
}

// atOnce sends requests that start together and answers what came back.
func (s *system) atOnce(n int, key func(i int) string, body map[string]any) []answer {
	s.t.Helper()
	answers := make([]answer, n)
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			answers[i], errs[i] = s.try("POST", "/v1/memories", key(i), body)
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return answers
}

func (s *system) receipt(a answer) string {
	s.t.Helper()
	s.want(a, http.StatusAccepted)
	var receipt struct {
		EventID string `json:"event_id"`
	}
	a.into(s.t, &receipt)
	return receipt.EventID
}

func sameKeyAtOnce(s *system) {
	answers := s.atOnce(2, func(int) string { return "same-key-at-once" }, conversation("same-key", "FACT: I like coffee"))
	id := s.receipt(answers[0])
	if other := s.receipt(answers[1]); other != id {
		s.t.Fatalf("two events %s and %s", id, other)
	}
	s.succeeded(id)
	if got := s.texts("same-key"); got != "I like coffee" {
		s.t.Fatalf("records %q", got)
	}
}

func twoKeysAtOnce(s *system) {
	answers := s.atOnce(2, func(i int) string { return fmt.Sprint("two-keys-", i) }, conversation("two-keys", "FACT: I like coffee"))
	outcomes := map[string]int{}
	ids := map[string]bool{}
	for _, a := range answers {
		e := s.succeeded(s.receipt(a))
		outcomes[*e.Outcome]++
		for _, r := range e.Results {
			ids[r.ID] = true
		}
	}
	if outcomes["STORED"] != 1 || outcomes["UNCHANGED"] != 1 || len(ids) != 1 || s.texts("two-keys") != "I like coffee" {
		s.t.Fatalf("outcomes %v, ids %v, records %q", outcomes, ids, s.texts("two-keys"))
	}
}

func verbatimAtOnce(s *system) {
	body := map[string]any{"user_id": "verbatim", "content": "I like coffee", "infer": false}
	ids, events := map[string]bool{}, map[string]int{}
	for _, a := range s.atOnce(4, func(int) string { return "" }, body) {
		s.want(a, http.StatusOK)
		var v stored
		a.into(s.t, &v)
		ids[v.Results[0].ID] = true
		events[v.Results[0].Event]++
		s.succeeded(v.EventID)
	}
	if len(ids) != 1 || events["ADD"] != 1 || events["NONE"] != 3 || s.texts("verbatim") != "I like coffee" {
		s.t.Fatalf("ids %v, events %v, records %q", ids, events, s.texts("verbatim"))
	}
}

// timesOutAndPostsAgain leaves while the answer is on its way and posts the identical request.
func timesOutAndPostsAgain(s *system) {
	body := conversation("times-out", "FACT: I like coffee")
	encoded, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.api, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /v1/memories HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: times-out\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.key, len(encoded), encoded)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until("the command is durable", func() bool { return s.tasksOf("times-out") == 1 })
	_ = conn.Close()
	first := one[string](s, `SELECT 'evt_' || id FROM tasks WHERE user_id = 'times-out'`)
	a := s.do("POST", "/v1/memories", "times-out", body)
	if again := s.receipt(a); again != first || a.header.Get("Idempotent-Replayed") != "true" {
		s.t.Fatalf("the same request again is %s, not %s: %v", again, first, a.header)
	}
	e := s.succeeded(first)
	if len(e.Results) != 1 || s.tasksOf("times-out") != 1 || s.texts("times-out") != "I like coffee" {
		s.t.Fatalf("event %+v, records %q", e, s.texts("times-out"))
	}
}

// apiDiesAfterCommit kills an API between its commit and its answer. The client's repeat reaches another one.
func apiDiesAfterCommit(s *system) {
	body := conversation("api-dies", "FACT: I like coffee")
	doomed := s.of(s.t)
	doomed.startAPI(point("accept.committed", "kill"))
	if a, err := doomed.try("POST", "/v1/memories", "api-dies", body); err == nil {
		s.t.Fatalf("the API answered %d %s", a.status, a.body)
	}
	first := one[string](s, `SELECT 'evt_' || id FROM tasks WHERE user_id = 'api-dies'`)
	if again := s.add("api-dies", body); again != first {
		s.t.Fatalf("the same request again is %s, not %s", again, first)
	}
	s.succeeded(first)
	if got := s.texts("api-dies"); got != "I like coffee" {
		s.t.Fatalf("records %q", got)
	}
}

func repeatsWithoutKey(s *system) {
	for range 2 {
		s.want(s.do("POST", "/v1/memories", "", conversation("keyless", "FACT: I like coffee")), http.StatusBadRequest, "IDEMPOTENCY_KEY_REQUIRED")
	}
	if n := s.tasksOf("keyless"); n != 0 {
		s.t.Fatalf("%d commands", n)
	}
}

func capturedOnEveryHook(s *system) {
	var id string
	for i := range 9 {
		e := s.succeeded(s.add(fmt.Sprint("hook-", i), conversation("hook", "FACT: I like coffee")))
		if i == 0 {
			s.outcomeIs(e, "STORED")
			id = e.Results[0].ID
			continue
		}
		s.outcomeIs(e, "UNCHANGED")
		if len(e.Results) != 1 || e.Results[0].ID != id || e.Results[0].Event != "NONE" {
			s.t.Fatalf("event %+v, want record %s", e, id)
		}
	}
	if got := s.texts("hook"); got != "I like coffee" {
		s.t.Fatalf("records %q", got)
	}
}

// sameEpisodeAgain sends one item twice: the second time, once it has landed, nothing is queued.
func sameEpisodeAgain(s *system) {
	const call = `{"items":[{"id":"episode","text":"FACT: episode"}]}`
	first := s.keep("", call)
	s.succeeded(first.Items[0].EventID)
	again := s.keep("", call)
	if again.Queued != 0 || !again.Items[0].Landed || again.Items[0].EventID != first.Items[0].EventID {
		s.t.Fatalf("%+v, then %+v", first, again)
	}
	if n := one[int64](s, `SELECT count(*) FROM memories WHERE text = 'episode'`); n != 1 {
		s.t.Fatalf("%d records", n)
	}
}

// callersOwnIdentity names an item that nobody has heard of: it is made with that id.
func callersOwnIdentity(s *system) {
	const id = "0f8fad5b-d9cb-469f-a165-70867728950e"
	k := s.keep("", `{"items":[{"id":"`+id+`","text":"FACT: identity"}]}`)
	if k.Items[0].ID != id || k.Queued != 1 {
		s.t.Fatalf("%+v", k)
	}
	s.succeeded(k.Items[0].EventID)
	s.said("read", `{"ids":["`+id+`"]}`, "FACT: identity")
	s.want(s.do("POST", "/v1/memories/search", "", map[string]any{
		"query": "identity", "user_id": "u", "filters": map[string]any{"item_id": id},
	}), http.StatusOK, `"item_id":"`+id+`"`)
}

func samePassageAgain(s *system) {
	first := s.store("passage", "", "a passage", nil)
	again := s.store("passage", "", "a passage", nil)
	s.succeeded(first.EventID)
	if again.Results[0].ID != first.Results[0].ID || again.Results[0].Event != "NONE" || s.texts("passage") != "a passage" {
		s.t.Fatalf("%+v, then %+v", first, again)
	}
}

// sameUpdateQueuedTwice sends the same item twice in one call's time; both describe one piece of work.
func sameUpdateQueuedTwice(s *system) {
	hold := s.stub.Hold(withMarker("coalesced"))
	const call = `{"items":[{"id":"coalesced","text":"FACT: coalesced"}]}`
	first := s.keep("", call)
	<-hold.Arrived()
	again := s.keep("", call)
	hold.Release()
	if first.Queued != 1 || again.Queued != 0 || again.Items[0].EventID != first.Items[0].EventID {
		s.t.Fatalf("%+v, then %+v", first, again)
	}
	s.succeeded(first.Items[0].EventID)
	if n := s.stub.Count(withMarker("coalesced")); n != 1 {
		s.t.Fatalf("%d extractions", n)
	}
}

// timeoutIsNoFailure asks by the key what became of a request.
func timeoutIsNoFailure(s *system) {
	id := s.add("unknown-fate", conversation("unknown-fate", "FACT: I like coffee"))
	s.want(s.do("GET", "/v1/events", "unknown-fate", nil), http.StatusOK, `"id":"`+id+`"`)
	s.succeeded(id)
	s.want(s.do("GET", "/v1/events", "unknown-fate", nil), http.StatusOK, `"id":"`+id+`"`, `"SUCCEEDED"`)
}

// libraryRepeats sends one key again and again while the first request still works.
func libraryRepeats(s *system) {
	hold := s.stub.Hold(withMarker("library"))
	body := conversation("library", "FACT: library")
	id := s.add("library", body)
	<-hold.Arrived()
	for range 3 {
		if again := s.add("library", body); again != id {
			s.t.Fatalf("the same request again is %s, not %s", again, id)
		}
	}
	hold.Release()
	s.succeeded(id)
	if again := s.add("library", body); again != id || s.tasksOf("library") != 1 {
		s.t.Fatalf("the same request again is %s, not %s", again, id)
	}
}
