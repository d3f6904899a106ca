package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// ExportStore reads finished exports.
type ExportStore interface {
	// ExportParts answers how many parts a finished export of the workspace has. Faults: EVENT_NOT_FOUND when there is
	// no such finished export, INPUT_EXPIRED when an erase has removed it.
	ExportParts(ctx context.Context, workspace, id uuid.UUID) (int, error)
	// ExportPart answers one part, from 0, false if it is gone.
	ExportPart(ctx context.Context, workspace, id uuid.UUID, part int) ([]byte, bool, error)
}

// Exports reads finished exports part by part.
type Exports struct{ store ExportStore }

// NewExports returns a reader of exports.
func NewExports(store ExportStore) (*Exports, error) {
	if store == nil {
		return nil, errors.New("exports: a store is required")
	}
	return &Exports{store}, nil
}

// Export is a finished export that is being read.
type Export struct {
	store     ExportStore
	workspace uuid.UUID
	id        uuid.UUID
	parts     int
	next      int
}

// Open finds a finished export. Faults are those of ExportParts.
func (e *Exports) Open(ctx context.Context, workspace, id uuid.UUID) (*Export, error) {
	parts, err := e.store.ExportParts(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	return &Export{store: e.store, workspace: workspace, id: id, parts: parts}, nil
}

// Next answers the next part, nil behind the last one. Fault INPUT_EXPIRED when an erase removes the export meanwhile.
func (e *Export) Next(ctx context.Context) ([]byte, error) {
	if e.next == e.parts {
		return nil, nil
	}
	part, found, err := e.store.ExportPart(ctx, e.workspace, e.id, e.next)
	if err != nil {
		return nil, fmt.Errorf("read part %d: %w", e.next, err)
	}
	if !found {
		return nil, fault.New(fault.InputExpired)
	}
	e.next++
	return part, nil
}
