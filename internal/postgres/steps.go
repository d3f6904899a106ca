package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres/group"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

const (
	// stepGroupSize bounds a group: it holds the lanes of all its tasks, and a few dozen share a commit as well as more.
	stepGroupSize = 64
	// stepRunners and stepApart are as for acceptances.
	stepRunners = 1
	stepApart   = 2
	// stepPlaces bounds those who wait for a group: more than a worker has slots.
	stepPlaces = 1_024
	// stepWait is how long a step waits to be taken. Then it goes alone, with most of its time left.
	stepWait = 2 * time.Second
	// stepGroupBound is how long one group may take, the COMMIT apart: two round trips.
	stepGroupBound = 5 * time.Second
)

// steps gathers the commits of a worker's tasks, and their settlements, into groups of one durable commit each.
type steps struct {
	db      *DB
	commits *group.Queue[laneKey, worker.Commit, stepped]
	settles *group.Queue[uuid.UUID, worker.Settle, stepped]
}

// stepped is what became of one step in a group. Alone sends its caller to do it by itself: nothing was done.
type stepped struct {
	worker.Done
	alone bool
}

func newSteps(db *DB) *steps {
	s := &steps{db: db}
	limits := group.Limits{Size: stepGroupSize, Runners: stepRunners, Apart: stepApart, Places: stepPlaces, Wait: stepWait}
	// Two plans of a lane never meet in a group: each sees what the one before has made.
	s.commits = group.New(limits, func(c worker.Commit) laneKey { return laneKey{c.Lease.WorkspaceID, c.Lease.Lane} }, s.runCommits)
	s.settles = group.New(limits, func(c worker.Settle) uuid.UUID { return c.Lease.TaskID }, s.runSettles)
	return s
}

// commit answers one step, in a group or alone. What changes records that are there already goes alone: it locks more
// than its lane.
func (s *steps) commit(ctx context.Context, item worker.Commit) worker.Done {
	if item.Lease.ItemKey != nil || len(targetsOf(item.Plan)) > 0 {
		return s.db.commit(ctx, item)
	}
	return orAlone(ctx, s.commits, item, s.db.commit)
}

func (s *steps) settle(ctx context.Context, item worker.Settle) worker.Done {
	return orAlone(ctx, s.settles, item, s.db.settle)
}

// orAlone hands the item to the queue, and does it alone if no group takes it or it falls out of one.
func orAlone[K comparable, I any](ctx context.Context, q *group.Queue[K, I, stepped], item I, alone func(context.Context, I) worker.Done) worker.Done {
	answer, err := q.Do(ctx, item)
	switch {
	case errors.Is(err, group.ErrFull), errors.Is(err, group.ErrLate):
		return alone(ctx, item)
	case err != nil:
		return worker.Done{Err: fault.Wrap(fault.UnavailableNow, err)}
	case answer.alone:
		return alone(ctx, item)
	}
	return answer.Done
}

func (s *steps) runCommits(ctx context.Context, items []worker.Commit) []stepped {
	return runSteps(ctx, items, s.db.tryCommit, s.db.commitGroup)
}

func (s *steps) runSettles(ctx context.Context, items []worker.Settle) []stepped {
	return runSteps(ctx, items, s.db.trySettle, s.db.settleGroup)
}

// runSteps runs a group. A step without company needs none; it goes to its caller if something is in its way, so that
// nobody waits for it.
func runSteps[I any](ctx context.Context, items []I, try func(context.Context, I, string) (worker.Done, error),
	together func(context.Context, []I) []stepped,
) []stepped {
	ctx, cancel := context.WithTimeout(ctx, stepGroupBound)
	defer cancel()
	if len(items) > 1 {
		return together(ctx, items)
	}
	done, err := try(ctx, items[0], groupPatience)
	if isUnknown(err) {
		done = worker.Done{Err: err}
	}
	return []stepped{{Done: done, alone: err != nil && !isUnknown(err)}}
}
