package repair_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// idle answers that there is nothing to do, but for its leases, which panic. It tells of each look at due tasks and
// its age, and when deaf then waits until that is closed, whatever its context says.
type idle struct {
	looks chan time.Duration
	deaf  chan struct{}
}

func (f *idle) RescueAfter(context.Context, int, repair.Cursor, int) ([]worker.Rescued, repair.Swept, error) {
	panic("a bug")
}

func (f *idle) ExhaustAfter(context.Context, int, repair.Cursor, int) ([]worker.Rescued, repair.Swept, error) {
	return nil, repair.Swept{}, nil
}

func (f *idle) Rehint(ctx context.Context, ask repair.Rehint) (int, []task.Hint, error) {
	select {
	case f.looks <- ask.Age:
	case <-ctx.Done():
	}
	if f.deaf != nil {
		<-f.deaf
	}
	return 0, nil, ctx.Err()
}

func (f *idle) ExpireInput(context.Context, time.Duration, repair.Cursor, int) (repair.Swept, error) {
	return repair.Swept{}, nil
}

func (f *idle) ArchiveEnded(context.Context, time.Duration, repair.Cursor, int) (repair.Swept, error) {
	return repair.Swept{}, nil
}

func (f *idle) ForgetExports(context.Context, int) (repair.Swept, error) { return repair.Swept{}, nil }

func (f *idle) RetireDataKeys(context.Context, int) (repair.Swept, error) { return repair.Swept{}, nil }

func (f *idle) ForgetActs(context.Context, time.Duration, int) (repair.Swept, error) {
	return repair.Swept{}, nil
}

func (f *idle) ForgetConsole(context.Context, time.Duration, int) (repair.Swept, error) {
	return repair.Swept{}, nil
}

func (f *idle) RetireArchived(context.Context, time.Duration, repair.Cursor, int) (repair.Swept, error) {
	return repair.Swept{}, nil
}

func (f *idle) Ledgers(context.Context, uuid.UUID, time.Duration, int) ([]uuid.UUID, error) {
	return nil, nil
}

func (f *idle) SumBooks(context.Context, uuid.UUID, bool) (repair.Sums, error) {
	return repair.Sums{}, nil
}

func (f *idle) SaveCheckpoint(context.Context, uuid.UUID, repair.Checkpoint) (bool, error) {
	return true, nil
}

func (f *idle) CheckWorkspace(context.Context, uuid.UUID, int) ([]repair.Finding, error) {
	return nil, nil
}

func (f *idle) CheckRecent(context.Context, time.Duration, int) ([]repair.Finding, error) {
	return nil, nil
}

func (f *idle) repairer(t *testing.T, cfg repair.Config) *repair.Repairer {
	t.Helper()
	r, err := repair.New(repair.Deps{
		Leases: f, Hints: f, Retention: f, Books: f, Publisher: &post{}, Notifier: &post{},
	}, cfg)
	require.NoError(t, err)
	return r
}

