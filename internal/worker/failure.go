package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// failure is a classified failure of a run. Origin is the class that the provider's adapter gave it, from which
// the consequences for the provider follow; provider is empty when none is to blame.
type failure struct {
	task.Failure
	provider string
	origin   task.Class
	reason   string
	status   int
	final    bool // no retry can help
}

func (f *failure) Error() string { return "run failed: " + string(f.Class) }

// unreadable says that the stored command cannot be read, now or later.
func unreadable() *failure {
	return &failure{Failure: task.Failure{Class: task.InternalFailure, Code: task.CodeInputUnreadable}, final: true}
}

// rejected says that what the caller sent can't be used, whoever runs it.
func rejected() *failure {
	return &failure{Failure: task.Failure{Class: task.InputRejected, Code: task.CodeInputUnreadable}, final: true}
}

// closed says that what is sealed can't be opened here. Without its key it may be opened elsewhere, or once the operator has
// corrected the keys.
func closed(err error) *failure {
	return &failure{
		Failure: task.Failure{Class: task.PayloadUnreadable, Code: task.CodePayloadUnreadable}, final: !errors.Is(err, seal.ErrNoKey),
	}
}

// conclude writes the end of a run that its own steps did not write.
func (r *run) conclude(ctx context.Context, done Done, err error) ending {
	back, givenBack := errors.AsType[*giveBack](err)
	f, failed := errors.AsType[*failure](err)
	switch {
	case err == nil && done.Cancelled:
		erased := &failure{Failure: task.Failure{Class: task.Cancelled, Code: task.CodeCancelled}, origin: task.Cancelled}
		return ending{how: Failed, to: task.State{Status: task.Failed, Stage: task.Accepted}.String(), failure: erased, done: done}
	case err == nil:
		return ending{how: Succeeded, to: task.State{Status: task.Succeeded, Stage: task.Projected}.String(), done: done}
	case errors.Is(err, fault.ErrLeaseLost):
		return ending{how: lost(done), done: done, err: err}
	case errors.Is(err, errAbandoned):
		return ending{how: Abandoned, err: err}
	case givenBack:
		return r.later(ctx, ending{how: GivenBack}, Later{Lease: r.lease, Delay: back.delay, Work: r.work})
	case failed:
		return r.fail(ctx, f, nil)
	}
	internal := &failure{Failure: task.Failure{Class: task.InternalFailure, Code: task.CodeInternal}, origin: task.InternalFailure}
	return r.fail(ctx, internal, err)
}

// fail decides what follows a failure and writes it, after the provider has been paused: nobody may claim a task
// of a provider that is known to refuse.
func (r *run) fail(ctx context.Context, f *failure, cause error) ending {
	committed := r.lease.Stage != task.Accepted
	decision := r.w.cfg.Policy.Decide(f.Failure, r.lease.Spent[f.Class], committed, r.w.cfg.Rand())
	r.blame(ctx, f)
	end := ending{how: Retried, failure: f, err: cause}
	if (decision.Fail || f.final) && !committed {
		end.how = Failed
		item := Fail{Lease: r.lease, Class: f.Class, Code: f.Code, Work: r.work}
		return r.close(end, task.State{Status: task.Failed, Stage: task.Accepted},
			r.follow(ctx, ReleasePart, func(ctx context.Context) Done { return one(r.w.deps.Steps.Fail(ctx, []Fail{item})) }))
	}
	return r.later(ctx, end, Later{Lease: r.lease, Class: f.Class, Code: f.Code, Delay: decision.Delay, Work: r.work})
}

func (r *run) later(ctx context.Context, end ending, item Later) ending {
	return r.close(end, task.State{Status: task.Pending, Stage: r.lease.Stage},
		r.follow(ctx, GiveUpPart, func(ctx context.Context) Done { return one(r.w.deps.Steps.Later(ctx, []Later{item})) }))
}

// close completes an ending with what its step did.
func (r *run) close(end ending, to task.State, done Done) ending {
	end.done, end.to = done, to.String()
	switch {
	case done.Err == nil:
		return end
	case errors.Is(done.Err, fault.ErrLeaseLost):
		end.how, end.to = lost(done), ""
	case errors.Is(done.Err, errAbandoned):
		end.how, end.to = Abandoned, ""
	default:
		end.how, end.to = Unsaved, ""
	}
	end.err = errors.Join(end.err, done.Err)
	return end
}

// lost names the end of a claim whose lease is lost.
func lost(done Done) End {
	if done.Ended {
		return Unseen
	}
	return Lost
}

// blame lets all workers know of a provider's trouble: a pause at once for what the provider itself asked for,
// after several failures in a row for an outage.
func (r *run) blame(ctx context.Context, f *failure) {
	if f.provider == "" {
		return
	}
	policy := r.w.cfg.Policy
	about := policy.Decide(task.Failure{Class: f.origin, RetryAfter: f.RetryAfter}, 0, true, r.w.cfg.Rand())
	length := about.Pause
	if about.CountOutage {
		inARow := 0
		r.tell(ctx, "count outage", func(ctx context.Context) error {
			var err error
			inARow, err = r.w.deps.Providers.Outage(ctx, f.provider, f.origin)
			return err
		})
		length = max(length, policy.OutagePause(inARow))
	}
	if length <= 0 {
		return
	}
	r.log.Warn().Str("provider", f.provider).Str("class", string(f.origin)).Dur("pause", length).Msg("provider paused")
	r.tell(ctx, "pause provider", func(ctx context.Context) error {
		return r.w.deps.Providers.Pause(ctx, f.provider, f.origin, length)
	})
}

// healthy ends the provider's row of failures if the claim has seen one.
func (r *run) healthy(ctx context.Context, provider string) {
	if r.lease.Troubled == 0 {
		return
	}
	r.tell(ctx, "provider is healthy", func(ctx context.Context) error {
		return r.w.deps.Providers.Healthy(ctx, provider)
	})
}

// tell keeps what is known of a provider. Its failure costs a pause that comes later, never the run.
func (r *run) tell(ctx context.Context, what string, f func(context.Context) error) {
	detached, cancel := r.detached(ctx)
	defer cancel()
	if err := f(detached); err != nil {
		r.w.deps.Observer.Troubled(ProviderUnsaved)
		r.log.Warn().Err(fmt.Errorf("%s: %w", what, err)).Msg("provider's state not saved")
	}
}
