package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// stepBound bounds one try of a fenced step. A statement that takes longer waits for something that is stuck.
	stepBound = 15 * time.Second
	// stepTries is how often a step that the database refuses is tried, and how often one whose outcome is open is
	// asked about without the lease.
	stepTries = 5
	// stepPatience is how long a step is tried while the lease is held and the database cannot take it: heartbeats that
	// get through all the while mean that something else is stuck.
	stepPatience = 5 * time.Minute
	// stepPause is the first pause between two tries; it doubles up to longBreath.
	stepPause = 250 * time.Millisecond
)

// End says how a claim ended.
type End string

// The ends.
const (
	Succeeded End = "succeeded"
	Failed    End = "failed"
	Retried   End = "retry"
	GivenBack End = "given_back"
	Lost      End = "lease_lost"   // somebody else has the task, or may have it soon
	Unseen    End = "ended_unseen" // the task has ended: by our COMMIT whose answer was lost, or by somebody else
	Unsaved   End = "unsaved"      // the end could not be written; the lease expires
	Abandoned End = "abandoned"    // the time to stop was over
)

// run is one claim of a task.
type run struct {
	w      *Worker
	lease  Lease
	keeper *keeper
	work   Work
	log    zerolog.Logger
}

// ending is how the run ended, with the failure if there was one and what the last step set off.
type ending struct {
	how     End
	to      string
	failure *failure
	done    Done
	err     error
}

// giveBack asks to hand the lease back after delay, with nothing spent.
type giveBack struct{ delay time.Duration }

func (g *giveBack) Error() string { return "the lease is given back" }

// run executes a claimed task to the end of its claim, and answers its message.
func (w *Worker) run(ctx context.Context, lease Lease, sent time.Time, msg Wakeup) {
	by, hinted := ByPoll, task.Origin{}
	if msg != nil {
		by, hinted = ByHint, msg.Hint().Origin
	}
	ctx, followed := w.deps.Tracer.Claim(ctx, lease, by, hinted, sent)
	held, k := w.keep(ctx, lease, sent, msg)
	defer k.release()
	r := &run{w: w, lease: lease, keeper: k, log: w.logOf(ctx, lease)}
	from := task.State{Status: task.Running, Stage: lease.Stage}
	done, err := r.execute(held)
	end := r.conclude(held, done, err)
	k.end()
	if end.how == Succeeded {
		failpoint.Hit("worker.after_settle")
	}
	r.announce(ctx, end.done)
	r.answer(ctx, end, msg)
	took := time.Since(sent)
	w.deps.Observer.Ended(end.how, end.class(), took)
	followed(end.how, end.class())
	if end.how == Succeeded && lease.Generation == 1 {
		w.deps.Observer.Landed(lease.Kind, max(0, lease.ClaimedAt.Sub(lease.AcceptedAt))+took)
	}
	r.report(end, from, took)
}

// needsPayload tells whether the rest of the task reads its payload: of a conversation that is committed, only the records
// are left to be projected.
func (r *run) needsPayload() bool {
	_, job := r.w.deps.Jobs[r.lease.Kind]
	return job || r.lease.Stage == task.Accepted
}

// execute runs the task from the stage it is in.
func (r *run) execute(ctx context.Context) (Done, error) {
	var done Done
	err := r.guarded(func() error {
		failpoint.Hit("worker.after_claim")
		var err error
		if err = r.lease.Closed; err != nil && r.needsPayload() {
			return closed(err)
		}
		if job, ok := r.w.deps.Jobs[r.lease.Kind]; ok {
			done, err = r.pieces(ctx, job)
			return err
		}
		if r.lease.Kind == task.Webhook {
			done, err = r.deliver(ctx)
			return err
		}
		switch r.lease.Stage {
		case task.Accepted:
			done, err = r.infer(ctx)
		case task.Committed:
			done, err = r.project(ctx)
		case task.Projected:
			err = fmt.Errorf("task of stage %s was claimed", r.lease.Stage)
		}
		return err
	})
	return done, err
}

// untilStop returns a context that ends with the lease or when the worker begins to stop.
func (r *run) untilStop(ctx context.Context) (context.Context, func()) {
	calls, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.w.calls, func() { cancel(errStopping) })
	if r.w.calls.Err() != nil {
		cancel(errStopping) // AfterFunc does it in a moment, which is long enough for a call to begin
	}
	return calls, func() {
		stop()
		cancel(nil)
	}
}

// cause says why a context of untilStop ended, a stop being a give-back.
func (r *run) cause(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, errStopping) {
		return cause
	}
	return &giveBack{}
}

// panicked is a panic that was caught. What it said is not kept: it may hold a caller's text.
type panicked struct{ kind string }

func (p *panicked) Error() string { return "panic of type " + p.kind }

// guarded turns a panic of f into an error and logs where it came from.
func (r *run) guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			p := &panicked{kind: fmt.Sprintf("%T", v)}
			r.log.Error().Str("panic_type", p.kind).Bytes("stack", debug.Stack()).Msg("panic")
			err = p
		}
	}()
	return f()
}

