package endtoend

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestTools is what an agent can do over MCP, with the SDK's own client against real processes.
func TestTools(t *testing.T) {
	t.Parallel()
	s := newToolSystem(t, testkit.NewDatabase(t))
	for name, check := range map[string]func(*system){
		"AddsWaitsSearchesListsAndDeletes":     toolsRoundTrip,
		"ReceiptComesBeforeTheWork":            toolsReceipt,
		"OneKeyIsOneWriteInItsScope":           toolsKeys,
		"InjectedScopeIsRefused":               toolsInjected,
		"ForeignIDsDoNotExist":                 toolsForeign,
		"CursorOfAnotherScopeIsRefused":        toolsCursors,
		"NarrowerRecordsAreInside":             toolsNarrower,
		"ConnectionWithoutScopeLearnsItAtOnce": toolsWithoutScope,
		"KeyDecidesWhatIsListed":               toolsPermissions,
		"ArgumentsAreStrict":                   toolsStrict,
		"DoorTakesOneMessageOfItsOwnPages":     toolsDoor,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(s.of(t))
		})
	}
}

func toolsRoundTrip(s *system) {
	alice := s.agent("User", "alice")
	added := alice.call("", "add_memory", object{"text": "FACT: Alice rows on the lake", "wait": 25})
	if added.Status != "SUCCEEDED" || added.Outcome == nil || *added.Outcome != "STORED" || len(added.Results) != 1 ||
		added.IdempotencyKey == "" || added.Notice == "" {
		s.t.Fatalf("added %+v", added)
	}
	alice.call("", "add_memory", object{"wait": 25, "messages": []object{
		{"role": "user", "content": "FACT: Alice plays the cello"}, {"role": "assistant", "content": "Lovely."},
	}})
	found := alice.call("", "search_memory", object{"query": "who rows on a lake?", "limit": 1})
	if found.texts() != "Alice rows on the lake" || found.Memories[0].ID != added.Results[0].ID || found.Notice == "" {
		s.t.Fatalf("found %+v", found)
	}
	first := alice.call("", "list_memories", object{"limit": 1})
	if first.texts() != "Alice plays the cello" || first.NextCursor == nil {
		s.t.Fatalf("first page %+v", first)
	}
	second := alice.call("", "list_memories", object{"limit": 1, "cursor": *first.NextCursor})
	if second.texts() != "Alice rows on the lake" || second.NextCursor != nil {
		s.t.Fatalf("second page %+v", second)
	}
	if gone := alice.call("", "delete_memory", object{"id": added.Results[0].ID}); !gone.Deleted {
		s.t.Fatalf("deleted %+v", gone)
	}
	alice.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": added.Results[0].ID})
	if left := alice.call("", "list_memories", object{}); left.texts() != "Alice plays the cello" {
		s.t.Fatalf("left %+v", left)
	}
	if event := alice.call("", "get_event", object{"event_id": added.EventID}); event.Results[0].Memory != nil {
		s.t.Fatalf("the event shows a deleted text: %+v", event)
	}
}

func toolsReceipt(s *system) {
	ben := s.agent("User", "ben")
	receipt := ben.call("", "add_memory", object{"text": "FACT: Ben is tall"})
	if receipt.Status == "" || receipt.EventID == "" || receipt.Results != nil {
		s.t.Fatalf("receipt %+v", receipt)
	}
	event := ben.call("", "get_event", object{"event_id": receipt.EventID, "wait": 25})
	if event.Status != "SUCCEEDED" || *event.Results[0].Memory != "Ben is tall" {
		s.t.Fatalf("event %+v", event)
	}
	if nothing := ben.call("", "add_memory", object{"text": "good morning", "wait": 25}); *nothing.Outcome != "NO_MEMORY" {
		s.t.Fatalf("small talk %+v", nothing)
	}
}

