package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// inlineTTL is the most that a task which is run inline waits for a worker when its process dies; a shorter lease of
	// the workers shortens it. A caller waits for the task, and it is in pieces that another one can go on with.
	inlineTTL = 10 * time.Second
	// inlineMost bounds an inline run: what takes longer is a worker's.
	inlineMost = 10 * time.Second
	// inlineTries is how often a step is tried whose COMMIT has no known outcome. The workers have more patience.
	inlineTries = 2
)

// errTaken says that the task is not to be had: a worker has it, or it has ended.
var errTaken = errors.New("the task is taken")

// Inline runs tasks in pieces within the time of a request. It needs no embedder: its job makes no vectors.
type Inline struct {
	claims    Claims
	steps     Steps
	job       Job
	publisher Publisher
	notifier  Notifier
	who       Claimant
}

// NewInline returns an Inline for the tasks of one kind; ttl is the lease of the workers.
func NewInline(
	claims Claims, steps Steps, kind task.Kind, job Job, publisher Publisher, notifier Notifier, ttl time.Duration,
) (*Inline, error) {
	if claims == nil || steps == nil || job == nil || publisher == nil || notifier == nil {
		return nil, errors.New("inline: claims, steps, job, publisher and notifier are required")
	}
	if ttl < minLeaseTTL {
		return nil, fmt.Errorf("inline: lease TTL must be at least %s, not %s", minLeaseTTL, ttl)
	}
	name, err := incarnation()
	if err != nil {
		return nil, err
	}
	return &Inline{
		claims: claims, steps: steps, job: job, publisher: publisher, notifier: notifier,
		who: Claimant{
			Worker: name, TTL: min(ttl, inlineTTL), Kinds: []task.Kind{kind}, Format: command.Format,
			MaxAttempts: task.DefaultPolicy().MaxAttempts,
		},
	}, nil
}

// Run claims the workspace's task and runs its pieces until it ends or the time is over; then the lease is given back and a
// worker goes on. An error says that this call is not running it any more: somebody else has it or will have it.
func (i *Inline) Run(ctx context.Context, workspace, id uuid.UUID, within time.Duration) error {
	token, err := uuid.NewRandom()
	if err != nil {
		return fmt.Errorf("make lease token: %w", err)
	}
	until := time.Now().Add(min(within, inlineMost))
	answers := i.claims.Claim(ctx, i.who, []ClaimAsk{{TaskID: id, Token: token, WorkspaceID: workspace}}, true)
	switch {
	case len(answers) != 1:
		return fmt.Errorf("claim: %d answers to one ask", len(answers))
	case answers[0].Err != nil:
		return fmt.Errorf("claim: %w", answers[0].Err)
	case answers[0].Lease == nil:
		return errTaken
	}
	lease := *answers[0].Lease
	held, end := i.keep(ctx, lease)
	defer end()
	for time.Now().Before(until) && held.Err() == nil {
		done, err := i.piece(ctx, lease)
		if err != nil {
			return errors.Join(err, i.giveBack(ctx, lease))
		}
		i.announce(ctx, lease, done)
		if done.Ended {
			return nil
		}
		lease.Cursor, lease.Stage = done.Cursor, task.Committed
	}
	if cause := context.Cause(held); errors.Is(cause, fault.ErrLeaseLost) {
		return fmt.Errorf("heartbeat: %w", cause)
	}
	return i.giveBack(ctx, lease)
}

// keep extends the lease, at a third of its time, until end is called. The returned context ends when it is lost; a piece
// under way goes on and ends by its fence, so that a heartbeat that meets the end of the task cuts off no answer.
func (i *Inline) keep(ctx context.Context, lease Lease) (held context.Context, end func()) {
	held, lose := context.WithCancelCause(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		rest := i.who.TTL / 3
		for pause(held, rest) {
			limited, cancel := context.WithTimeout(held, i.who.TTL/6)
			_, err := i.claims.Heartbeat(limited, lease, i.who.TTL, "")
			cancel()
			switch {
			case errors.Is(err, fault.ErrLeaseLost):
				lose(err)
			case err != nil:
				rest = i.who.TTL / 12 // several tries fit into what is left
			default:
				rest = i.who.TTL / 3
			}
		}
	}()
	return held, func() {
		lose(nil)
		<-gone
	}
}

func (i *Inline) piece(ctx context.Context, lease Lease) (Done, error) {
	bounded, cancel := context.WithTimeout(ctx, stepBound)
	defer cancel()
	chunk, err := i.job.Next(bounded, lease)
	if err != nil {
		return Done{}, fmt.Errorf("read piece: %w", err)
	}
	var done Done
	for range inlineTries {
		done = i.job.Apply(bounded, lease, chunk, "", nil, Work{})
		if !errors.Is(done.Err, fault.ErrCommitUnknown) {
			break
		}
	}
	if done.Err != nil {
		return done, fmt.Errorf("apply piece: %w", done.Err)
	}
	failpoint.Hit("worker.after_piece")
	return done, nil
}

// giveBack hands the lease back and wakes a worker. A lease that is lost already is no error.
func (i *Inline) giveBack(ctx context.Context, lease Lease) error {
	done := one(i.steps.Later(ctx, []Later{{Lease: lease}}))
	if done.Err != nil && !errors.Is(done.Err, fault.ErrLeaseLost) {
		return fmt.Errorf("give back: %w", done.Err)
	}
	i.announce(ctx, lease, done)
	return nil
}

func (i *Inline) announce(ctx context.Context, lease Lease, done Done) {
	if done.Ended {
		i.notifier.Notify(ctx, lease.WorkspaceID, lease.TaskID)
	}
	for _, hint := range done.wakeups() {
		i.publisher.Publish(ctx, hint)
	}
}