// step runs one fenced step, and again while the database cannot be reached or leaves the outcome open: what was
// extracted and paid for is given up with the lease, not before. The store answers whether the step was done before.
// It isn't begun without the lease. Once a COMMIT may have happened, only an answer of the store settles it, whatever
// other errors come in between; it is asked for without the lease too, because the fence decides. Under way a step ends
// by the fence and its own bound, not with the lease: a heartbeat that meets the end of the task must not cut off the
// answer that says so.
func (r *run) step(ctx context.Context, do func(context.Context) Done) Done {
	began := time.Now()
	open := false // a COMMIT may have happened
	refused, blind := 0, 0
	for try := 0; ; try++ {
		if err := r.keeper.held(ctx); err != nil {
			if blind++; !open || blind > stepTries || r.w.work.Err() != nil {
				return Done{Err: err}
			}
		}
		detached, cancel := r.detached(ctx)
		done := do(detached)
		cancel()
		switch {
		case done.Err == nil || errors.Is(done.Err, fault.ErrLeaseLost):
			return done
		case errors.Is(done.Err, fault.ErrCommitUnknown):
			open = true
		case !fault.Is(done.Err, fault.UnavailableNow):
			refused++
		}
		if refused == stepTries && !open || time.Since(began) > stepPatience {
			return done
		}
		r.w.deps.Observer.Troubled(StepRepeated)
		waiting, cancel := r.detached(ctx)
		rested := pause(waiting, backoff(try, stepPause, r.w.cfg.Rand()))
		cancel()
		if !rested {
			return Done{Err: errAbandoned}
		}
	}
}

// follow is step as a part of the claim that is followed.
func (r *run) follow(ctx context.Context, part Part, do func(context.Context) Done) Done {
	ctx, followed := r.w.deps.Tracer.Part(ctx, part)
	done := r.step(ctx, do)
	followed(troubleOf(done.Err))
	return done
}

// troubleOf is a word for why a step was not done.
func troubleOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fault.ErrLeaseLost):
		return string(Lost)
	case errors.Is(err, errAbandoned):
		return string(Abandoned)
	}
	return string(Unsaved)
}

// logOf is the log of a claim: its own trace, and that of the request which its command came in.
func (w *Worker) logOf(ctx context.Context, lease Lease) zerolog.Logger {
	log := w.log.With().
		Stringer("event_id", lease.TaskID).Stringer("workspace_id", lease.WorkspaceID).Int("attempt", lease.Claim)
	if at := task.OriginOf(ctx); !at.IsZero() {
		log = log.Str("trace_id", at.TraceID())
	}
	if !lease.Origin.IsZero() {
		log = log.Str("origin_trace_id", lease.Origin.TraceID())
	}
	return log.Logger()
}

// detached returns a context that outlives the lease, bounded, and ends when the worker's time to stop is over.
func (r *run) detached(ctx context.Context) (context.Context, func()) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepBound)
	stop := context.AfterFunc(r.w.work, cancel)
	return limited, func() {
		stop()
		cancel()
	}
}

// announce tells others what a step set off. That outlives the lease: what is committed is true.
func (r *run) announce(ctx context.Context, done Done) {
	ctx = context.WithoutCancel(ctx)
	if done.Ended {
		r.w.deps.Notifier.Notify(ctx, r.lease.WorkspaceID, r.lease.TaskID)
	}
	for _, hint := range done.wakeups() {
		r.w.deps.Publisher.Publish(ctx, hint)
	}
}

// answer acknowledges the message once the row says what comes next. Where it may not, because the database
// could not be reached, the message comes again.
func (r *run) answer(ctx context.Context, end ending, msg Wakeup) {
	silent := end.how == Lost && errors.Is(end.err, errSilent) && !end.done.Ended
	if silent || end.how == Unsaved || end.how == Abandoned {
		r.w.nak(msg, nakDelay)
		return
	}
	r.w.ack(ctx, msg)
}

func (e ending) class() task.Class {
	if e.failure == nil {
		return ""
	}
	return e.failure.Class
}

// report writes the one line of a claim. It holds no text of a caller or a provider.
func (r *run) report(end ending, from task.State, took time.Duration) {
	level := zerolog.InfoLevel
	if end.how != Succeeded && end.how != GivenBack && end.how != Unseen {
		level = zerolog.WarnLevel
	}
	line := r.log.WithLevel(level).Str("from", from.String()).Str("to", end.to).Str("end", string(end.how)).Dur("took", took)
	if f := end.failure; f != nil {
		line = line.Str("class", string(f.Class)).Str("code", string(f.Code))
		if f.reason != "" {
			line = line.Str("reason", f.reason).Int("provider_status", f.status)
		}
	}
	if end.err != nil {
		line = line.Err(end.err)
	}
	line.Msg("claim ended")
}
