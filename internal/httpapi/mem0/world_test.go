package mem0

import (
	"bytes"
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
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

var _ Browser = (*recall.Browser)(nil)

// canary stands for the caller's text: it must be in no refusal and in no log line.
const canary = "canary-7f3a"

// world is what the dialect talks to in these tests: just enough of each use case to see how HTTP is mapped.
type world struct {
	server *httpapi.Server
	key    access.Key
	caller access.Caller
	log    bytes.Buffer

	mu       sync.Mutex
	fail     error
	adds     []command.Add
	keys     []string // hashes of the keys of writes, empty without one
	changes  []command.Change
	batches  []command.Batch
	erases   []memory.Scope
	searched recall.SearchQuery
	browsed  recall.BrowseQuery
	total    int64
	records  []memory.Record
	entities []recall.Entity
	event    recall.Event
	unended  bool // erases go on
	accepted task.EventStatus
	expired  bool // all records
	deleted  bool
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
	}, accepted: task.EventPending, event: recall.Event{ID: uuid.New(), Kind: task.Infer, Status: task.EventPending, AcceptedAt: time.Unix(100, 0).UTC()}}
	guest, err := New(Deps{
		Accepter: w, Writer: w, Changer: w, Batcher: worldBatches{w}, Eraser: w, Events: worldEvents{w}, Memories: worldMemories{w},
		Entities: worldEntities{w}, Searcher: w, Browser: w, Policies: struct{ httpapi.Policies }{},
		Feedbacks: struct{ httpapi.Feedbacks }{}, ExportDefiner: struct{ ExportDefiner }{}, ExportReader: struct{ ExportReader }{},
		Webhooks: struct{ httpapi.Webhooks }{}, WebhookReader: struct{ httpapi.WebhookReader }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.server, err = httpapi.New(w.deps(), httpapi.Config{Guests: []httpapi.Guest{guest}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if strings.Contains(w.log.String(), canary) {
			t.Error("the log quotes the caller")
		}
	})
	return w
}

// deps are those of a server whose native routes are asked for no more than who is native.
func (w *world) deps() httpapi.Deps {
	return httpapi.Deps{
		Authenticator: w, Searcher: w, Log: zerolog.New(&w.log), Accepter: w, Writer: w, Changer: w, Batcher: worldBatches{w},
		Eraser: w, Retrier: struct{ httpapi.Retrier }{}, Canceller: struct{ httpapi.Canceller }{}, Events: worldEvents{w},
		ItemEvents: struct{ httpapi.ItemEvents }{}, Memories: worldMemories{w}, Entities: worldEntities{w},
		Mover: struct{ httpapi.Mover }{}, Exports: struct{ httpapi.Exports }{}, Credits: struct{ httpapi.Credits }{},
		Health: struct{ httpapi.Health }{}, Streams: struct{ httpapi.Streams }{}, Policies: struct{ httpapi.Policies }{},
		Feedbacks: struct{ httpapi.Feedbacks }{}, Webhooks: struct{ httpapi.Webhooks }{},
		WebhookReader: struct{ httpapi.WebhookReader }{}, Replayer: struct{ httpapi.Replayer }{},
	}
}

func (w *world) Authenticate(_ context.Context, key access.Key) (access.Caller, error) {
	if key != w.key {
		return access.Caller{}, fault.New(fault.InvalidAPIKey)
	}
	return w.caller, nil
}

func (w *world) saw(key *command.Key) {
	text := ""
	if key != nil {
		hash := key.Hash()
		text = string(hash[:])
	}
	w.keys = append(w.keys, text)
}

func (w *world) Accept(_ context.Context, _ access.Caller, key command.Key, add command.Add) (write.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saw(&key)
	w.adds = append(w.adds, add)
	return write.Receipt{EventID: w.event.ID, Status: w.accepted, Replayed: w.accepted.Terminal()}, w.fail
}

func (w *world) Write(_ context.Context, _ access.Caller, key *command.Key, add command.Add) (write.Stored, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saw(key)
	w.adds = append(w.adds, add)
	stored := write.Stored{EventID: w.event.ID}
	for i, m := range add.Messages {
		stored.Results = append(stored.Results, memory.Result{Ordinal: i, RecordID: uuid.New(), Change: memory.Added, Text: &m.Content})
	}
	return stored, w.fail
}

func (w *world) Change(_ context.Context, _ access.Caller, key *command.Key, change command.Change) (write.Changed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saw(key)
	w.changes = append(w.changes, change)
	return write.Changed{EventID: w.event.ID, Result: memory.Result{RecordID: change.ID, Change: memory.Updated, Text: change.Content}, Version: 2}, w.fail
}

type worldBatches struct{ w *world }

func (b worldBatches) Accept(_ context.Context, _ access.Caller, key *command.Key, batch command.Batch) (write.Receipt, error) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.saw(key)
	b.w.batches = append(b.w.batches, batch)
	return write.Receipt{EventID: b.w.event.ID, Status: task.EventPending}, b.w.fail
}

