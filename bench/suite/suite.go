package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/holdfast-memory/holdfast/bench/ours"
	"github.com/holdfast-memory/holdfast/bench/peers"
	"github.com/holdfast-memory/holdfast/bench/report"
	"github.com/holdfast-memory/holdfast/bench/rig"
	"github.com/holdfast-memory/holdfast/bench/stub"
)

// Plan is how much is measured.
type Plan struct {
	Mode   string
	Seed   uint64
	Rounds int
	Warm   time.Duration // of each case, outside the counters
	Spell  time.Duration // of each case
	Dir    string        // below which the servers live
	Log    io.Writer
	Bin    string // Holdfast's programs, built from this tree when empty

	Peers    bool           // those of Node.js and mem0 too, compiling what they need
	Gate     bool           // wait for a quiet machine, and drop what a loud one spoilt
	Only     *regexp.Regexp // the cases to run, nil for all
	Filled   int            // finished tasks of the filled database
	Waiting  int            // tasks that wait in the grown database, 0 leaves the growth rows out
	Finished int            // finished tasks of the grown database
	Others   int            // records in other scopes for the search row, 0 leaves it out
	Snapshot time.Duration  // how long a snapshot is held, 0 leaves the row out
}

// Quick takes less than two minutes.
func Quick() Plan {
	return Plan{Mode: "quick", Rounds: 2, Warm: 200 * time.Millisecond, Spell: 900 * time.Millisecond, Filled: 20_000, Others: 20_000}
}

// Full is what is published.
func Full() Plan {
	return Plan{
		Mode: "full", Rounds: 5, Warm: time.Second, Spell: 4 * time.Second, Peers: true, Filled: 500_000, Others: 100_000,
		Snapshot: 5 * time.Minute,
	}
}

// Scale repeats the rows about growth on a large database.
func Scale() Plan {
	return Plan{
		Mode: "scale", Rounds: 3, Warm: time.Second, Spell: 4 * time.Second, Finished: 10_000_000, Waiting: 1_000_000,
		Others: 1_000_000, Filled: 500_000,
	}
}

// sample is what one case measured in one round.
type sample map[string]float64

// one is one case. Its errors spoil the case in that round, not the run.
type one struct {
	name string
	unit string // of its first number, "rate" if there is one
	run  func(ctx context.Context) (sample, error)
}

// run is a run under way.
type run struct {
	plan    Plan
	rig     *rig.Rig
	bin     string
	stub    *stub.Server
	random  *rand.Rand
	rep     report.Report
	samples map[string][]sample // by case, one for each round, nil where it was spoilt
	noise   map[string][]float64
	missing map[string]string // why a case has no numbers
	closers []func(context.Context) error

	accepts *place // accepts only: its backlog is never worked off
	whole   *place // API and worker
	floor   *peers.Floor
	pgbench *peers.PGBench
	node    *peers.Node
	peerNo  int
}

// place is a database with its tenants and the processes on it.
type place struct {
	url     string
	tenants []ours.Tenant
	site    *ours.Site
}

// Run measures by plan and returns what it found. Cases that fail are rows that say why.
func Run(ctx context.Context, plan Plan) (found report.Report, err error) {
	r, err := open(ctx, plan)
	if err != nil {
		return report.Report{}, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	began := time.Now()
	if plan.Mode == "scale" {
		err = r.scale(ctx)
	} else {
		err = r.full(ctx)
	}
	r.rep.Seconds = time.Since(began).Seconds()
	return r.rep, err
}

func open(ctx context.Context, plan Plan) (*run, error) {
	r := &run{
		plan: plan, random: rand.New(rand.NewPCG(plan.Seed, 1)),
		samples: map[string][]sample{}, noise: map[string][]float64{}, missing: map[string]string{},
		rep: report.Report{Mode: plan.Mode, At: time.Now(), Seed: plan.Seed, Statements: map[string][]rig.Statement{}},
	}
	var err error
	if r.rig, err = rig.Start(ctx, plan.Dir); err != nil {
		return nil, err
	}
	r.closers = append(r.closers, r.rig.Stop)
	if err := r.prepare(ctx); err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

func (r *run) prepare(ctx context.Context) error {
	var err error
	if r.bin = r.plan.Bin; r.bin == "" {
		r.say("building")
		if r.bin, err = r.rig.Build(ctx); err != nil {
			return err
		}
	}
	if r.rep.Machine, err = r.rig.Machine(ctx); err != nil {
		return err
	}
	if r.stub, err = stub.Start(ctx); err != nil {
		return err
	}
	r.closers = append(r.closers, r.stub.Stop)
	return nil
}

// close ends everything in the opposite order.
func (r *run) close(ctx context.Context) error {
	var errs []error
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i](ctx))
	}
	return errors.Join(errs...)
}

func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.plan.Log, "bench: "+format+"\n", args...)
}

