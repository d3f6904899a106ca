package suite

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/bench/ours"
	"github.com/holdfast-memory/holdfast/bench/peers"
)

// peerCases are the peers that run on Node.js.
func (r *run) peerCases(ctx context.Context) []one {
	cases := []one{
		{"graphile_worker", perSecond, r.queue("graphile-worker")},
		{"pg_boss", perSecond, r.queue("pg-boss")},
		{"mem0_engine", perSecond, r.mem0Engine},
		{"mem0_client", perSecond, r.mem0Client},
	}
	lack := func(err error, of []one) {
		for _, c := range of {
			r.missing[c.name] = err.Error()
		}
		r.rep.Notes = append(r.rep.Notes, err.Error())
	}
	node, err := peers.OpenNode(ctx)
	if err != nil {
		lack(err, cases)
		return nil
	}
	r.node = node
	if err := node.BuildMem0(ctx, r.plan.Peers); err != nil {
		lack(err, cases[2:])
		return cases[:2]
	}
	return cases
}

func (r *run) queue(name string) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return inDatabase(ctx, r, "queue", func(databaseURL string) (sample, error) {
			jobs, err := r.node.Queue(ctx, name, databaseURL, r.plan.Spell, ours.CommandBytes)
			if err != nil {
				return nil, err
			}
			return sample{value: jobs.Rate()}, nil
		})
	}
}

func (r *run) mem0Engine(ctx context.Context) (sample, error) {
	dir, err := os.MkdirTemp(r.rig.Dir(), "mem0-")
	if err != nil {
		return nil, fmt.Errorf("make mem0's directory: %w", err)
	}
	adds, err := r.node.Engine(ctx, r.stub.URL(), dir, r.plan.Spell)
	if err != nil {
		return nil, err
	}
	return sample{value: adds.Rate()}, nil
}

// mem0Client counts what has succeeded: the time runs until the last task's end.
func (r *run) mem0Client(ctx context.Context) (s sample, err error) {
	r.peerNo++
	p, err := r.newPlace(ctx, fmt.Sprintf("mem0_%d", r.peerNo), 1, ours.SiteConfig{ModelURL: r.stub.URL()})
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := p.site.Stop(); err == nil {
			err = stopped
		}
	}()
	if err := p.site.StartAPI(ctx); err != nil {
		return nil, err
	}
	if err := p.site.StartWorker(ctx); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return nil, fmt.Errorf("count ends: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // read only
	adds, err := r.node.Client(ctx, "http://"+p.site.Address(), p.tenants[0].Key, r.plan.Spell)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := drained(ctx, conn); err != nil {
		return nil, err
	}
	succeeded, err := counted(ctx, conn, "status = 'succeeded'")
	if err != nil {
		return nil, err
	}
	if succeeded < int64(adds.Count) {
		return nil, fmt.Errorf("of %d adds %d have succeeded", adds.Count, succeeded)
	}
	return sample{value: float64(adds.Count) / (adds.Seconds + time.Since(began).Seconds())}, nil
}
