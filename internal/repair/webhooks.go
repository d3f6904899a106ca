package repair

import "context"

// webhookRounds bounds the rounds of one pass: with the store's page some thousand deliveries. Workers do the same every
// second; the pass is for when none does.
const webhookRounds = 20

// Webhooks turns what has ended into deliveries.
type Webhooks interface {
	// Dispatch answers how many deliveries it has made and whether there is more to do at once.
	Dispatch(ctx context.Context) (made int, more bool, err error)
}

// webhooks makes the deliveries that no worker has made.
func (r *Repairer) webhooks(ctx context.Context, res *Result) error {
	if r.deps.Webhooks == nil {
		return nil
	}
	for range webhookRounds {
		made, more, err := r.deps.Webhooks.Dispatch(ctx)
		res.add(Swept{Found: made, Fixed: made})
		if err != nil || !more || ctx.Err() != nil {
			return err
		}
	}
	return nil
}
