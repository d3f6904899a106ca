package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// BulkAct is what is done to many events.
type BulkAct string

// The acts. BulkRetry opens a new run of failed events, BulkCancel ends events that have not committed.
const (
	BulkRetry  BulkAct = "retry"
	BulkCancel BulkAct = "cancel"
)

// BulkChoice says which events of one workspace are meant. Failed ones are chosen by when they failed, open ones by when
// their present run began: what was done once is later than Until and is not chosen again.
type BulkChoice struct {
	Act BulkAct
	// Code is a class of failure or its public code; without one it is any, but nobody's own cancellation.
	Code  string
	Since time.Time
	// Until is never in the future. A preview without one is until now.
	Until time.Time
	// Scope narrows it to events that have all its values.
	Scope memory.Scope
}

// Class is the class of failure that the choice names, empty without one.
func (c BulkChoice) Class() string { return strings.ToLower(c.Code) }

// Public is the public code that the choice names, empty without one.
func (c BulkChoice) Public() string { return strings.ToUpper(c.Code) }

// BulkKinds are what can be retried and cancelled. Erases are not cancelled, and deliveries have a replay of their own.
func BulkKinds() []task.Kind {
	return []task.Kind{task.Infer, task.Item, task.BatchUpdate, task.BatchDelete, task.Export, task.Import}
}

// BulkPlace is behind which event a page begins.
type BulkPlace struct {
	At time.Time
	ID uuid.UUID
}

// BulkCount is how many events of one kind and failure a preview has found. Held is what their runs hold.
type BulkCount struct {
	Kind  task.Kind
	Class task.Class
	// Input tells whether they can still run.
	Input bool
	Count int
	Held  credit.Amount
}

// BulkCounted are the counts of one look; Next is where the next one begins, nil when there is none.
type BulkCounted struct {
	Counts []BulkCount
	Next   *BulkPlace
}

// BulkFound are events to act on, oldest first; Next is where the next look begins, nil when there is none.
type BulkFound struct {
	Events []BulkPlace
	Next   *BulkPlace
}

// BulkStore finds what is meant. Its looks read at most the asked rows, whatever they match.
type BulkStore interface {
	// BulkWorkspace answers the workspace, and what time it is. Fault WORKSPACE_NOT_FOUND.
	BulkWorkspace(ctx context.Context, workspace uuid.UUID) (access.Workspace, time.Time, error)
	CountBulk(ctx context.Context, workspace uuid.UUID, choice BulkChoice, after *BulkPlace, look int) (BulkCounted, error)
	FindBulk(ctx context.Context, workspace uuid.UUID, choice BulkChoice, after *BulkPlace, look, limit int) (BulkFound, error)
}

// Bulk retries or cancels many events, one by one and each at most once, by the rules of a single retry and cancel.
type Bulk struct {
	store     BulkStore
	retrier   *Retrier
	canceller *Canceller
	prices    credit.Prices
}

