package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// pullWait is how long one pull waits for hints while it keeps its slots from others.
	pullWait = time.Second
	// lastSlotWait is how long a pull of bulk hints may keep the last free slot from interactive ones, and any pull the
	// process from a task that waits to be alone in it.
	lastSlotWait = 100 * time.Millisecond
	// emptyPace keeps a source that answers at once with nothing from being asked in a tight loop.
	emptyPace = 50 * time.Millisecond
	// claimBound bounds one try of a claim: a primary-key update that takes longer meets a sick database. A short
	// lease shortens it, so that a claim never returns a lease that is nearly over.
	claimBound = 10 * time.Second
	// nakDelay is after how long a hint whose claim failed comes again: the database is down, not the task late.
	nakDelay = time.Second
	// shortBreath and longBreath bound the pause after failures of the same source in a row.
	shortBreath = 100 * time.Millisecond
	longBreath  = 5 * time.Second
)

// pull fetches hints of one class, for free slots only. A class that found nothing holds one slot while it
// waits; one that found enough takes all but the spare ones.
func (w *Worker) pull(ctx context.Context, class string) {
	who := newSeat(1, false)
	if class == task.Bulk {
		who = newSeat(w.cfg.Slots/2, true) // half of the slots stay for interactive hints and the poll
	}
	var trouble breather
	hungry := false // the last pull found something for every slot
	for {
		if !pause(ctx, max(w.calm.left(), trouble.left())) {
			return
		}
		limit := 1
		if hungry {
			limit = w.cfg.Slots
		}
		n, err := w.slots.take(ctx, who, limit)
		if err != nil {
			return
		}
		wait := pullWait
		if w.lonely.Load() || class == task.Bulk && w.slots.free() == 0 {
			wait = lastSlotWait
		}
		began := time.Now()
		found, err := w.fetch(ctx, class, n, wait)
		hungry = len(found) >= n
		w.take(ctx, found, n)
		if err != nil {
			if trouble.fail(w.cfg.Rand()) == 1 && ctx.Err() == nil {
				w.log.Warn().Err(err).Str("class", class).Msg("hints cannot be fetched; polling goes on")
			}
			w.deps.Observer.Troubled(FetchFailed)
			continue
		}
		trouble.recover()
		if len(found) == 0 && !pause(ctx, emptyPace-time.Since(began)) {
			return
		}
	}
}

// fetch asks for up to n hints. The end of the wait is an empty answer.
func (w *Worker) fetch(ctx context.Context, class string, n int, wait time.Duration) ([]Wakeup, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	found, err := w.deps.Wakeups.Fetch(limited, class, n)
	if err != nil && (ctx.Err() != nil || limited.Err() != nil && errors.Is(err, context.DeadlineExceeded)) {
		err = nil
	}
	return found, err
}

// take runs the fetched hints in the n slots that were taken for them and returns the slots left over. Hints
// beyond n, which the source should not have sent, go back.
func (w *Worker) take(ctx context.Context, found []Wakeup, n int) {
	for i, msg := range found {
		if i >= n || ctx.Err() != nil {
			w.nak(msg, 0)
			if i < n {
				w.slots.give(1)
			}
			continue
		}
		w.wg.Go(func() { w.serve(w.claimant(Steady), msg.Hint().TaskID, msg, nil) })
	}
	if left := n - len(found); left > 0 {
		w.slots.give(left)
	}
}

// serve is attempt beside others, in a slot that was taken for it and is returned here.
func (w *Worker) serve(who Claimant, id uuid.UUID, msg Wakeup, claimed func(bool)) {
	defer w.slots.give(1)
	w.others.Add(1)
	defer w.others.Add(-1)
	w.attempt(who, id, msg, claimed)
}

