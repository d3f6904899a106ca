package httpapi

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// GetCredits answers the balance.
func (s *Server) GetCredits(ctx context.Context, _ contract.GetCreditsRequestObject) (contract.GetCreditsResponseObject, error) {
	balance, err := s.deps.Credits.Balance(ctx, callOf(ctx).caller.Workspace.ID)
	if err != nil {
		return nil, err
	}
	return ok(contract.Credits{Available: balance.Available, Held: balance.Held, Metered: balance.Metered}), nil
}

// ListCreditEntries answers one page of the journal.
func (s *Server) ListCreditEntries(ctx context.Context, request contract.ListCreditEntriesRequestObject) (contract.ListCreditEntriesResponseObject, error) {
	workspace := callOf(ctx).caller.Workspace
	here := listing{workspace: workspace, endpoint: "credit entries"}
	at, err := here.open(request.Params.Cursor)
	if err != nil {
		return nil, err
	}
	var after *recall.EntryPlace
	if at != nil {
		after = &recall.EntryPlace{Place: at.place(), Type: at.Type, Generation: at.Generation}
	}
	page, err := s.deps.Credits.Entries(ctx, workspace.ID, after, or(request.Params.Limit, defaultPage))
	if err != nil {
		return nil, err
	}
	shown := contract.CreditEntryPage{Results: make([]contract.CreditEntry, len(page.Entries))}
	for i, entry := range page.Entries {
		shown.Results[i] = entryOf(entry)
	}
	if page.Next != nil {
		end := positionOf(page.Next.Place)
		end.Type, end.Generation = page.Next.Type, page.Next.Generation
		next, err := here.seal(end)
		if err != nil {
			return nil, err
		}
		shown.NextCursor = &next
	}
	return ok(shown), nil
}

func entryOf(e credit.Entry) contract.CreditEntry {
	shown := contract.CreditEntry{
		Type: contract.CreditEntryType(e.Type), Amount: e.Amount, Reference: present(e.Reference), CreatedAt: e.At.UTC(),
	}
	if e.TaskID != nil {
		id := eventID(*e.TaskID)
		shown.EventId, shown.Generation = &id, &e.Generation
	}
	return shown
}
