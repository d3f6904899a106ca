package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// rescueLimit bounds the expired leases that one poll moves on: each is a transaction, and every worker does it.
	rescueLimit = 100
	// scanBound bounds a scan for work. Both scans read an index from its beginning.
	scanBound = 15 * time.Second
)

// drain finds work without hints: on every poll, and whenever a slot becomes free while tasks are known to wait, be it
// from the round before or because a hint was left to it.
// The first poll comes at a random time, so that workers that start together do not poll together.
func (w *Worker) drain(ctx context.Context) {
	who := newSeat(0, false)
	stuck := false // the last look at expired leases failed
	next := time.Now().Add(w.firstPoll())
	more := false
	for {
		if !more && !w.rest(ctx, next) {
			return
		}
		if time.Until(next) <= 0 {
			next = time.Now().Add(w.nextPoll())
			stuck = w.rescue(ctx, stuck)
			poke(w.crashed)
		}
		until, cancel := context.WithDeadline(ctx, next)
		n, err := w.slots.take(until, who, w.cfg.Slots)
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		more = w.round(ctx, n)
	}
}

// rest waits until then or until tasks are known to wait, and answers false when ctx ended.
func (w *Worker) rest(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.waiting:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (w *Worker) firstPoll() time.Duration { return time.Duration(w.cfg.Rand() * float64(w.cfg.Poll)) }

// nextPoll spreads polls over half the interval on either side of it.
func (w *Worker) nextPoll() time.Duration {
	return w.cfg.Poll/2 + time.Duration(w.cfg.Rand()*float64(w.cfg.Poll))
}

// round fills n taken slots with due tasks and tells whether more are known to wait. It returns once every claim
// has been decided, so that the next round does not meet the same tasks; a round that got nothing says no, and
// the next poll looks again.
func (w *Worker) round(ctx context.Context, n int) bool {
	if w.calm.left() > 0 {
		w.slots.give(n)
		return false
	}
	limited, cancel := context.WithTimeout(ctx, scanBound)
	who := w.claimant(Steady)
	who.Live = w.crowd.live()
	ids, more, err := w.deps.Claims.Due(limited, who, n)
	cancel()
	if err != nil {
		w.slots.give(n)
		if ctx.Err() == nil {
			w.deps.Observer.Troubled(DueFailed)
			if w.calm.fail(w.cfg.Rand()) == 1 {
				w.log.Warn().Err(err).Msg("due tasks cannot be read")
			}
		}
		return false
	}
	ids = ids[:min(len(ids), n)]
	w.slots.give(n - len(ids))
	var decided sync.WaitGroup
	var leased atomic.Int64
	decided.Add(len(ids))
	for _, id := range ids {
		w.wg.Go(func() {
			w.serve(who, id, nil, func(got bool) {
				if got {
					leased.Add(1)
				}
				decided.Done()
			})
		})
	}
	decided.Wait()
	return more && leased.Load() > 0
}

// rescue moves expired leases on, wakes whoever waits for them, and tells whether something went wrong; that is
// logged when it begins. It never slows intake down: the error may be that of one row, which says nothing of the
// database.
func (w *Worker) rescue(ctx context.Context, stuck bool) bool {
	limited, cancel := context.WithTimeout(ctx, scanBound)
	rescued, err := w.deps.Claims.Rescue(limited, w.cfg.Policy.MaxAttempts, rescueLimit)
	cancel()
	if err != nil && ctx.Err() == nil {
		w.deps.Observer.Troubled(RescueFailed)
		if !stuck {
			w.log.Warn().Err(err).Msg("expired leases cannot be moved on")
		}
	}
	for _, r := range rescued {
		w.deps.Observer.Troubled(LeaseExpired)
		w.log.Info().Stringer("event_id", r.TaskID).Stringer("workspace_id", r.WorkspaceID).Bool("failed", r.Failed).
			Msg("expired lease moved on")
		if r.Failed {
			w.deps.Notifier.Notify(ctx, r.WorkspaceID, r.TaskID)
		}
		for _, hint := range r.Hints {
			w.deps.Publisher.Publish(ctx, hint)
		}
	}
	return err != nil
}
