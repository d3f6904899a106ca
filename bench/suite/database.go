package suite

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
)

// fewTenants are enough where workspaces are not the question.
const fewTenants = 100

// databaseCases measure the whole task at the store, on a database that was made a moment ago and on a filled one: a
// plan that was made for empty tables must not be kept.
func (r *run) databaseCases(ctx context.Context) []one {
	filled, err := r.filled(ctx, "filled", r.plan.Filled, 0)
	if err != nil {
		r.missing["filled"], r.missing["fresh"] = err.Error(), err.Error()
		return nil
	}
	return []one{
		{"fresh", perSecond, func(ctx context.Context) (s sample, err error) {
			r.peerNo++
			name := fmt.Sprintf("fresh_%d", r.peerNo)
			p, err := r.filled(ctx, name, 0, 0)
			if err != nil {
				return nil, err
			}
			s, err = r.cycles(ctx, p)
			if dropped := r.rig.Drop(ctx, name); err == nil {
				err = dropped
			}
			return s, err
		}},
		{"filled", perSecond, func(ctx context.Context) (sample, error) { return r.cycles(ctx, filled) }},
	}
}

// filled makes a database with tasks in it, and no site.
func (r *run) filled(ctx context.Context, name string, finished, waiting int) (*place, error) {
	p := &place{}
	var err error
	if p.url, err = r.rig.Migrated(ctx, name); err != nil {
		return nil, err
	}
	if p.tenants, err = ours.Tenants(ctx, p.url, fewTenants); err != nil {
		return nil, err
	}
	if finished+waiting > 0 {
		r.say("filling %s with %d finished and %d waiting tasks", name, finished, waiting)
		err = ours.Fill(ctx, p.url, p.tenants, finished, waiting)
	}
	return p, err
}

// cycles is a closed loop of whole tasks at the store.
func (r *run) cycles(ctx context.Context, p *place) (sample, error) {
	store, err := ours.OpenStore(ctx, p.url, p.tenants, pool, true)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return r.closed(ctx, pool, func(ctx context.Context, _ int) error {
		_, err := store.Cycle(ctx)
		return err
	})
}

// searchCases measure one search after another: in a scope of 100 records, in one of 10,000, and in one of 100 beside
// many others.
func (r *run) searchCases(ctx context.Context) ([]one, error) {
	r.say("filling with records")
	alone := ours.Tenant{ID: r.accepts.tenants[0].ID, Key: r.accepts.tenants[0].Key}
	for name, n := range map[string]int{"small": 100, "large": 10_000} {
		if err := ours.Corpus(ctx, r.accepts.url, alone, []string{name}, n); err != nil {
			return nil, err
		}
	}
	cases := []one{r.search("search_100", r.accepts, "small"), r.search("search_10000", r.accepts, "large")}
	if r.plan.Others == 0 {
		return cases, nil
	}
	crowd, err := r.crowd(ctx)
	if err != nil {
		return nil, err
	}
	return append(cases, r.search("search_crowd", crowd, "small")), nil
}

// crowd is a place with an API whose one tenant has a small scope and many others.
func (r *run) crowd(ctx context.Context) (*place, error) {
	p, err := r.newPlace(ctx, "crowd", 1, ours.SiteConfig{})
	if err != nil {
		return nil, err
	}
	names := make([]string, max(1, r.plan.Others/100))
	for i := range names {
		names[i] = fmt.Sprintf("other-%d", i)
	}
	for _, fill := range [][]string{names, {"small"}} {
		if err := ours.Corpus(ctx, p.url, p.tenants[0], fill, 100); err != nil {
			return nil, err
		}
	}
	return p, p.site.StartAPI(ctx)
}

func (r *run) search(name string, p *place, user string) one {
	return one{name, "ms", func(ctx context.Context) (sample, error) {
		return p50(r.called(ctx, p, 1, func(c *ours.Callers) load.Operation {
			return func(_ context.Context, caller int) error { return c.Search(caller, user, ours.Question) }
		}))
	}}
}

// snapshot compares claims under load without and with a snapshot that somebody holds, at its end.
func (r *run) snapshot(ctx context.Context) {
	without, err := r.claims(ctx, 0)
	if err != nil {
		r.lack("snapshot", err)
		return
	}
	release, err := ours.HoldSnapshot(ctx, r.accepts.url)
	if err != nil {
		r.lack("snapshot", err)
		return
	}
	defer release()
	r.say("holding a snapshot for %s", r.plan.Snapshot)
	with, err := r.claims(ctx, r.plan.Snapshot)
	if err != nil {
		r.lack("snapshot", err)
		return
	}
	r.count("snapshot", with/without)
	r.say("claim p99 %.2f ms without a snapshot, %.2f ms with", without, with)
}

// claims runs whole tasks at the store for warm and then measures claims for two spells; it answers their p99.
func (r *run) claims(ctx context.Context, warm time.Duration) (float64, error) {
	store, err := ours.OpenStore(ctx, r.accepts.url, r.accepts.tenants, pool, true)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	begin := time.Now().Add(warm)
	var mu sync.Mutex
	var took []float64
	_, err = load.Closed(ctx, pool, warm, 2*r.plan.Spell, func(ctx context.Context, _ int) error {
		steps, err := store.Cycle(ctx)
		if err == nil && time.Now().After(begin) {
			mu.Lock()
			took = append(took, ms(steps[1]))
			mu.Unlock()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	slices.Sort(took)
	return took[int(0.99*float64(len(took)))], nil
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

func thousands(n int) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%d M", n/1_000_000)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
