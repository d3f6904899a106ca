package worker

import (
	"context"
	"time"

	"github.com/google/uuid"
)

const (
	// CrashedFrom is how many claims of a task must have ended without a word for it to run alone in its process. Two may
	// have been another task's doing.
	CrashedFrom = 2
	// aloneLook is how many such tasks one look reads: several workers may see the same ones, and each takes the first that
	// is still to be had.
	aloneLook = 16
	// alonePace is the least time between two looks that are asked for: a hint that finds nothing to claim asks for one, and
	// most of those are of tasks that have ended.
	alonePace = 250 * time.Millisecond
	// leastApart is how long tasks that crashed run one after the other before the others have the process again, however
	// soon it was empty: as long as one may wait anyway that comes while one of them calls the model.
	leastApart = time.Second
	// firstShare is how many of the workers that begin run tasks that crashed before anything else.
	firstShare = 0.5
	// lull is how long nobody else must be in hand for the next task that runs alone: a waiting hint is fetched and claimed
	// in less.
	lull = 100 * time.Millisecond
)

// Among says which tasks a claimant asks for, by how their claims ended.
type Among string

// The values. No claimant that takes several tasks at a time asks for Anyone: a task that takes its process down would
// take the others with it.
const (
	Anyone  Among = ""
	Steady  Among = "steady"  // those with fewer than CrashedFrom crashes
	Crashed Among = "crashed" // those with as many or more: they run alone
)

// alone runs the tasks that crashed before, one after the other, each when nothing else runs in the process. Nobody else
// claims one, so that none is claimed to be given back. It looks when it is asked to: at every poll, after expired leases
// were moved on, and when a hint was met that nobody could claim.
func (w *Worker) alone(ctx context.Context) {
	who := newSeat(0, false)
	for {
		select {
		case <-w.crashed:
		case <-ctx.Done():
			return
		}
		if !pause(ctx, w.calm.left()) {
			return
		}
		for w.turn(ctx, who) {
		}
		w.lonely.Store(false)
		if !pause(ctx, alonePace) {
			return
		}
	}
}

// first lets a worker that begins run tasks that crashed before it looks for others: it is alone already, and where
// processes end all the time nobody is alone for long. Every second one does, by chance: tasks that take each process down
// must not come first in all of them.
func (w *Worker) first(ctx context.Context) {
	if w.cfg.Rand() >= firstShare {
		return
	}
	seat, who := newSeat(0, false), w.claimant(Crashed)
	ids := w.lookAlone(ctx, who)
	if len(ids) == 0 {
		return
	}
	if _, err := w.slots.take(ctx, seat, 1); err != nil {
		return
	}
	if w.apart(ctx, who, ids) {
		poke(w.crashed) // there may be more
	}
	w.slots.give(1)
}

// turn has the process to itself and runs tasks that crashed in it, one after the other. Then it leaves the process to
// the others for as long as it was closed to them. It answers false when there is no such task to be had.
func (w *Worker) turn(ctx context.Context, seat *seat) bool {
	who := w.claimant(Crashed) // whatever leases a workspace has: those that run alone take turns
	ids := w.lookAlone(ctx, who)
	w.lonely.Store(len(ids) > 0)
	if len(ids) == 0 {
		return false
	}
	if _, err := w.slots.take(ctx, seat, 1); err != nil {
		return false
	}
	began := time.Now()
	again := w.apart(ctx, who, ids)
	w.slots.give(1)
	return again && w.letOthers(ctx, time.Since(began))
}

// apart waits until nothing else runs and then runs the tasks, none of which is claimed before: a neighbour that takes the
// process down must not count against them. To be alone costs a wait, so one task is not all that it is for: it goes on for as
// long as the wait was, and for leastApart. It answers whether there is more to do, now or when the others have had their
// time: those that took too long to end have it first.
func (w *Worker) apart(ctx context.Context, who Claimant, ids []uuid.UUID) bool {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, w.alonePatience())
	defer cancel()
	if err := w.slots.apart(limited); err != nil {
		return ctx.Err() == nil
	}
	defer w.slots.together()
	enough := time.Now().Add(max(time.Since(began), leastApart))
	ran := false
	for _, id := range ids {
		if ctx.Err() != nil {
			return false
		}
		switch {
		case w.attempt(who, id, nil, nil):
			ran = true
		case w.calm.left() > 0: // the database is in trouble: the others could not be claimed either
			poke(w.crashed)
			return false
		}
		if !time.Now().Before(enough) {
			break
		}
	}
	return ran
}

func (w *Worker) lookAlone(ctx context.Context, who Claimant) []uuid.UUID {
	limited, cancel := context.WithTimeout(ctx, scanBound)
	defer cancel()
	ids, _, err := w.deps.Claims.Due(limited, who, aloneLook)
	if err != nil {
		if ctx.Err() == nil {
			w.deps.Observer.Troubled(DueFailed)
			if w.calm.fail(w.cfg.Rand()) == 1 {
				w.log.Warn().Err(err).Msg("due tasks that crashed cannot be read")
			}
			poke(w.crashed)
		}
		return nil
	}
	return ids
}

// letOthers leaves the process to the others for so long, or until there are none, and answers false when ctx ended.
// So a queue of tasks that crash takes no more than half of the time, and all of it while nobody else wants any.
func (w *Worker) letOthers(ctx context.Context, length time.Duration) bool {
	until := time.Now().Add(length)
	for {
		if !pause(ctx, min(lull, time.Until(until))) {
			return false
		}
		if w.others.Load() == 0 || !time.Now().Before(until) {
			return true
		}
	}
}

// alonePatience is how long the process is closed to others while those in it end: one call of the model and a step that it
// leads to. What takes longer, a long conversation say, doesn't keep it closed for its whole time.
func (w *Worker) alonePatience() time.Duration { return w.cfg.ModelTimeout + stepBound }
