package recall

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

const (
	// exportedRecords bounds the records of one export: an answer that is read in one go. A workspace as a whole leaves
	// in a snapshot.
	exportedRecords = 10_000
	// exportedBytes bounds their texts and metadata together.
	exportedBytes = 16 << 20
	// exportedPage is how many records are read at once.
	exportedPage = 500
)

// MemoryExportStore reads definitions of exports and the records that they are about.
type MemoryExportStore interface {
	// MemoryExport answers the filter of that export of the workspace, nil for an unknown one.
	MemoryExport(ctx context.Context, workspace, id uuid.UUID) (*memory.Filter, error)
	// HasMemoryExport tells whether there is an export of that filter.
	HasMemoryExport(ctx context.Context, workspace uuid.UUID, filter memory.Filter) (bool, error)
	// Matching answers one page of the live current records that meet the filter, newest first.
	Matching(ctx context.Context, workspace uuid.UUID, filter memory.Filter, after *Place, limit int) (MemoryPage, error)
}

// MemoryExports reads exports of memories.
type MemoryExports struct{ store MemoryExportStore }

// Exported is what an export holds now. Truncated tells that there is more than one answer takes.
type Exported struct {
	Records   []memory.Record
	Truncated bool
}

// NewMemoryExports returns a reader of exports.
func NewMemoryExports(store MemoryExportStore) (*MemoryExports, error) {
	if store == nil {
		return nil, errors.New("memory exports: a store is required")
	}
	return &MemoryExports{store}, nil
}

// Get answers the live records that meet the export's filter now, newest first, the first 10,000 of them and at most
// 16 MiB. It answers false for an id that the workspace doesn't have.
func (m *MemoryExports) Get(ctx context.Context, workspace, id uuid.UUID) (Exported, bool, error) {
	filter, err := m.store.MemoryExport(ctx, workspace, id)
	if err != nil {
		return Exported{}, false, fmt.Errorf("get memory export: %w", err)
	}
	if filter == nil {
		return Exported{}, false, nil
	}
	exported, err := m.read(ctx, workspace, *filter)
	return exported, true, err
}

// Latest does the same with the export of that filter, false if there is none.
func (m *MemoryExports) Latest(ctx context.Context, workspace uuid.UUID, filter memory.Filter) (Exported, bool, error) {
	found, err := m.store.HasMemoryExport(ctx, workspace, filter)
	if err != nil {
		return Exported{}, false, fmt.Errorf("find memory export: %w", err)
	}
	if !found {
		return Exported{}, false, nil
	}
	exported, err := m.read(ctx, workspace, filter)
	return exported, true, err
}

func (m *MemoryExports) read(ctx context.Context, workspace uuid.UUID, filter memory.Filter) (Exported, error) {
	var all Exported
	var after *Place
	size := 0
	for len(all.Records) < exportedRecords {
		page, err := m.store.Matching(ctx, workspace, filter, after, min(exportedPage, exportedRecords-len(all.Records)))
		if err != nil {
			return Exported{}, fmt.Errorf("read memory export: %w", err)
		}
		for _, record := range page.Records {
			if size += len(record.Text) + len(record.Metadata); size > exportedBytes {
				all.Truncated = true
				return all, nil
			}
			all.Records = append(all.Records, record)
		}
		if page.Next == nil {
			return all, nil
		}
		after = page.Next
	}
	all.Truncated = true
	return all, nil
}
