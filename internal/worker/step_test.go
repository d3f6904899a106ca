package worker

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

var errOutage = fault.Wrap(fault.UnavailableNow, errDatabase)

func TestStep(t *testing.T) {
	t.Parallel()

	t.Run("AnOutageThatTheLeaseOutlivesCostsNothing", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = lasting(10 * time.Second)
			down := func() bool { return time.Since(r.start) > 5*time.Second && time.Since(r.start) < 45*time.Second }
			r.commit = func(context.Context, int) Done {
				if down() {
					return Done{Err: errOutage}
				}
				return Done{Ended: true}
			}
			r.heartbeat = func(context.Context) (Beat, error) {
				if down() {
					return Beat{}, errOutage
				}
				return Beat{}, nil
			}
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Minute)
			if r.extractions != 1 || len(r.laters) != 0 || len(r.fails) != 0 || len(r.notified) != 1 || m.acks != 1 {
				t.Errorf("it went %v, %+v", r.order, r.laters)
			}
			for _, c := range r.commits {
				if c.Plan.Records[0].ID != r.commits[0].Plan.Records[0].ID {
					t.Error("the paid answer was not kept")
				}
			}
			r.end()
		})
	})

	t.Run("AnOutageThatOutlivesTheLeaseSpendsNothing", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(context.Context, int) Done { return Done{Err: errOutage} }
			r.heartbeat = func(context.Context) (Beat, error) {
				if r.tries() > 0 {
					return Beat{}, errOutage
				}
				return Beat{}, nil
			}
			r.begin()
			m := r.hint(nil)
			r.elapse(2 * time.Minute)
			if len(r.laters) != 0 || len(r.fails) != 0 || m.acks != 0 || !slices.Equal(m.naks, []time.Duration{nakDelay}) {
				t.Errorf("it went %v; acked %d times, returned %v", r.order, m.acks, m.naks)
			}
			r.end()
		})
	})

	t.Run("WhatIsStuckBesideGoodHeartbeatsIsGivenUpAsInternal", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(context.Context, int) Done { return Done{Err: errOutage} }
			r.begin()
			r.hint(nil)
			r.elapse(stepPatience - 10*time.Second)
			if len(r.laters) != 0 {
				t.Fatalf("given up after %d tries", len(r.commits))
			}
			r.elapse(20 * time.Second)
			if len(r.laters) != 1 || r.laters[0].Class != task.InternalFailure {
				t.Errorf("it went %v, %+v", r.order, r.laters)
			}
			r.end()
		})
	})

	t.Run("AnOpenOutcomeStaysOpenWhenTheRepeatFailsInAnotherWay", func(t *testing.T) {
		t.Parallel()
		for name, second := range map[string]error{"away": errOutage, "refused": errDatabase} {
			bubble(t, func(t *testing.T, r *rig) {
				r.heartbeat = func(context.Context) (Beat, error) {
					if r.tries() > 1 {
						return Beat{}, fault.ErrLeaseLost // the row says succeeded: it was committed
					}
					return Beat{}, nil
				}
				r.commit = func(ctx context.Context, try int) Done {
					switch try {
					case 1:
						return Done{Err: fault.ErrCommitUnknown}
					case 2, 3, 4, 5, 6:
						pause(ctx, 14*time.Second)
						return Done{Err: second}
					}
					return Done{Ended: true, Err: fault.ErrLeaseLost}
				}
				r.begin()
				m := r.hint(nil)
				r.elapse(3 * time.Minute)
				if len(r.commits) != 7 || len(r.notified) != 1 || m.acks != 1 || len(r.laters) != 0 {
					t.Errorf("%s: it went %v", name, r.order)
				}
				r.end()
			})
		}
	})

	t.Run("AnOpenOutcomeIsNotAskedAboutForEver", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.heartbeat = func(context.Context) (Beat, error) {
				if r.tries() > 0 {
					return Beat{}, errOutage
				}
				return Beat{}, nil
			}
			r.commit = func(context.Context, int) Done { return Done{Err: fault.ErrCommitUnknown} }
			r.begin()
			m := r.hint(nil)
			r.elapse(5 * time.Minute)
			if m.acks != 0 || len(m.naks) != 1 || len(r.laters) != 0 {
				t.Errorf("it went %v; acked %d times, returned %v", r.order, m.acks, m.naks)
			}
			r.end()
		})
	})

	t.Run("AnEndWhoseAnswerWasLostIsNoWarning", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.commit = func(_ context.Context, try int) Done {
				if try == 1 {
					return Done{Err: fault.ErrCommitUnknown}
				}
				return Done{Ended: true, Err: fault.ErrLeaseLost}
			}
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Second)
			r.end()
			for line := range bytes.Lines(r.logs.bytes()) {
				if !strings.Contains(string(line), m.id.String()) {
					continue
				}
				if !strings.Contains(string(line), `"level":"info"`) || !strings.Contains(string(line), `"end":"ended_unseen"`) {
					t.Errorf("logged %s", line)
				}
			}
		})
	})
}

func TestOpenClaim(t *testing.T) {
	t.Parallel()

	t.Run("IsAskedForUntilTheDatabaseIsBack", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.claim = func() error {
				switch since := time.Since(r.start); {
				case len(r.claims) == 1:
					return fault.ErrCommitUnknown
				case since < 20*time.Second:
					return errOutage
				}
				return nil
			}
			tokens := &tokens{Claims: r}
			r.deps.Claims = tokens
			r.begin()
			m := r.hint(nil)
			r.elapse(30 * time.Second)
			if len(slices.Compact(tokens.seen)) != 1 || m.acks != 1 || len(r.commits) != 1 {
				t.Errorf("it went %v; the tokens were %v", r.order, tokens.seen)
			}
			r.end()
		})
	})

	t.Run("IsGivenUpAfterHalfOfTheLeasesTime", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.claim = func() error {
				if len(r.claims) == 1 {
					return fault.ErrCommitUnknown
				}
				return errOutage
			}
			tokens := &tokens{Claims: r}
			r.deps.Claims = tokens
			r.begin()
			m := r.hint(nil)
			r.elapse(31 * time.Second)
			if first := tokens.seen[0]; len(m.naks) != 1 || tokens.seen[len(tokens.seen)-1] != first {
				t.Errorf("returned %v; the tokens were %v", m.naks, tokens.seen)
			}
			r.end()
		})
	})

	t.Run("WaitsForTheRowThatItMayHaveLockedItself", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll = 10 * time.Second
			r.claim = func() error {
				if len(r.claims) == 1 {
					return fault.ErrCommitUnknown
				}
				return nil
			}
			skips := &skips{Claims: r}
			r.deps.Claims = skips
			r.due = []uuid.UUID{r.add(nil)}
			r.begin()
			r.elapse(10 * time.Second)
			if !slices.Equal(skips.seen, []bool{true, false}) {
				t.Errorf("locked rows were skipped: %v", skips.seen)
			}
			r.end()
		})
	})
}

// tries counts the commits so far, while the worker runs.
func (r *rig) tries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.commits)
}

// skips notes which claims skip locked rows.
type skips struct {
	Claims
	seen []bool
}

func (c *skips) Claim(ctx context.Context, who Claimant, asks []ClaimAsk, skip bool) []Claimed {
	c.seen = append(c.seen, skip)
	return c.Claims.Claim(ctx, who, asks, skip)
}
