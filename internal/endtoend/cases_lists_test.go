package endtoend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

func listCases() map[string]func(*system) {
	return map[string]func(*system){
		"MetadataNamesAnotherUser":        metadataNamesAnother,
		"TextOnlyUpdate":                  textOnlyUpdate,
		"OneFilterForTwoUsers":            oneFilterForTwo,
		"AHundredAndOneRows":              func(s *system) { listsAll(s, "hundred", 101) },
		"AThousandAndOneRows":             func(s *system) { listsAll(s, "thousand", 1001) },
		"FilterMatchesRowElevenOfTen":     filterThenLimit,
		"ServerInAnotherTimeZone":         timesInUTC,
		"TimesWithAndWithoutOffset":       timesWithOffset,
		"SameFormInSearchListAndSingular": sameFormEverywhere,
	}
}

func metadataNamesAnother(s *system) {
	id := s.store("alice", "", "alice's secret", nil).Results[0].ID
	s.want(s.do("PUT", "/v1/memories/"+id, "", map[string]any{"metadata": map[string]any{"user_id": "bob"}}), http.StatusOK)
	s.want(s.do("GET", "/v1/memories/"+id, "", nil), http.StatusOK, `"user_id":"alice"`, `"metadata":{"user_id":"bob"}`)
	s.want(s.do("GET", "/v1/memories?user_id=bob", "", nil), http.StatusOK, `"results":[]`)
	if got := s.search(map[string]any{"query": "secret", "user_id": "bob"}); len(got.Results) != 0 {
		s.t.Fatalf("bob finds %q", got.texts())
	}
}

func textOnlyUpdate(s *system) {
	id := s.store("text-only", "", "before", map[string]any{"source": "mail", "n": 1}).Results[0].ID
	s.want(s.do("PUT", "/v1/memories/"+id, "", map[string]any{"content": "after"}), http.StatusOK)
	s.want(s.do("GET", "/v1/memories/"+id, "", nil), http.StatusOK, `"after"`, `"source":"mail"`, `"n":1`, `"version":2`)
}

func oneFilterForTwo(s *system) {
	filters := map[string]any{"metadata.colour": "red"}
	users := []string{"filter-a", "filter-b"}
	for _, user := range users {
		s.store(user, "", "note of "+user, map[string]any{"colour": "red"})
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			user := users[i%2]
			a, err := s.try("POST", "/v1/memories/search", "", map[string]any{"query": "note", "user_id": user, "filters": filters})
			if err != nil {
				s.t.Error(err)
				return
			}
			var got found
			if err := json.Unmarshal(a.body, &got); err != nil || got.texts() != "note of "+user {
				s.t.Errorf("%s finds %s", user, a.body)
			}
		})
	}
	wg.Wait()
}

