// Command bench measures Holdfast beside its peers, each run with servers of its own. docs/benchmarks.md says how to
// read what it prints.
//
//	bench quick     every row that needs no large database, in less than two minutes
//	bench full      the same with more and longer rounds: what is published
//	bench scale     the rows about growth, with 10 M finished and 1 M waiting tasks
//	bench soak      a million requests, and what API and worker hold afterwards
//	bench profile   CPU profiles and flame graphs of API and worker under load
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/bench/suite"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	if err := bench(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// settings are the flags that every mode takes.
type settings struct {
	plan     suite.Plan
	results  string
	requests int
}

func read(mode string, args []string) (settings, error) {
	var s settings
	switch mode {
	case "quick":
		s.plan = suite.Quick()
	case "full", "soak", "profile":
		s.plan = suite.Full()
		s.plan.Mode = mode
	case "scale":
		s.plan = suite.Scale()
	default:
		return s, fmt.Errorf("there is no mode %q: quick, full, scale, soak or profile", mode)
	}
	flags := flag.NewFlagSet("bench "+mode, flag.ContinueOnError)
	p := &s.plan
	flags.Uint64Var(&p.Seed, "seed", uint64(time.Now().Unix()), "decides the order of the cases")
	flags.IntVar(&p.Rounds, "rounds", p.Rounds, "how often each case is measured")
	flags.DurationVar(&p.Spell, "spell", p.Spell, "how long each case is measured")
	flags.StringVar(&p.Dir, "dir", directory(), "where the servers live: on a disk, open to the user postgres (BENCH_DIR)")
	flags.BoolVar(&p.Gate, "gate", p.Gate, "wait for a quiet machine and drop what others disturbed")
	flags.BoolVar(&p.Peers, "peers", p.Peers, "compile what mem0's engine needs")
	flags.IntVar(&p.Filled, "filled", p.Filled, "finished tasks of the filled database")
	flags.IntVar(&p.Finished, "finished", p.Finished, "finished tasks of the grown database")
	flags.IntVar(&p.Waiting, "waiting", p.Waiting, "waiting tasks of the grown database")
	flags.IntVar(&p.Others, "others", p.Others, "records in other scopes")
	flags.DurationVar(&p.Snapshot, "snapshot", p.Snapshot, "how long a snapshot is held")
	flags.StringVar(&p.Bin, "bin", "", "a directory with Holdfast's programs to measure, in place of those of this tree")
	only := flags.String("only", "", "a regular expression: run only the cases that it matches, and counts")
	flags.StringVar(&s.results, "results", "results", "where JSON, tables, profiles and flame graphs go")
	flags.IntVar(&s.requests, "requests", 1_000_000, "requests of a soak")
	p.Log = os.Stderr
	err := flags.Parse(args)
	if err == nil && *only != "" {
		p.Only, err = regexp.Compile(*only)
	}
	switch {
	case err != nil:
		return s, err
	case p.Rounds < 1 || p.Spell <= 0 || s.requests < 10 || min(p.Filled, p.Finished, p.Waiting, p.Others) < 0:
		return s, errors.New("rounds, spell and requests must be positive, and nothing negative")
	}
	return s, nil
}

// directory is where the servers live unless told otherwise. /tmp is in memory on many machines.
func directory() string {
	if dir := os.Getenv("BENCH_DIR"); dir != "" {
		return dir
	}
	return filepath.FromSlash("/var/tmp")
}

func bench(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: bench quick|full|scale|soak|profile [flags]")
	}
	s, err := read(args[0], args[1:])
	if err != nil {
		return err
	}
	switch s.plan.Mode {
	case "soak":
		return suite.Soak(ctx, s.plan, s.requests, os.Stdout)
	case "profile":
		return suite.Profile(ctx, s.plan, s.results)
	case "scale":
		if err := s.plan.CheckDisk(); err != nil {
			return err
		}
	}
	found, err := suite.Run(ctx, s.plan)
	if err != nil {
		return err
	}
	found.Print(os.Stdout)
	path, err := found.Save(s.results)
	if err == nil {
		fmt.Fprintf(os.Stderr, "bench: written to %s.json and .md\n", path)
	}
	return err
}
