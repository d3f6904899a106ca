package holdfast

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"
)

// Memories reads and erases what is remembered.
type Memories struct{ c *Client }

// HistoryEntry is one change of a memory. Erased texts are nil.
type HistoryEntry struct {
	ID           string     `json:"id"`
	MemoryID     string     `json:"memory_id"`
	Event        string     `json:"event"`
	Version      int        `json:"version"`
	OldMemory    *string    `json:"old_memory"`
	NewMemory    *string    `json:"new_memory"`
	ValidTo      *time.Time `json:"valid_to"`
	SupersededBy string     `json:"superseded_by"`
	CreatedAt    time.Time  `json:"created_at"`
}

// Erasure is the answer to an erase.
type Erasure struct {
	// Done tells that all is erased. Otherwise it goes on by itself, and the event tells its end.
	Done bool `json:"-"`
	// Deleted counts memories, Cancelled commands that were ended before they stored anything; both 0 until it is done.
	Deleted   int64  `json:"deleted"`
	Cancelled int64  `json:"cancelled"`
	EventID   string `json:"event_id"`
	// Key is the Idempotency-Key of the erase: under it, it covers nothing that came later.
	Key string `json:"-"`
	// Replayed tells that the key was known.
	Replayed bool `json:"-"`
}

// Get reads one live memory.
func (m *Memories) Get(ctx context.Context, id string) (*Memory, error) {
	at, err := segment("get memory", id)
	if err != nil {
		return nil, err
	}
	return answer[Memory](ctx, m.c, read("get memory", "/v1/memories/"+at, nil))
}

// List reads one page of the live memories of a scope, newest first.
func (m *Memories) List(ctx context.Context, scope Scope, page PageOptions) (*Page[Memory], error) {
	return list[Memory](ctx, m.c, "list memories", "/v1/memories", scope.query(page))
}

// All goes through the live memories of a scope, newest first. It ends after an error.
func (m *Memories) All(ctx context.Context, scope Scope) iter.Seq2[Memory, error] {
	return each(func(at PageOptions) (*Page[Memory], error) { return m.List(ctx, scope, at) })
}

// History reads one page of what became of a memory, oldest change first; of a deleted one too.
func (m *Memories) History(ctx context.Context, id string, page PageOptions) (*Page[HistoryEntry], error) {
	at, err := segment("history", id)
	if err != nil {
		return nil, err
	}
	return list[HistoryEntry](ctx, m.c, "history", "/v1/memories/"+at+"/history", page.query())
}

// EraseScope removes everything of a scope that was accepted before: texts, history, and the input of writes that wait,
// run or have failed. It needs a key with the permission admin and can't be cancelled.
func (m *Memories) EraseScope(ctx context.Context, scope Scope, opts ...CallOption) (*Erasure, error) {
	if scope == (Scope{}) {
		return nil, errors.New("holdfast: erase scope: the scope names nobody")
	}
	w, err := keyedWrite("erase scope", http.MethodDelete, "/v1/memories", nil, opts)
	if err != nil {
		return nil, err
	}
	w.query = scope.query(PageOptions{})
	return m.c.erase(ctx, w)
}

func (c *Client) erase(ctx context.Context, w call) (*Erasure, error) {
	erasure, got, err := send[Erasure](ctx, c, w)
	if err != nil {
		return nil, err
	}
	erasure.Done, erasure.Key, erasure.Replayed = got.status == http.StatusOK, w.key, got.replayed()
	return erasure, nil
}
