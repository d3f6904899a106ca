package repair

import "context"

// topology creates what is missing in NATS and tells whether hints are lost. It comes before the passes that publish.
func (r *Repairer) topology(ctx context.Context) (lost bool, err error) {
	if r.deps.Topology == nil {
		return false, nil
	}
	return r.deps.Topology.EnsureTopology(ctx)
}
