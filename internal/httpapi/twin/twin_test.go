package twin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/twin"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

var (
	_ twin.Writer        = (*write.Items)(nil)
	_ twin.Reader        = (*recall.Items)(nil)
	_ httpapi.ItemEvents = (*recall.Items)(nil)
)

// world is what the dialect talks to in these tests: just enough to see how HTTP is mapped.
type world struct {
	server *httpapi.Server
	key    access.Key
	caller access.Caller

	mu      sync.Mutex
	fail    error
	account string
	items   []command.Item
	forgets []write.Forget
	texts   []*string
	grep    recall.Grep
	search  recall.SearchQuery
	page    []string // session, after
	limit   int
}

// deps are those of a server whose native routes nobody calls here.
func (w *world) deps() httpapi.Deps {
	return httpapi.Deps{
		Authenticator: w, Searcher: w, Log: zerolog.Nop(), Accepter: struct{ httpapi.Accepter }{},
		Writer: struct{ httpapi.Writer }{}, Changer: struct{ httpapi.Changer }{}, Batcher: struct{ httpapi.Batcher }{},
		Eraser: struct{ httpapi.Eraser }{}, Retrier: struct{ httpapi.Retrier }{}, Canceller: struct{ httpapi.Canceller }{},
		Events: struct{ httpapi.Events }{}, ItemEvents: struct{ httpapi.ItemEvents }{},
		Memories: struct{ httpapi.Memories }{}, Entities: struct{ httpapi.Entities }{},
		Mover: struct{ httpapi.Mover }{}, Exports: struct{ httpapi.Exports }{}, Credits: struct{ httpapi.Credits }{}, Health: struct{ httpapi.Health }{},
		Webhooks: struct{ httpapi.Webhooks }{}, WebhookReader: struct{ httpapi.WebhookReader }{}, Replayer: struct{ httpapi.Replayer }{},
		Streams:  struct{ httpapi.Streams }{},
		Policies: struct{ httpapi.Policies }{}, Feedbacks: struct{ httpapi.Feedbacks }{},
	}
}

func setup(t *testing.T, permissions ...access.Permission) *world {
	t.Helper()
	key, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if permissions == nil {
		permissions = access.Permissions()
	}
	w := &world{key: key, caller: access.Caller{
		KeyID: key.ID(), Permissions: permissions, Workspace: access.Workspace{ID: uuid.New(), FingerprintKey: make([]byte, 32)},
	}}
	dialect, err := twin.New(twin.Deps{Writer: w, Reader: w, Searcher: w})
	if err != nil {
		t.Fatal(err)
	}
	if w.server, err = httpapi.New(w.deps(), httpapi.Config{Dialects: []httpapi.Dialect{dialect}}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) Authenticate(context.Context, access.Key) (access.Caller, error) {
	return w.caller, nil
}

func (w *world) Keep(_ context.Context, _ access.Caller, account string, items []command.Item) (write.ItemsReceipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account, w.items = account, items
	receipt := write.ItemsReceipt{Queued: 1, Pending: 2}
	for _, item := range items {
		receipt.Items = append(receipt.Items, write.ItemReceipt{ID: item.ID, EventID: item.EventID(w.caller.Workspace.ID), Landed: true})
	}
	return receipt, w.fail
}

func (w *world) Forget(_ context.Context, _ access.Caller, account string, what write.Forget) (write.Forgotten, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.account, w.forgets = account, append(w.forgets, what)
	return write.Forgotten{Events: 3}, w.fail
}

func (w *world) Correct(_ context.Context, _ access.Caller, account string, _ uuid.UUID, text *string) (write.Corrected, error) {
	w.account, w.texts = account, append(w.texts, text)
	done := write.Corrected{EventID: uuid.New()}
	if text != nil {
		id := uuid.New()
		done.Record = &id
	}
	return done, w.fail
}

func item(id string) recall.Item {
	return recall.Item{ID: id, EventID: "ev_0123456789abcdef", Text: "text of " + id, Author: "Ann", At: time.Unix(0, 0).UTC(), Revision: 2, Landed: true}
}

func (w *world) ByID(_ context.Context, _ uuid.UUID, account string, ids []string) ([]recall.Item, error) {
	w.account = account
	items := make([]recall.Item, len(ids))
	for i, id := range ids {
		items[i] = item(id)
	}
	return items, w.fail
}

func (w *world) Session(_ context.Context, _ uuid.UUID, account, session, after string, limit int) ([]recall.Item, bool, error) {
	w.account, w.page, w.limit = account, []string{session, after}, limit
	return []recall.Item{item("a"), item("b")}, true, w.fail
}

func (w *world) Grep(_ context.Context, _ uuid.UUID, ask recall.Grep) (recall.Grepped, error) {
	w.grep = ask
	return recall.Grepped{Items: []recall.Item{item("a")}, Records: []memory.Record{{ID: uuid.New(), Text: "r", ItemID: "a"}}, Truncated: true}, w.fail
}

func (w *world) Search(_ context.Context, _ uuid.UUID, query recall.SearchQuery) ([]memory.Record, error) {
	w.search = query
	return []memory.Record{{ID: uuid.New(), Text: "found", Score: 0.5}}, w.fail
}

type answer struct {
	*httptest.ResponseRecorder
	t *testing.T
}

// post sends a body as account u.
func (w *world) post(t *testing.T, route, body string, change ...func(http.Header)) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/memory/"+route, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.key.Reveal())
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Twin-Account", "u")
	for _, f := range change {
		f(r.Header)
	}
	a := answer{httptest.NewRecorder(), t}
	w.server.Handler().ServeHTTP(a, r)
	return a
}

