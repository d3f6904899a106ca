package repair

import "context"

// archive moves ended tasks out of the hot table: succeeded ones, and failed ones whose input is gone.
func (r *Repairer) archive(ctx context.Context, res *Result) error {
	return r.sweep(ctx, PassArchive, sweepSteps, res, func(ctx context.Context, after Cursor) (Swept, error) {
		return r.deps.Retention.ArchiveEnded(ctx, r.cfg.ArchiveAfter, after, r.cfg.Batch)
	})
}
