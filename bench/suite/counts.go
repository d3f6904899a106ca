package suite

import (
	"context"
	"fmt"
	"path"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
	"github.com/holdfast-memory/holdfast/bench/report"
	"github.com/holdfast-memory/holdfast/bench/rig"
)

// countedTasks are enough for what a start of a process does to vanish beside them.
const countedTasks = 3000

// counts are what noise cannot move: statements, round trips, flushes and bytes of write-ahead log per task. Whoever is
// counted has ended before the counters are read.
func (r *run) counts(ctx context.Context) error {
	r.say("counting")
	if err := r.acceptFlushes(ctx); err != nil {
		return err
	}
	if err := r.stages(ctx); err != nil {
		return err
	}
	return r.wholeCounts(ctx)
}

// since reads the counters before and after what, which must have closed its connections to the database by then. There is no
// checkpoint in between: after one, the first change of each page logs all of it.
func (r *run) since(ctx context.Context, database string, what func() error) (rig.Counters, error) {
	if err := r.rig.Gone(ctx, database); err != nil {
		return rig.Counters{}, err
	}
	before, err := r.rig.Counters(ctx)
	if err != nil {
		return rig.Counters{}, err
	}
	if err := what(); err != nil {
		return rig.Counters{}, err
	}
	if err := r.rig.Gone(ctx, database); err != nil {
		return rig.Counters{}, err
	}
	after, err := r.rig.Counters(ctx)
	return after.Since(before), err
}

func (r *run) acceptFlushes(ctx context.Context) error {
	// What is up already would flush what it counted in between.
	if err := r.whole.site.Stop(); err != nil {
		return err
	}
	if err := r.accepts.site.Stop(); err != nil {
		return err
	}
	p, err := r.filled(ctx, "flushes", 0, 0) // empty, so that no page of before a checkpoint is logged as a whole
	if err != nil {
		return err
	}
	c, err := r.since(ctx, "flushes", func() error {
		store, err := ours.OpenStore(ctx, p.url, p.tenants, pool, true)
		if err != nil {
			return err
		}
		defer store.Close()
		return load.Fixed(ctx, inFlight, countedTasks, func(ctx context.Context, _ int) error {
			_, err := store.Accept(ctx)
			return err
		})
	})
	if err != nil {
		return err
	}
	r.count("accept_flushes", float64(c.Flushes)/countedTasks)
	r.perTask("accept at the store, 64 callers", countedTasks, c, 0)
	return nil
}

// stages counts an acceptance over HTTP and a finished task apart: first the API alone, then the worker alone.
func (r *run) stages(ctx context.Context) error {
	base, err := r.rig.Migrated(ctx, "stages")
	if err != nil {
		return err
	}
	tenants, err := ours.Tenants(ctx, base, fewTenants)
	if err != nil {
		return err
	}
	turns, err := rig.CountTurns(ctx, base)
	if err != nil {
		return err
	}
	defer turns.Stop()
	natsURL, err := r.rig.NATS(ctx)
	if err != nil {
		return err
	}
	site, err := ours.NewSite(ours.SiteConfig{Bin: r.bin, DatabaseURL: turns.URL(), NATS: natsURL})
	if err != nil {
		return err
	}
	defer func() { _ = site.Stop() }() // it has ended, unless something failed
	return r.stagesAt(ctx, site, &place{url: base, tenants: tenants, site: site}, turns)
}

func (r *run) stagesAt(ctx context.Context, site *ours.Site, p *place, turns *rig.Turns) error {
	for _, stage := range []struct {
		name string
		run  func() error
	}{
		{"accept over HTTP", func() error {
			if err := site.StartAPI(ctx); err != nil {
				return err
			}
			c, err := site.NewCallers(ctx, p.tenants, 16)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := load.Fixed(ctx, 16, countedTasks, c.Accept); err != nil {
				return err
			}
			return site.StopAPI()
		}},
		{"claim to end", func() error {
			if err := site.StartWorker(ctx); err != nil {
				return err
			}
			conn, err := pgx.Connect(ctx, p.url)
			if err != nil {
				return fmt.Errorf("count ends: %w", err)
			}
			defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // read only
			if err := drained(ctx, conn); err != nil {
				return err
			}
			return site.StopWorkers()
		}},
	} {
		if err := r.rig.ForgetStatements(ctx); err != nil {
			return err
		}
		before := turns.Count()
		c, err := r.since(ctx, "stages", stage.run)
		if err != nil {
			return err
		}
		r.perTask(stage.name, countedTasks, c, turns.Count()-before)
		if r.rep.Statements[stage.name], err = r.rig.Statements(ctx, "stages"); err != nil {
			return err
		}
		r.statementsPerTask(stage.name)
	}
	return nil
}

// wholeCounts counts the whole path at 64 in flight.
func (r *run) wholeCounts(ctx context.Context) error {
	p, err := r.newPlace(ctx, "counted", ours.Thousand, ours.SiteConfig{})
	if err != nil {
		return err
	}
	c, err := r.since(ctx, "counted", func() error {
		if err := p.site.StartAPI(ctx); err != nil {
			return err
		}
		if err := p.site.StartWorker(ctx); err != nil {
			return err
		}
		c, err := p.site.NewCallers(ctx, p.tenants, inFlight)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := load.Fixed(ctx, inFlight, countedTasks, c.Finish); err != nil {
			return err
		}
		return p.site.Stop()
	})
	if err != nil {
		return err
	}
	if err := ours.Balanced(ctx, p.url); err != nil {
		return err
	}
	if err := r.tables(ctx, p.url); err != nil {
		return err
	}
	r.count("task_flushes", float64(c.Flushes)/countedTasks)
	r.count("task_wal", float64(c.WALBytes)/countedTasks)
	r.perTask("whole task, 64 in flight", countedTasks, c, 0)
	return nil
}

// tables says how many updates were HOT, and how often a hot table was read as a whole.
func (r *run) tables(ctx context.Context, databaseURL string) error {
	found, err := ours.Tables(ctx, databaseURL)
	if err != nil {
		return err
	}
	for _, t := range found {
		if t.Updates > 0 {
			r.rep.Lines = append(r.rep.Lines, report.Line{
				Name: path.Join("HOT", t.Name), Unit: "of updates", Values: []float64{float64(t.HOT) / float64(t.Updates)},
			})
		}
		r.rep.Lines = append(r.rep.Lines, report.Line{Name: path.Join("whole scans", t.Name), Unit: "in all", Values: []float64{float64(t.Sequential)}})
	}
	return nil
}

func (r *run) perTask(name string, tasks int, c rig.Counters, turns int64) {
	n := float64(tasks)
	add := func(what, unit string, x float64) {
		r.rep.Lines = append(r.rep.Lines, report.Line{Name: path.Join(name, what), Unit: unit, Values: []float64{x}})
	}
	add("WAL flushes", "per task", float64(c.Flushes)/n)
	add("WAL", "bytes per task", float64(c.WALBytes)/n)
	add("commits", "per task", float64(c.Commits)/n)
	if turns > 0 {
		add("round trips", "per task", float64(turns)/n)
	}
}

func (r *run) statementsPerTask(name string) {
	var calls int64
	var total float64
	for _, s := range r.rep.Statements[name] {
		calls += s.Calls
		total += s.TotalMS
	}
	r.rep.Lines = append(r.rep.Lines,
		report.Line{Name: path.Join(name, "statements"), Unit: "per task", Values: []float64{float64(calls) / countedTasks}},
		report.Line{Name: path.Join(name, "time in statements"), Unit: "ms per task", Values: []float64{total / countedTasks}})
}
