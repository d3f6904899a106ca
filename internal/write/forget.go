package write

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Forget says which items of an account are to be erased: those with the ids, those of a session, or all.
type Forget struct {
	IDs     []string
	Session string
	All     bool
}

// ForgetAsk asks to erase one piece: the items with the keys or, without keys, at most Limit items of the session or,
// without a session, of the account.
type ForgetAsk struct {
	WorkspaceID uuid.UUID
	Account     string
	Keys        []command.ItemKey
	Session     string
	Limit       int
}

// Forgot tells what one piece did: items erased and queued revisions cancelled. Keys are the items that it was about.
type Forgot struct {
	Keys      []command.ItemKey
	Items     int
	Cancelled int
	More      bool
	Ended     []uuid.UUID
	Hints     []task.Hint
}

// Forgotten is the answer to a forget. Queue is nil if not everything could be cleared in time: the call is to be
// repeated.
type Forgotten struct {
	Events int
	Queue  *int
}

const (
	// forgetPiece is how many items one transaction erases: few enough that it holds its lanes for milliseconds.
	forgetPiece = 100
	// forgetBound is how long one call goes on; what is left then is told by the answer.
	forgetBound = 12 * time.Second
	// forgetRestBound is how long batches and snapshots may take after that, and forgetRestRuns how often they are tried.
	forgetRestBound = 3 * time.Second
	forgetRestRuns  = 3
)

// Forget erases items with their records, the text of their history and their queued input, in pieces, and then what
// batches, exports and imports from before hold of them. A repeat counts zero. An error means that nothing was erased;
// after the first piece a failure is told by Queue.
func (s *Items) Forget(ctx context.Context, caller access.Caller, account string, what Forget) (Forgotten, error) {
	if err := caller.Writable(); err != nil {
		return Forgotten{}, err
	}
	if err := errAccount(account); err != nil {
		return Forgotten{}, err
	}
	ctx = context.WithoutCancel(ctx)
	events, queue, pieces, err := s.forgetPieces(ctx, forgetAsks(caller.Workspace.ID, account, what))
	if err != nil && pieces == 0 {
		return Forgotten{}, err
	}
	done := Forgotten{Events: events}
	rest := s.forgetRest(ctx, caller.Workspace.ID, events > 0)
	if err == nil && rest == nil { // else what was erased is told, and by the missing count that not all of it was
		done.Queue = &queue
	}
	return done, nil
}

// forgetPieces counts what the pieces erased and cancelled. With an error it tells what those before it did.
func (s *Items) forgetPieces(ctx context.Context, asks []ForgetAsk) (events, queue, pieces int, err error) {
	ctx, cancel := context.WithTimeout(ctx, forgetBound)
	defer cancel()
	for i := 0; i < len(asks); { // ends with ctx at the latest: a piece without items is the last one of its ask
		forgot, err := s.forgetPiece(ctx, asks[i])
		if err != nil {
			return events, queue, pieces, err
		}
		s.announce(ctx, asks[i].WorkspaceID, forgot.Ended, forgot.Hints)
		events += forgot.Items
		queue += forgot.Cancelled
		pieces++
		if !forgot.More {
			i++
		}
	}
	return events, queue, pieces, nil
}

// forgetRest follows the last piece. A repeat of the call would find no items and leave the copies, so that it is tried
// again here.
func (s *Items) forgetRest(ctx context.Context, workspace uuid.UUID, copies bool) error {
	ctx, cancel := context.WithTimeout(ctx, forgetRestBound)
	defer cancel()
	var err error
	for range forgetRestRuns {
		if err = s.store.ForgetRest(ctx, workspace, copies); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// forgetPiece runs one piece, and again when the answer to its COMMIT was lost, with the same items: what it erased is
// counted by one run.
func (s *Items) forgetPiece(ctx context.Context, ask ForgetAsk) (Forgot, error) {
	forgot, err := s.store.ForgetItems(ctx, ask)
	if errors.Is(err, fault.ErrCommitUnknown) {
		ask.Keys = forgot.Keys
		again, failed := s.store.ForgetItems(ctx, ask)
		if failed != nil {
			return Forgot{}, fault.Wrap(fault.AcceptanceUnknown, failed)
		}
		if again.Items == 0 { // the lost answer was a yes
			return forgot, nil
		}
		again.More = forgot.More
		return again, nil
	}
	return forgot, err
}

func forgetAsks(workspace uuid.UUID, account string, what Forget) []ForgetAsk {
	if len(what.IDs) == 0 {
		return []ForgetAsk{{WorkspaceID: workspace, Account: account, Session: what.Session, Limit: forgetPiece}}
	}
	var asks []ForgetAsk
	for begin := 0; begin < len(what.IDs); begin += forgetPiece {
		ask := ForgetAsk{WorkspaceID: workspace, Account: account}
		for _, id := range what.IDs[begin:min(begin+forgetPiece, len(what.IDs))] {
			ask.Keys = append(ask.Keys, command.ItemKeyOf(account, id))
		}
		asks = append(asks, ask)
	}
	return asks
}
