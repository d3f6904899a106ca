package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/postgres/group"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

const (
	// claimGroupSize bounds a group, and with it how many rows are locked at a time: what one more saves is next to nothing
	// by then.
	claimGroupSize = 128
	// claimRunners and claimApart are as for acceptances: so few claims share a commit in the database as well as in a group.
	claimRunners = 1
	claimApart   = 2
	// claimPlaces bounds those who wait for a group: as many as a worker may have slots.
	claimPlaces = 1_024
	// claimWait is how long an ask waits to be taken. Groups take milliseconds, so whoever has waited for a second claims
	// alone, with most of its time left.
	claimWait = time.Second
	// claimGroupBound is how long one group may take: it is one round trip, and nothing in it waits for a lock. A short lease
	// shortens it, so that none is nearly over when its holder hears of it.
	claimGroupBound = 5 * time.Second
)

// claims gathers what a worker claims at the same time into groups of one commit. Up to claimApart asks are not gathered.
type claims struct {
	db    *DB
	queue *group.Queue[uuid.UUID, asking, claimed]
}

// claimed is what became of one ask in a group. Alone sends its caller to ask for itself: nothing was done. Lost sends it
// too: it may have been done.
type claimed struct {
	worker.Claimed
	alone, lost bool
}

func newClaims(db *DB) *claims {
	c := &claims{db: db}
	c.queue = group.New(group.Limits{Size: claimGroupSize, Runners: claimRunners, Apart: claimApart, Places: claimPlaces, Wait: claimWait},
		func(a asking) uuid.UUID { return a.ask.TaskID }, c.run)
	return c
}

// claim answers one ask, in a group or alone. Tasks that crashed before are claimed one by one, and so is what a request
// waits for.
func (c *claims) claim(ctx context.Context, a asking) worker.Claimed {
	if a.who.Among != worker.Steady || a.ask.WorkspaceID != uuid.Nil {
		return c.db.claim(ctx, a)
	}
	answer, err := c.queue.Do(ctx, a)
	switch {
	case errors.Is(err, group.ErrFull), errors.Is(err, group.ErrLate):
		return c.db.claim(ctx, a)
	case err != nil: // it was taken by nobody
		return worker.Claimed{Err: &stepError{"claim", classify(err)}}
	}
	return c.db.claimAfter(ctx, a, answer)
}

// claimAfter goes on with an ask where its group has left it.
func (db *DB) claimAfter(ctx context.Context, a asking, answer claimed) worker.Claimed {
	switch {
	case answer.lost:
		return db.claimAgain(ctx, a, answer.Claimed)
	case answer.alone:
		return db.claim(ctx, a)
	}
	return answer.Claimed
}

// run claims for a group. One ask needs no group; it goes to its caller if it would have to wait, so that nobody waits for
// it.
func (c *claims) run(ctx context.Context, asks []asking) []claimed {
	ctx, cancel := context.WithTimeout(ctx, min(claimGroupBound, asks[0].who.TTL/3))
	defer cancel()
	if len(asks) > 1 {
		return c.db.claimGroup(ctx, asks)
	}
	waiting := "NOWAIT"
	if asks[0].skipLocked {
		waiting = "SKIP LOCKED"
	}
	answer := c.db.claimOnce(ctx, asks[0], "claim", waiting)
	return []claimed{{Claimed: answer, alone: stateOf(answer.Err) == stateLockNotAvailable, lost: isUnknown(answer.Err)}}
}

// alike tells whether two claimants may share a statement. How far each asks into the time after a pause is its own, and
// the leases that it knows of are no matter of a claim.
func alike(a, b worker.Claimant) bool {
	return a.Worker == b.Worker && a.TTL == b.TTL && slices.Equal(a.Kinds, b.Kinds) && a.Format == b.Format &&
		a.MaxAttempts == b.MaxAttempts && a.Extractor == b.Extractor && a.Embedder == b.Embedder && a.Among == b.Among
}
