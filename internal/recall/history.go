package recall

import (
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// History is one page of what became of one record, oldest change first; Next is nil at the end. It survives the
// record's end.
type History struct {
	Entries []memory.HistoryEntry
	Next    *HistoryPlace
}

// HistoryPlace is a position in a record's history: each change has a version of its own.
type HistoryPlace struct {
	Version int
	ID      uuid.UUID
}

// HistoryQuery selects changes of one record.
type HistoryQuery struct {
	Memory uuid.UUID
	After  *HistoryPlace
	Limit  int
}