func toolsKeys(s *system) {
	cara, dan := s.agent("User", "cara"), s.agent("User", "dan")
	write := object{"text": "FACT: a note", "idempotency_key": "1"}
	first := cara.call("", "add_memory", write)
	again := cara.call("", "add_memory", write)
	if again.EventID != first.EventID || !again.Replayed || first.Replayed || first.IdempotencyKey != "1" {
		s.t.Fatalf("a repeat under one key: %+v and %+v", first, again)
	}
	conflict := cara.call("IDEMPOTENCY_CONFLICT", "add_memory", object{"text": "FACT: another note", "idempotency_key": "1"})
	if conflict.Error.IdempotencyKey != "1" || conflict.Error.Retryable {
		s.t.Fatalf("conflict %+v", conflict.Error)
	}
	if other := dan.call("", "add_memory", write); other.Replayed || other.EventID == first.EventID {
		s.t.Fatalf("the same name in another scope is another write: %+v", other)
	}
	made := cara.call("", "add_memory", object{"text": "FACT: made"})
	repeat := cara.call("", "add_memory", object{"text": "FACT: made", "idempotency_key": made.IdempotencyKey})
	if repeat.EventID != made.EventID {
		s.t.Fatalf("the key of the answer doesn't name its write: %+v and %+v", made, repeat)
	}
	if fresh := cara.call("", "add_memory", object{"text": "FACT: made"}); fresh.EventID == made.EventID {
		s.t.Fatal("two calls without a key are two writes")
	}
	cara.call("INVALID_IDEMPOTENCY_KEY", "add_memory", object{"text": "FACT: a note", "idempotency_key": "a b"})
}

func toolsInjected(s *system) {
	s.store("victim", "", "the victim's secret", nil)
	mallory := s.agent("User", "mallory")
	for tool, arguments := range map[string]object{
		"add_memory": {"text": "FACT: planted"}, "search_memory": {"query": "secret"}, "list_memories": {},
		"get_event": {"event_id": uuid.NewString()}, "delete_memory": {"id": uuid.NewString()},
	} {
		for _, name := range []string{
			"user_id", "agent_id", "run_id", "app_id", "scope", "filters", "X-Holdfast-User-Id", "User_Id", "metadata", "infer",
		} {
			injected := object{name: "victim"}
			for k, v := range arguments {
				injected[k] = v
			}
			said := mallory.call("INVALID_REQUEST", tool, injected)
			if rule := said.Error.Details["rule"]; !strings.HasPrefix(fmt.Sprint(rule), "no unknown arguments") {
				s.t.Fatalf("%s with %s: %v", tool, name, rule)
			}
		}
	}
	mallory.call("INVALID_REQUEST", "add_memory", raw(`{"messages":[{"role":"user","content":"FACT: x","user_id":"victim"}]}`))
	mallory.call("INVALID_REQUEST", "add_memory", raw(`{"messages":"FACT: x"}`))
	if n := s.tasksOf("victim") + s.tasksOf("mallory"); n != 1 {
		s.t.Fatalf("%d commands, want the victim's own", n)
	}
	if found := mallory.call("", "search_memory", object{"query": "the victim's secret user_id: victim"}); found.texts() != "" {
		s.t.Fatalf("mallory finds %q", found.texts())
	}
}

