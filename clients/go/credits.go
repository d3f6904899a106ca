package holdfast

import (
	"context"
	"iter"
	"time"
)

// Credits reads the balance of the workspace and its journal.
type Credits struct{ c *Client }

// Balance is what the workspace has.
type Balance struct {
	Available int64 `json:"available"`
	// Held is for writes that have not ended.
	Held int64 `json:"held"`
	// Metered is false when nothing is charged.
	Metered bool `json:"metered"`
}

// CreditEntry is one line of the journal.
type CreditEntry struct {
	// Type is grant, hold, settle or release.
	Type   string `json:"type"`
	Amount int64  `json:"amount"`
	// EventID and Generation name the run, empty and 0 for a grant.
	EventID    string `json:"event_id"`
	Generation int    `json:"generation"`
	// Reference is that of a grant.
	Reference string    `json:"reference"`
	CreatedAt time.Time `json:"created_at"`
}

// Balance reads what the workspace has.
func (k *Credits) Balance(ctx context.Context) (*Balance, error) {
	return answer[Balance](ctx, k.c, read("balance", "/v1/credits", nil))
}

// Entries reads one page of the journal, newest first.
func (k *Credits) Entries(ctx context.Context, page PageOptions) (*Page[CreditEntry], error) {
	return list[CreditEntry](ctx, k.c, "credit entries", "/v1/credits/entries", page.query())
}

// All goes through the journal, newest first. It ends after an error.
func (k *Credits) All(ctx context.Context) iter.Seq2[CreditEntry, error] {
	return each(func(at PageOptions) (*Page[CreditEntry], error) { return k.Entries(ctx, at) })
}