func (w *world) Erase(_ context.Context, _ access.Caller, key *command.Key, scope memory.Scope) (write.Erased, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saw(key)
	w.erases = append(w.erases, scope)
	return write.Erased{EventID: w.event.ID, Deleted: 3, Finished: !w.unended}, w.fail
}

func (w *world) Search(_ context.Context, _ uuid.UUID, query recall.SearchQuery) ([]memory.Record, error) {
	w.searched = query
	return w.records, w.fail
}

func (w *world) Memory(_ context.Context, _, id uuid.UUID) (recall.Kept, error) {
	for _, r := range w.records {
		if r.ID == id {
			return recall.Kept{Record: r, Expired: w.expired, Deleted: w.deleted}, nil
		}
	}
	return recall.Kept{}, fault.New(fault.MemoryNotFound)
}

func (w *world) Memories(_ context.Context, _ uuid.UUID, query recall.BrowseQuery) (recall.Browsed, error) {
	w.browsed = query
	return recall.Browsed{Records: w.records, Total: w.total}, w.fail
}

func (w *world) Entities(context.Context, uuid.UUID, recall.PageQuery) (recall.BrowsedEntities, error) {
	totals := map[recall.EntityType]int64{}
	for _, e := range w.entities {
		totals[e.Type]++
	}
	return recall.BrowsedEntities{Entities: w.entities, Totals: totals}, w.fail
}

func (w *world) Events(context.Context, uuid.UUID, []task.Kind, recall.PageQuery) (recall.BrowsedEvents, error) {
	return recall.BrowsedEvents{Events: []recall.Event{w.event}, Total: 1}, w.fail
}

type worldEvents struct{ w *world }

func (e worldEvents) Get(_ context.Context, _, id uuid.UUID) (recall.Event, error) {
	if id != e.w.event.ID {
		return recall.Event{}, fault.New(fault.EventNotFound)
	}
	return e.w.event, nil
}

func (e worldEvents) List(context.Context, uuid.UUID, recall.EventQuery) (recall.EventPage, error) {
	return recall.EventPage{}, nil
}

func (e worldEvents) ByKey(context.Context, uuid.UUID, [32]byte) (recall.Event, bool, error) {
	return recall.Event{}, false, nil
}

func (e worldEvents) Wait(_ context.Context, _, _ uuid.UUID, _ time.Duration, _ func(recall.Event) bool) (recall.Event, error) {
	return e.w.event, nil
}

type worldMemories struct{ w *world }

func (m worldMemories) Get(_ context.Context, _, id uuid.UUID) (memory.Record, error) {
	for _, r := range m.w.records {
		if r.ID == id {
			return r, nil
		}
	}
	return memory.Record{}, fault.New(fault.MemoryNotFound)
}

func (m worldMemories) List(context.Context, uuid.UUID, recall.MemoryQuery) (recall.MemoryPage, error) {
	return recall.MemoryPage{Records: m.w.records}, nil
}

func (m worldMemories) History(_ context.Context, _ uuid.UUID, query recall.HistoryQuery) (recall.History, error) {
	text := "new"
	return recall.History{Entries: []memory.HistoryEntry{{ID: uuid.New(), MemoryID: query.Memory, Event: memory.Added, Version: 1, NewText: &text}}}, m.w.fail
}

type worldEntities struct{ w *world }

func (e worldEntities) List(context.Context, uuid.UUID, recall.EntityQuery) (recall.EntityPage, error) {
	return recall.EntityPage{}, nil
}

func (e worldEntities) Get(_ context.Context, _ uuid.UUID, kind recall.EntityType, id string) (recall.Entity, error) {
	for _, known := range e.w.entities {
		if known.Type == kind && known.ID == id {
			return known, nil
		}
	}
	return recall.Entity{}, fault.New(fault.MemoryNotFound)
}

type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request with the clients' scheme.
func (w *world) send(method, path, body string, header ...string) reply {
	return w.as("token "+w.key.Reveal(), method, path, body, header...)
}

func (w *world) as(authorization, method, path, body string, header ...string) reply {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", authorization)
	if authorization == "" {
		r.Header.Del("Authorization")
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(answer, r)
	return reply{answer.Code, answer.Header(), answer.Body.String()}
}

// want fails unless the answer has the status, is JSON, and its body has each of the words.
func (r reply) want(t *testing.T, status int, words ...string) {
	t.Helper()
	if r.status != status || !json.Valid([]byte(r.body)) {
		t.Fatalf("%d %s, want %d in JSON", r.status, r.body, status)
	}
	for _, word := range words {
		if !strings.Contains(r.body, word) {
			t.Fatalf("%s lacks %s", r.body, word)
		}
	}
}
