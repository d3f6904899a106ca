package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/holdfast-memory/holdfast/internal/repair"
)

// repairStop lets the step under way be rolled back.
const repairStop = 10 * time.Second

// RepairMode says how repair runs: one round, or a loop.
type RepairMode struct {
	Once  bool          `env:"-" help:"Make one round of everything, print it and end: with 1 if something doesn't add up."`
	Every time.Duration `env:"-" placeholder:"10s" help:"Make a round that often (HOLDFAST_REPAIR_INTERVAL)."`
	JSON  bool          `name:"json" env:"-" help:"Print one line of JSON for --once."`
}

// errDrift is why repair --once ends with 1 although it did its work.
var errDrift = errors.New("the books do not agree: see the findings")

// RunRepair makes one round, printed to out, or rounds until ctx ends.
func RunRepair(ctx context.Context, s Settings, mode RepairMode, out io.Writer) error {
	switch {
	case mode.Once && mode.Every != 0:
		return errors.New("choose --once or --every")
	case mode.Every != 0:
		s.RepairInterval = mode.Every
	}
	p, err := prepare(ctx, s, "repair", repairAdminPort)
	if err != nil && mode.Once {
		return err
	}
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if mode.Once {
		err := p.repairOnce(ctx, mode.JSON, out)
		return errors.Join(err, p.stop(ctx))
	}
	if err := p.addRepair(); err != nil {
		return errors.Join(err, p.stop(ctx))
	}
	p.addMinutes("repair")
	return p.run(ctx, nil)
}

func (c *core) newRepairer() (*repair.Repairer, error) {
	cfg := repair.DefaultConfig()
	cfg.Every, cfg.MaxAttempts, cfg.HintAge = c.settings.RepairInterval, c.settings.MaxAttempts, c.settings.HintAge
	cfg.FailedInputRetention, cfg.Log = c.settings.FailedInputRetention, c.log
	cfg.ActRetention = c.settings.ActRetention
	deps := repair.Deps{
		Leases: c.db, Hints: c.db, Retention: c.db, Books: c.db, Webhooks: c.db, Publisher: c.wakeups, Notifier: c.wakeups,
	}
	if c.wakeups.client != nil {
		deps.Topology, deps.Backlog = c.wakeups.client, c.wakeups.client
	}
	return repair.New(deps, cfg)
}

// addRepair adds the loop, and the watch that makes it run at once when the stream had to be made anew.
func (p *process) addRepair() error {
	repairer, err := p.core.newRepairer()
	if err != nil {
		return err
	}
	p.core.metrics.WatchRepair(repairer.Totals)
	p.core.repairTotals = repairer.Totals
	p.core.metrics.WatchQueue(p.core.watched.Facts)
	p.add("repair", repairer, repairStop)
	p.add("nats watch", &loop{run: func(ctx context.Context) {
		p.core.watch(ctx, func(context.Context) { repairer.Kick() })
	}}, natsStop)
	return nil
}

// repairOnce makes one round and prints it. Drift is an error, and so is a pass that failed.
func (p *process) repairOnce(ctx context.Context, asJSON bool, out io.Writer) error {
	repairer, err := p.core.newRepairer()
	if err != nil {
		return err
	}
	p.core.metrics.WatchRepair(repairer.Totals)
	report, err := repairer.Once(ctx)
	if perr := printReport(out, report, asJSON); perr != nil {
		err = errors.Join(err, perr)
	}
	if report.Drift {
		err = errors.Join(err, errDrift)
	}
	return err
}

func printReport(out io.Writer, report repair.Report, asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(out).Encode(report); err != nil {
			return fmt.Errorf("print report: %w", err)
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "pass\tfound\tfixed\tskipped\tfailed")
	for _, r := range report.Results {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", r.Pass, r.Found, r.Fixed, r.Skipped, r.Failed)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	for _, f := range report.Findings {
		fmt.Fprintf(out, "drift: %s in workspace %s: %d", f.Check, f.Workspace, f.Count)
		if f.Want != f.Have {
			fmt.Fprintf(out, " (want %d, have %d)", f.Want, f.Have)
		}
		for _, id := range f.Events {
			fmt.Fprintf(out, " evt_%s", id)
		}
		fmt.Fprintln(out)
	}
	return nil
}
