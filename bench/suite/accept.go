package suite

import (
	"context"

	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
)

const perSecond = "a second"

// acceptCases are the rows about acceptances, and what they are measured beside.
func (r *run) acceptCases() []one {
	cases := []one{
		{"floor_16", perSecond, func(ctx context.Context) (sample, error) { return r.closed(ctx, 16, r.floor.Insert) }},
		{"accept_16", perSecond, r.stored(16, false, false)},
		{"accept_64", perSecond, r.stored(64, false, true)},
		{"hot_64", perSecond, r.stored(64, true, true)},
		{"http_64", perSecond, func(ctx context.Context) (sample, error) {
			return r.called(ctx, r.accepts, 64, func(c *ours.Callers) load.Operation { return c.Accept })
		}},
		{"solo", "ms", r.solo},
	}
	if r.pgbench != nil {
		cases = append(cases,
			one{"pgbench_insert_16", perSecond, func(ctx context.Context) (sample, error) {
				return rated(r.pgbench.Insert(ctx, 16, r.plan.Spell))
			}},
			one{"pgbench_empty_16", perSecond, func(ctx context.Context) (sample, error) {
				return rated(r.pgbench.Empty(ctx, 16, r.plan.Spell))
			}},
			one{"pgbench_accept_16", perSecond, func(ctx context.Context) (sample, error) {
				return rated(r.pgbench.Accept(ctx, 16, r.plan.Spell))
			}})
	}
	return cases
}

func rated(rate float64, err error) (sample, error) { return sample{value: rate}, err }

// stored is a closed loop of acceptances at the store itself.
func (r *run) stored(callers int, hot, grouped bool) func(ctx context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		tenants := r.accepts.tenants
		if hot {
			tenants = tenants[:1]
		}
		store, err := ours.OpenStore(ctx, r.accepts.url, tenants, pool, grouped)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		return r.closed(ctx, callers, func(ctx context.Context, _ int) error {
			_, err := store.Accept(ctx)
			return err
		})
	}
}

// called is a closed loop of a site's callers.
func (r *run) called(ctx context.Context, p *place, callers int, operation func(*ours.Callers) load.Operation) (sample, error) {
	c, err := p.site.NewCallers(ctx, p.tenants, callers)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return r.closed(ctx, callers, operation(c))
}

// solo is the three commits of a command, one after the other and alone: what a path through HTTP, NATS and a model
// cannot be faster than.
func (r *run) solo(ctx context.Context) (sample, error) {
	store, err := ours.OpenStore(ctx, r.accepts.url, r.accepts.tenants, 1, false)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return soloOf(ctx, store)
}

// soloRuns are few, because the store is alone meanwhile.
const soloRuns = 200

func soloOf(ctx context.Context, store *ours.Store) (sample, error) {
	var steps [3][]float64
	for range soloRuns {
		took, err := store.Cycle(ctx)
		if err != nil {
			return nil, err
		}
		for i, d := range took {
			steps[i] = append(steps[i], ms(d))
		}
	}
	accept, claim, finish := middle(steps[0]), middle(steps[1]), middle(steps[2])
	sum := accept + claim + finish
	return sample{value: sum, "sum": sum, "accept": accept, "claim": claim, "finish": finish, "hot": accept + claim}, nil
}
