package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
	"github.com/holdfast-memory/holdfast/bench/rig"
)

// recordBytes is what a record with terms and vector takes on disk, walBytes the log that stays behind.
const (
	recordBytes = 2_600
	walBytes    = 6 << 30
)

// ScaleBytes is how much disk a plan's databases need, with a quarter for indexes that split and rows that die.
func (p Plan) ScaleBytes() int64 {
	data := int64(p.Finished+p.Filled)*ours.FinishedBytes + int64(p.Waiting)*ours.WaitingBytes + int64(p.Others)*recordBytes
	return data + data/4 + walBytes
}

// CheckDisk says how much disk the plan needs and refuses a disk that has less.
func (p Plan) CheckDisk() error {
	free, err := rig.FreeBytes(p.Dir)
	if err != nil {
		return err
	}
	const gib = 1 << 30
	fmt.Fprintf(p.Log, "bench: %d finished and %d waiting tasks and %d records need about %.1f GiB of disk, %.1f are free in %s\n",
		p.Finished+p.Filled, p.Waiting, p.Others, float64(p.ScaleBytes())/gib, float64(free)/gib, p.Dir)
	if free < p.ScaleBytes() {
		return fmt.Errorf("not enough disk: set BENCH_DIR to a directory on a larger one, or fewer tasks (-finished, -waiting, -others)")
	}
	return nil
}

// scale measures the rows about growth.
func (r *run) scale(ctx context.Context) error {
	if err := r.places(ctx); err != nil {
		return err
	}
	grown, err := r.grown(ctx)
	if err != nil {
		return err
	}
	small, err := r.filled(ctx, "small", 1000, 0)
	if err != nil {
		return err
	}
	cases := []one{
		{"solo_grown", "ms", r.soloAt(grown)},
		{"solo_small", "ms", r.soloAt(small)},
		{"http_idle", "ms", r.accepting(grown, false)},
		{"http_rehint", "ms", r.accepting(grown, true)},
	}
	cases = append(cases, r.databaseCases(ctx)...)
	searches, err := r.searchCases(ctx)
	if err != nil {
		return err
	}
	if err := r.rounds(ctx, append(cases, searches...)); err != nil {
		return err
	}
	r.ratio("growth", "solo_grown.hot", "solo_small.hot")
	r.ratio("rehint", "http_rehint.p99", "http_idle.p99")
	r.ratio("fresh", "fresh", "filled")
	r.ratio("search_scope", "search_10000.p50", "search_100.p50")
	r.ratio("search_others", "search_crowd.p50", "search_100.p50")
	r.note()
	if r.plan.Finished < 10_000_000 || r.plan.Waiting < 1_000_000 {
		r.rep.Notes = append(r.rep.Notes, fmt.Sprintf("a smaller run: %d finished and %d waiting tasks", r.plan.Finished, r.plan.Waiting))
	}
	return nil
}

// grown is a filled database with an API on it.
func (r *run) grown(ctx context.Context) (*place, error) {
	p, err := r.filled(ctx, "grown", r.plan.Finished, r.plan.Waiting)
	if err != nil {
		return nil, err
	}
	bytes, err := ours.DatabaseBytes(ctx, p.url)
	if err != nil {
		return nil, err
	}
	tasks := r.plan.Finished + r.plan.Waiting
	r.say("the grown database has %.1f GiB, %d bytes for each of its tasks", float64(bytes)/(1<<30), bytes/int64(max(1, tasks)))
	natsURL, err := r.rig.NATS(ctx)
	if err != nil {
		return nil, err
	}
	if p.site, err = ours.NewSite(ours.SiteConfig{Bin: r.bin, DatabaseURL: p.url, NATS: natsURL}); err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func(context.Context) error { return p.site.Stop() })
	return p, p.site.StartAPI(ctx)
}

func (r *run) soloAt(p *place) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		store, err := ours.OpenStore(ctx, p.url, p.tenants, 1, true)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		s, err := soloOf(ctx, store)
		if err == nil {
			s[value] = s["hot"]
		}
		return s, err
	}
}

// accepting measures acceptances over HTTP, with repair at work beside them or without.
func (r *run) accepting(p *place, repairing bool) func(context.Context) (sample, error) {
	return func(ctx context.Context) (s sample, err error) {
		if repairing {
			repair, failed := p.site.StartRepair(ctx, "HOLDFAST_REPAIR_INTERVAL=1s", "HOLDFAST_HINT_AGE=1s")
			if failed != nil {
				return nil, failed
			}
			defer func() { err = errors.Join(err, repair.Stop()) }()
		}
		s, err = r.called(ctx, p, 16, func(c *ours.Callers) load.Operation { return c.Accept })
		if err != nil {
			return nil, err
		}
		s["rate"], s[value] = s[value], s["p99"]
		if repairing {
			err = ours.Rehinted(ctx, p.url)
		}
		return s, err
	}
}
