package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres/group"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const (
	// acceptGroupSize bounds a group: what it locks others wait for, and beyond a hundred the commit costs next to nothing
	// of each.
	acceptGroupSize = 128
	// acceptRunners is one: a second takes half of the first one's group away.
	acceptRunners = 1
	// acceptApart is how many accept side by side without gathering: so few would only wait for each other, and more of them
	// would make the groups of a busy process small (ADR 16).
	acceptApart = 2
	// acceptPlaces bounds those who wait for a group, about as many as wait for connections without groups.
	acceptPlaces = 1_024
	// acceptGroupBound is how long one group may take, the COMMIT apart: three round trips.
	acceptGroupBound = 5 * time.Second
)

// accepts gathers acceptances that come at the same time into groups of one commit.
type accepts struct {
	db    *DB
	queue *group.Queue[idempotent, write.Acceptance, grouped]
}

// idempotent is a key of a workspace: no two items of a group have the same.
type idempotent struct {
	workspace uuid.UUID
	key       [sha256.Size]byte
}

func newAccepts(db *DB) *accepts {
	a := &accepts{db: db}
	a.queue = group.New(group.Limits{Size: acceptGroupSize, Runners: acceptRunners, Apart: acceptApart, Places: acceptPlaces, Wait: queueBound},
		func(item write.Acceptance) idempotent { return idempotent{item.WorkspaceID, item.Claim.KeyHash} }, a.run)
	return a
}

// accept answers one item, in a group or alone. What must be said about an item in particular is said alone: who is
// suspended, and whose act it is that is recorded.
func (a *accepts) accept(ctx context.Context, item write.Acceptance) write.Accepted {
	if item.Claim.Suspended || moveAct(item.Kind) != "" {
		return a.db.accept(ctx, item, a.db.lockTimeout)
	}
	answer, err := a.queue.Do(ctx, item)
	switch {
	case errors.Is(err, group.ErrFull), errors.Is(err, group.ErrLate):
		return write.Accepted{Refused: a.refuse()}
	case err != nil:
		return write.Accepted{Refused: classify(err)}
	case answer.alone:
		return a.db.accept(ctx, item, a.db.lockTimeout)
	}
	return answer.Accepted
}

func (a *accepts) refuse() error {
	if a.db.queue != nil {
		return a.db.queue.refuse()
	}
	return fault.Wrap(fault.UnavailableNow, errBusy)
}

// run commits a group. One item needs no group; it is alone if it would have to wait, so that nobody waits for it.
func (a *accepts) run(ctx context.Context, items []write.Acceptance) []grouped {
	ctx, cancel := context.WithTimeout(ctx, acceptGroupBound)
	defer cancel()
	if len(items) > 1 {
		return a.db.acceptGroup(ctx, items)
	}
	answer := a.db.accept(ctx, items[0], groupPatience)
	return []grouped{{Accepted: answer, alone: stateOf(answer.Refused) == stateLockNotAvailable}}
}
