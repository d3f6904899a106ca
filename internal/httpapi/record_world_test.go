package httpapi

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// worldChanges changes the world's records.
type worldChanges struct{ *world }

func (w worldChanges) Change(_ context.Context, _ access.Caller, key *command.Key, change command.Change) (write.Changed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return write.Changed{}, w.fail
	}
	w.changes = append(w.changes, change)
	i := slices.IndexFunc(w.records, func(r memory.Record) bool { return r.ID == change.ID })
	if i < 0 {
		return write.Changed{}, fault.New(fault.MemoryNotFound)
	}
	changed := write.Changed{
		EventID: uuid.New(), Version: w.records[i].Version + 1, Replayed: key != nil && len(w.changes) > 1,
		Result: memory.Result{RecordID: change.ID, Change: memory.Updated, Text: change.Content},
	}
	if change.Delete {
		changed.Result.Change = memory.Deleted
	}
	return changed, nil
}

// worldBatches accepts batches.
type worldBatches struct{ *world }

func (w worldBatches) Accept(_ context.Context, caller access.Caller, _ *command.Key, batch command.Batch) (write.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail != nil {
		return write.Receipt{}, w.fail
	}
	w.changes = append(w.changes, batch.Changes...)
	event := eventIn(task.EventPending)
	event.Kind, event.Scope = task.BatchUpdate, &memory.Scope{}
	w.events[event.ID], w.owners[event.ID] = event, caller.Workspace.ID
	return write.Receipt{EventID: event.ID, Status: event.Status}, nil
}

func (w worldMemories) History(_ context.Context, workspace uuid.UUID, query recall.HistoryQuery) (recall.History, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var history recall.History
	for _, e := range w.history {
		if workspace != w.workspace("all") || e.MemoryID != query.Memory || query.After != nil && e.Version <= query.After.Version {
			continue
		}
		if len(history.Entries) == query.Limit {
			last := history.Entries[query.Limit-1]
			history.Next = &recall.HistoryPlace{Version: last.Version, ID: last.ID}
			break
		}
		history.Entries = append(history.Entries, e)
	}
	if len(history.Entries) == 0 && query.After == nil {
		return recall.History{}, fault.New(fault.MemoryNotFound)
	}
	return history, w.fail
}

// worldEntities reads the world's entities, which are in order.
type worldEntities struct{ *world }

func (w worldEntities) List(_ context.Context, _ uuid.UUID, query recall.EntityQuery) (recall.EntityPage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := 0
	if query.After != nil {
		from = 1 + slices.IndexFunc(w.entities, func(e recall.Entity) bool { return e.Type == query.After.Type && e.ID == query.After.ID })
	}
	page := recall.EntityPage{Entities: w.entities[from:min(from+query.Limit, len(w.entities))]}
	if from+query.Limit < len(w.entities) {
		last := page.Entities[len(page.Entities)-1]
		page.Next = &recall.EntityPlace{Type: last.Type, ID: last.ID}
	}
	return page, w.fail
}

func (w worldEntities) Get(_ context.Context, _ uuid.UUID, kind recall.EntityType, id string) (recall.Entity, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.entities {
		if e.Type == kind && e.ID == id {
			return e, nil
		}
	}
	return recall.Entity{}, fault.New(fault.MemoryNotFound)
}
