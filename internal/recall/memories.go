package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// MemoryQuery selects live records of one workspace, newest first.
type MemoryQuery struct {
	Scope memory.Scope
	After *Place
	Limit int
}

// MemoryPage is one page; Next is nil at the end.
type MemoryPage struct {
	Records []memory.Record
	Next    *Place
}

// MemoryStore reads canonical records.
type MemoryStore interface {
	// Memory answers a live record or a fault MEMORY_NOT_FOUND.
	Memory(ctx context.Context, workspace, id uuid.UUID) (memory.Record, error)
	Memories(ctx context.Context, workspace uuid.UUID, query MemoryQuery) (MemoryPage, error)
	// History answers changes of a record, ended or not, or a fault MEMORY_NOT_FOUND.
	History(ctx context.Context, workspace uuid.UUID, query HistoryQuery) (History, error)
}

// Memories reads records.
type Memories struct{ store MemoryStore }

// NewMemories returns a reader of records.
func NewMemories(store MemoryStore) (*Memories, error) {
	if store == nil {
		return nil, errors.New("memories: a store is required")
	}
	return &Memories{store: store}, nil
}

// Get answers one live record, a fault MEMORY_NOT_FOUND for any other id.
func (m *Memories) Get(ctx context.Context, workspace, id uuid.UUID) (memory.Record, error) {
	record, err := m.store.Memory(ctx, workspace, id)
	if err != nil {
		return memory.Record{}, fmt.Errorf("get memory: %w", err)
	}
	return record, nil
}

// List answers one page of a scope's live records, newest first and stable under inserts.
func (m *Memories) List(ctx context.Context, workspace uuid.UUID, query MemoryQuery) (MemoryPage, error) {
	page, err := m.store.Memories(ctx, workspace, query)
	if err != nil {
		return MemoryPage{}, fmt.Errorf("list memories: %w", err)
	}
	return page, nil
}

// History answers one page of what became of a record, oldest change first, a fault MEMORY_NOT_FOUND for an id that
// the workspace never had.
func (m *Memories) History(ctx context.Context, workspace uuid.UUID, query HistoryQuery) (History, error) {
	history, err := m.store.History(ctx, workspace, query)
	if err != nil {
		return History{}, fmt.Errorf("read history: %w", err)
	}
	return history, nil
}