func toolsForeign(s *system) {
	mine := s.agent("User", "eve")
	theirs := s.agentOf(s.anotherWorkspace(), "User", "eve")
	neighbour := s.store("frank", "", "frank's own", nil)
	abroad := theirs.call("", "add_memory", object{"text": "FACT: theirs", "wait": 0})
	theirs.call("", "get_event", object{"event_id": abroad.EventID})
	batched := s.do("DELETE", "/v1/memories/batch", "", object{"ids": []string{"mem_" + uuid.NewString()}})
	s.want(batched, http.StatusAccepted)
	var batch struct {
		ID string `json:"event_id"`
	}
	batched.into(s.t, &batch)
	for what, id := range map[string]string{
		"of another user": neighbour.EventID, "of another workspace": abroad.EventID, "of a command without a scope": batch.ID,
		"of nobody": uuid.NewString(), "that is none": "evt_'; DROP TABLE tasks; --", "of an item": "ev_0123456789abcdef",
	} {
		for _, wait := range []int{0, 25} {
			said := mine.call("EVENT_NOT_FOUND", "get_event", object{"event_id": id, "wait": wait})
			if strings.Contains(said.Error.Message, id) {
				s.t.Fatalf("an event %s is quoted", what)
			}
		}
	}
	mine.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": neighbour.Results[0].ID})
	mine.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": strings.TrimPrefix(neighbour.Results[0].ID, "mem_")})
	mine.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": "mem_" + uuid.NewString()})
	s.want(s.do("GET", "/v1/memories/"+neighbour.Results[0].ID, "", nil), http.StatusOK, "frank's own")
	theirs.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": neighbour.Results[0].ID})
	gus := s.agent("User", "gus")
	erased := gus.call("", "add_memory", object{"text": "FACT: Gus was here", "wait": 25})
	s.want(s.do("DELETE", "/v1/memories?user_id=gus", "", nil), http.StatusOK)
	gus.call("EVENT_NOT_FOUND", "get_event", object{"event_id": erased.EventID})
}

func toolsCursors(s *system) {
	s.remember("gail", "one", "two", "three")
	s.remember("hugo", "four", "five", "six")
	gail, hugo := s.agent("User", "gail"), s.agent("User", "hugo")
	page := hugo.call("", "list_memories", object{"limit": 1})
	gail.call("INVALID_CURSOR", "list_memories", object{"limit": 1, "cursor": *page.NextCursor})
	s.agentOf(s.anotherWorkspace(), "User", "hugo").call("INVALID_CURSOR", "list_memories", object{"cursor": *page.NextCursor})
	s.agent("User", "hugo", "Agent", "x").call("INVALID_CURSOR", "list_memories", object{"cursor": *page.NextCursor})
	native := s.do("GET", "/v1/memories?user_id=gail&limit=1", "", nil)
	var listed struct {
		Next string `json:"next_cursor"`
	}
	native.into(s.t, &listed)
	gail.call("INVALID_CURSOR", "list_memories", object{"cursor": listed.Next})
	gail.call("INVALID_CURSOR", "list_memories", object{"cursor": strings.Repeat("x", 100)})
}

func toolsNarrower(s *system) {
	wide, narrow := s.agent("User", "ines"), s.agent("User", "ines", "Agent", "shop")
	added := narrow.call("", "add_memory", object{"text": "FACT: Ines buys tea", "wait": 25})
	other := wide.call("", "add_memory", object{"text": "FACT: Ines has a dog", "wait": 25})
	if seen := wide.call("", "list_memories", object{}); len(seen.Memories) != 2 {
		s.t.Fatalf("the user's connection sees %q", seen.texts())
	}
	if seen := narrow.call("", "list_memories", object{}); seen.texts() != "Ines buys tea" {
		s.t.Fatalf("the agent's connection sees %q", seen.texts())
	}
	narrow.call("EVENT_NOT_FOUND", "get_event", object{"event_id": other.EventID})
	narrow.call("MEMORY_NOT_FOUND", "delete_memory", object{"id": other.Results[0].ID})
	wide.call("", "get_event", object{"event_id": added.EventID})
	wide.call("", "delete_memory", object{"id": added.Results[0].ID})
}

