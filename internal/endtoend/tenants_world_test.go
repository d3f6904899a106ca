package endtoend

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
)

// belongings are the ids, names, cursors and words of one workspace, by what they are.
type belongings map[string]string

// tenant is a workspace with one of everything.
type tenant struct {
	*system

	has      belongings
	hook     *receiver
	snapshot string
}

// tenant makes a workspace with work that never comes due. No worker may run yet.
func (s *system) tenant() *tenant {
	s.t.Helper()
	w := &tenant{system: s.purse(10_000), has: belongings{}}
	for _, name := range []string{"user", "agent", "run", "app", "idem", "account", "item", "session", "text", "value"} {
		w.has[name] = canary.New()
	}
	w.has["workspace"] = w.ws.String()
	w.has["project"] = "proj_" + uuid.NewSHA1(w.ws, []byte("project")).String()
	w.has["org"] = "org_" + uuid.NewSHA1(w.ws, []byte("org")).String()
	w.has["key"] = one[string](w.system, `SELECT id FROM api_keys WHERE workspace_id = $1`, w.ws)
	w.hook = newReceiver(w.system, "event.succeeded")
	w.hook.open(nil)
	w.has["webhook"], w.has["address"] = w.hook.id, w.hook.address
	for _, name := range []string{"pending", "queued"} {
		w.take(name, w.says("POST", "/v1/memories", `{"user_id":"<user>","run_id":"<run>-later","content":"<text> `+name+`"}`,
			"Idempotency-Key", w.has["idem"]+"-"+name), "event_id")
	}
	s.exec(`UPDATE tasks SET run_after = run_after + interval '1 day' WHERE workspace_id = $1`, w.ws)
	return w
}

// settle gives the workspace one of everything. A worker must run. Afterwards nothing of it moves by itself.
func (w *tenant) settle() {
	w.t.Helper()
	w.remembers()
	w.keeps()
	w.works()
	w.turnsPages()
}

// fill puts what somebody has where <name> stands.
func (b belongings) fill(text string) string {
	for name, value := range b {
		text = strings.ReplaceAll(text, "<"+name+">", value)
	}
	return text
}

// take keeps the member of an answer that a path of names leads to, through the first element of each list.
func (w *tenant) take(name string, a answer, path ...string) {
	w.t.Helper()
	if a.status >= http.StatusMultipleChoices {
		w.t.Fatalf("%s: %d %s", name, a.status, a.body)
	}
	var v any
	a.into(w.t, &v)
	for _, step := range path {
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		members, _ := v.(map[string]any)
		v = members[step]
	}
	text, _ := v.(string)
	if text == "" {
		w.t.Fatalf("%s: %s has no %v", name, a.body, path)
	}
	w.has[name] = text
}

// says sends a request with what the workspace has.
func (w *tenant) says(method, path, body string, header ...string) answer {
	w.t.Helper()
	return w.knock("Bearer "+w.key, method, w.has.fill(path), w.has.fill(body), header...)
}

