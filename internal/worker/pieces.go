package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// maxPieces bounds one claim of a task in pieces: with a hundred records a piece it is a hundred million records. What
// is left then goes on under the next claim.
const maxPieces = 1_000_000

// ErrRejected is what a job's Next answers for input that its sender has to correct. It fails the task at once.
var ErrRejected = errors.New("the input is wrong")

// pieces runs a task that works in pieces from its cursor to its end. A stop is noticed between two pieces, and
// so is a task that waits to be alone in the process; the next claim goes on where this one stopped.
func (r *run) pieces(ctx context.Context, job Job) (Done, error) {
	for range maxPieces {
		waiting, stop := r.untilStop(ctx)
		stopped := waiting.Err() != nil
		cause := r.cause(waiting)
		stop()
		if stopped {
			return Done{}, cause
		}
		done, err := r.piece(ctx, job)
		if err != nil || done.Ended {
			return done, err
		}
		r.announce(ctx, done)
		r.lease.Cursor, r.lease.Stage = done.Cursor, task.Committed
		if r.w.slots.wanted() {
			return Done{}, &giveBack{}
		}
	}
	return Done{}, &giveBack{}
}

func (r *run) piece(ctx context.Context, job Job) (Done, error) {
	var chunk Chunk
	var verdict *failure
	read := r.step(ctx, func(ctx context.Context) Done {
		var err error
		chunk, err = job.Next(ctx, r.lease)
		switch { // reading it again would say the same
		case errors.Is(err, ErrRejected):
			verdict, err = rejected(), nil
		case errors.Is(err, command.ErrUnreadable):
			verdict, err = unreadable(), nil
		case errors.Is(err, seal.ErrUnreadable):
			verdict, err = closed(err), nil
		}
		return Done{Err: err}
	})
	if read.Err == nil && verdict != nil {
		return Done{}, verdict
	}
	if read.Err != nil {
		return read, fmt.Errorf("read piece: %w", read.Err)
	}
	var vectors []model.Vector
	if len(chunk.Texts) > 0 {
		var err error
		if vectors, err = r.embed(ctx, chunk.Texts); err != nil {
			return Done{}, err
		}
	}
	done := r.follow(ctx, PiecePart, func(ctx context.Context) Done {
		return job.Apply(ctx, r.lease, chunk, r.w.deps.Embedder.Model(), vectors, r.work)
	})
	if done.Err != nil {
		return done, fmt.Errorf("apply piece: %w", done.Err)
	}
	failpoint.Hit("worker.after_piece")
	return done, nil
}

// kindsOf returns what the worker claims: the kinds of its configuration, and those that it has a job for.
func kindsOf(cfg Config, deps Deps) []task.Kind {
	kinds := slices.AppendSeq(slices.Clone(cfg.Kinds), maps.Keys(deps.Jobs))
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
