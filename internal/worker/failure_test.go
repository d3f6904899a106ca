package worker

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	failing := func(class task.Class, after time.Duration) func(context.Context) (model.Extraction, error) {
		return func(context.Context) (model.Extraction, error) {
			err := model.NewError(class, "stub", nil)
			err.RetryAfter, err.Usage = after, model.Usage{Calls: 1, TokensIn: 11}
			return model.Extraction{}, err
		}
	}

	for _, c := range []struct {
		name    string
		extract func(context.Context) (model.Extraction, error)
		spent   task.Spent
		inARow  int
		order   []string // between the call and the ack
		class   task.Class
		code    task.ErrorCode
		delay   time.Duration // with a random number of a half
	}{
		{
			name: "UnavailableCountsAnOutage", extract: failing(task.ProviderUnavailable, 0), inARow: 4,
			order: []string{"outage ex", "later"}, class: task.ProviderUnavailable, code: task.CodeProviderUnavailable, delay: time.Second,
		},
		{
			name: "FifthFailureInARowPausesTheProviderFirst", extract: failing(task.ProviderUnavailable, 0), inARow: 5,
			order: []string{"outage ex", "pause ex 2s", "later"}, class: task.ProviderUnavailable,
			code: task.CodeProviderUnavailable, delay: time.Second,
		},
		{
			name: "RetryAfterIsAFloorAndPausesTheProvider", extract: failing(task.ProviderRateLimited, 10*time.Second),
			order: []string{"pause ex 10s", "later"}, class: task.ProviderRateLimited, code: task.CodeProviderRateLimited,
			delay: 11 * time.Second,
		},
		{
			name: "RejectedCredentialsPauseTheProvider", extract: failing(task.ProviderRejected, 0),
			order: []string{"pause ex 30s", "later"}, class: task.ProviderRejected, code: task.CodeProviderRejected, delay: 30 * time.Second,
		},
		{
			name: "InvalidOutputIsAskedForAgainAtOnce", extract: failing(task.OutputInvalid, 0), order: []string{"later"},
			class: task.OutputInvalid, code: task.CodeOutputInvalid,
		},
		{
			name: "InvalidOutputTwiceFails", extract: failing(task.OutputInvalid, 0), spent: task.Spent{task.OutputInvalid: 1},
			order: []string{"fail", "notify"}, class: task.OutputInvalid, code: task.CodeOutputInvalid,
		},
		{
			name: "RefusedInputFails", extract: failing(task.ExtractionRejected, 0), order: []string{"fail", "notify"},
			class: task.ExtractionRejected, code: task.CodeExtractionRejected,
		},
		{
			name: "SpentBudgetFailsAndStillCountsTheOutage", extract: failing(task.ProviderTimeout, 0),
			spent: task.Spent{task.ProviderTimeout: 10}, inARow: 1, order: []string{"outage ex", "fail", "notify"},
			class: task.ProviderTimeout, code: task.CodeProviderTimeout,
		},
		{
			name: "ClassThatNoExtractionHasIsInternal", extract: failing(task.LeaseLost, 0), order: []string{"later"},
			class: task.InternalFailure, code: task.CodeInternal, delay: 10 * time.Second,
		},
		{
			name: "PanicIsInternal", extract: func(context.Context) (model.Extraction, error) { panic("read " + canary) },
			order: []string{"later"}, class: task.InternalFailure, code: task.CodeInternal, delay: 10 * time.Second,
		},
		{
			name: "FourthPanicFails", extract: func(context.Context) (model.Extraction, error) { panic(canary) },
			spent: task.Spent{task.InternalFailure: 3}, order: []string{"fail", "notify"}, class: task.InternalFailure,
			code: task.CodeInternal,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig) {
				r.extract, r.outage = c.extract, func() int { return c.inARow }
				r.begin()
				m := r.hint(func(l *Lease) {
					if c.spent != nil {
						l.Spent = c.spent
					}
				})
				r.elapse(0)
				want := slices.Concat([]string{"claim", "extract"}, c.order, []string{"ack"})
				if !slices.Equal(r.order, want) {
					t.Errorf("it went %v, want %v", r.order, want)
				}
				var class task.Class
				var code task.ErrorCode
				var delay time.Duration
				for _, l := range r.laters {
					class, code, delay = l.Class, l.Code, l.Delay
				}
				for _, f := range r.fails {
					class, code = f.Class, f.Code
				}
				if class != c.class || code != c.code || delay != c.delay {
					t.Errorf("recorded %s %s after %s, want %s %s after %s", class, code, delay, c.class, c.code, c.delay)
				}
				if len(r.laters) == 1 && (len(r.published) != 1 || r.published[0].TaskID != m.id) {
					t.Errorf("published %v", r.published)
				}
				r.end()
			})
		})
	}

	t.Run("DeadlineIsAProviderTimeout", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.ModelTimeout = 30 * time.Second
			r.extract = func(ctx context.Context) (model.Extraction, error) {
				<-ctx.Done()
				return model.Extraction{}, ctx.Err()
			}
			r.begin()
			r.hint(nil)
			r.elapse(31 * time.Second)
			if len(r.laters) != 1 || r.laters[0].Class != task.ProviderTimeout || r.laters[0].Work.ModelTime != 30*time.Second ||
				r.laters[0].Work.Usage.Calls != 1 {
				t.Errorf("recorded %+v", r.laters)
			}
			r.end()
		})
	})

	t.Run("UsageOfAFailedCallIsKept", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = failing(task.ExtractionRejected, 0)
			r.begin()
			r.hint(nil)
			r.elapse(0)
			if len(r.fails) != 1 || r.fails[0].Work.Usage.TokensIn != 11 {
				t.Errorf("recorded %+v", r.fails)
			}
			r.end()
		})
	})

	t.Run("UnreadableInputFailsWithoutACall", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			r.hint(func(l *Lease) { l.Payload = []byte(`{"` + canary) })
			r.hint(func(l *Lease) { l.Format = 99 })
			r.hint(func(l *Lease) { l.Kind = task.Add })
			r.elapse(0)
			if len(r.fails) != 3 || r.extractions != 0 {
				t.Fatalf("it went %v", r.order)
			}
			for _, f := range r.fails {
				if f.Code != task.CodeInputUnreadable || f.Class != task.InternalFailure {
					t.Errorf("recorded %+v", f)
				}
			}
			r.end()
		})
	})

	t.Run("WrongInputOfAJobFailsAtOnce", func(t *testing.T) {
		t.Parallel()
		for class, cause := range map[task.Class]error{task.InputRejected: ErrRejected, task.InternalFailure: command.ErrUnreadable} {
			bubble(t, func(t *testing.T, r *rig) {
				job := &refusing{cause: fmt.Errorf("read: %w", cause)}
				r.deps.Jobs = map[task.Kind]Job{task.Import: job}
				r.begin()
				r.hint(func(l *Lease) { l.Kind = task.Import })
				r.elapse(0)
				if len(r.fails) != 1 || r.fails[0].Code != task.CodeInputUnreadable || r.fails[0].Class != class || job.reads != 1 {
					t.Errorf("recorded %+v after %d reads", r.fails, job.reads)
				}
				r.end()
			})
		}
	})

	t.Run("SuccessAfterTroubleIsToldAll", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			r.hint(func(l *Lease) { l.Troubled = 2 })
			r.elapse(0)
			if !slices.Contains(r.order, "healthy ex") {
				t.Errorf("it went %v", r.order)
			}
			r.order = nil
			r.hint(nil)
			r.elapse(0)
			if slices.Contains(r.order, "healthy ex") {
				t.Error("a call without trouble wrote something")
			}
			r.end()
		})
	})

	t.Run("PanicIsLoggedWithItsPlaceOnly", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = func(context.Context) (model.Extraction, error) { panic(canary) }
			r.begin()
			m := r.hint(nil)
			r.elapse(0)
			r.end()
			logs := r.logs.bytes()
			for _, part := range []string{m.id.String(), `"panic_type":"string"`, "failure_test.go", `"class":"internal"`} {
				if !bytes.Contains(logs, []byte(part)) {
					t.Errorf("%s is not in %s", part, logs)
				}
			}
		})
	})
}

// refusing is a job whose input can't be used.
type refusing struct {
	Job
	cause error
	reads int
}

func (j *refusing) Next(context.Context, Lease) (Chunk, error) {
	j.reads++
	return Chunk{}, j.cause
}