// knock sends one request as it is under an Authorization. A header is a name and its value.
func (s *system) knock(authorization, method, path, body string, header ...string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.api+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	var read bytes.Buffer
	if response.Header.Get("Content-Type") != "text/event-stream" { // which has no end
		if _, err := read.ReadFrom(response.Body); err != nil {
			s.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return answer{response.StatusCode, response.Header, read.Bytes()}
}

const everyScope = `"user_id":"<user>","agent_id":"<agent>","run_id":"<run>","app_id":"<app>"`

// remembers makes memories and events in every state.
func (w *tenant) remembers() {
	w.t.Helper()
	w.take("event", w.says("POST", "/v1/memories", `{`+everyScope+`,"metadata":{"v":"<value>"},
		"messages":[{"role":"user","content":"FACT: <text> likes tea"},{"role":"user","content":"FACT: <text> likes cake"}]}`,
		"Idempotency-Key", w.has["idem"]), "event_id")
	w.has["memory"] = w.succeeded(w.has["event"]).Results[0].ID
	w.take("failed", w.says("POST", "/v1/memories", `{"user_id":"<user>","content":"nonsense <text>"}`,
		"Idempotency-Key", w.has["idem"]+"-failed"), "event_id")
	if e := w.ended(w.has["failed"]); e.Status != "FAILED" {
		w.t.Fatalf("event %+v", e)
	}
	for _, name := range []string{"deleted", "verbatim"} {
		w.take(name, w.says("POST", "/v1/memories", `{"user_id":"<user>","content":"<text> `+name+`","infer":false}`), "results", "id")
	}
	w.take("changed", w.says("PUT", "/v1/memories/<verbatim>", `{"content":"<text> again"}`), "event_id")
	w.take("deletion", w.says("DELETE", "/v1/memories/<deleted>", ""), "event_id")
	w.take("judged", w.says("PUT", "/v1/memories/<verbatim>/feedback", `{"feedback":"NEGATIVE","reason":"<text>"}`), "id")
	w.take("policy", w.says("PUT", "/v1/extraction-policy", `{"instructions":"<text> first"}`), "instructions")
}

// keeps keeps an item.
func (w *tenant) keeps() {
	w.t.Helper()
	a := w.says("POST", "/v1/memory/add", `{"items":[{"id":"<item>","text":"FACT: <text> has a cat","session":"<session>"},
		{"id":"<item>-2","text":"FACT: <text> has a dog","session":"<session>"}]}`, "X-Twin-Account", w.has["account"])
	w.take("item_event", a, "items", "event_id")
	w.until("the items have landed", func() bool {
		return !strings.Contains(string(w.says("POST", "/v1/memory/read", `{"ids":["<item>","<item>-2"]}`,
			"X-Twin-Account", w.has["account"]).body), `"landed":false`)
	})
	w.take("record", w.says("POST", "/v1/memory/search", `{"query":"<text> has a cat"}`, "X-Twin-Account", w.has["account"]), "results", "id")
}

// works makes a batch, exports, an erase and deliveries.
func (w *tenant) works() {
	w.t.Helper()
	w.take("erase", w.says("DELETE", "/v1/memories?user_id=<text>-nobody", ""), "event_id") // it ends every snapshot
	w.take("batch", w.says("PUT", "/v1/memories/batch", `{"memories":[{"id":"<verbatim>","metadata":{"v":"<value>"}}]}`,
		"Idempotency-Key", w.has["idem"]+"-batch"), "event_id")
	w.take("export", w.says("POST", "/v1/exports", "", "Idempotency-Key", w.has["idem"]+"-export"), "event_id")
	for _, name := range []string{"batch", "export", "erase"} {
		w.succeeded(w.has[name])
	}
	w.take("question", w.knock("Token "+w.key, "POST", "/v1/exports", w.has.fill(`{"filters":{"user_id":"<user>"}}`)), "id")
	snapshot := w.says("GET", "/v1/exports/<export>", "")
	w.want(snapshot, http.StatusOK, w.has["text"])
	w.snapshot = string(snapshot.body)
	w.take("delivery", w.says("POST", "/v1/webhooks/<webhook>/test", ""), "id")
	w.succeeded(w.has["delivery"])
	w.take("message", w.says("GET", "/v1/webhooks/<webhook>/deliveries?limit=1", ""), "results", "message_id")
	news := &reader{s: w.system, open: make(chan struct{}, 1), told: map[string]int{}}
	w.store(w.has["user"], "", w.has["text"]+" told", nil)
	told := make(chan error, 1)
	go func() {
		told <- news.follow(w.api, patience, func(read int) bool { return read > 0 })
	}()
	<-news.open
	w.store(w.has["user"], "", w.has["text"]+" told too", nil)
	if err := <-told; err != nil {
		w.t.Fatal(err)
	}
	w.has["place"] = news.last
	w.until("everything is told", func() bool { return one[bool](w.system, quietSQL, w.ws) })
	w.want(w.says("PUT", "/v1/webhooks/<webhook>", `{"active":false}`), http.StatusOK)
}

// quietSQL tells whether a workspace has nothing under way but the two that wait, and has told all that has succeeded,
// and one test, to its webhook.
const quietSQL = `
SELECT count(*) FILTER (WHERE completed_at IS NULL) = 2
       AND count(*) FILTER (WHERE status = 'succeeded' AND kind <> 'webhook_delivery') + 1 =
           (SELECT count(*) FROM webhook_deliveries d WHERE d.workspace_id = $1)
  FROM tasks WHERE workspace_id = $1`

// turnsPages takes a cursor of each list.
func (w *tenant) turnsPages() {
	w.t.Helper()
	for name, path := range map[string]string{
		"to_memories": "/v1/memories?user_id=<user>&limit=1", "to_events": "/v1/events?limit=1", "to_operations": "/v1/operations?limit=1",
		"to_entities": "/v1/entities?limit=1", "to_history": "/v1/memories/<verbatim>/history?limit=1", "to_entries": "/v1/credits/entries?limit=1",
		"to_deliveries": "/v1/webhooks/<webhook>/deliveries?limit=1",
	} {
		w.take(name, w.says("GET", path, ""), "next_cursor")
	}
	listed := w.tool(w.key, w.has, "list_memories", `{"limit":1}`)
	w.take("to_more", answer{status: listed.status, body: listed.body}, "result", "structuredContent", "next_cursor")
}

// tool calls a tool with the scope of somebody's user.
func (s *system) tool(key string, whose belongings, name, arguments string) answer {
	s.t.Helper()
	return s.post(s.header(key, "User", whose["user"]), fmt.Sprintf(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, whose.fill(arguments)))
}
