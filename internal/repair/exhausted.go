package repair

import "context"

const (
	// exhaustedLook is how many waiting tasks one step looks at: only few of them are exhausted, after max attempts was
	// lowered, and no index names those.
	exhaustedLook = 2_000
	// exhaustedSteps bounds the steps of one round to some ten milliseconds; a longer queue takes several rounds.
	exhaustedSteps = 5
)

// exhausted fails waiting tasks that no claim may take any more.
func (r *Repairer) exhausted(ctx context.Context, res *Result) error {
	return r.sweep(ctx, PassExhausted, exhaustedSteps, res, func(ctx context.Context, after Cursor) (Swept, error) {
		moved, swept, err := r.deps.Leases.ExhaustAfter(ctx, r.cfg.MaxAttempts, after, exhaustedLook)
		r.tell(ctx, moved)
		return swept, err
	})
}
