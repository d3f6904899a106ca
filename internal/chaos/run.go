package chaos

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

const (
	actorsOfSpace = 3
	quietBound    = 3 * time.Minute // backoffs of this set-up end after half a minute, a projection's after thirty seconds
	quietPoll     = 200 * time.Millisecond
)

// run sends the traffic of cfg through a system in dir while its faults strike, heals, waits for quiet, and checks. The
// error is the harness's own.
func run(t testing.TB, cfg Config, dir string) (*report, *world, *notes, error) {
	ctx, cancel := context.WithTimeout(t.Context(), cfg.bound())
	defer cancel()
	w, err := newWorld(t, cfg, dir)
	if err != nil {
		return nil, nil, nil, err
	}
	n := newNotes()
	if err := w.webhooks(ctx, n); err != nil {
		return nil, w, n, err
	}
	actors, boss := w.actors(n), w.boss(n)
	sabotage, calm := context.WithCancel(ctx)
	var strikes, traffic sync.WaitGroup
	strikes.Go(func() { newSaboteur(w).run(sabotage) })
	strikes.Go(func() { w.tellProgress(sabotage, n) })
	for _, a := range actors {
		traffic.Go(func() { a.run(ctx, cfg.Traffic/time.Duration(a.count)) })
	}
	traffic.Go(func() { boss.run(ctx, cfg.Traffic/time.Duration(boss.count)) })
	traffic.Wait()
	calm()
	strikes.Wait()
	w.heal()
	w.receivers.heal()
	healed := time.Now()
	if err := w.ready(ctx); err != nil {
		return nil, w, n, err
	}
	boss.settle(ctx) // first: it resumes and unlimits
	for _, a := range actors {
		a.settle(ctx)
	}
	w.revive(ctx, n, w.hooks...)
	for _, c := range boss.newcomers {
		if c.space.key != "" {
			w.secrets = append(w.secrets, c.space.key)
		}
	}
	if broken := w.log.counts[harnessError]; broken > 0 {
		return nil, w, n, fmt.Errorf("%d faults could not be made, see faults.log", broken)
	}
	r := &report{seed: cfg.Seed}
	w.quiet(ctx, r)
	r.quiet = time.Since(healed)
	for _, check := range []func(context.Context, *notes, *report) error{
		w.checkContradictions, w.checkCommands, w.checkBooks, w.checkItems, w.checkCalls, w.checkStuck, w.checkContent,
		w.checkHooks, w.checkExports, w.checkOpinions, boss.check(w), w.checkAudit, w.checkClock,
	} {
		if err := check(ctx, n, r); err != nil {
			return r, w, n, err
		}
	}
	return r, w, n, nil
}

// progressEvery is how often a run says how far it is: a long one takes an hour.
const progressEvery = 15 * time.Second

// tellProgress says how far the traffic is until ctx ends.
func (w *world) tellProgress(ctx context.Context, n *notes) {
	every := time.NewTicker(progressEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			done, tries := n.sofar()
			w.t.Logf("%d of %d commands in %d requests, %d faults", done, w.cfg.Commands, tries, w.log.faults())
		case <-ctx.Done():
			return
		}
	}
}

// actors divides the commands between the callers of every workspace.
func (w *world) actors(n *notes) []*actor {
	var actors []*actor
	total := spaceCount * actorsOfSpace
	for i := range total {
		name := fmt.Sprintf("actor-%d", i)
		count := w.cfg.Commands / total
		if i < w.cfg.Commands%total {
			count++
		}
		if count == 0 {
			continue
		}
		actors = append(actors, &actor{
			cfg: w.cfg, number: i, space: w.spaces[i%spaceCount], notes: n, plan: w.cfg.stream(name), count: count,
			client: w.client(name, n), opinions: map[string]*opinion{},
		})
	}
	return actors
}

// boss is the operator, with a share of the commands that are also done.
func (w *world) boss(n *notes) *boss {
	return &boss{
		cfg: w.cfg, spaces: w.spaces, notes: n, plan: w.cfg.stream("operator"), token: w.token, count: 1 + w.cfg.Commands/shareOfActs,
		client: w.client("operator", n),
	}
}

// client is the way of one caller to the APIs.
func (w *world) client(name string, n *notes) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 5 * time.Second}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &client{apis: w.urls, http: &http.Client{Transport: transport}, rand: w.cfg.stream(name + " ways"), notes: n}
}

const unfinishedSQL = `
SELECT (SELECT count(*) FROM tasks WHERE completed_at IS NULL) + (SELECT count(*) FROM erasures)`

// quiet waits until nothing is left to do.
func (w *world) quiet(ctx context.Context, r *report) {
	deadline := time.Now().Add(quietBound)
	left := -1
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if err := w.sql.QueryRow(ctx, unfinishedSQL).Scan(&left); err == nil && left == 0 {
			return
		}
		time.Sleep(quietPoll)
	}
	r.find(stuck, "no quiet", "%d tasks and erasures are unfinished %s after the healing", left, quietBound)
}

// row is a task as the database has it.
type row struct {
	id         uuid.UUID
	space      uuid.UUID
	kind       string
	status     string
	outcome    *string
	generation int
	claims     int
	erased     bool
	took       time.Duration
}