func (a answer) want(status int, code fault.Code) map[string]any {
	a.t.Helper()
	var body map[string]any
	if err := json.Unmarshal(a.Body.Bytes(), &body); err != nil {
		a.t.Fatalf("%d %s", a.Code, a.Body)
	}
	got, _ := body["code"].(string)
	if a.Code != status || got != string(code) {
		a.t.Fatalf("%d %s, want %d %s", a.Code, a.Body, status, code)
	}
	if a.Header().Get("X-Request-Id") == "" {
		a.t.Fatal("no request id")
	}
	return body
}

func TestAdd(t *testing.T) {
	t.Parallel()
	t.Run("AnswersInTheOrderOfTheCall", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		body := w.post(t, "add", `{"items":[{"text":"a"},{"id":"own","text":"b","author":" Ann ","session":"s","at":"2026-03-01T09:00+09:00"}]}`,
			func(h http.Header) { h.Set("Idempotency-Key", " batch-7 "); h.Set("X-Twin-Account", " u ") }).want(200, "")
		if w.account != "u" || len(w.items) != 2 || w.items[0].ID != "batch-7:0" || w.items[1].ID != "own" || w.items[1].Author != "Ann" {
			t.Fatalf("%q, %+v", w.account, w.items)
		}
		list, _ := body["items"].([]any)
		first, _ := list[0].(map[string]any)
		if len(list) != 2 || first["id"] != "batch-7:0" || first["landed"] != true || body["queued"] != 1.0 || body["pending"] != 2.0 {
			t.Fatalf("%v", body)
		}
	})

	t.Run("TakesALargeBodyAndRefusesATooLargeOne", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		text := strings.Repeat("a", 99_000)
		large := `{"items":[` + strings.Repeat(`{"text":"`+text+`"},`, 40) + `{"text":"end"}]}`
		w.post(t, "add", large).want(200, "")
		if len(w.items) != 41 {
			t.Fatalf("%d items", len(w.items))
		}
		tooLarge := `{"items":[` + strings.Repeat(`{"text":"`+text+`"},`, 90) + `{"text":"end"}]}`
		body := w.post(t, "add", tooLarge).want(413, fault.PayloadTooLarge)
		if details, _ := body["details"].(map[string]any); details["limit"] != 8388608.0 || strings.Contains(body["detail"].(string), "250,000") {
			t.Fatalf("%v", body)
		}
		w.post(t, "search", `{"query":"`+strings.Repeat("ä", 2_000)+`"}`).want(200, "")
		w.post(t, "search", `{"query":"`+strings.Repeat("a", 2_001)+`"}`).want(400, fault.InvalidRequest)
		w.post(t, "search", `{"query":"`+strings.Repeat("a", 260_000)+`"}`).want(413, fault.PayloadTooLarge)
	})

	t.Run("SaysWhereARequestIsWrong", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		for body, pointer := range map[string]string{
			`{"items":[]}`:                           "/items",
			`{"items":[{"text":"a","more":1}]}`:      "/items/0",
			`{"items":[{"text":"a"},{"text":" "}]}`:  "/items/1/text",
			`{"items":[{"text":"a","at":"noon"}]}`:   "/items/0/at",
			`{"items":[{"text":"a"},{"text":null}]}`: "/items/1/text",
		} {
			refused := w.post(t, "add", body).want(400, fault.InvalidRequest)
			if details, _ := refused["details"].(map[string]any); details["pointer"] != pointer {
				t.Errorf("%s: %v", body, refused)
			}
		}
		w.post(t, "add", `{"items":[{"text":"a","text":"b"}]}`).want(400, fault.InvalidBody)
		two := func(h http.Header) { h.Add("Idempotency-Key", "a"); h.Add("Idempotency-Key", "b") }
		w.post(t, "add", `{"items":[{"text":"a"}]}`, two).want(400, fault.InvalidIdempotencyKey)
		for _, account := range []string{"", " ", strings.Repeat("u", 513)} {
			w.post(t, "add", `{"items":[{"text":"a"}]}`, func(h http.Header) { h.Set("X-Twin-Account", account) }).want(400, fault.InvalidRequest)
		}
		w.post(t, "add", `{"items":[{"text":"a"}]}`, func(h http.Header) { h.Del("X-Twin-Account") }).want(400, fault.InvalidRequest)
	})

	t.Run("ARefusalIsAProblem", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.fail = fault.New(fault.InsufficientCredits)
		w.post(t, "add", `{"items":[{"text":"a"}]}`).want(402, fault.InsufficientCredits)
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, body := range []string{`{}`, `{"ids":["a"],"all":true}`, `{"all":false}`, `{"session":""}`, `{"ids":[]}`, `{"ids":[""]}`} {
		w.post(t, "forget", body).want(400, fault.InvalidRequest)
	}
	if len(w.forgets) != 0 {
		t.Fatalf("%+v was forgotten", w.forgets)
	}
	body := w.post(t, "forget", `{"all":true}`).want(200, "")
	if queue, there := body["queue"]; !there || queue != nil || body["events"] != 3.0 {
		t.Fatalf("%v", body)
	}
	w.post(t, "forget", `{"session":" s "}`).want(200, "")
	w.post(t, "forget", `{"ids":["a","b "]}`).want(200, "")
	if !w.forgets[0].All || w.forgets[1].Session != "s" || len(w.forgets[2].IDs) != 2 || w.forgets[2].IDs[1] != "b " {
		t.Fatalf("%+v", w.forgets)
	}
}

