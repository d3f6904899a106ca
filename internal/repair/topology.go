package repair

import "context"

// topology creates what is missing in NATS. It comes before the passes that publish.
func (r *Repairer) topology(ctx context.Context, _ *Result) error {
	if r.deps.Topology == nil {
		return nil
	}
	return r.deps.Topology.EnsureTopology(ctx)
}