// listsAll stores n records and reads them page by page: each one once, and the count is true.
func listsAll(s *system, user string, n int) {
	for from := 0; from < n; from += 500 {
		texts := make([]string, min(500, n-from))
		for i := range texts {
			texts[i] = fmt.Sprintf("row %04d", from+i)
		}
		s.remember(user, texts...)
	}
	seen := map[string]bool{}
	cursor := ""
	for range n { // each page has one record at least
		a := s.do("GET", "/v1/memories?user_id="+user+"&limit=100"+cursor, "", nil)
		s.want(a, http.StatusOK)
		var page struct {
			Results []struct {
				Memory string `json:"memory"`
			} `json:"results"`
			Next *string `json:"next_cursor"`
		}
		a.into(s.t, &page)
		for _, r := range page.Results {
			if seen[r.Memory] {
				s.t.Fatalf("%s is listed twice", r.Memory)
			}
			seen[r.Memory] = true
		}
		if page.Next == nil {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
	if len(seen) != n {
		s.t.Fatalf("%d of %d are listed", len(seen), n)
	}
	s.want(s.do("GET", "/v1/entities/user/"+user, "", nil), http.StatusOK, fmt.Sprintf(`"total_memories":%d,`, n))
}

func filterThenLimit(s *system) {
	texts := make([]string, 10)
	for i := range texts {
		texts[i] = strings.Repeat("note ", 10-i) + fmt.Sprint(i)
	}
	s.remember("eleven", texts...)
	s.store("eleven", "", "a much longer text, which mentions a note only once", map[string]any{"kind": "wanted"})
	for _, limit := range []int{1, 10} {
		got := s.search(map[string]any{
			"query": "note", "user_id": "eleven", "limit": limit, "filters": map[string]any{"metadata.kind": "wanted"},
		})
		if len(got.Results) != 1 || !strings.HasPrefix(got.texts(), "a much longer") {
			s.t.Fatalf("limit %d finds %q", limit, got.texts())
		}
	}
}

var timeMembers = regexp.MustCompile(`"(?:[a-z]+_at|[a-z]+_date|valid_from)":"([^"]*)"`)

func timesInUTC(s *system) {
	a := s.do("POST", "/v1/memories", "", map[string]any{
		"user_id": "zone", "content": "a zoned note", "infer": false, "event_date": "2026-01-01T09:00:00+09:00",
	})
	s.want(a, http.StatusOK)
	var v stored
	a.into(s.t, &v)
	event := s.add("zone", conversation("zone", "My name is Ada."))
	s.succeeded(event)
	for path, least := range map[string]int{
		"/v1/memories?user_id=zone":                    4,
		"/v1/memories/" + v.Results[0].ID:              4,
		"/v1/memories/" + v.Results[0].ID + "/history": 1,
		"/v1/events/" + event:                          4,
		"/v1/entities/user/zone":                       2,
		"/v1/credits/entries?limit=1":                  1,
		"/v1/events?type=memory_add&limit=1":           2,
		"/v1/operations?limit=1":                       2,
		"/v1/memories?user_id=zone&limit=1":            3,
		"/v1/entities?type=user":                       2,
	} {
		s.inUTC(path, s.do("GET", path, "", nil), least)
	}
	s.inUTC("search", s.do("POST", "/v1/memories/search", "", map[string]any{"query": "zoned note", "user_id": "zone"}), 4)
}

// inUTC fails unless the answer has that many times and each is RFC 3339 in UTC.
func (s *system) inUTC(what string, a answer, least int) {
	s.t.Helper()
	times := timeMembers.FindAllStringSubmatch(string(a.body), -1)
	if len(times) < least {
		s.t.Errorf("%s: %d times in %s", what, len(times), a.body)
	}
	for _, found := range times {
		if !strings.HasSuffix(found[1], "Z") {
			s.t.Errorf("%s: %s", what, found[0])
		}
	}
}

func timesWithOffset(s *system) {
	body := func(at string) map[string]any {
		return map[string]any{"user_id": "offset", "content": "the new year begins in Japan", "infer": false, "event_date": at}
	}
	s.want(s.do("POST", "/v1/memories", "", body("2026-01-01T00:00:00")), http.StatusBadRequest, "/event_date")
	s.want(s.do("POST", "/v1/memories", "", body("2026-01-01T00:00:00+09:00")), http.StatusOK)
	for filter, want := range map[string]int{
		`{"eq":"2025-12-31T15:00:00Z"}`:      1,
		`{"eq":"2025-12-31T10:00:00-05:00"}`: 1,
		`{"eq":"2026-01-01T00:00:00Z"}`:      0,
		`{"lt":"2026-01-01T00:00:00Z"}`:      1,
		`{"gte":"2026-01-01T00:00:00Z"}`:     0,
	} {
		got := s.search(map[string]any{"query": "new year", "user_id": "offset", "filters": map[string]any{"event_date": json.RawMessage(filter)}})
		if len(got.Results) != want {
			s.t.Errorf("%s finds %q", filter, got.texts())
		}
	}
	s.want(s.do("POST", "/v1/memories/search", "", map[string]any{
		"query": "new year", "user_id": "offset", "filters": map[string]any{"event_date": "2026-01-01T00:00:00"},
	}), http.StatusBadRequest, "INVALID_FILTER")
}

// sameFormEverywhere reads one record three ways; but for its score it is the same, times included.
func sameFormEverywhere(s *system) {
	id := s.store("form", "", "one form", map[string]any{"k": "v"}).Results[0].ID
	list := s.do("GET", "/v1/memories?user_id=form", "", nil)
	search := s.do("POST", "/v1/memories/search", "", map[string]any{"query": "one form", "user_id": "form"})
	var single map[string]any
	s.do("GET", "/v1/memories/"+id, "", nil).into(s.t, &single)
	for what, a := range map[string]answer{"list": list, "search": search} {
		var page struct {
			Results []map[string]any `json:"results"`
		}
		a.into(s.t, &page)
		if len(page.Results) != 1 {
			s.t.Fatalf("%s: %s", what, a.body)
		}
		delete(page.Results[0], "score")
		if got, want := fmt.Sprint(page.Results[0]), fmt.Sprint(single); got != want {
			s.t.Errorf("%s: %s, singular %s", what, got, want)
		}
	}
}
