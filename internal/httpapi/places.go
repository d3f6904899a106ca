package httpapi

import (
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// SealEntryPlace returns the cursor of a place in the journal, nil at its end. It opens only for the same workspace and
// list.
func SealEntryPlace(workspace access.Workspace, list string, place *recall.EntryPlace) (*string, error) {
	if place == nil {
		return nil, nil
	}
	at := positionOf(place.Place)
	at.Type, at.Generation = place.Type, place.Generation
	return sealed(listing{workspace: workspace, endpoint: list}, at)
}

// OpenEntryPlace returns the place of a cursor, nil without one, and a fault INVALID_CURSOR for a cursor of another
// workspace or list.
func OpenEntryPlace(workspace access.Workspace, list string, cursor *string) (*recall.EntryPlace, error) {
	at, err := listing{workspace: workspace, endpoint: list}.open(cursor)
	if err != nil || at == nil {
		return nil, err
	}
	return &recall.EntryPlace{Place: at.place(), Type: at.Type, Generation: at.Generation}, nil
}

// SealEntityPlace returns the cursor of a place in the list of entities, nil at its end. It opens only for the same
// workspace, list and query.
func SealEntityPlace(workspace access.Workspace, list string, query any, place *recall.EntityPlace) (*string, error) {
	if place == nil {
		return nil, nil
	}
	at := position{Version: cursorVersion, Type: credit.EntryType(place.Type), Name: place.ID}
	return sealed(listing{workspace: workspace, endpoint: list, query: query}, at)
}

// OpenEntityPlace returns the place of a cursor, nil without one, and a fault INVALID_CURSOR for a cursor of another
// workspace, list or query.
func OpenEntityPlace(workspace access.Workspace, list string, query any, cursor *string) (*recall.EntityPlace, error) {
	at, err := listing{workspace: workspace, endpoint: list, query: query}.open(cursor)
	if err != nil || at == nil {
		return nil, err
	}
	return &recall.EntityPlace{Type: recall.EntityType(at.Type), ID: at.Name}, nil
}

// SealHistoryPlace returns the cursor of a place in a record's history, nil at its end. It opens only for the same
// workspace, list and record.
func SealHistoryPlace(workspace access.Workspace, list string, record uuid.UUID, place *recall.HistoryPlace) (*string, error) {
	if place == nil {
		return nil, nil
	}
	at := position{Version: cursorVersion, Generation: place.Version, ID: place.ID}
	return sealed(listing{workspace: workspace, endpoint: list, query: record}, at)
}

// OpenHistoryPlace returns the place of a cursor, nil without one, and a fault INVALID_CURSOR for a cursor of another
// workspace, list or record.
func OpenHistoryPlace(workspace access.Workspace, list string, record uuid.UUID, cursor *string) (*recall.HistoryPlace, error) {
	at, err := listing{workspace: workspace, endpoint: list, query: record}.open(cursor)
	if err != nil || at == nil {
		return nil, err
	}
	return &recall.HistoryPlace{Version: at.Generation, ID: at.ID}, nil
}

func sealed(l listing, p position) (*string, error) {
	cursor, err := l.seal(p)
	return &cursor, err
}
