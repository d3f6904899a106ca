package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// canary stands for the caller's text: it must be in no refusal and in no log line.
const canary = "canary-7f3a"

// world is what the API talks to in these tests: just enough of each use case to see how HTTP is mapped. The
// use cases themselves are tested on a real database elsewhere.
type world struct {
	server *Server
	logs   *logBuffer
	seen   chan observed

	mu       sync.Mutex
	fail     error // what every use case answers, if set
	callers  map[string]access.Caller
	keys     map[string]access.Key // by the name of their caller
	adds     []command.Add
	keyed    map[[sha256.Size]byte]keyed
	events   map[uuid.UUID]recall.Event
	owners   map[uuid.UUID]uuid.UUID
	items    map[string]uuid.UUID // tasks by the event ids of items
	records  []memory.Record
	changes  []command.Change
	erases   []memory.Scope
	erased   write.Erased
	history  []memory.HistoryEntry
	entities []recall.Entity
	entries  []credit.Entry
	asked    recall.SearchQuery
	verdict  recall.Verdict
	checks   int
	retried  []int
	signals  map[uuid.UUID]chan struct{}
	waiting  chan struct{} // one value for each subscription
	feed     *worldFeed
}

type keyed struct {
	event uuid.UUID
	print command.Fingerprint
}