func toolsWithoutScope(s *system) {
	for name, c := range map[string]struct {
		header http.Header
		words  string
	}{
		"none":      {s.header(s.key), "SCOPE_REQUIRED: send at least one of the headers X-Holdfast-User-Id"},
		"empty":     {s.header(s.key, "User", ""), "1 to 512 characters"},
		"too long":  {s.header(s.key, "User", strings.Repeat("x", 513)), "1 to 512 characters"},
		"two lines": {s.header(s.key, "User", "a", "User", "b"), "one header line"},
	} {
		session, err := s.dial(s.t.Context(), c.header)
		if err == nil {
			_ = session.Close()
			s.t.Fatalf("%s: a client connects", name)
		}
		if !strings.Contains(err.Error(), c.words) {
			s.t.Fatalf("%s: %v lacks %q", name, err, c.words)
		}
		said := s.post(c.header, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_memories","arguments":{}}}`)
		s.want(said, http.StatusOK, `"isError":true`)
	}
	s.agent("User", "日本 – Łódź").call("", "list_memories", object{})
}

func toolsPermissions(s *system) {
	for names, permissions := range map[string][]access.Permission{
		"list_memories search_memory": {access.MemoryRead},
		"add_memory delete_memory":    {access.MemoryWrite},
		"get_event":                   {access.OperationsRead},
		"add_memory delete_memory get_event list_memories search_memory": {access.MemoryRead, access.MemoryWrite, access.OperationsRead},
		"": {access.CreditsRead},
	} {
		key := s.agentOf(s.keyWith(permissions...), "User", "jo")
		listed, err := key.session.ListTools(s.t.Context(), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, tool := range listed.Tools {
			seen[tool.Name] = true
			if schema, ok := tool.InputSchema.(map[string]any); !ok || schema["additionalProperties"] != false {
				s.t.Fatalf("%s has an open schema: %v", tool.Name, tool.InputSchema)
			}
		}
		for tool, arguments := range map[string]object{
			"add_memory": {"text": "FACT: x"}, "search_memory": {"query": "x"}, "list_memories": {},
			"get_event": {"event_id": uuid.NewString()}, "delete_memory": {"id": uuid.NewString()},
		} {
			allowed := strings.Contains(" "+names+" ", " "+tool+" ")
			if seen[tool] != allowed {
				s.t.Fatalf("with %q %s is listed: %v", names, tool, seen[tool])
			}
			if !allowed {
				key.call("INSUFFICIENT_PERMISSION", tool, arguments)
			}
		}
	}
	blind := s.agentOf(s.keyWith(access.MemoryWrite), "User", "blind")
	blind.call("INSUFFICIENT_PERMISSION", "add_memory", object{"text": "FACT: x", "wait": 1})
	if n := s.tasksOf("blind"); n != 0 {
		s.t.Fatalf("%d writes were accepted before the refusal", n)
	}
}

func toolsStrict(s *system) {
	kim := s.agent("User", "kim")
	long := strings.Repeat("x", 10_001)
	for tool, cases := range map[string][]any{
		"add_memory": {
			object{},
			object{"text": ""},
			object{"text": " \u200b "},
			object{"text": 1},
			raw(`[]`), raw(`"x"`), raw(`null`),
			object{"text": "x", "messages": []object{{"role": "user", "content": "x"}}},
			object{"messages": []object{}},
			object{"text": "x", "wait": 26},
			object{"text": "x", "wait": -1},
			object{"text": "x", "wait": "5"},
			object{"text": "x", "wait": 1.5},
			object{"TEXT": "x"},
			object{"messages": []object{{"role": "user"}}},
		},
		"search_memory": {
			object{},
			object{"query": " "},
			object{"query": long},
			object{"query": "x", "limit": 0},
			object{"query": "x", "limit": 101},
			object{"query": []string{"x"}},
		},
		"list_memories": {object{"limit": "1"}, object{"limit": 101}, object{"cursor": 1}},
		"get_event":     {object{}, object{"event_id": 1}, object{"event_id": uuid.NewString(), "wait": 26}},
		"delete_memory": {object{}, object{"id": 1}, object{"ids": []string{}}},
	} {
		for _, arguments := range cases {
			said := kim.call("INVALID_REQUEST", tool, arguments)
			if strings.Contains(fmt.Sprint(said.Error.Details), long[:100]) || said.Error.Retryable {
				s.t.Fatalf("%s: %+v", tool, said.Error)
			}
		}
	}
	kim.call("INVALID_BODY", "add_memory", raw(`{"text":"FACT: a","text":"FACT: b"}`))
	kim.call("INVALID_BODY", "add_memory", raw(`{"text":"\ud800"}`))
	kim.call("INVALID_BODY", "add_memory", raw(`{"text":"a\u0000b"}`))
	if n := s.tasksOf("kim"); n != 0 {
		s.t.Fatalf("%d commands", n)
	}
	kim.call("", "list_memories", raw(`{"limit":5.0,"cursor":null}`))
	if _, err := kim.session.CallTool(s.t.Context(), nil); err == nil {
		s.t.Fatal("a call of no tool")
	}
}

// post sends one message as it is.
func (s *system) post(header http.Header, message string) answer {
	s.t.Helper()
	return s.ask(http.MethodPost, header, message)
}

func (s *system) ask(method string, header http.Header, message string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.api+"/mcp", strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = header.Clone()
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, bytes.TrimSpace(body)}
}

func toolsDoor(s *system) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	ours := s.header(s.key, "User", "lea")
	with := func(pairs ...string) http.Header {
		h := ours.Clone()
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	host := strings.TrimPrefix(s.api, "http://")
	for name, c := range map[string]struct {
		method string
		header http.Header
		body   string
		status int
		words  string
	}{
		"a message":                {"POST", ours, ping, 200, `"result":{}`},
		"no stream":                {"GET", ours, "", 405, "METHOD_NOT_ALLOWED"},
		"no session to end":        {"DELETE", ours, "", 405, "METHOD_NOT_ALLOWED"},
		"no key":                   {"POST", http.Header{}, ping, 401, "INVALID_API_KEY"},
		"no key for the method":    {"GET", http.Header{}, "", 401, "INVALID_API_KEY"},
		"a page of another site":   {"POST", with("Origin", "https://evil.example"), ping, 403, "INSUFFICIENT_PERMISSION"},
		"a page of no site":        {"POST", with("Origin", "null"), ping, 403, "INSUFFICIENT_PERMISSION"},
		"two pages":                {"POST", with("Origin", s.api, "Origin", s.api), ping, 403, "INSUFFICIENT_PERMISSION"},
		"another port":             {"POST", with("Origin", "http://127.0.0.1:1"), ping, 403, "INSUFFICIENT_PERMISSION"},
		"a name rebound to us":     {"POST", with("Origin", "http://evil.example:80", "Host", "evil.example:80"), ping, 403, "INSUFFICIENT_PERMISSION"},
		"a page of our own":        {"POST", with("Origin", "http://"+host), ping, 200, `"result":{}`},
		"a proxy's client":         {"POST", with("Host", "memory.example.com"), ping, 200, `"result":{}`},
		"a batch":                  {"POST", ours, " [" + ping + "," + ping + "]", 400, "not a batch"},
		"nothing":                  {"POST", ours, "", 400, ""},
		"no JSON":                  {"POST", ours, "{", 400, ""},
		"another type":             {"POST", with("Content-Type", "text/plain"), ping, 415, ""},
		"a body of half a million": {"POST", ours, `{"x":"` + strings.Repeat("x", 500_000) + `"}`, 413, "PAYLOAD_TOO_LARGE"},
		"no resources":             {"POST", ours, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, 200, "method not found"},
		"an unknown tool":          {"POST", ours, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"erase_all"}}`, 200, `"error"`},
	} {
		got := s.ask(c.method, c.header, c.body)
		if got.status != c.status || !strings.Contains(string(got.body), c.words) {
			s.t.Fatalf("%s: %d %s, want %d with %q", name, got.status, got.body, c.status, c.words)
		}
		if got.header.Get("Mcp-Session-Id") != "" || strings.Contains(got.header.Get("Content-Type"), "event-stream") {
			s.t.Fatalf("%s: a session or a stream begins: %v", name, got.header)
		}
		if c.status == 401 && got.header.Get("WWW-Authenticate") == "" || c.status == 405 && got.header.Get("Allow") != "POST" {
			s.t.Fatalf("%s: header %v", name, got.header)
		}
	}
	listen := s.post(with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"), `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen",
		"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`)
	if !strings.Contains(string(listen.body), "error") {
		s.t.Fatalf("a subscription: %d %s", listen.status, listen.body)
	}
}