// NewBulk returns a Bulk over the use cases of single events.
func NewBulk(store BulkStore, retrier *Retrier, canceller *Canceller, prices credit.Prices) (*Bulk, error) {
	if store == nil || retrier == nil || canceller == nil {
		return nil, errors.New("bulk: store, retrier and canceller are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("bulk: %w", err)
	}
	return &Bulk{store: store, retrier: retrier, canceller: canceller, prices: prices}, nil
}

const (
	// countLook and countLooks bound a preview: a look of that many rows takes some ten milliseconds, and beyond half a
	// million the number tells nobody more.
	countLook  = 10_000
	countLooks = 50
	// bulkLook bounds the rows that one page looks past, bulkPage what it does, bulkTime how long: an answer comes before
	// a proxy gives up, and the next page goes on.
	bulkLook = 10_000
	bulkPage = 100
	bulkTime = 10 * time.Second
)

// BulkLine is a part of a preview.
type BulkLine struct {
	Class task.Class
	Count int
	// Credits are what the retries would hold, or what the cancellations would release.
	Credits credit.Amount
}

// BulkPreview is what a bulk would do. Until is what the bulk itself has to name.
type BulkPreview struct {
	Until   time.Time
	Count   int
	Credits credit.Amount
	// Gone are failed events without their input: no retry can run them.
	Gone  int
	Lines []BulkLine
	// More tells that there are more events than were counted.
	More bool
}

// Preview counts what the choice means and changes nothing. Fault INVALID_REQUEST for a choice that is none.
func (b *Bulk) Preview(ctx context.Context, workspace uuid.UUID, choice BulkChoice) (BulkPreview, error) {
	w, now, err := b.store.BulkWorkspace(ctx, workspace)
	if err != nil {
		return BulkPreview{}, err
	}
	if choice.Until.IsZero() {
		choice.Until = now
	}
	if err := choice.validate(now); err != nil {
		return BulkPreview{}, err
	}
	preview := BulkPreview{Until: choice.Until, More: true}
	var after *BulkPlace
	for range countLooks {
		counted, err := b.store.CountBulk(ctx, workspace, choice, after, countLook)
		if err != nil {
			return BulkPreview{}, err
		}
		for _, c := range counted.Counts {
			preview.add(c, choice.Act, b.prices.Of(c.Kind, w.Metered))
		}
		if after = counted.Next; after == nil {
			preview.More = false
			break
		}
	}
	slices.SortFunc(preview.Lines, func(a, b BulkLine) int { return strings.Compare(string(a.Class), string(b.Class)) })
	return preview, nil
}

func (p *BulkPreview) add(c BulkCount, act BulkAct, price credit.Amount) {
	if act == BulkRetry && !c.Input {
		p.Gone += c.Count
		return
	}
	credits := c.Held
	if act == BulkRetry {
		credits = price * credit.Amount(c.Count)
	}
	i := slices.IndexFunc(p.Lines, func(l BulkLine) bool { return l.Class == c.Class })
	if i < 0 {
		i = len(p.Lines)
		p.Lines = append(p.Lines, BulkLine{Class: c.Class})
	}
	p.Lines[i].Count += c.Count
	p.Lines[i].Credits += credits
	p.Count += c.Count
	p.Credits += credits
}

func (c BulkChoice) validate(now time.Time) error {
	switch {
	case c.Act != BulkRetry && c.Act != BulkCancel:
		return fault.At(fault.InvalidRequest, "/act", "retry or cancel")
	case c.Since.IsZero():
		return fault.At(fault.InvalidRequest, "/since", "required")
	case c.Until.IsZero():
		return fault.At(fault.InvalidRequest, "/until", "required: the one of the preview")
	case c.Until.After(now):
		return fault.At(fault.InvalidRequest, "/until", "not in the future")
	case !c.Since.Before(c.Until):
		return fault.At(fault.InvalidRequest, "/since", "before until")
	}
	return nil
}

// BulkDone is what one page has done.
type BulkDone struct {
	Done int
	// Before were done by an earlier request of the same bulk.
	Before int
	// Refused are the others, by the code that a single call is refused with, or WORKSPACE_SUSPENDED.
	Refused map[string]int
	// Next is where the next page begins, nil when the bulk has ended.
	Next *BulkPlace
}

// bulkSuspended is why a suspended workspace retries nothing.
const bulkSuspended = "WORKSPACE_SUSPENDED"

// Run does one page of the bulk with that id, and answers where the next one begins. A page that is repeated, because its
// answer got lost or the bulk begins anew, does nothing twice: a retry has the bulk's and the event's ids for its key. What
// can be tried again later, as the database is away, ends the page before that event; it is an error if nothing was done.
func (b *Bulk) Run(ctx context.Context, workspace, id uuid.UUID, choice BulkChoice, after *BulkPlace) (BulkDone, error) {
	w, now, err := b.store.BulkWorkspace(ctx, workspace)
	if err != nil {
		return BulkDone{}, err
	}
	if id == uuid.Nil {
		return BulkDone{}, fault.At(fault.InvalidRequest, "/id", "a UUID of the bulk's own")
	}
	if err := choice.validate(now); err != nil {
		return BulkDone{}, err
	}
	found, err := b.store.FindBulk(ctx, workspace, choice, after, bulkLook, bulkPage)
	if err != nil {
		return BulkDone{}, err
	}
	actor := access.ActorOf(ctx)
	actor.Bulk = id
	ctx = access.As(ctx, actor)
	done := BulkDone{Refused: map[string]int{}, Next: found.Next}
	end := time.Now().Add(bulkTime)
	for i, event := range found.Events {
		if i > 0 && (ctx.Err() != nil || time.Now().After(end)) {
			done.Next = &found.Events[i-1]
			return done, nil
		}
		if err := b.act(ctx, access.Caller{Workspace: w}, id, choice.Act, event.ID, &done); err != nil {
			if i == 0 {
				return BulkDone{}, err
			}
			done.Next = &found.Events[i-1]
			return done, nil
		}
	}
	return done, nil
}

// act does it to one event and counts what came of it. It fails when the same may come out otherwise in a moment.
func (b *Bulk) act(ctx context.Context, caller access.Caller, id uuid.UUID, act BulkAct, event uuid.UUID, done *BulkDone) error {
	before, err := false, error(nil)
	if act == BulkCancel {
		err = b.canceller.Cancel(ctx, caller, event)
	} else {
		var key *command.Key
		if key, err = command.ParseKey([]string{"bulk:" + id.String() + ":" + event.String()}); err == nil {
			before, err = b.retrier.Retry(ctx, caller, event, nil, key)
		}
	}
	refusal, known := errors.AsType[*fault.Error](err)
	switch {
	case err == nil && before:
		done.Before++
	case err == nil:
		done.Done++
	case !known, refusal.Kind() == fault.Internal, refusal.Code == fault.UnavailableNow, refusal.Code == fault.AcceptanceUnknown:
		return err
	case refusal.Code == fault.InsufficientPermission && caller.Workspace.Suspended:
		done.Refused[bulkSuspended]++
	default:
		done.Refused[string(refusal.Code)]++
	}
	return nil
}
