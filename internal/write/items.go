package write

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// ItemsAsk asks to keep items of one account, all of them or none. No two have the same key. Price is that of one
// queued revision.
type ItemsAsk struct {
	WorkspaceID uuid.UUID
	Account     string
	Items       []ItemAsk
	Format      int
	Policy      []byte
	Price       credit.Amount
}

// ItemAsk is one item with what its revision will be queued as. A repeat of the same ask finds its own task ids.
type ItemAsk struct {
	Item    command.Item
	Key     command.ItemKey
	EventID string
	Content [sha256.Size]byte
	TaskID  uuid.UUID
	Claim   Claim
}

// ItemState is what one item is after the call: whether the call queued it and whether its records are there.
type ItemState struct {
	Queued bool
	Landed bool
}

// ItemsKept is what became of an ask. Items are in the order of the ask. Ended are tasks of earlier revisions that the
// call ended, Hints wake the lanes' new heads.
type ItemsKept struct {
	Items   []ItemState
	Pending int
	Ended   []uuid.UUID
	Hints   []task.Hint
}

// ItemStore keeps items. Its errors are those of AcceptStore, INSUFFICIENT_CREDITS for all queued revisions together.
type ItemStore interface {
	KeepItems(ctx context.Context, ask ItemsAsk) (ItemsKept, error)
	// ForgetItems erases one piece of what is asked for; More tells that there may be further ones. With
	// fault.ErrCommitUnknown it answers what it did if it happened.
	ForgetItems(ctx context.Context, ask ForgetAsk) (Forgot, error)
	// ForgetRest takes what is said of records that are gone out of the batches which are kept and, if copies is set,
	// drops the snapshots that were asked for or sent before. It may be done again.
	ForgetRest(ctx context.Context, workspace uuid.UUID, copies bool) error
	// Correct retracts a live record of the account and stores its correction, a fault MEMORY_NOT_FOUND without one.
	Correct(ctx context.Context, c Correction) (*task.Hint, error)
}

// Items keeps what callers send under ids of their own.
type Items struct {
	store     ItemStore
	publisher Publisher
	notifier  Notifier
	embedder  model.Embedder
	prices    credit.Prices
	policy    []byte
}

// NewItems returns the use cases of items. Policy is the service's extraction policy, as JSON; it is kept with each
// task together with the workspace's.
func NewItems(store ItemStore, publisher Publisher, notifier Notifier, embedder model.Embedder, prices credit.Prices, policy []byte) (*Items, error) {
	if store == nil || publisher == nil || notifier == nil || embedder == nil {
		return nil, errors.New("items: store, publisher, notifier and embedder are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	if policy == nil {
		policy = []byte("{}")
	}
	return &Items{store: store, publisher: publisher, notifier: notifier, embedder: embedder, prices: prices, policy: policy}, nil
}

// ItemReceipt tells of one sent item.
type ItemReceipt struct {
	ID      string
	EventID string
	Landed  bool
}

// ItemsReceipt tells of a call: its items in their order, how many revisions it queued, and how many the account has
// waiting.
type ItemsReceipt struct {
	Items   []ItemReceipt
	Queued  int
	Pending int
}

// itemsBound is how long one call may take, repeats included. Five hundred items are written in well under a second;
// the rest is for locks.
const itemsBound = 15 * time.Second

// Keep takes items of one account: new ones and edits are queued, the same content again changes nothing, unless the
// revision's task failed. Sent again it describes the same items. If the workspace can't pay for all that is to be
// queued, INSUFFICIENT_CREDITS and none is. Of an item that is sent twice in one call the last content counts, and
// the first time.
func (s *Items) Keep(ctx context.Context, caller access.Caller, account string, items []command.Item) (ItemsReceipt, error) {
	if err := caller.Writable(); err != nil {
		return ItemsReceipt{}, err
	}
	ask, places, err := s.ask(caller.Workspace, account, items)
	if err != nil {
		return ItemsReceipt{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), itemsBound)
	defer cancel()
	var kept ItemsKept
	answer := resolve(func() Accepted {
		var err error
		kept, err = s.store.KeepItems(ctx, ask)
		return Accepted{Refused: err}
	})
	if answer.Refused != nil {
		return ItemsReceipt{}, answer.Refused
	}
	failpoint.Hit("items.before_hint")
	s.announce(ctx, caller.Workspace.ID, kept.Ended, kept.Hints)
	receipt := ItemsReceipt{Items: make([]ItemReceipt, len(items)), Pending: kept.Pending}
	for i := range items {
		at := places[i]
		receipt.Items[i] = ItemReceipt{ID: items[i].ID, EventID: ask.Items[at].EventID, Landed: kept.Items[at].Landed}
	}
	for _, state := range kept.Items {
		if state.Queued {
			receipt.Queued++
		}
	}
	return receipt, nil
}

// ask gives each distinct item its task and tells for each sent one where it is in the ask.
func (s *Items) ask(workspace access.Workspace, account string, items []command.Item) (ItemsAsk, []int, error) {
	policy, err := snapshot(s.policy, workspace)
	if err != nil {
		return ItemsAsk{}, nil, err
	}
	ask := ItemsAsk{
		WorkspaceID: workspace.ID, Account: account, Format: command.Format, Policy: policy,
		Price: s.prices.Of(task.Item, workspace.Metered),
	}
	places := make([]int, len(items))
	known := make(map[command.ItemKey]int, len(items))
	for i, item := range items {
		key := item.Key()
		at, again := known[key]
		if again {
			item.At, item.AtText = ask.Items[at].Item.At, ask.Items[at].Item.AtText
			ask.Items[at].Item, ask.Items[at].Content = item, item.Content()
			places[i] = at
			continue
		}
		id, err := uuid.NewV7()
		if err != nil {
			return ItemsAsk{}, nil, fmt.Errorf("make event id: %w", err)
		}
		known[key], places[i] = len(ask.Items), len(ask.Items)
		ask.Items = append(ask.Items, ItemAsk{
			Item: item, Key: key, EventID: item.EventID(workspace.ID), Content: item.Content(), TaskID: id,
			Claim: newClaim(workspace, command.RandomKey(), command.Fingerprint(key)),
		})
	}
	return ask, places, nil
}

// announce tells those who wait for ended tasks and wakes what is due now.
func (s *Items) announce(ctx context.Context, workspace uuid.UUID, ended []uuid.UUID, hints []task.Hint) {
	for _, id := range ended {
		s.notifier.Notify(ctx, workspace, id)
	}
	for _, hint := range hints {
		s.publisher.Publish(ctx, hint)
	}
}

// errAccount says that a call names no account.
func errAccount(account string) error {
	if account == "" {
		return fault.New(fault.ScopeRequired)
	}
	return nil
}
