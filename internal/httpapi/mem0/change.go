package mem0

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// longestHistory is the most changes that an answer shows, the oldest ones.
const longestHistory = 1_000

// memoryID reads the id in a request's path.
func memoryID(call httpapi.GuestCall) (uuid.UUID, error) {
	id, ok := httpapi.ParseMemoryID(call.Param("id"))
	if !ok {
		return uuid.Nil, notAnID("/memory_id")
	}
	return id, nil
}

func notAnID(pointer string) error {
	f := fault.At(fault.InvalidRequest, pointer, "the id of a memory")
	f.Details = map[string]any{words: "memory_id should be a valid UUID"}
	return f
}

// get answers one memory, one that has expired too.
func (h handlers) get(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := memoryID(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	found, err := h.kept(ctx, call.Caller.Workspace.ID, id)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: found}, nil
}

// kept answers a memory that wasn't deleted.
func (h handlers) kept(ctx context.Context, workspace, id uuid.UUID) (record, error) {
	found, err := h.deps.Browser.Memory(ctx, workspace, id)
	if err == nil && found.Deleted {
		err = fault.New(fault.MemoryNotFound)
	}
	if err != nil {
		return record{}, err
	}
	shown := recordOf(found.Record)
	if found.Expired {
		shown.LifecycleState = "expired"
	}
	return shown, nil
}