// attempt claims one task and runs it, and answers whether it got the lease. Msg is nil for a task that was found by
// polling; claimed, if given, is told once whether there is a lease. The hint of a workspace that has as many leases as it
// may is left to the drain, which hands out what the others leave free. A hint that nobody can claim may be that of a task
// that runs alone.
func (w *Worker) attempt(who Claimant, id uuid.UUID, msg Wakeup, claimed func(bool)) bool {
	ctx := w.work
	if msg != nil && w.cfg.Poll > 0 {
		workspace := msg.Hint().WorkspaceID
		if !w.crowd.admit(workspace) {
			w.ack(ctx, msg)
			poke(w.waiting)
			return false
		}
		defer w.crowd.leave(workspace)
	}
	defer w.hold(id)()
	lease, sent, err := w.claim(ctx, who, id, msg == nil)
	if claimed != nil {
		claimed(lease != nil)
	}
	switch {
	case err != nil:
		w.deps.Observer.Troubled(ClaimFailed)
		if w.calm.fail(w.cfg.Rand()) == 1 {
			w.log.Warn().Err(err).Stringer("event_id", id).Msg("claim failed")
		}
		if msg != nil {
			w.nak(msg, nakDelay+time.Duration(w.cfg.Rand()*float64(nakDelay)))
		}
	case lease == nil:
		w.calm.recover()
		w.ack(ctx, msg)
		if msg != nil {
			poke(w.crashed)
		}
	default:
		w.calm.recover()
		source := ByHint
		if msg == nil {
			source = ByPoll
			w.crowd.enter(lease.WorkspaceID)
			defer w.crowd.leave(lease.WorkspaceID)
		}
		w.deps.Observer.Claimed(source)
		w.run(ctx, *lease, sent, msg)
	}
	return lease != nil
}

// claimant is who asks now.
func (w *Worker) claimant(among Among) Claimant {
	who := w.who
	who.Among = among
	if among != Crashed { // one at a time in each process needs no spreading
		who.Restart = w.cfg.Rand()
	}
	return who
}

// claim asks for one lease and tells when the request was sent, which is where the lease's time begins on this
// process's clock. It isn't cut short by Stop: a lease that was given must be known to be given back. A claim whose
// COMMIT may have happened is asked for again with its token for half of the lease's time, whatever other errors come in
// between: a database that restarts must not leave a lease without a holder.
func (w *Worker) claim(ctx context.Context, who Claimant, id uuid.UUID, skipLocked bool) (*Lease, time.Time, error) {
	token, err := uuid.NewRandom()
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("make lease token: %w", err)
	}
	sent := time.Now()
	ask := []ClaimAsk{{TaskID: id, Token: token}}
	last := sent.Add(w.cfg.LeaseTTL / 2)
	open := false
	for try := 0; ; try++ {
		limited, cancel := context.WithTimeout(ctx, min(claimBound, w.cfg.LeaseTTL/3, time.Until(last)))
		// A row that is locked may be locked by the lost claim itself: what is open waits for it.
		answer := w.deps.Claims.Claim(limited, who, ask, skipLocked && !open)
		cancel()
		if len(answer) != 1 {
			return nil, sent, fmt.Errorf("claim: %d answers to one ask", len(answer))
		}
		err := answer[0].Err
		if err == nil {
			return answer[0].Lease, sent, nil
		}
		open = open || errors.Is(err, fault.ErrCommitUnknown)
		rest := backoff(try, shortBreath, w.cfg.Rand())
		if !open || time.Now().Add(rest).After(last) || !pause(ctx, rest) {
			return nil, sent, fmt.Errorf("claim: %w", err)
		}
	}
}

func (w *Worker) ack(ctx context.Context, msg Wakeup) {
	if msg == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackBound)
	defer cancel()
	if err := msg.Ack(limited); err != nil {
		w.deps.Observer.Troubled(AckFailed)
	}
}

func (w *Worker) nak(msg Wakeup, delay time.Duration) {
	if msg == nil {
		return
	}
	if err := msg.Nak(delay); err != nil {
		w.deps.Observer.Troubled(AckFailed)
	}
}

// ackBound bounds an acknowledgement. One that is lost costs a hint that comes again and finds nothing to do.
const ackBound = 2 * time.Second

// breather doubles the pause after each failure in a row, with jitter. Its zero value is at rest.
type breather struct {
	mu    sync.Mutex
	n     int
	until time.Time
}

// fail lengthens the pause and answers how many failures there were in a row.
func (b *breather) fail(random float64) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.until = time.Now().Add(backoff(b.n, shortBreath, random))
	b.n++
	return b.n
}

func (b *breather) recover() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n, b.until = 0, time.Time{}
}

func (b *breather) left() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == 0 {
		return 0
	}
	return time.Until(b.until)
}

// backoff is the pause after so many failures before the last one: first, doubled with each up to longBreath, with
// jitter over its second half.
func backoff(n int, first time.Duration, random float64) time.Duration {
	length := min(first<<min(n, 10), longBreath) // ten doublings exceed the bound
	return length/2 + time.Duration(random*float64(length/2))
}

// pause waits for d and answers false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
