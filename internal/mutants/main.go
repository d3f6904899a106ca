package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := check(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check runs the mutants that the arguments choose and prints the table. Error: one of them was not caught.
func check(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	choice := flags.String("run", "", "regular expression of the guards, groups or tests to run; all without it")
	at := flags.Int("at-once", 2, "how many run at once")
	only := flags.Bool("list", false, "print the list and run nothing")
	verbose := flags.Bool("v", false, "print how each scenario failed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*choice)
	if err != nil {
		return err
	}
	if *only {
		printList(out, chosen)
		return nil
	}
	b, clean, err := newBench(ctx, chosen)
	if err != nil {
		return err
	}
	defer clean()
	began := time.Now()
	if err := b.baselines(ctx, chosen, out); err != nil {
		return err
	}
	results := b.tryAll(ctx, chosen, max(*at, 1), func(r result) { printLine(out, r, *verbose) })
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return printTable(out, results, time.Since(began))
}

// choose answers the mutants whose guard, group or scenario the expression matches.
func choose(expression string) ([]mutant, error) {
	wanted, err := regexp.Compile("(?i)" + expression)
	if err != nil {
		return nil, fmt.Errorf("MUTANTS: %w", err)
	}
	all, err := readList()
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(m mutant) bool {
		return !wanted.MatchString(m.group + " " + m.name + " " + m.caughtBy.pkg + " " + m.caughtBy.test)
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant matches %q", expression)
	}
	return chosen, nil
}

// baselines builds the tests of each package with all mutants in it, and runs every scenario once with none of them.
func (b *bench) baselines(ctx context.Context, chosen []mutant, out io.Writer) error {
	tests := map[string][]string{}
	limits := map[string]time.Duration{}
	for _, m := range chosen {
		s := m.caughtBy
		if !slices.Contains(tests[s.pkg], s.test) {
			tests[s.pkg] = append(tests[s.pkg], s.test)
			limits[s.pkg] += m.limit // they share the cores
		}
	}
	for _, pkg := range sorted(tests) {
		began := time.Now()
		if err := b.build(ctx, pkg); err != nil {
			return err
		}
		built := time.Since(began)
		if err := b.baseline(ctx, pkg, tests[pkg], limits[pkg]); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "%s: built (%.0f s); %d scenarios pass as the code is (%.0f s)\n", pkg, built.Seconds(), len(tests[pkg]),
			(time.Since(began) - built).Seconds())
	}
	return nil
}

// tryAll tries the mutants, several at once where they may, and tells of each as it is done. The results come in the
// list's order.
func (b *bench) tryAll(ctx context.Context, chosen []mutant, atOnce int, told func(result)) []result {
	results := make([]result, len(chosen))
	next := make(chan int)
	var tell sync.Mutex
	var all sync.WaitGroup
	try := func(i int) {
		results[i] = b.try(ctx, chosen[i], i+1)
		tell.Lock()
		defer tell.Unlock()
		told(results[i])
	}
	for range atOnce {
		all.Go(func() {
			for i := range next {
				try(i)
			}
		})
	}
	for i, m := range chosen {
		if !m.alone() && ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	all.Wait()
	for i, m := range chosen {
		if m.alone() && ctx.Err() == nil {
			try(i)
		}
	}
	return results
}
