// Package group lets callers that come at the same time share the work of one durable commit. There is no timer: while
// one group is under way the next one gathers, so that a lone caller waits for nobody and a crowd pays for few commits.
//
// Rules it guards: items enter in the order of their arrival, and each gets its own answer; of items with the same key
// only the first enters, the others wait until it is answered; an item whose caller left before it was taken is never
// run; queue, group and wait are bounded. It knows nothing of SQL and imports nothing of the project.
package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Refusals of Do: nothing was done with the item.
var (
	// ErrFull: as many callers wait as may.
	ErrFull = errors.New("too many are waiting for a group")
	// ErrLate: the item was not taken within the bound.
	ErrLate = errors.New("no group took the item in time")
)

// Limits bound a queue. All but Apart must be positive.
type Limits struct {
	// Size is the number of items of one group at most.
	Size int
	// Runners is how many groups may be under way at once. One gathers the largest groups.
	Runners int
	// Apart is how many items may be in hand without one of them waiting for another: as long as there are no more, each gets a
	// runner of its own at once, beyond Runners. So few would wait for each other's commits and share none.
	Apart int
	// Places is how many items may wait to be taken.
	Places int
	// Wait is how long an item waits to be taken.
	Wait time.Duration
}

// Run does the work of one group and returns one answer for each item, in their order. Its context is never cancelled:
// it must bound itself, because callers come and go.
type Run[I, O any] func(ctx context.Context, items []I) []O

// Queue gathers items into groups. It is safe for concurrent use and needs no closing: its runners end when nobody waits.
type Queue[K comparable, I, O any] struct {
	limits Limits
	key    func(I) K
	run    Run[I, O]

	mu      sync.Mutex
	waiting []*entry[K, I, O] // in the order of arrival
	running int               // runners
	taken   int               // items of the groups under way
	busy    map[K]struct{}    // keys of the groups under way
	seen    func(items int, waited time.Duration)
}

type entry[K comparable, I, O any] struct {
	item   I
	since  time.Time // that it waits
	key    K
	done   chan struct{} // closed when answer or thrown is there
	answer O
	thrown any // what run panicked with
}

// New returns a queue whose groups are run by run. Two items are never under way together when key says the same of both.
// It panics when a limit is not positive: the limits are constants of the caller's.
func New[K comparable, I, O any](limits Limits, key func(I) K, run Run[I, O]) *Queue[K, I, O] {
	if min(limits.Size, limits.Runners, limits.Places) < 1 || limits.Apart < 0 || limits.Wait <= 0 {
		panic(fmt.Sprintf("limits of a group must be positive: %+v", limits))
	}
	return &Queue[K, I, O]{limits: limits, key: key, run: run, busy: make(map[K]struct{})}
}

// Watch tells seen of each group when it begins: how many items it has, and how long the first of them waited to be taken.
// Seen returns at once. Watch is called before Do.
func (q *Queue[K, I, O]) Watch(seen func(items int, waited time.Duration)) { q.seen = seen }

// Do hands in the item and waits for its answer. Errors: ErrFull, ErrLate, or the context's while the item waits: it is
// not run then, and never will be. Once it is taken its answer is waited for whatever the context says, because it may have
// been committed. If run panics, Do panics with the same value in each caller of the group.
func (q *Queue[K, I, O]) Do(ctx context.Context, item I) (O, error) {
	e := &entry[K, I, O]{item: item, since: time.Now(), key: q.key(item), done: make(chan struct{})}
	if err := q.enter(ctx, e); err != nil {
		return e.answer, err
	}
	late := time.NewTimer(q.limits.Wait)
	defer late.Stop()
	var refusal error
	select {
	case <-e.done:
	case <-ctx.Done():
		refusal = ctx.Err()
	case <-late.C:
		refusal = ErrLate
	}
	if refusal != nil && q.leave(e) {
		return e.answer, refusal
	}
	<-e.done
	if e.thrown != nil {
		panic(e.thrown)
	}
	return e.answer, nil
}

// enter puts the entry at the end and sees to it that somebody runs it.
func (q *Queue[K, I, O]) enter(ctx context.Context, e *entry[K, I, O]) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= q.limits.Places {
		return ErrFull
	}
	q.waiting = append(q.waiting, e)
	if q.running < q.limits.Runners || q.taken+len(q.waiting) <= q.limits.Apart {
		q.running++
		go q.work(context.WithoutCancel(ctx))
	}
	return nil
}

// leave takes a waiting entry out; false if it was taken already.
func (q *Queue[K, I, O]) leave(e *entry[K, I, O]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiting {
		if w == e {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// work runs groups until nothing can be taken. What is left then has the key of a group under way, and that group's runner
// looks again when it is done.
func (q *Queue[K, I, O]) work(ctx context.Context) {
	for {
		taken := q.take()
		if len(taken) == 0 {
			return
		}
		if q.seen != nil {
			q.seen(len(taken), time.Since(taken[0].since))
		}
		q.answer(ctx, taken)
		q.release(taken)
		for _, e := range taken {
			close(e.done)
		}
	}
}

// take removes the next group from those who wait; a runner that finds none has ended when it returns.
func (q *Queue[K, I, O]) take() []*entry[K, I, O] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running > q.limits.Runners && q.taken+len(q.waiting) > q.limits.Apart {
		q.running-- // there is a crowd by now: it is for those who run groups, of whom one at least looks again
		return nil
	}
	taken := make([]*entry[K, I, O], 0, min(len(q.waiting), q.limits.Size))
	rest := q.waiting[:0]
	for _, e := range q.waiting {
		if _, busy := q.busy[e.key]; busy || len(taken) == q.limits.Size {
			rest = append(rest, e)
			continue
		}
		q.busy[e.key] = struct{}{}
		taken = append(taken, e)
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	q.taken += len(taken)
	if len(taken) == 0 {
		q.running--
	}
	return taken
}

func (q *Queue[K, I, O]) release(taken []*entry[K, I, O]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= len(taken)
	for _, e := range taken {
		delete(q.busy, e.key)
	}
}

// answer runs one group and keeps what it says, or what it panicked with, in its entries.
func (q *Queue[K, I, O]) answer(ctx context.Context, taken []*entry[K, I, O]) {
	items := make([]I, len(taken))
	for i, e := range taken {
		items[i] = e.item
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			for _, e := range taken {
				e.thrown = thrown
			}
		}
	}()
	answers := q.run(ctx, items)
	if len(answers) != len(items) {
		panic(fmt.Sprintf("a group of %d items got %d answers", len(items), len(answers)))
	}
	for i, e := range taken {
		e.answer = answers[i]
	}
}
