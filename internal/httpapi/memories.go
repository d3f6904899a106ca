package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// defaultPage is how many results a page has unless the caller says (API.md).
const defaultPage = 50

// ListMemories answers one page of a scope's live records.
func (s *Server) ListMemories(ctx context.Context, request contract.ListMemoriesRequestObject) (contract.ListMemoriesResponseObject, error) {
	p := request.Params
	scope, err := command.NewScope(p.UserId, p.AgentId, p.RunId, p.AppId)
	if err != nil {
		return nil, ofQuery(err)
	}
	workspace := callOf(ctx).caller.Workspace
	here := listing{workspace: workspace, endpoint: "memories", query: scope}
	at, err := here.open(p.Cursor)
	if err != nil {
		return nil, err
	}
	query := recall.MemoryQuery{Scope: scope, Limit: or(p.Limit, defaultPage)}
	if at != nil {
		place := at.place()
		query.After = &place
	}
	page, err := s.deps.Memories.List(ctx, workspace.ID, query)
	if err != nil {
		return nil, err
	}
	next, err := here.next(page.Next)
	if err != nil {
		return nil, err
	}
	results := make([]contract.Memory, len(page.Records))
	for i, record := range page.Records {
		results[i] = memoryOf(record)
	}
	return ok(contract.MemoryPage{Results: results, NextCursor: next}), nil
}

// GetMemory answers one live record.
func (s *Server) GetMemory(ctx context.Context, request contract.GetMemoryRequestObject) (contract.GetMemoryResponseObject, error) {
	id, err := uuid.Parse(request.Id) // the guard has left a plain UUID here
	if err != nil {
		return nil, fault.New(fault.MemoryNotFound)
	}
	record, err := s.deps.Memories.Get(ctx, callOf(ctx).caller.Workspace.ID, id)
	if err != nil {
		return nil, err
	}
	return ok(memoryOf(record)), nil
}

// next returns the cursor of a page's end, nil at the end of the list.
func (l listing) next(place *recall.Place) (*string, error) {
	if place == nil {
		return nil, nil
	}
	cursor, err := l.seal(positionOf(*place))
	return &cursor, err
}

// ofQuery says that a validation fault is about a query parameter.
func ofQuery(err error) error {
	f, isFault := errors.AsType[*fault.Error](err)
	if !isFault || f.Pointer == "" {
		return err
	}
	there := fault.At(f.Code, f.Pointer, f.Rule)
	there.Details = maps.Clone(f.Details)
	if there.Details == nil {
		there.Details = map[string]any{}
	}
	there.Details["in"] = "query"
	return there
}

func memoryOf(r memory.Record) contract.Memory {
	metadata := r.Metadata
	if len(metadata) == 0 {
		metadata = json.RawMessage("{}")
	}
	var successor *string
	if r.SupersededBy != nil {
		successor = present(memoryID(*r.SupersededBy))
	}
	return contract.Memory{
		SupersededBy: successor, ItemId: present(r.ItemID), Id: memoryID(r.ID), Memory: r.Text, Type: present(string(r.Type)),
		Categories: append([]string{}, r.Categories...), Role: present(r.Role),
		UserId: present(r.Scope.UserID), AgentId: present(r.Scope.AgentID), RunId: present(r.Scope.RunID),
		AppId: present(r.Scope.AppID), Metadata: metadata, EventDate: utc(r.EventDate), Version: r.Version,
		ValidFrom: r.ValidFrom.UTC(), ValidTo: utc(r.ValidTo), ExpiresAt: utc(r.ExpiresAt),
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
}

// present returns nil for the empty text.
func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	there := t.UTC()
	return &there
}

func or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}
