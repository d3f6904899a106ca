package repair

import "context"

// keys forgets archived tasks together with their keys: an event lives as long as its key.
func (r *Repairer) keys(ctx context.Context, res *Result) error {
	return r.sweep(ctx, PassKeys, sweepSteps, res, func(ctx context.Context, after Cursor) (Swept, error) {
		return r.deps.Retention.RetireArchived(ctx, r.cfg.KeyRetention, after, r.cfg.Batch)
	})
}
