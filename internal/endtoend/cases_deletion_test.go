package endtoend

import (
	"net/http"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/testkit/stubmodel"
)

func deletionCases() map[string]func(*system) {
	return map[string]func(*system){
		"SearchAfterEverythingIsDeleted": searchAfterErase,
		"OneUserIsErasedAndAnotherIsNot": anotherUserStays,
		"DerivedDataIsErased":            derivedDataErased,
		"GetAfterDelete":                 getAfterDelete,
		"IDOfAnAddIsTheIDToDelete":       idIsDeletable,
		"NothingOfTheErasedIsStored":     nothingIsStored,
		"EraseOvertakesARunningAdd":      eraseOvertakes,
		"EventOfADeletedMemory":          eventOfDeleted,
	}
}

// erases erases a user and answers what was done.
func (s *system) erases(user string) eraseResult {
	s.t.Helper()
	a := s.do("DELETE", "/v1/memories?user_id="+user, "erase-"+user, nil)
	s.want(a, http.StatusOK)
	var erased eraseResult
	a.into(s.t, &erased)
	return erased
}

func (s *system) nowhere(user, query string) {
	s.t.Helper()
	for _, mode := range []string{"hybrid", "lexical", "semantic"} {
		if got := s.search(map[string]any{"query": query, "user_id": user, "mode": mode, "latest_only": false}); len(got.Results) != 0 {
			s.t.Errorf("%s search finds %q", mode, got.texts())
		}
	}
	s.want(s.do("GET", "/v1/memories?user_id="+user, "", nil), http.StatusOK, `"results":[]`)
}

func searchAfterErase(s *system) {
	s.remember("searched", "likes coffee", "likes tea")
	if got := s.search(map[string]any{"query": "likes coffee", "user_id": "searched"}); len(got.Results) != 2 {
		s.t.Fatalf("before it finds %q", got.texts())
	}
	if erased := s.erases("searched"); erased.Deleted != 2 {
		s.t.Fatalf("erased %+v", erased)
	}
	s.nowhere("searched", "likes coffee")
}

func anotherUserStays(s *system) {
	s.remember("user-a", "likes coffee")
	s.remember("user-b", "likes coffee", "likes tea")
	if erased := s.erases("user-a"); erased.Deleted != 1 {
		s.t.Fatalf("erased %+v", erased)
	}
	s.nowhere("user-a", "likes coffee")
	if got := s.search(map[string]any{"query": "likes coffee", "user_id": "user-b"}); len(got.Results) != 2 || s.texts("user-b") != "likes coffee|likes tea" {
		s.t.Fatalf("b finds %q", got.texts())
	}
	s.want(s.do("DELETE", "/v1/memories", "erase-nobody", nil), http.StatusBadRequest, "SCOPE_REQUIRED")
}

func derivedDataErased(s *system) {
	e := s.succeeded(s.add("derived", conversation("derived", "FACT: derived")))
	id := strings.TrimPrefix(e.Results[0].ID, "mem_")
	if n := one[int64](s, `SELECT count(*) FROM memory_vectors WHERE memory_id = $1`, id); n != 1 {
		s.t.Fatalf("%d vectors before", n)
	}
	s.erases("derived")
	for _, table := range []string{"memories WHERE id", "memory_vectors WHERE memory_id"} {
		if n := one[int64](s, `SELECT count(*) FROM `+table+` = $1`, id); n != 0 {
			s.t.Errorf("%d rows of %s", n, table)
		}
	}
	if a := s.do("GET", "/v1/memories/mem_"+id+"/history", "", nil); strings.Contains(string(a.body), "derived") {
		s.t.Errorf("history %s", a.body)
	}
	s.want(s.do("GET", "/v1/entities/user/derived", "", nil), http.StatusNotFound)
}

func getAfterDelete(s *system) {
	id := s.remember("deleted", "likes coffee")[0]
	s.want(s.do("GET", "/v1/memories/"+id, "", nil), http.StatusOK)
	s.want(s.do("DELETE", "/v1/memories/"+id, "", nil), http.StatusOK)
	s.want(s.do("GET", "/v1/memories/"+id, "", nil), http.StatusNotFound, "MEMORY_NOT_FOUND")
	s.want(s.do("PUT", "/v1/memories/"+id, "", map[string]any{"content": "again"}), http.StatusNotFound, "MEMORY_NOT_FOUND")
	s.nowhere("deleted", "likes coffee")
}

