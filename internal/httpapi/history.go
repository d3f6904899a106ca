package httpapi

import (
	"context"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// GetMemoryHistory answers one page of what became of a record.
func (s *Server) GetMemoryHistory(ctx context.Context, request contract.GetMemoryHistoryRequestObject) (contract.GetMemoryHistoryResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.MemoryNotFound)
	}
	p := request.Params
	workspace := callOf(ctx).caller.Workspace
	here := listing{workspace: workspace, endpoint: "history", query: id}
	at, err := here.open(p.Cursor)
	if err != nil {
		return nil, err
	}
	query := recall.HistoryQuery{Memory: id, Limit: or(p.Limit, defaultPage)}
	if at != nil {
		query.After = &recall.HistoryPlace{Version: at.Generation, ID: at.ID}
	}
	history, err := s.deps.Memories.History(ctx, workspace.ID, query)
	if err != nil {
		return nil, err
	}
	page := contract.HistoryPage{Results: make([]contract.HistoryEntry, len(history.Entries))}
	for i, entry := range history.Entries {
		page.Results[i] = historyEntryOf(entry)
	}
	if history.Next != nil {
		next, err := here.seal(position{Version: cursorVersion, Generation: history.Next.Version, ID: history.Next.ID})
		if err != nil {
			return nil, err
		}
		page.NextCursor = &next
	}
	return ok(page), nil
}

func historyEntryOf(e memory.HistoryEntry) contract.HistoryEntry {
	var successor *string
	if e.SupersededBy != nil {
		successor = present(memoryID(*e.SupersededBy))
	}
	return contract.HistoryEntry{
		Id: e.ID.String(), MemoryId: memoryID(e.MemoryID), Event: contract.HistoryEntryEvent(e.Event), Version: e.Version,
		OldMemory: e.OldText, NewMemory: e.NewText, CreatedAt: e.At.UTC(),
		ValidTo: utc(e.ValidTo), SupersededBy: successor,
	}
}
