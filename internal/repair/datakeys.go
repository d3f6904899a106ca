package repair

import "context"

// dataKeys removes the keys of payloads that are gone, so that no rotation carries them to another master key: what is left
// of them and of their payloads in the write-ahead log and in backups ends with the master key that they have now.
func (r *Repairer) dataKeys(ctx context.Context, res *Result) error {
	for range sweepSteps {
		swept, err := r.deps.Retention.RetireDataKeys(ctx, r.cfg.Batch)
		res.add(swept)
		if err != nil || !swept.More || ctx.Err() != nil {
			return err
		}
	}
	return nil
}