type observed struct {
	route, method string
	status        int
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func setup(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	w := &world{
		logs: &logBuffer{}, callers: map[string]access.Caller{}, keys: map[string]access.Key{},
		keyed: map[[sha256.Size]byte]keyed{}, events: map[uuid.UUID]recall.Event{}, items: map[string]uuid.UUID{}, owners: map[uuid.UUID]uuid.UUID{},
		signals: map[uuid.UUID]chan struct{}{}, waiting: make(chan struct{}, 100), seen: make(chan observed, 1000),
	}
	w.feed = &worldFeed{world: w}
	events, err := recall.NewEvents(worldEvents{w}, w)
	if err != nil {
		t.Fatal(err)
	}
	streams, err := recall.NewStreams(w.feed, w)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Observe: func(route, method string, status int, _ time.Duration) {
		w.seen <- observed{route, method, status}
	}}
	for _, f := range change {
		f(&config)
	}
	w.server, err = New(Deps{
		Authenticator: w, Accepter: w, Writer: w, Changer: worldChanges{w}, Batcher: worldBatches{w}, Eraser: worldErases{w}, Mover: worldMoves{w}, Exports: worldMoves{w}, Entities: worldEntities{w}, Retrier: w, Canceller: w, Events: events, ItemEvents: w, Streams: streams, Memories: worldMemories{w},
		Searcher: w, Credits: w, Health: w, Webhooks: struct{ Webhooks }{}, WebhookReader: struct{ WebhookReader }{}, Replayer: struct{ Replayer }{}, Policies: worldSettings{w}, Feedbacks: worldSettings{w}, Log: zerolog.New(w.logs),
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	w.addCaller(t, "all", uuid.New(), access.Permissions()...)
	w.addCaller(t, "other", uuid.New(), access.Permissions()...)
	t.Cleanup(func() {
		if strings.Contains(w.logs.String(), canary) {
			t.Error("the log quotes the caller")
		}
	})
	return w
}

func (w *world) addCaller(t *testing.T, name string, workspace uuid.UUID, permissions ...access.Permission) access.Caller {
	t.Helper()
	key, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	secret := sha256.Sum256(workspace[:])
	caller := access.Caller{
		KeyID: key.ID(), Permissions: permissions,
		Workspace: access.Workspace{ID: workspace, Metered: true, FingerprintKey: secret[:]},
	}
	w.callers[key.ID()], w.keys[name] = caller, key
	return caller
}

func (w *world) workspace(name string) uuid.UUID { return w.callers[w.keys[name].ID()].Workspace.ID }

func (w *world) Authenticate(_ context.Context, key access.Key) (access.Caller, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	caller, known := w.callers[key.ID()]
	if !known || !slices.ContainsFunc(slices.Collect(mapValues(w.keys)), func(k access.Key) bool { return k == key }) {
		return access.Caller{}, fault.New(fault.InvalidAPIKey)
	}
	return caller, nil
}

func mapValues(m map[string]access.Key) func(func(access.Key) bool) {
	return func(yield func(access.Key) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func (w *world) Accept(_ context.Context, caller access.Caller, key command.Key, add command.Add) (write.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return write.Receipt{}, w.fail
	}
	print, err := add.Fingerprint()
	if err != nil {
		return write.Receipt{}, err
	}
	if known, again := w.keyed[key.Hash()]; again {
		if known.print != print {
			return write.Receipt{}, fault.New(fault.IdempotencyConflict)
		}
		return write.Receipt{EventID: known.event, Status: w.events[known.event].Status, Replayed: true}, nil
	}
	w.adds = append(w.adds, add)
	event := eventIn(task.EventPending)
	event.Scope = &add.Scope
	w.keyed[key.Hash()] = keyed{event: event.ID, print: print}
	w.events[event.ID], w.owners[event.ID] = event, caller.Workspace.ID
	return write.Receipt{EventID: event.ID, Status: event.Status}, nil
}

func (w *world) Write(_ context.Context, _ access.Caller, key *command.Key, add command.Add) (write.Stored, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return write.Stored{}, w.fail
	}
	w.adds = append(w.adds, add)
	stored := write.Stored{EventID: uuid.New(), Replayed: key != nil && len(w.adds) > 1}
	for i, m := range add.Messages {
		stored.Results = append(stored.Results, memory.Result{Ordinal: i, RecordID: uuid.New(), Change: memory.Added, Text: &m.Content})
	}
	return stored, nil
}

func (w *world) Retry(_ context.Context, _ access.Caller, id uuid.UUID, generation *int, key *command.Key) (replayed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.events[id]; !known {
		return false, fault.New(fault.EventNotFound)
	}
	switch {
	case w.fail != nil:
		return false, w.fail
	case key != nil:
		replayed = slices.Contains(w.retried, 0)
		w.retried = append(w.retried, 0)
	case generation == nil:
		return false, fault.At(fault.InvalidRequest, "/generation", "generation or Idempotency-Key required")
	default:
		w.retried = append(w.retried, *generation)
	}
	return replayed, nil
}

func (w *world) Cancel(_ context.Context, _ access.Caller, id uuid.UUID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.events[id]; !known {
		return fault.New(fault.EventNotFound)
	}
	return w.fail
}

// TaskOf knows the events whose items are named in the world.
func (w *world) TaskOf(_ context.Context, workspace uuid.UUID, eventID string) (uuid.UUID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id, known := w.items[eventID]
	if !known || w.owners[id] != workspace {
		return uuid.Nil, fault.New(fault.EventNotFound)
	}
	return id, nil
}

func (w *world) Search(_ context.Context, _ uuid.UUID, query recall.SearchQuery) ([]memory.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = query
	return w.records, w.fail
}

func (w *world) Balance(context.Context, uuid.UUID) (credit.Balance, error) {
	return credit.Balance{Available: 7, Held: 2, Metered: true}, w.fail
}

func (w *world) Entries(_ context.Context, _ uuid.UUID, after *recall.EntryPlace, limit int) (recall.EntryPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := 0
	if after != nil {
		from = 1 + slices.IndexFunc(w.entries, func(e credit.Entry) bool {
			return e.At.Equal(after.At) && e.Type == after.Type && e.Generation == after.Generation
		})
	}
	page := recall.EntryPage{Entries: w.entries[from:min(from+limit, len(w.entries))]}
	if from+limit < len(w.entries) {
		last := page.Entries[len(page.Entries)-1]
		page.Next = &recall.EntryPlace{Place: recall.Place{At: last.At}, Type: last.Type, Generation: last.Generation}
	}
	return page, w.fail
}

func (w *world) Check(context.Context) (recall.Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
	return w.verdict, w.fail
}

// Subscribe makes the world the source of notices.
func (w *world) Subscribe(_, id uuid.UUID) (<-chan struct{}, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	signal := make(chan struct{}, 1)
	w.signals[id] = signal
	w.waiting <- struct{}{}
	return signal, func() {}
}

// put stores an event of a caller's workspace and wakes who waits for it.
func (w *world) put(name string, event recall.Event) recall.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[event.ID], w.owners[event.ID] = event, w.workspace(name)
	if signal := w.signals[event.ID]; signal != nil {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
	return event
}

func (w *world) failWith(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = err
}

// worldEvents is the store below the real reader of events.
type worldEvents struct{ *world }

func (w worldEvents) Event(_ context.Context, workspace, id uuid.UUID) (recall.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	event, known := w.events[id]
	if !known || w.owners[id] != workspace {
		return recall.Event{}, fault.New(fault.EventNotFound)
	}
	return event, nil
}

func (w worldEvents) Events(_ context.Context, workspace uuid.UUID, query recall.EventQuery) (recall.EventPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []recall.Event
	for id, e := range w.events {
		if w.owners[id] == workspace && slices.Contains(query.Kinds, e.Kind) && (query.Status == "" || query.Status == e.Status) &&
			(query.After == nil || e.AcceptedAt.Before(query.After.At)) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b recall.Event) int { return b.AcceptedAt.Compare(a.AcceptedAt) })
	page := recall.EventPage{Events: found[:min(len(found), query.Limit)]}
	if len(found) > query.Limit {
		last := page.Events[query.Limit-1]
		page.Next = &recall.Place{At: last.AcceptedAt, ID: last.ID}
	}
	return page, w.fail
}

func (w worldEvents) EventByKey(_ context.Context, workspace uuid.UUID, hash [sha256.Size]byte) (recall.Event, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, found := w.keyed[hash]
	if !found || w.owners[known.event] != workspace {
		return recall.Event{}, false, nil
	}
	return w.events[known.event], true, nil
}

type worldMemories struct{ *world }

func (w worldMemories) Get(_ context.Context, workspace, id uuid.UUID) (memory.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records {
		if r.ID == id && workspace == w.workspace("all") {
			return r, nil
		}
	}
	return memory.Record{}, fault.New(fault.MemoryNotFound)
}

func (w worldMemories) List(_ context.Context, workspace uuid.UUID, query recall.MemoryQuery) (recall.MemoryPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []memory.Record
	for _, r := range w.records {
		if workspace == w.workspace("all") && r.Scope == query.Scope && (query.After == nil || r.CreatedAt.Before(query.After.At)) {
			found = append(found, r)
		}
	}
	page := recall.MemoryPage{Records: found[:min(len(found), query.Limit)]}
	if len(found) > query.Limit {
		last := page.Records[query.Limit-1]
		page.Next = &recall.Place{At: last.CreatedAt, ID: last.ID}
	}
	return page, w.fail
}

// eventIn makes an event in a status.
func eventIn(status task.EventStatus) recall.Event {
	accepted := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	event := recall.Event{
		ID: uuid.Must(uuid.NewV7()), Kind: task.Infer, Status: status, Scope: &memory.Scope{UserID: "u"}, MaxAttempts: 5,
		Generation: 1, AcceptedAt: accepted, UpdatedAt: accepted, Usage: recall.Usage{Reserved: 2},
	}
	if status.Terminal() {
		completed := accepted.Add(1500 * time.Millisecond)
		event.CompletedAt = &completed
	}
	return event
}

// blocks is a search that ends when it is told to.
type blocks struct{ begun, until chan struct{} }

func (b blocks) Search(context.Context, uuid.UUID, recall.SearchQuery) ([]memory.Record, error) {
	close(b.begun)
	<-b.until
	return nil, nil
}
