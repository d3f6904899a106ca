package worker

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// restartMost bounds the time over which work comes back after a pause: half of the pause, and no longer than this.
const restartMost = 30 * time.Second

// call makes one provider call under its deadline, counted whatever comes of it. A remote call follows a
// confirmed heartbeat and ends early when the worker stops; a local one costs nothing and needs neither.
func (r *run) call(ctx context.Context, provider string, local bool, f func(context.Context) (model.Usage, error)) error {
	if err := r.keeper.held(ctx); err != nil {
		return err
	}
	calls := ctx
	if !local {
		remote, stop := r.untilStop(ctx)
		defer stop()
		calls = remote
		if err := r.ready(calls, provider); err != nil {
			return err
		}
	}
	timed, cancel := context.WithTimeout(calls, r.w.cfg.ModelTimeout)
	defer cancel()
	timed, followed := r.w.deps.Tracer.Part(timed, ModelPart)
	began := time.Now()
	var usage model.Usage
	err := r.guarded(func() error {
		var err error
		usage, err = f(timed)
		return err
	})
	took := time.Since(began)
	failed := r.classify(calls, timed, provider, err, &usage)
	followed(string(classOf(failed)))
	r.work.ModelTime += took
	r.work.Usage = r.work.Usage.Plus(usage)
	r.w.deps.Observer.Called(provider, classOf(failed), took, usage)
	if failed == nil {
		r.healthy(ctx, provider)
	}
	return failed
}

// classOf names the end of a call for the count of calls, empty for success.
func classOf(failed error) task.Class {
	if f, ok := errors.AsType[*failure](failed); ok {
		return f.origin
	}
	if _, ok := errors.AsType[*giveBack](failed); ok {
		return task.Shutdown
	}
	if failed != nil {
		return task.LeaseLost
	}
	return ""
}

// ready proves the lease right before a call that costs money, and gives it back if the provider is paused.
func (r *run) ready(calls context.Context, provider string) error {
	beat, err := r.keeper.renew(calls, provider)
	switch {
	case calls.Err() != nil:
		return r.cause(calls)
	case err != nil:
		return err
	case beat.PausedFor > 0:
		return &giveBack{delay: beat.PausedFor + time.Duration(r.w.cfg.Rand()*float64(min(beat.PausedFor/2, restartMost)))}
	}
	return nil
}

// classify says what the end of a call means: nil, a lost lease, a give-back, or a *failure.
func (r *run) classify(calls, timed context.Context, provider string, err error, usage *model.Usage) error {
	if err == nil {
		return nil
	}
	known, ok := errors.AsType[*model.Error](err)
	if ok {
		*usage = known.Usage
	}
	usage.Calls = max(usage.Calls, 1) // it was sent, as far as anybody knows
	if calls.Err() != nil {
		return r.cause(calls)
	}
	f := &failure{provider: provider, origin: task.InternalFailure}
	if ok {
		f.origin, f.RetryAfter, f.reason, f.status = known.Class, known.RetryAfter, known.Reason, known.Status
	}
	if _, ours := errors.AsType[*panicked](err); !ours && timed.Err() != nil && f.status == 0 { // no answer came in time
		f.origin = task.ProviderTimeout
	}
	f.Class = r.classIn(f.origin)
	f.Code = task.CodeOf(f.Class)
	return f
}

// classIn maps the adapter's class to the one that is recorded. Before the canonical commit a class that no
// extraction can have is a fault of ours; after it every trouble of the provider is the projection's.
func (r *run) classIn(origin task.Class) task.Class {
	if r.lease.Stage != task.Accepted {
		if origin == task.InternalFailure {
			return origin
		}
		return task.ProjectionFailed
	}
	switch origin {
	case task.ProviderTimeout, task.ProviderUnavailable, task.ProviderRateLimited, task.ProviderRejected,
		task.OutputInvalid, task.ExtractionRejected:
		return origin
	case task.InternalFailure, task.ProjectionFailed, task.ProjectionRejected, task.LeaseLost, task.Shutdown, task.Crash,
		task.Cancelled, task.InputRejected, task.PayloadUnreadable, task.DeliveryFailed, task.EndpointDisabled:
	}
	return task.InternalFailure
}
