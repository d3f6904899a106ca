package repair

import (
	"context"
	"errors"
)

// input removes what callers have given, once its time is over: the input of failed tasks whose retry window has passed
// (I8), unless a manual retry came first, and definitions of exports, which may name a scope.
func (r *Repairer) input(ctx context.Context, res *Result) error {
	err := r.sweep(ctx, PassInput, sweepSteps, res, func(ctx context.Context, after Cursor) (Swept, error) {
		return r.deps.Retention.ExpireInput(ctx, r.cfg.FailedInputRetention, after, r.cfg.Batch)
	})
	return errors.Join(err, r.exports(ctx, res))
}

func (r *Repairer) exports(ctx context.Context, res *Result) error {
	for range sweepSteps {
		swept, err := r.deps.Retention.ForgetExports(ctx, r.cfg.Batch)
		res.add(swept)
		if err != nil || !swept.More || ctx.Err() != nil {
			return err
		}
	}
	return nil
}
