package repair

import "context"

// acts removes old entries of the log of acts.
func (r *Repairer) acts(ctx context.Context, res *Result) error {
	for range sweepSteps {
		swept, err := r.deps.Retention.ForgetActs(ctx, r.cfg.ActRetention, r.cfg.Batch)
		res.add(swept)
		if err != nil || !swept.More || ctx.Err() != nil {
			return err
		}
	}
	return nil
}
