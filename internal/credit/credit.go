// Package credit holds what a write costs and the words of the ledger. It is pure: the ledger itself is kept
// by the database, whose constraints make a second settle, a release after success and a settle before the
// outcome impossible (I7). It may import internal/task only.
package credit

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

// Amount is a number of credits, never negative in a balance.
type Amount = int64

// Prices says what each priced kind of write costs, in credits.
type Prices struct {
	Infer Amount
	Add   Amount
}

// DefaultPrices are the published ones: an inferred add 2, a verbatim add 1.
func DefaultPrices() Prices { return Prices{Infer: 2, Add: 1} }

// Validate refuses prices outside 0 to 1,000,000.
func (p Prices) Validate() error {
	for _, a := range []Amount{p.Infer, p.Add} {
		if a < 0 || a > 1_000_000 {
			return fmt.Errorf("a price must be 0 to 1000000 credits, not %d", a)
		}
	}
	return nil
}

// Of returns the price of one run of kind: 0 for unpriced kinds and for an unmetered workspace.
func (p Prices) Of(kind task.Kind, metered bool) Amount {
	if !metered {
		return 0
	}
	switch kind {
	case task.Infer, task.Item:
		return p.Infer
	case task.Add:
		return p.Add
	case task.Update, task.Delete, task.BatchUpdate, task.BatchDelete, task.Erase, task.Export, task.Import, task.Webhook:
	}
	return 0
}

// Balance is what a workspace has: available to spend, and held for runs that have not ended.
type Balance struct {
	Available Amount
	Held      Amount
	Metered   bool
}

// EntryType names a line of the journal.
type EntryType string

// The types of journal entries.
const (
	Grant   EntryType = "grant"
	Hold    EntryType = "hold"
	Settle  EntryType = "settle"
	Release EntryType = "release"
)

// Entry is one line of the journal. TaskID is nil for a grant; Reference is empty for all others.
type Entry struct {
	Type       EntryType
	Amount     Amount
	TaskID     *uuid.UUID
	Generation int
	Reference  string
	At         time.Time
}
