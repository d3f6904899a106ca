package repair

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// leases moves expired leases on and wakes whoever waits for them.
func (r *Repairer) leases(ctx context.Context, res *Result) error {
	return r.sweep(ctx, PassLeases, sweepSteps, res, func(ctx context.Context, after Cursor) (Swept, error) {
		moved, swept, err := r.deps.Leases.RescueAfter(ctx, r.cfg.MaxAttempts, after, r.cfg.Batch)
		r.tell(ctx, moved)
		return swept, err
	})
}

// tell publishes what follows from tasks that were moved on.
func (r *Repairer) tell(ctx context.Context, moved []worker.Rescued) {
	var hints []task.Hint
	for _, m := range moved {
		r.log.Info().Stringer("event_id", m.TaskID).Stringer("workspace_id", m.WorkspaceID).Bool("failed", m.Failed).
			Msg("task moved on")
		if m.Failed {
			r.deps.Notifier.Notify(ctx, m.WorkspaceID, m.TaskID)
		}
		hints = append(hints, m.Hints...)
	}
	r.publish(ctx, hints)
}