func TestCorrect(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := uuid.NewString()
	body := w.post(t, "correct", `{"id":"mem_`+id+`","text":"right"}`).want(200, "")
	made, _ := body["memory"].(string)
	if body["id"] != "mem_"+id || !strings.HasPrefix(made, "mem_") {
		t.Fatalf("%v", body)
	}
	if body := w.post(t, "correct", `{"id":"`+id+`"}`).want(200, ""); body["memory"] != nil {
		t.Fatalf("%v", body)
	}
	w.post(t, "correct", `{"id":"x"}`).want(404, fault.MemoryNotFound)
	w.post(t, "correct", `{"id":"`+id+`","text":" "}`).want(400, fault.InvalidRequest)
	if len(w.texts) != 2 || *w.texts[0] != "right" || w.texts[1] != nil {
		t.Fatalf("%v", w.texts)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	w := setup(t)
	body := w.post(t, "search", `{"query":"q","session":"s","limit":3}`).want(200, "")
	results, _ := body["results"].([]any)
	found, _ := results[0].(map[string]any)
	if w.search.Scope != (memory.Scope{UserID: "u", RunID: "s"}) || w.search.Limit != 3 || found["score"] != 0.5 || found["memory"] != "found" {
		t.Fatalf("%+v, %v", w.search, body)
	}
	w.post(t, "search", `{"query":" "}`).want(400, fault.InvalidRequest)

	body = w.post(t, "grep", `{"pattern":"a.c","regex":true}`).want(200, "")
	if w.grep != (recall.Grep{Account: "u", Pattern: "a.c", Regex: true, Limit: 50}) || body["truncated"] != true {
		t.Fatalf("%+v, %v", w.grep, body)
	}
	w.post(t, "grep", `{"pattern":"`+strings.Repeat("a", 1001)+`"}`).want(400, fault.InvalidRequest)

	body = w.post(t, "read", `{"session":"s","after":"x","limit":2}`).want(200, "")
	items, _ := body["items"].([]any)
	first, _ := items[0].(map[string]any)
	if w.page[0] != "s" || w.page[1] != "x" || w.limit != 2 || body["next"] != "b" || first["id"] != "a" || first["session"] != nil || first["revision"] != 2.0 {
		t.Fatalf("%v %v", w.page, body)
	}
	if body = w.post(t, "read", `{"ids":["b","a"]}`).want(200, ""); body["next"] != nil {
		t.Fatalf("%v", body)
	}
	for _, wrong := range []string{`{}`, `{"ids":["a"],"limit":1}`, `{"after":"x"}`, `{"session":"s","limit":101}`} {
		w.post(t, "read", wrong).want(400, fault.InvalidRequest)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for route, body := range map[string]string{
		"add": `{"items":[{"text":"a"}]}`, "forget": `{"all":true}`, "correct": `{"id":"` + id + `"}`,
		"search": `{"query":"q"}`, "grep": `{"pattern":"p"}`, "read": `{"ids":["a"]}`,
	} {
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			needed, other := access.MemoryWrite, access.MemoryRead
			if route == "search" || route == "grep" || route == "read" {
				needed, other = other, needed
			}
			setup(t, needed).post(t, route, body).want(200, "")
			setup(t, other).post(t, route, body).want(403, fault.InsufficientPermission)
			setup(t).post(t, route, body, func(h http.Header) { h.Del("Authorization") }).want(401, fault.InvalidAPIKey)
		})
	}
}

func TestTheDocumentIsServedWithTheNativeOne(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := answer{httptest.NewRecorder(), t}
	w.server.Handler().ServeHTTP(a, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", nil))
	var doc struct {
		Paths      map[string]any `json:"paths"`
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(a.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Paths["/v1/memory/add"] == nil || doc.Paths["/v1/memories"] == nil || doc.Components.Schemas["ItemsAdd"] == nil {
		t.Fatal("a path or a schema is missing")
	}
	if doc.Components.Schemas["Memory"]["properties"] == nil {
		t.Fatal("the native memory was replaced")
	}
}