func idIsDeletable(s *system) {
	verbatim := s.store("deletable", "", "verbatim", nil)
	id := s.add("deletable", conversation("deletable", "FACT: inferred"))
	inferred := s.succeeded(id)
	s.want(s.do("DELETE", "/v1/memories/"+id, "", nil), http.StatusNotFound, "MEMORY_NOT_FOUND")
	s.want(s.do("DELETE", "/v1/memories/"+verbatim.Results[0].ID, "", nil), http.StatusOK)
	s.want(s.do("DELETE", "/v1/memories/"+strings.TrimPrefix(inferred.Results[0].ID, "mem_"), "", nil), http.StatusOK)
	s.nowhere("deletable", "verbatim inferred")
}

// nothingIsStored erases what was stored, what was changed, what failed and what only a key remembers.
func nothingIsStored(s *system) {
	const word = "harpsichord-9182"
	s.stub.Always(withMarker("broken "+word), stubmodel.Reply(stubmodel.Content("broken")))
	id := s.store("erased", "erased", word+" verbatim", map[string]any{"note": word}).Results[0].ID
	s.want(s.do("PUT", "/v1/memories/"+id, "", map[string]any{"content": word + " changed"}), http.StatusOK)
	s.succeeded(s.add("erased-infer", conversation("erased", "FACT: "+word)))
	if e := s.ended(s.add("erased-broken", conversation("erased", "broken "+word))); e.Status != "FAILED" {
		s.t.Fatalf("event %+v", e)
	}
	if found := one[string](s, everywhereSQL, word); found == "" {
		s.t.Fatal("the word was nowhere before")
	}
	s.erases("erased")
	if found := one[string](s, everywhereSQL, word); found != "" {
		s.t.Fatalf("the word is in %s", found)
	}
	replay := s.do("POST", "/v1/memories", "erased", map[string]any{
		"user_id": "erased", "content": word + " verbatim", "infer": false, "metadata": map[string]any{"note": word},
	})
	if replay.header.Get("Idempotent-Replayed") != "true" || strings.Contains(string(replay.body), word) {
		s.t.Fatalf("the replay answers %d %s", replay.status, replay.body)
	}
}

// eraseOvertakes erases a user whose add is with the model: what it would have stored never comes.
func eraseOvertakes(s *system) {
	hold := s.stub.Hold(withMarker("overtaken"))
	id := s.add("overtaken", conversation("overtaken", "FACT: overtaken"))
	<-hold.Arrived()
	if erased := s.erases("overtaken"); erased.Cancelled != 1 || erased.Deleted != 0 {
		s.t.Fatalf("erased %+v", erased)
	}
	hold.Release()
	if e := s.ended(id); e.Status != "FAILED" || e.Error == nil || e.Error.Code != "CANCELLED" {
		s.t.Fatalf("event %+v", e)
	}
	s.succeeded(s.add("overtaken-later", conversation("overtaken", "FACT: later")))
	if got := s.texts("overtaken"); got != "later" {
		s.t.Fatalf("records %q", got)
	}
}

func eventOfDeleted(s *system) {
	id := s.add("redacted", conversation("redacted", "FACT: redacted text"))
	before := s.succeeded(id)
	if before.Results[0].Memory == nil {
		s.t.Fatalf("event %+v", before)
	}
	s.want(s.do("DELETE", "/v1/memories/"+before.Results[0].ID, "", nil), http.StatusOK)
	a := s.do("GET", "/v1/events/"+id, "", nil)
	if strings.Contains(string(a.body), "redacted text") {
		s.t.Fatalf("the event shows %s", a.body)
	}
	if e := s.event(id); len(e.Results) != 1 || e.Results[0].ID != before.Results[0].ID || e.Results[0].Event != "ADD" || e.Results[0].Memory != nil {
		s.t.Fatalf("event %+v", e)
	}
}
