package suite

import (
	"context"
	"time"

	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
	"github.com/holdfast-memory/holdfast/bench/peers"
)

// pool is how many connections a database pool has here; more buy nothing on one machine.
const pool = 16

// full measures every row that needs no large database.
func (r *run) full(ctx context.Context) error {
	if err := r.places(ctx); err != nil {
		return err
	}
	cases := r.acceptCases()
	cases = append(cases, r.pathCases()...)
	cases = append(cases, r.databaseCases(ctx)...)
	cases = append(cases, r.peerCases(ctx)...)
	searches, err := r.searchCases(ctx)
	if err != nil {
		return err
	}
	if err := r.rounds(ctx, append(cases, searches...)); err != nil {
		return err
	}
	r.ratio("accept_db", "accept_16", "floor_16")
	r.ratio("accept_grouped", "accept_64", "floor_16")
	r.ratio("accept_http", "http_64", "floor_16")
	r.ratio("accept_hot", "hot_64", "accept_64")
	r.ratio("river_16", "path_16", "river_16")
	r.ratio("river_64", "path_64", "river_64")
	r.ratio("river_256", "path_256", "river_256")
	r.ratio("dbos_64", "path_64", "dbos_64")
	r.ratio("latency_river", "paced.p50", "river_paced.p50")
	r.ratio("latency_solo", "serial.p50", "solo.sum")
	r.ratio("tail", "path_64.p99", "path_64.p50")
	r.ratio("flood", "flood", "flood.accepted")
	r.ratio("fresh", "fresh", "filled")
	r.ratio("search_scope", "search_10000.p50", "search_100.p50")
	r.ratio("search_others", "search_crowd.p50", "search_100.p50")
	r.ratio("mem0", "mem0_client", "mem0_engine")
	if r.plan.Snapshot > 0 {
		r.snapshot(ctx)
	}
	r.note()
	if r.plan.Only != nil && !r.plan.Only.MatchString("counts") {
		return nil
	}
	return r.counts(ctx)
}

// note says what a reader could take for more than it is.
func (r *run) note() {
	for i, row := range r.rep.Rows {
		switch {
		case row.Name == "latency_river":
			for round := range r.plan.Rounds {
				got, ok := r.number("paced.reached", round)
				peer, okPeer := r.number("river_paced.reached", round)
				if ok && okPeer && min(got, peer) < 0.95 {
					r.rep.Rows[i].Note = "not everybody kept up with 1,000 a second"
				}
			}
		case row.Name == "search_others" && r.plan.Others < 1_000_000:
			r.rep.Rows[i].Note = "with " + thousands(r.plan.Others)
		case row.Name == "fresh":
			r.rep.Rows[i].Note = "with " + thousands(r.plan.Filled)
		}
	}
}

// places starts what stays up during the rounds.
func (r *run) places(ctx context.Context) error {
	var err error
	r.say("starting")
	if r.accepts, err = r.newPlace(ctx, "accepts", ours.Thousand, ours.SiteConfig{}); err != nil {
		return err
	}
	if err := r.accepts.site.StartAPI(ctx); err != nil {
		return err
	}
	if r.whole, err = r.newPlace(ctx, "whole", ours.Thousand, ours.SiteConfig{}); err != nil {
		return err
	}
	if err := r.whole.site.StartAPI(ctx); err != nil {
		return err
	}
	if err := r.whole.site.StartWorker(ctx); err != nil {
		return err
	}
	databaseURL, err := r.rig.Database(ctx, "floor")
	if err != nil {
		return err
	}
	if r.floor, err = peers.OpenFloor(ctx, databaseURL, ours.Thousand, ours.CommandBytes, pool); err != nil {
		return err
	}
	r.closers = append(r.closers, func(context.Context) error { r.floor.Close(); return nil })
	if r.pgbench, err = peers.OpenPGBench(ctx, r.rig.Dir(), databaseURL, r.floor); err != nil {
		r.missing["pgbench_insert_16"], r.missing["pgbench_empty_16"], r.missing["pgbench_accept_16"] = err.Error(), err.Error(), err.Error()
	}
	return nil
}

// closed measures a closed loop.
func (r *run) closed(ctx context.Context, callers int, do load.Operation) (sample, error) {
	result, err := load.Closed(ctx, callers, r.plan.Warm, r.plan.Spell, do)
	if err != nil {
		return nil, err
	}
	return numbers(result), nil
}

func numbers(result load.Result) sample {
	return sample{value: result.Rate(), "p50": ms(result.Quantile(0.5)), "p99": ms(result.Quantile(0.99))}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
