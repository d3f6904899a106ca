package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestMem0 drives the mem0 dialect over a real system. Each subtest has users of its own.
func TestMem0(t *testing.T) {
	t.Parallel()
	s := newSystem(t, testkit.NewDatabase(t), "HOLDFAST_EXTRACTOR=offline", "HOLDFAST_EMBEDDER=offline")
	s.startAPI()
	s.startWorker()
	for name, check := range map[string]func(*system){
		"AddIsOneEventWhateverTheWayOfItsKey": mem0Keys, "VerbatimAddsExpireAndAreDated": mem0Verbatim, "ShapesOfV1": mem0V1,
		"DangerousAddresses": mem0Addresses, "NoFilterErasesNothing": mem0NoFilter, "FiltersSelect": mem0Filters,
		"PagesCountAll": mem0Pages, "ChangesAndHistory": mem0Changes, "Batches": mem0Batches, "Entities": mem0Entities,
		"EventsNeverEcho": mem0Events, "OtherWorkspacesAreUnknown": mem0Others, "BrokenTextIsRefused": mem0Broken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(s.of(t))
		})
	}
}

// mem0 sends a request as the mem0 clients do. A header is a name and its value.
func (s *system) mem0(method, path, body string, header ...string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.api, bytes.NewReader([]byte(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	path, query, _ := strings.Cut(path, "?")
	plain, err := url.PathUnescape(path)
	if err != nil {
		s.t.Fatal(err)
	}
	request.URL.Path, request.URL.RawPath, request.URL.RawQuery = plain, path, query // as it is: nothing is cleaned
	request.Header.Set("Authorization", "Token "+s.key)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var read bytes.Buffer
	if _, err := read.ReadFrom(response.Body); err != nil {
		s.t.Fatal(err)
	}
	if !json.Valid(read.Bytes()) {
		s.t.Fatalf("%s %s: %d %q is no JSON", method, path, response.StatusCode, read.Bytes())
	}
	return answer{response.StatusCode, response.Header, read.Bytes()}
}

// mem0Memory is a memory as the clients read it.
type mem0Memory struct {
	ID             string         `json:"id"`
	Memory         string         `json:"memory"`
	UserID         *string        `json:"user_id"`
	Metadata       map[string]any `json:"metadata"`
	ExpirationDate *string        `json:"expiration_date"`
	EventDate      *string        `json:"event_date"`
	Score          float64        `json:"score"`
}

type mem0Page struct {
	Count    int64        `json:"count"`
	Next     *string      `json:"next"`
	Previous *string      `json:"previous"`
	Results  []mem0Memory `json:"results"`
}

// keepsMem0 stores one text as it is and returns its id.
func (s *system) keepsMem0(more, text string) string {
	s.t.Helper()
	a := s.mem0("POST", "/v3/memories/add/", fmt.Sprintf(`{"messages":%q,"infer":false,%s}`, text, more))
	s.want(a, http.StatusOK, `"status":"SUCCEEDED"`)
	var v stored
	a.into(s.t, &v)
	if len(v.Results) != 1 {
		s.t.Fatalf("stored %s", a.body)
	}
	return v.Results[0].ID
}

// listMem0 returns the texts that a filter selects, sorted.
func (s *system) listMem0(filters string) []string {
	s.t.Helper()
	a := s.mem0("POST", "/v3/memories/", `{"filters":`+filters+`}`)
	s.want(a, http.StatusOK)
	var page mem0Page
	a.into(s.t, &page)
	texts := []string{}
	for _, m := range page.Results {
		texts = append(texts, m.Memory)
	}
	slices.Sort(texts)
	if int(page.Count) != len(texts) || page.Next != nil || page.Previous != nil {
		s.t.Fatalf("%s: %s", filters, a.body)
	}
	return texts
}

func mem0Keys(s *system) {
	const body = `{"messages":[{"role":"user","content":"I like oolong tea."}],"user_id":"keys","metadata":{"camelCase":1.50}`
	first := s.receipt(s.mem0("POST", "/v3/memories/add/", body+`,"idempotency_key":"k"}`))
	for _, again := range []answer{
		s.mem0("POST", "/v3/memories/add/", body+`,"idempotency_key":"k"}`), s.mem0("POST", "/v3/memories/add", body+`}`, "Idempotency-Key", "k"),
		s.mem0("POST", "/v1/memories/", body+`,"idempotency_key":"other","output_format":"v1.1"}`, "Idempotency-Key", "k"),
	} {
		s.want(again, http.StatusAccepted, first)
		if again.header.Get("Idempotent-Replayed") != "true" {
			s.t.Errorf("not a replay: %s", again.body)
		}
	}
	native := s.do("POST", "/v1/memories", "k", map[string]any{
		"user_id": "keys", "messages": []map[string]string{{"role": "user", "content": "I like oolong tea."}}, "metadata": json.RawMessage(`{"camelCase":1.5}`),
	})
	s.want(native, http.StatusAccepted, "evt_"+first)
	s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":"other","user_id":"keys","idempotency_key":"k"}`), http.StatusConflict, "IDEMPOTENCY_CONFLICT")
	s.succeeded(first)
	without := s.mem0("POST", "/v3/memories/add/", body+`}`)
	if id := s.receipt(without); id == first {
		s.t.Error("a call without a key is its own command")
	} else {
		s.succeeded(id)
	}
	if got := s.texts("keys"); got != "User likes oolong tea" {
		s.t.Errorf("stored %q", got)
	}
	if n := s.tasksOf("keys"); n != 2 {
		s.t.Errorf("%d tasks", n)
	}
	waited := s.mem0("POST", "/v1/memories/", `{"messages":"I like figs.","user_id":"keys","async_mode":false}`)
	s.want(waited, http.StatusOK, `[{"id":`, `"data":{"memory":"User likes figs"}`, `"event":"ADD"`)
}

func mem0Verbatim(s *system) {
	id := s.keepsMem0(`"user_id":"verbatim","metadata":{"b":1.50,"a":{"x_y":[1]}},"timestamp":1700000000,"expiration_date":"2090-01-31"`, "one <b>")
	a := s.mem0("GET", "/v1/memories/"+id+"/", "")
	s.want(a, http.StatusOK, `"metadata":{"b":1.50,"a":{"x_y":[1]}}`, `"memory":"one <b>"`, `"expiration_date":"2090-01-31"`, `"event_date":"2023-11-14T22:13:20Z"`)
	gone := s.keepsMem0(`"user_id":"verbatim","expiration_date":"2020-01-31"`, "expired")
	s.want(s.mem0("GET", "/v1/memories/"+gone+"/", ""), http.StatusOK, `"lifecycle_state":"expired"`)
	if got := s.listMem0(`{"user_id":"verbatim"}`); !slices.Equal(got, []string{"one <b>"}) {
		s.t.Errorf("list %q", got)
	}
	s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[1]},{"role":"tool","content":"b"}],"infer":false,"filters":{"agentId":"verbatim"}}`),
		http.StatusOK, `"memory":"a"`, `"memory":"b"`)
	if got := s.listMem0(`{"agent_id":"verbatim"}`); !slices.Equal(got, []string{"a", "b"}) {
		s.t.Errorf("list %q", got)
	}
}

func mem0V1(s *system) {
	s.want(s.mem0("POST", "/v1/memories/", `{"messages":"pears","user_id":"v1","infer":false,"org_id":"o"}`), http.StatusOK, `[{"id":`)
	s.want(s.mem0("POST", "/v1/memories/search/", `{"query":"pears","user_id":"v1"}`), http.StatusOK, `[{"id":`, `"score":`)
	s.want(s.mem0("POST", "/v1/memories/search/", `{"query":"pears","user_id":"v1","output_format":"v1.1"}`), http.StatusOK, `{"results":[{"id":`, `"relations":[]`)
	s.want(s.mem0("POST", "/v2/memories/search/", `{"query":"pears","filters":{"user_id":"v1"}}`), http.StatusOK, `[{"id":`)
	s.want(s.mem0("GET", "/v1/memories/?user_id=v1&org_id=o&project_id=p", ""), http.StatusOK, `[{"id":`)
	s.want(s.mem0("GET", "/v1/memories/?user_id=v1&page=1&page_size=5", ""), http.StatusOK, `{"count":1,"next":null`)
	s.want(s.mem0("POST", "/v2/memories/?page=1&page_size=5", `{"filters":{"user_id":"v1"}}`), http.StatusOK, `[{"id":`)
	s.want(s.mem0("POST", "/v3/memories/search/", `{"query":"pears","filters":{"user_id":"v1"},"threshold":1}`), http.StatusOK, `{"results":[`)
	var found struct{ Results []mem0Memory }
	s.mem0("POST", "/v3/memories/search/", `{"query":"what about pears","filters":{"user_id":"v1"}}`).into(s.t, &found)
	if len(found.Results) != 1 || found.Results[0].Memory != "pears" || found.Results[0].Score <= 0 {
		s.t.Errorf("found %+v", found)
	}
}

// mem0Addresses are the rows of MEM0-WIRE A5: what the clients make of odd ids, and what a raw client can send.
func mem0Addresses(s *system) {
	kept := s.keepsMem0(`"user_id":"addresses"`, "kept")
	for _, row := range []struct {
		method, path string
		status       int
		word         string
	}{
		{"DELETE", "/v1/memories/", 400, "SCOPE_REQUIRED"},  // delete(".")
		{"DELETE", "/v1/memories//", 400, "SCOPE_REQUIRED"}, // delete("")
		{"DELETE", "/v1/", 404, "ROUTE_NOT_FOUND"},          // delete("..")
		{"DELETE", "/v2/entities/", 404, "ROUTE_NOT_FOUND"}, // deleteUsers({userId: ".."})
		{"DELETE", "/v2/entities/user//", 404, "ROUTE_NOT_FOUND"},
		{"DELETE", "/v1/memories/./", 404, "ROUTE_NOT_FOUND"}, // no client sends it
		{"DELETE", "/v1/memories/../", 404, "ROUTE_NOT_FOUND"},
		{"DELETE", "/v1/memories/%2E%2E/", 400, "memory_id should be a valid UUID"},
		{"GET", "/v1/memories/undefined/", 400, "memory_id should be a valid UUID"},
		{"GET", "/v1/memories/a%2Fb%3Fc/", 400, "memory_id should be a valid UUID"},
		{"GET", "//v1/ping/", 200, `"status":"ok"`}, // a host with a slash at its end
		{"GET", "/v1/ping", 200, `"status":"ok"`},
		{"GET", "//v1//memories//" + kept + "//", 200, `"memory":"kept"`},
		{"GET", "/v1/memories/mem_" + kept, 200, `"id":"` + kept + `"`},
		{"GET", "/v1/nowhere/", 404, "ROUTE_NOT_FOUND"},
		{"POST", "/v1/summary/", 501, "NOT_IMPLEMENTED"},
		{"GET", "/v2/entities/user/addresses/profile/", 501, "NOT_IMPLEMENTED"},
	} {
		a := s.mem0(row.method, row.path, "")
		s.want(a, row.status, row.word)
		if row.status >= 400 {
			s.want(a, row.status, `"detail":"`, `"error":"`, `"message":"`, `"code":"`, `"request_id":"`)
		}
	}
	s.want(s.mem0("POST", "//v3/memories/add/", `{"messages":"more","user_id":"addresses","infer":false}`), http.StatusOK)
	if got := s.listMem0(`{"user_id":"addresses"}`); !slices.Equal(got, []string{"kept", "more"}) {
		s.t.Errorf("left %q", got)
	}
}

func mem0NoFilter(s *system) {
	s.keepsMem0(`"user_id":"a,b","run_id":"r"`, "of a,b")
	s.keepsMem0(`"user_id":"careful"`, "of careful")
	for _, query := range []string{"", "?", "?org_id=o&project_id=p", "?user_id=", "?user_id=*", "?user_id=careful&agent_id=", "?userid=careful", "?user_id=careful&filters=x"} {
		s.want(s.mem0("DELETE", "/v1/memories/"+query, ""), http.StatusBadRequest)
	}
	s.want(s.mem0("DELETE", "/v2/entities/user/*/", ""), http.StatusBadRequest)
	if got := s.listMem0(`{"OR":[{"user_id":"a,b"},{"user_id":"careful"}]}`); len(got) != 2 {
		s.t.Fatalf("left %q", got)
	}
	a := s.mem0("DELETE", "/v1/memories/?user_id=a%2Cb&org_id=o&project_id=p", "")
	s.want(a, http.StatusOK, `"deleted":1`, `"event_id":"`)
	if got := s.listMem0(`{"OR":[{"user_id":"a,b"},{"user_id":"careful"}]}`); !slices.Equal(got, []string{"of careful"}) {
		s.t.Errorf("left %q", got)
	}
}

func mem0Filters(s *system) {
	one := s.keepsMem0(`"user_id":"f1","run_id":"r1","metadata":{"tag":"food","price":2,"deep":{"k":"v"}},"timestamp":1700000000,"expiration_date":"2090-01-31"`, "Green tea")
	two := s.keepsMem0(`"user_id":"f1","agent_id":"f-agent","metadata":{"tag":"work"}`, "red wine")
	s.keepsMem0(`"user_id":"f2"`, "blue milk")
	const mine = `{"OR":[{"user_id":"f1"},{"user_id":"f2"}]}`
	for filter, want := range map[string][]string{
		`{"user_id":"f1"}`:                                                    {"Green tea", "red wine"},
		`{"userId":"f1"}`:                                                     {"Green tea", "red wine"},
		`{"user_id":{"in":["f1","f2"]}}`:                                      {"Green tea", "blue milk", "red wine"},
		mine:                                                                  {"Green tea", "blue milk", "red wine"},
		`{"user_id":"f1","agent_id":"*"}`:                                     {"red wine"},
		`{"user_id":"f1","agent_id":null}`:                                    {"Green tea"},
		`{"user_id":"f1","run_id":{"ne":"r1"}}`:                               {"red wine"},
		`{"AND":[` + mine + `,{"NOT":[{"user_id":"f1"}]}]}`:                   {"blue milk"},
		`{"user_id":"f1","metadata":{"tag":"food"}}`:                          {"Green tea"},
		`{"user_id":"f1","metadata":{"deep":{"k":"v"}}}`:                      {"Green tea"},
		`{"user_id":"f1","metadata":{"price":{"gte":2}}}`:                     {"Green tea"},
		`{"user_id":"f1","metadata":{"ne":{"tag":"food"}}}`:                   {"red wine"},
		`{"user_id":"f1","keywords":{"contains":"tea"}}`:                      {"Green tea"},
		`{"user_id":"f1","keywords":"GREEN"}`:                                 {"Green tea"},
		`{"user_id":"f1","text":"red wine"}`:                                  {"red wine"},
		`{"user_id":"f1","timestamp":{"lt":"2024-01-01"}}`:                    {"Green tea"},
		`{"user_id":"f1","timestamp":"2023-11-14"}`:                           {"Green tea"},
		`{"user_id":"f1","timestamp":{"gte":"2024-01-01"}}`:                   {"red wine"},
		`{"user_id":"f1","created_at":{"gte":"2024-01-01"}}`:                  {"Green tea", "red wine"},
		`{"user_id":"f1","created_at":{"lt":"2024-01-01"}}`:                   {},
		`{"user_id":"f1","expiration_date":"2090-01-31"}`:                     {"Green tea"},
		`{"user_id":"f1","expiration_date":{"lt":"2090-01-31"}}`:              {},
		`{"user_id":"f1","expiration_date":{"gt":"2090-01-30"}}`:              {"Green tea"},
		`{"user_id":"f1","expiration_date":null}`:                             {"red wine"},
		`{"user_id":"*","memory_ids":["` + one + `","mem_` + two + `"]}`:      {"Green tea", "red wine"},
		`{"user_id":"f1","memory_ids":{"ne":"` + strings.ToUpper(one) + `"}}`: {"red wine"},
		`{"user_id":"f1","categories":{"in":["none"]}}`:                       {},
	} {
		if got := s.listMem0(filter); !slices.Equal(got, want) {
			s.t.Errorf("%s: %q, want %q", filter, got, want)
		}
	}
	var found struct{ Results []mem0Memory }
	s.mem0("POST", "/v3/memories/search/", `{"query":"tea wine milk","filters":{"AND":[{"user_id":"f1"},{"metadata":{"tag":"work"}}]}}`).into(s.t, &found)
	if len(found.Results) != 1 || found.Results[0].ID != two {
		s.t.Errorf("found %+v", found)
	}
	for _, filters := range []string{`{}`, `{"metadata":{"tag":"food"}}`, `{"userid":"f1"}`, `{"user_id":{"nin":["x"]}}`, `{"AND":[{"user_id":"f1"},{"session":"x"}]}`} {
		s.want(s.mem0("POST", "/v3/memories/", `{"filters":`+filters+`}`), http.StatusBadRequest)
		s.want(s.mem0("POST", "/v3/memories/search/", `{"query":"tea","filters":`+filters+`}`), http.StatusBadRequest)
	}
}

func mem0Pages(s *system) {
	for i := range 7 {
		s.keepsMem0(`"user_id":"pages"`, fmt.Sprintf("page %d", i))
	}
	seen := map[string]bool{}
	next, pages := s.api+"/v3/memories/?page=1&page_size=3", 0
	for next != "" && pages < 5 {
		path, inside := strings.CutPrefix(next, s.api)
		if !inside {
			s.t.Fatalf("next %s", next)
		}
		a := s.mem0("POST", path, `{"filters":{"user_id":"pages"}}`)
		s.want(a, http.StatusOK, `"count":7`)
		var page mem0Page
		a.into(s.t, &page)
		for _, m := range page.Results {
			seen[m.Memory] = true
		}
		if next, pages = "", pages+1; page.Next != nil {
			next = *page.Next
		}
		if (page.Previous == nil) != (pages == 1) {
			s.t.Errorf("page %d: previous %v", pages, page.Previous)
		}
	}
	if pages != 3 || len(seen) != 7 {
		s.t.Errorf("%d pages, %d memories", pages, len(seen))
	}
	s.want(s.mem0("POST", "/v3/memories/?page=4&page_size=3", `{"filters":{"user_id":"pages"}}`), http.StatusNotFound, `"detail":"Invalid page."`)
	s.want(s.mem0("POST", "/v3/memories/?page=2000000&page_size=3", `{"filters":{"user_id":"pages"}}`), http.StatusNotFound, `"detail":"Invalid page."`)
	s.want(s.mem0("POST", "/v3/memories/", `{"filters":{"user_id":"nobody"}}`), http.StatusOK, `{"count":0,"next":null,"previous":null,"results":[]}`)
}

func mem0Changes(s *system) {
	id := s.keepsMem0(`"user_id":"changes","metadata":{"a":1}`, "before")
	path := "/v1/memories/" + id + "/"
	s.want(s.mem0("PUT", path, `{"text":"after","metadata":null,"expiration_date":"2090-12-31","idempotency_key":"changes"}`), http.StatusOK,
		`"memory":"after"`, `"metadata":{"a":1}`, `"expiration_date":"2090-12-31"`)
	again := s.mem0("PUT", path, `{"text":"after","expiration_date":"2090-12-31"}`, "Idempotency-Key", "changes")
	s.want(again, http.StatusOK, `"memory":"after"`)
	if again.header.Get("Idempotent-Replayed") != "true" {
		s.t.Errorf("not a replay: %s", again.body)
	}
	s.want(s.mem0("PUT", path, `{"metadata":{"b":{"c_d":2}},"expiration_date":null}`), http.StatusOK, `"memory":"after"`, `"metadata":{"b":{"c_d":2}}`, `"expiration_date":null`)
	s.want(s.mem0("PUT", path, `{}`), http.StatusBadRequest)
	a := s.mem0("GET", path+"history/", "")
	s.want(a, http.StatusOK, `"old_memory":"before","new_memory":"after"`, `"user_id":"changes"`)
	var entries []struct{ Event string }
	a.into(s.t, &entries)
	if len(entries) != 3 || entries[0].Event != "ADD" || entries[1].Event != "UPDATE" {
		s.t.Errorf("history %s", a.body)
	}
	s.want(s.mem0("DELETE", path+"?delete_linked=true", ""), http.StatusOK, `"message":"Memory deleted successfully!"`)
	s.want(s.mem0("DELETE", path, ""), http.StatusNotFound, `"error":"Memory not found!"`)
	s.want(s.mem0("PUT", path, `{"text":"x"}`), http.StatusNotFound)
	s.want(s.mem0("GET", path+"history/", ""), http.StatusOK, `"event":"DELETE"`, `"user_id":"changes"`)
	s.want(s.mem0("GET", "/v1/memories/"+uuid.NewString()+"/history/", ""), http.StatusNotFound)
}

func mem0Batches(s *system) {
	one, two := s.keepsMem0(`"user_id":"batches"`, "one"), s.keepsMem0(`"user_id":"batches"`, "two")
	body := fmt.Sprintf(`{"memories":[{"memory_id":%q,"text":"ONE"},{"memory_id":%q,"text":"TWO"}],"idempotency_key":"batches"}`, one, "mem_"+two)
	first := s.mem0("PUT", "/v1/batch/", body)
	s.want(first, http.StatusOK, `"message":"Successfully updated 2 memories"`, `"status":"SUCCEEDED"`)
	again := s.mem0("PUT", "/v1/batch/", body)
	s.want(again, http.StatusOK, s.field(first, "event_id"))
	if got := s.texts("batches"); got != "ONE|TWO" {
		s.t.Errorf("stored %q", got)
	}
	gone := uuid.NewString()
	s.want(s.mem0("DELETE", "/v1/batch/", fmt.Sprintf(`{"memories":[{"memory_id":%q},{"memory_id":%q}]}`, one, gone)), http.StatusOK,
		"deleted 1 of 2 memories", "MEMORY_NOT_FOUND")
	if got := s.listMem0(`{"user_id":"batches"}`); !slices.Equal(got, []string{"TWO"}) {
		s.t.Errorf("left %q", got)
	}
	s.want(s.mem0("DELETE", "/v1/batch/", ""), http.StatusBadRequest)
}

// field is a text member of an answer.
func (s *system) field(a answer, name string) string {
	s.t.Helper()
	var members map[string]any
	a.into(s.t, &members)
	text, isText := members[name].(string)
	if !isText {
		s.t.Fatalf("%s lacks %s", a.body, name)
	}
	return text
}

// mem0Entities has a workspace of its own, because its lists are of everybody.
func mem0Entities(s *system) {
	key, _ := s.another(access.Permissions()...)
	s.key = key
	s.exec(`UPDATE workspaces SET metered = false WHERE id <> $1`, s.ws)
	names := []string{"a/b c", "a,b", "+&?#", "🦊", "a%2Fb", "x"}
	for _, name := range names {
		s.keepsMem0(fmt.Sprintf(`"user_id":%q,"agent_id":"bot"`, name), "of "+name)
	}
	a := s.mem0("GET", "/v1/entities/?page=1&page_size=4&org_id=o", "")
	s.want(a, http.StatusOK, `"count":7`, `"total_users":6`, `"total_agents":1`, `"total_runs":0`, `"type":"agent"`, `"total_memories":6`, `"page=2`[1:])
	s.want(s.mem0("GET", "/v1/entities/?page=3&page_size=4", ""), http.StatusNotFound, "Invalid page.")
	s.want(s.mem0("GET", "/v1/events/?page=2&page_size=4", ""), http.StatusOK, `"count":6`, `"next":null`, `"page=1`[1:])
	var events struct{ Results []event }
	s.mem0("GET", "/v1/events/?page=2&page_size=4", "").into(s.t, &events)
	if len(events.Results) != 2 || events.Results[0].Results[0].Memory == nil || *events.Results[0].Results[0].Memory != "of a,b" {
		s.t.Errorf("events %+v", events)
	}
	var page struct {
		Results []struct{ Name, Type string }
	}
	s.mem0("GET", "/v1/entities/", "").into(s.t, &page)
	if len(page.Results) != 7 {
		s.t.Fatalf("entities %+v", page)
	}
	s.want(s.mem0("GET", "/v2/entities/user/a%2Fb%20c/", ""), http.StatusOK, `[{"id":"a/b c"`)
	s.want(s.mem0("GET", "/v2/entities/user/nobody/", ""), http.StatusNotFound, "Entity not found!")
	for i, path := range []string{ // 2.4.6 leaves the slash as it is, 3.3.1 escapes it
		"/v2/entities/user/a/b%20c/?org_id=o&project_id=p", "/v2/entities/user/a%2Cb/", "/v2/entities/user/%2B%26%3F%23/", "/v1/entities/user/%F0%9F%A6%8A/",
		"/v2/entities/user/a%252Fb/",
	} {
		s.want(s.mem0("DELETE", path, ""), http.StatusOK, `"message":`, `"deleted":1`)
		s.want(s.mem0("GET", "/v1/entities/", ""), http.StatusOK, fmt.Sprintf(`"total_users":%d`, len(names)-1-i))
	}
	if got := s.listMem0(`{"agent_id":"bot"}`); !slices.Equal(got, []string{"of x"}) {
		s.t.Errorf("left %q", got)
	}
}

func mem0Events(s *system) {
	const secret = "oolong-secret-7f3a"
	id := s.receipt(s.mem0("POST", "/v3/memories/add/", `{"messages":"nothing to keep: `+secret+`?","user_id":"events","custom_instructions":"`+secret+`"}`))
	s.succeeded(id)
	for _, path := range []string{"/v1/event/" + id + "/", "/v1/events/" + id + "/", "/v1/event/evt_" + id} {
		a := s.mem0("GET", path, "")
		s.want(a, http.StatusOK, `"status":"SUCCEEDED"`, `"results":[`, `"event_type":"ADD"`, `"payload":{"user_id":"events"}`, `"latency":`, `"error":null`)
		s.want(a, http.StatusOK, `"outcome":"NO_MEMORY"`, `"results":[]`)
		if bytes.Contains(a.body, []byte(secret)) {
			s.t.Errorf("event echoes its input: %s", a.body)
		}
	}
	s.want(s.mem0("GET", "/v1/events/?page_size=1", ""), http.StatusOK, `"count":`, `"previous":null`, `"event_type":`)
	s.want(s.mem0("GET", "/v1/events/?page=999", ""), http.StatusNotFound, "Invalid page.")
	s.want(s.mem0("GET", "/v1/event/"+uuid.NewString()+"/", ""), http.StatusNotFound, "EVENT_NOT_FOUND")
}

func mem0Others(s *system) {
	id := s.keepsMem0(`"user_id":"others"`, "mine")
	event := s.receipt(s.mem0("POST", "/v3/memories/add/", `{"messages":"I like plums.","user_id":"others"}`))
	ping := s.field(s.mem0("GET", "/v1/ping/", ""), "project_id")
	key, _ := s.another(access.Permissions()...)
	s.as(key, func() {
		if s.field(s.mem0("GET", "/v1/ping/", ""), "project_id") == ping {
			s.t.Error("two workspaces have one project")
		}
		s.want(s.mem0("GET", "/v1/memories/"+id+"/", ""), http.StatusNotFound)
		s.want(s.mem0("GET", "/v1/memories/"+id+"/history/", ""), http.StatusNotFound)
		s.want(s.mem0("DELETE", "/v1/memories/"+id+"/", ""), http.StatusNotFound)
		s.want(s.mem0("GET", "/v1/event/"+event+"/", ""), http.StatusNotFound)
		s.want(s.mem0("GET", "/v1/events/", ""), http.StatusOK, `"count":0`)
		if got := s.listMem0(`{"user_id":"*"}`); len(got) != 0 {
			s.t.Errorf("another workspace lists %q", got)
		}
	})
	s.want(s.mem0("GET", "/v1/memories/"+id+"/", ""), http.StatusOK)
	s.as("hfk_wrong", func() {
		s.want(s.mem0("GET", "/v1/ping/", ""), http.StatusUnauthorized, `"detail":"`, `"code":"INVALID_API_KEY"`)
	})
}

func mem0Broken(s *system) {
	for _, text := range []string{`a\ud83d`, `a\u0000b`} {
		s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":"`+text+`","user_id":"broken"}`), http.StatusBadRequest, "INVALID_BODY")
		s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":"x","user_id":"broken","metadata":{"k":"`+text+`"}}`), http.StatusBadRequest, "INVALID_BODY")
	}
	s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":"x","user_id":"broken","metadata":{"n":9007199254740993}}`), http.StatusBadRequest, "INVALID_BODY")
	s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":"x","user_id":"broken","user_id":"other"}`), http.StatusBadRequest, "INVALID_BODY")
	s.want(s.mem0("POST", "/v3/memories/add/", `{"messages":"`+strings.Repeat("x", 250_001)+`","user_id":"broken"}`), http.StatusRequestEntityTooLarge, "PAYLOAD_TOO_LARGE")
	if n := s.tasksOf("broken"); n != 0 {
		s.t.Errorf("%d tasks", n)
	}
}
