package write

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// MemoryExportStore keeps which records an export is to hold. Its errors are those of AcceptStore.
type MemoryExportStore interface {
	DefineMemoryExport(ctx context.Context, workspace, id uuid.UUID, filter memory.Filter) error
}

// MemoryExports keeps definitions of exports, which are read with recall.MemoryExports. They hold no records.
type MemoryExports struct{ store MemoryExportStore }

// NewMemoryExports returns the use case.
func NewMemoryExports(store MemoryExportStore) (*MemoryExports, error) {
	if store == nil {
		return nil, errors.New("memory exports: a store is required")
	}
	return &MemoryExports{store}, nil
}

// Define keeps the filter under an id of its own. It goes with the next erase in the workspace, whose scope it may
// name, after seven days, and when a hundred newer ones have come.
func (m *MemoryExports) Define(ctx context.Context, caller access.Caller, filter memory.Filter) (uuid.UUID, error) {
	if err := caller.Writable(); err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, fmt.Errorf("make export id: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	answer := resolve(func() Accepted {
		return Accepted{Refused: m.store.DefineMemoryExport(ctx, caller.Workspace.ID, id, filter)}
	})
	return id, answer.Refused
}
