package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestStop(t *testing.T) {
	t.Parallel()

	t.Run("GivesBackTheLeaseOfACallUnderWay", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = untilDone
			r.begin()
			m := r.hint(nil)
			r.elapse(5 * time.Second)
			began := time.Now()
			if err := r.stop(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("stopping took %s", took)
			}
			if len(r.laters) != 1 || r.laters[0].Class != "" || r.laters[0].Delay != 0 || r.laters[0].Work.Usage.Calls != 1 {
				t.Errorf("given back as %+v", r.laters)
			}
			if len(r.published) != 1 || r.published[0].TaskID != m.id || m.acks != 1 {
				t.Errorf("published %v, acked %d times", r.published, m.acks)
			}
			if len(r.fails)+len(r.commits) != 0 || slices.Contains(r.order, "outage ex") {
				t.Errorf("a stop was taken for a failure: %v", r.order)
			}
		})
	})

	t.Run("LetsACommitUnderWayFinish", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(ctx context.Context, _ int) Done {
				if !pause(ctx, 3*time.Second) {
					return Done{Err: ctx.Err()}
				}
				return Done{Ended: true}
			}
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Second)
			if err := r.stop(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			if m.acks != 1 || len(r.notified) != 1 || len(r.laters) != 0 {
				t.Errorf("afterwards: %v", r.order)
			}
		})
	})

	t.Run("NamesWhatDidNotStopAndMayBeCalledAgain", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(context.Context, int) Done {
				time.Sleep(30 * time.Second) // deaf to its context
				return Done{Err: errDatabase}
			}
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Second)
			began := time.Now()
			err := r.stop(10 * time.Second)
			if err == nil || !strings.Contains(err.Error(), m.id.String()) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
			if took := time.Since(began); took != 10*time.Second {
				t.Errorf("stopping took %s", took)
			}
			if err := r.stop(time.Minute); err != nil {
				t.Errorf("the second stop: %v", err)
			}
			if len(r.commits) != 1 || len(r.laters)+len(r.fails)+m.acks != 0 {
				t.Errorf("something was written after the time was over: %v", r.order)
			}
		})
	})

	t.Run("EndOfIntakeLetsWhatIsInHandGoOn", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll = 5 * time.Second
			r.extract = lasting(10 * time.Second)
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Second)
			r.w.EndIntake()
			late := r.hint(nil)
			r.due = append(r.due, late.id)
			r.elapse(time.Minute)
			if m.acks != 1 || len(r.commits) != 1 || late.acks != 0 || len(r.claims) != 1 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
			r.w.EndIntake()
		})
	})

	t.Run("TwiceIsOnce", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll = time.Second
			r.begin()
			r.elapse(time.Minute)
			r.end()
			r.end()
			if err := r.w.Start(t.Context()); err == nil {
				t.Error("a stopped worker started again")
			}
		})
	})

	t.Run("BeforeStartRefusesStart", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			w, err := New(r.deps, r.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := w.Start(t.Context()); err == nil {
				t.Error("it started")
			}
			if len(r.hints.asked) != 0 {
				t.Error("it asked for hints")
			}
		})
	})

	t.Run("EndOfTheStartingContextStopsNothing", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			w, err := New(r.deps, r.cfg)
			if err != nil {
				t.Fatal(err)
			}
			r.w = w
			ctx, cancel := context.WithCancel(t.Context())
			if err := w.Start(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
			m := r.hint(nil)
			r.elapse(0)
			if m.acks != 1 {
				t.Error("the task was not run")
			}
			r.end()
		})
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		for name, change := range map[string]func(*Deps, *Config){
			"ShortLease":          func(_ *Deps, c *Config) { c.LeaseTTL = 999 * time.Millisecond },
			"NegativeTimeout":     func(_ *Deps, c *Config) { c.ModelTimeout = -1 },
			"NegativeSlots":       func(_ *Deps, c *Config) { c.Slots = -1 },
			"TooManySlots":        func(_ *Deps, c *Config) { c.Slots = maxSlots + 1 },
			"BusyPoll":            func(_ *Deps, c *Config) { c.Poll = time.Millisecond },
			"NeitherHintsNorPoll": func(d *Deps, c *Config) { d.Wakeups, c.Poll = nil, 0 },
			"NoKinds":             func(_ *Deps, c *Config) { c.Kinds = []task.Kind{} },
			"BrokenPolicy":        func(_ *Deps, c *Config) { c.Policy.MaxAttempts = -1 },
			"NoStore":             func(d *Deps, _ *Config) { d.Steps = nil },
			"NoModel":             func(d *Deps, _ *Config) { d.Embedder = nil },
			"NoNotifier":          func(d *Deps, _ *Config) { d.Notifier = nil },
		} {
			deps, cfg := r.deps, r.cfg
			change(&deps, &cfg)
			if _, err := New(deps, cfg); err == nil {
				t.Errorf("%s was taken", name)
			}
		}
		first, err := New(r.deps, Config{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := New(r.deps, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if first.Name() == second.Name() {
			t.Errorf("two workers are called %s", first.Name())
		}
		if first.cfg.LeaseTTL != time.Minute || first.cfg.Slots != DefaultConfig().Slots || first.cfg.Poll != 0 || len(first.cfg.Kinds) != len(DefaultConfig().Kinds) {
			t.Errorf("the defaults are %+v", first.cfg)
		}
	})
}