func TestRepairer(t *testing.T) {
	t.Parallel()

	t.Run("APanicIsThatPassesErrorOnly", func(t *testing.T) {
		t.Parallel()
		f := &idle{looks: make(chan time.Duration, 1)}
		report, err := f.repairer(t, repair.Config{}).Once(t.Context())
		require.ErrorContains(t, err, "repair leases: panic of type string")
		require.Len(t, report.Results, 12)
		require.Equal(t, repair.Result{Pass: repair.PassLeases, Failed: 1}, byPass(report)[repair.PassLeases])
		require.Equal(t, 30*time.Second, <-f.looks)
	})

	t.Run("TheLoopRunsRoundsAndAKickDropsTheAge", func(t *testing.T) {
		t.Parallel()
		f := &idle{looks: make(chan time.Duration)}
		r := f.repairer(t, repair.Config{Every: time.Hour, Rand: func() float64 { return 0 }})
		require.NoError(t, r.Start(t.Context()))
		require.Equal(t, 30*time.Second, <-f.looks, "the first round comes at once when chance says so")
		r.Kick()
		require.Zero(t, <-f.looks, "the next one not for half an hour, but for the kick")
		require.NoError(t, r.Stop(t.Context()))
		require.NoError(t, r.Stop(t.Context()))
	})

	t.Run("TheLoopTellsWhenAPassBeginsToFailAndWhenItWorksAgain", func(t *testing.T) {
		t.Parallel()
		f := &idle{looks: make(chan time.Duration)}
		lines, nats := &safeBuffer{}, &flaky{}
		nats.broken.Store(true)
		r, err := repair.New(repair.Deps{
			Leases: f, Hints: f, Retention: f, Books: f, Topology: nats, Publisher: &post{}, Notifier: &post{},
		}, repair.Config{Every: 10 * time.Millisecond, Log: zerolog.New(lines)})
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context()))
		for range 5 {
			<-f.looks
		}
		nats.broken.Store(false)
		for range 3 {
			<-f.looks
		}
		require.NoError(t, r.Stop(t.Context()))
		require.Equal(t, 1, strings.Count(lines.String(), `"error":"nats is away","pass":"topology","message":"repair pass failed"`), lines)
		require.Equal(t, 1, strings.Count(lines.String(), `"pass":"topology","message":"repair pass works again"`), lines)
		require.Equal(t, 1, strings.Count(lines.String(), `"pass":"leases"`), "its panic goes on: %s", lines)
		require.NotContains(t, lines.String(), "a bug", "what a panic says may be a caller's text")
	})

	t.Run("TheEndOfStartsContextDoesNotEndTheLoop", func(t *testing.T) {
		t.Parallel()
		f := &idle{looks: make(chan time.Duration)}
		r := f.repairer(t, repair.Config{Every: 10 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, r.Start(ctx))
		cancel()
		for range 3 {
			<-f.looks
		}
		require.NoError(t, r.Stop(t.Context()), "and Stop ends the step under way")
	})

	t.Run("StopNamesWhatDidNotStopAndCanBeWaitedForAgain", func(t *testing.T) {
		t.Parallel()
		f := &idle{looks: make(chan time.Duration), deaf: make(chan struct{})}
		r := f.repairer(t, repair.Config{Every: 10 * time.Millisecond})
		require.NoError(t, r.Start(t.Context()))
		<-f.looks
		over, cancel := context.WithCancel(t.Context())
		cancel()
		err := r.Stop(over)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "the round under way did not stop in time")
		close(f.deaf)
		require.NoError(t, r.Stop(t.Context()))
	})

	t.Run("ItStartsOnce", func(t *testing.T) {
		t.Parallel()
		f := &idle{}
		never := f.repairer(t, repair.Config{})
		require.NoError(t, never.Stop(t.Context()))
		require.Error(t, never.Start(t.Context()))
		once := f.repairer(t, repair.Config{})
		require.NoError(t, once.Start(t.Context()))
		require.Error(t, once.Start(t.Context()))
		require.NoError(t, once.Stop(t.Context()))
		require.Error(t, once.Start(t.Context()))
	})

	t.Run("TheLoopDoesAllThatOnceDoes", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.accept(w.main, "a")
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		r := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.Every = 10 * time.Millisecond })
		require.NoError(t, r.Start(t.Context()))
		require.Eventually(t, func() bool { return len(r.Totals()) == 12 }, 20*time.Second, time.Millisecond)
		require.NoError(t, r.Stop(t.Context()))
		require.Equal(t, "pending/accepted", w.status(id))
		require.EqualValues(t, 1, one[int64](w, `SELECT count(*) FROM credit_checkpoints`))
	})
}

// flaky is a NATS that is away while broken is set.
type flaky struct{ broken atomic.Bool }

func (f *flaky) EnsureTopology(context.Context) (bool, error) {
	if f.broken.Load() {
		return false, errors.New("nats is away")
	}
	return false, nil
}

func TestConfig(t *testing.T) {
	t.Parallel()
	f := &idle{}
	deps := repair.Deps{Leases: f, Hints: f, Retention: f, Books: f, Publisher: &post{}, Notifier: &post{}}
	for name, change := range map[string]func(*repair.Config){
		"key retention must be":                func(c *repair.Config) { c.KeyRetention = 29 * 24 * time.Hour },
		"must not be below failed-input":       func(c *repair.Config) { c.FailedInputRetention = 31 * 24 * time.Hour },
		"must not be below the time to the ar": func(c *repair.Config) { c.ArchiveAfter = 31 * 24 * time.Hour },
		"at least 1s":                          func(c *repair.Config) { c.FailedInputRetention = time.Millisecond },
		"repair interval must be":              func(c *repair.Config) { c.Every = time.Microsecond },
		"max attempts must be":                 func(c *repair.Config) { c.MaxAttempts = -1 },
		"hint age and intervals":               func(c *repair.Config) { c.HintAge = -time.Second },
		"hint limit must be":                   func(c *repair.Config) { c.HintLimit = 1_000_000 },
		"batch must be":                        func(c *repair.Config) { c.Batch = 100_000 },
	} {
		cfg := repair.Config{}
		change(&cfg)
		_, err := repair.New(deps, cfg)
		require.ErrorContains(t, err, name)
	}
	_, err := repair.New(deps, repair.Config{FailedInputRetention: 30 * 24 * time.Hour})
	require.NoError(t, err)
	deps.Books = nil
	_, err = repair.New(deps, repair.Config{})
	require.Error(t, err)
}