// newPlace makes a database with tenants and a site that runs nothing yet.
func (r *run) newPlace(ctx context.Context, name string, tenants int, cfg ours.SiteConfig) (*place, error) {
	p := &place{}
	var err error
	if p.url, err = r.rig.Migrated(ctx, name); err != nil {
		return nil, err
	}
	if p.tenants, err = ours.Tenants(ctx, p.url, tenants); err != nil {
		return nil, err
	}
	if cfg.NATS, err = r.rig.NATS(ctx); err != nil {
		return nil, err
	}
	cfg.Bin = r.bin
	if cfg.DatabaseURL == "" {
		cfg.DatabaseURL = p.url
	}
	if p.site, err = ours.NewSite(cfg); err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func(context.Context) error { return p.site.Stop() })
	return p, nil
}

// rounds runs every case once in each round, in a new order each time.
func (r *run) rounds(ctx context.Context, cases []one) error {
	if r.plan.Only != nil {
		cases = slices.DeleteFunc(cases, func(c one) bool { return !r.plan.Only.MatchString(c.name) })
	}
	for round := range r.plan.Rounds {
		if err := r.rig.Settle(ctx); err != nil {
			return err
		}
		for _, i := range r.random.Perm(len(cases)) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.measure(ctx, round, cases[i])
		}
	}
	for _, c := range cases {
		r.line(c)
	}
	return nil
}

// gateBound is how long a case waits for a quiet machine.
const gateBound = time.Minute

func (r *run) measure(ctx context.Context, round int, c one) {
	if _, gone := r.missing[c.name]; gone {
		return
	}
	if r.plan.Gate {
		if err := quiet(ctx); err != nil {
			r.spoil(round, c, err)
			return
		}
	}
	noise, err := rig.Listen()
	if err != nil {
		r.spoil(round, c, err)
		return
	}
	s, err := c.run(ctx)
	if err != nil {
		r.spoil(round, c, err)
		return
	}
	cores, err := noise.Cores()
	if err == nil && r.plan.Gate && cores > rig.Loud {
		err = fmt.Errorf("others took %.2f cores", cores)
	}
	if err != nil {
		r.spoil(round, c, err)
		return
	}
	r.keep(round, c.name, s)
	r.noise[c.name] = append(r.noise[c.name], cores)
	r.say("%d/%d %-22s %10.1f %-12s others %.2f cores", round+1, r.plan.Rounds, c.name, s[value], c.unit, cores)
}

// value is the name of a case's first number.
const value = "value"

func (r *run) keep(round int, name string, s sample) {
	for len(r.samples[name]) <= round {
		r.samples[name] = append(r.samples[name], nil)
	}
	r.samples[name][round] = s
}

func (r *run) spoil(round int, c one, err error) {
	r.keep(round, c.name, nil)
	r.rep.Notes = append(r.rep.Notes, fmt.Sprintf("%s, round %d: %s", c.name, round+1, err))
	r.say("%d/%d %-22s %s", round+1, r.plan.Rounds, c.name, err)
}

// quiet waits until others take little of the machine.
func quiet(ctx context.Context) error {
	deadline := time.Now().Add(gateBound)
	for {
		noise, err := rig.Listen()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		cores, err := noise.Cores()
		switch {
		case err != nil:
			return err
		case cores < rig.Quiet:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the machine is too noisy: others take %.2f cores", cores)
		}
	}
}

func (r *run) line(c one) {
	var values []float64
	for _, s := range r.samples[c.name] {
		if s != nil {
			values = append(values, s[value])
		}
	}
	if len(values) > 0 {
		r.rep.Lines = append(r.rep.Lines, report.Line{Name: c.name, Unit: c.unit, Values: values, Noise: r.noise[c.name]})
	}
}

// ratio makes a row of two numbers of the same round, each named by its case, or case and number.
func (r *run) ratio(row, over, under string) {
	made := report.Row{Name: row}
	for round := range r.plan.Rounds {
		a, okA := r.number(over, round)
		b, okB := r.number(under, round)
		if okA && okB && b > 0 {
			made.Values = append(made.Values, a/b)
		}
	}
	if len(made.Values) == 0 {
		made.Missing = "no round in which both were measured"
		for _, name := range []string{over, under} {
			if why, gone := r.missing[caseOf(name)]; gone {
				made.Missing = why
			}
		}
	}
	r.rep.Rows = append(r.rep.Rows, made)
}

// count makes a row of a number that is no ratio.
func (r *run) count(row string, values ...float64) {
	r.rep.Rows = append(r.rep.Rows, report.Row{Name: row, Values: values})
}

// lack makes a row that says why it has no value.
func (r *run) lack(row string, err error) {
	r.rep.Rows = append(r.rep.Rows, report.Row{Name: row, Missing: err.Error()})
}
