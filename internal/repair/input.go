package repair

import "context"

// input removes the input of failed tasks whose retry window is over (I8). A manual retry that came first keeps it.
func (r *Repairer) input(ctx context.Context, res *Result) error {
	return r.sweep(ctx, PassInput, sweepSteps, res, func(ctx context.Context, after Cursor) (Swept, error) {
		return r.deps.Retention.ExpireInput(ctx, r.cfg.FailedInputRetention, after, r.cfg.Batch)
	})
}
