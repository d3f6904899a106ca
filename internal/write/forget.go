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

// Forgot tells what one piece did: items erased and queued revisions cancelled.
type Forgot struct {
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
)

// Forget erases items with their records, the text of their history and their queued input, in pieces. A repeat counts
// zero. An error means that nothing was erased; after the first piece a failure is told by Queue.
func (s *Items) Forget(ctx context.Context, caller access.Caller, account string, what Forget) (Forgotten, error) {
	if err := caller.Writable(); err != nil {
		return Forgotten{}, err
	}
	if err := errAccount(account); err != nil {
		return Forgotten{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetBound)
	defer cancel()
	var done Forgotten
	queue := 0
	asks := forgetAsks(caller.Workspace.ID, account, what)
	for i := 0; i < len(asks); { // ends with ctx at the latest: a piece without items is the last one of its ask
		forgot, err := s.forgetPiece(ctx, asks[i])
		if err != nil && done.Events == 0 && i == 0 {
			return Forgotten{}, err
		}
		if err != nil { // what was erased is told, and by the missing count that not all of it was
			return done, nil
		}
		s.announce(ctx, caller.Workspace.ID, forgot.Ended, forgot.Hints)
		done.Events += forgot.Items
		queue += forgot.Cancelled
		if !forgot.More {
			i++
		}
	}
	done.Queue = &queue
	return done, nil
}

// forgetPiece runs one piece, and again when the answer to its COMMIT was lost: what it erased is counted by one run.
func (s *Items) forgetPiece(ctx context.Context, ask ForgetAsk) (Forgot, error) {
	forgot, err := s.store.ForgetItems(ctx, ask)
	if errors.Is(err, fault.ErrCommitUnknown) {
		again, failed := s.store.ForgetItems(ctx, ask)
		if failed != nil {
			return Forgot{}, fault.Wrap(fault.AcceptanceUnknown, failed)
		}
		if again.Items == 0 { // the lost answer was a yes
			forgot.More = again.More
			return forgot, nil
		}
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
