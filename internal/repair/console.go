package repair

import (
	"context"
	"time"
)

// minutesKept is how long the numbers of each minute are kept: the console draws an hour of them, and a day tells of the
// night.
const minutesKept = 24 * time.Hour

// console forgets sessions that are over, and minutes that are too old.
func (r *Repairer) console(ctx context.Context, res *Result) error {
	for range sweepSteps {
		swept, err := r.deps.Retention.ForgetConsole(ctx, minutesKept, r.cfg.Batch)
		res.add(swept)
		if err != nil || !swept.More || ctx.Err() != nil {
			return err
		}
	}
	return nil
}