// update changes one memory and answers it as it is then.
func (h handlers) update(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := memoryID(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	b, err := bodyOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	key, err := keyOf(call, b)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	change, err := changeOf("", id, call.Body)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	changed, err := h.deps.Changer.Change(ctx, call.Caller, key, change)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	reply := httpapi.GuestAnswer{Header: replayed(changed.Replayed)}
	now, err := h.kept(ctx, call.Caller.Workspace.ID, id)
	if err == nil {
		reply.Body = now
		return reply, nil
	}
	// It has been changed, whatever is the matter with reading it: it may have been deleted meanwhile.
	reply.Body = result{
		ID: id.String(), Event: string(changed.Result.Change), Memory: changed.Result.Text,
		Data: resultData{changed.Result.Text},
	}
	return reply, nil
}

func replayed(yes bool) map[string]string {
	if !yes {
		return nil
	}
	return map[string]string{"Idempotent-Replayed": "true"}
}

const changeRule = "text, metadata, timestamp or expiration_date required"

// changeOf reads a change. An expiration_date of null clears it.
func changeOf(pointer string, id uuid.UUID, raw []byte) (command.Change, error) {
	if raw == nil {
		return command.Change{}, bad(pointer, changeRule)
	}
	b, err := object(pointer, raw)
	if err != nil {
		return command.Change{}, err
	}
	if err := b.refuse("immutable"); err != nil {
		return command.Change{}, err
	}
	input := command.ChangeInput{ID: id, Metadata: b["metadata"]}
	if input.EventDate, err = saidAt(pointer, b, "timestamp"); err != nil {
		return command.Change{}, err
	}
	if input.Content, err = b.text("text"); err != nil {
		return command.Change{}, err
	}
	expires, err := expiryOf(b)
	if err != nil {
		return command.Change{}, err
	}
	if expires != nil {
		if input.ExpiresAt, err = encoded(expires); err != nil {
			return command.Change{}, err
		}
	} else if hasNull(raw, "expiration_date") {
		input.ExpiresAt = []byte("null")
	}
	if input.Content == nil && input.Metadata == nil && input.EventDate == nil && input.ExpiresAt == nil {
		return command.Change{}, bad(pointer, changeRule)
	}
	change, err := command.NewChange(pointer, input)
	return change, renamedIn(pointer, err)
}

// remove ends one memory.
func (h handlers) remove(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := memoryID(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	changed, err := h.deps.Changer.Change(ctx, call.Caller, call.Key, command.Change{ID: id, Delete: true})
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Header: replayed(changed.Replayed), Body: told{
		Message: "Memory deleted successfully!", EventID: changed.EventID.String(),
	}}, nil
}

// told is an answer that only says what was done.
type told struct {
	Message string `json:"message"`
	EventID string `json:"event_id,omitempty"`
}

// history answers what became of one memory, oldest first.
func (h handlers) history(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	id, err := memoryID(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	workspace := call.Caller.Workspace.ID
	found, err := h.deps.Memories.History(ctx, workspace, recall.HistoryQuery{Memory: id, Limit: longestHistory})
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	last, err := h.deps.Browser.Memory(ctx, workspace, id)
	if err != nil && !fault.Is(err, fault.MemoryNotFound) { // its history survives it
		return httpapi.GuestAnswer{}, err
	}
	about := recordOf(last.Record)
	shown := make([]entry, len(found.Entries))
	for i, e := range found.Entries {
		shown[i] = entryOf(e, about)
	}
	return httpapi.GuestAnswer{Body: shown}, nil
}

// entry is one change of a memory. Whose it is and its metadata are those that it has now, or had when it was deleted.
type entry struct {
	ID         string    `json:"id"`
	MemoryID   string    `json:"memory_id"`
	Input      []any     `json:"input"` // never kept
	OldMemory  *string   `json:"old_memory"`
	NewMemory  *string   `json:"new_memory"`
	UserID     *string   `json:"user_id"`
	AgentID    *string   `json:"agent_id"`
	AppID      *string   `json:"app_id"`
	RunID      *string   `json:"run_id"`
	SessionID  *string   `json:"session_id"`
	Categories []string  `json:"categories"`
	Event      string    `json:"event"`
	Metadata   any       `json:"metadata"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

func entryOf(e memory.HistoryEntry, about record) entry {
	return entry{
		ID: e.ID.String(), MemoryID: e.MemoryID.String(), Input: []any{}, OldMemory: e.OldText, NewMemory: e.NewText,
		UserID: about.UserID, AgentID: about.AgentID, AppID: about.AppID, RunID: about.RunID, SessionID: about.SessionID,
		Categories: about.Categories, Event: string(e.Event), Metadata: about.Metadata, CreatedAt: e.At.UTC(), UpdatedAt: e.At.UTC(),
	}
}

// batched is what became of a batch.
type batched struct {
	Message string   `json:"message"`
	Status  string   `json:"status"`
	EventID string   `json:"event_id"`
	Results []result `json:"results"`
}

// batchUpdate changes many memories.
func (h handlers) batchUpdate(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	return h.batch(ctx, call, false)
}

// batchDelete ends many memories.
func (h handlers) batchDelete(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	return h.batch(ctx, call, true)
}

// batch waits for the end of a batch; one that takes longer answers its receipt.
func (h handlers) batch(ctx context.Context, call httpapi.GuestCall, ends bool) (httpapi.GuestAnswer, error) {
	b, err := bodyOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	key, err := keyOf(call, b)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	changes, err := changesOf(b, ends)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	batch, err := command.NewBatch("/memories", ends, changes)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	accepted, err := h.deps.Batcher.Accept(ctx, call.Caller, key, batch)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	shown := batched{Message: messagePending, Status: statusOf(accepted.Status), EventID: accepted.EventID.String(), Results: []result{}}
	reply := httpapi.GuestAnswer{Status: http.StatusAccepted, Header: replayed(accepted.Replayed)}
	// The batch is accepted: whatever the wait meets, the receipt is true.
	if event, err := call.Wait(ctx, accepted.EventID, waitBound); err == nil {
		shown.Status = statusOf(event.Status)
		if event.Status.Terminal() {
			shown.Message, shown.Results, reply.Status = verdictOf(event, ends), resultsOf(event.Results), http.StatusOK
		}
	}
	reply.Body = shown
	return reply, nil
}

// verdictOf says in a sentence how a batch has ended.
func verdictOf(event recall.Event, ends bool) string {
	if event.Status == task.EventFailed {
		return task.Explain(event.ErrorCode).Message
	}
	done := 0
	for _, r := range event.Results {
		if r.Error == "" {
			done++
		}
	}
	verb := "updated"
	if ends {
		verb = "deleted"
	}
	if done < len(event.Results) {
		return fmt.Sprintf("Only %s %d of %d memories; the results tell which not", verb, done, len(event.Results))
	}
	return fmt.Sprintf("Successfully %s %d memories", verb, done)
}

// changesOf reads a batch's list.
func changesOf(b body, ends bool) ([]command.Change, error) {
	items, err := b.list("memories")
	if err != nil {
		return nil, err
	}
	if len(items) > command.MaxBatch {
		return nil, bad("/memories", "at most 1000 memories")
	}
	changes := make([]command.Change, 0, len(items))
	for i, item := range items {
		at := "/memories/" + strconv.Itoa(i)
		members, err := object(at, item)
		if err != nil {
			return nil, err
		}
		text, err := members.text("memory_id")
		if err != nil || text == nil {
			return nil, notAnID(at + "/memory_id")
		}
		id, ok := httpapi.ParseMemoryID(*text)
		if !ok {
			return nil, notAnID(at + "/memory_id")
		}
		change := command.Change{ID: id}
		if !ends {
			if change, err = changeOf(at, id, item); err != nil {
				return nil, err
			}
		}
		changes = append(changes, change)
	}
	return changes, nil
}
