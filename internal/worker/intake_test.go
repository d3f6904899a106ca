package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestHints(t *testing.T) {
	t.Parallel()

	t.Run("OnlyWhatHasAFreeSlotIsPulled", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Slots = 4
			r.extract = lasting(3 * time.Second)
			r.begin()
			for range 20 {
				r.hint(nil)
				r.hints.bulk <- &message{rig: r, id: r.add(nil)}
			}
			for range 100 {
				r.elapse(time.Second / 2)
				if claimed := len(r.claims) - len(r.commits); claimed > 4 {
					t.Fatalf("%d tasks were claimed for 4 slots", claimed)
				}
			}
			if len(r.commits) != 40 || r.hints.most > 4 {
				t.Errorf("%d of 40 tasks ran; up to %d hints were asked for at a time", len(r.commits), r.hints.most)
			}
			r.end()
		})
	})

	t.Run("InteractiveBurstFillsEverySlotAtOnce", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = untilDone
			r.begin()
			r.elapse(10 * time.Second)
			before := len(r.hints.asked)
			for range 8 {
				r.hint(nil)
			}
			r.elapse(0)
			if n := slices.Max(r.hints.asked[before:]); n < 5 {
				t.Errorf("a pull after a full one asked for %d hints at most", n)
			}
			if r.extractions < 7 {
				t.Errorf("%d of 8 tasks run while a bulk pull holds a slot", r.extractions)
			}
			r.elapse(2 * pullWait)
			if r.extractions != 8 {
				t.Errorf("%d of 8 tasks run", r.extractions)
			}
			r.end()
		})
	})

	t.Run("PlentyOfHintsLeaveSlotsIdleForTheFetchAlone", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			const each = 10 * time.Millisecond
			r.cfg.Slots = 64
			r.deps.Wakeups = &plenty{rig: r, trip: time.Millisecond}
			r.commit = func(ctx context.Context, _ int) Done {
				pause(ctx, each)
				return Done{Ended: true}
			}
			r.begin()
			r.elapse(10 * each)
			before := len(r.commits)
			r.elapse(10 * each)
			if n, most := len(r.commits)-before, 10*r.cfg.Slots; n < most*6/10 { // a pause between two pulls leaves a few only
				t.Errorf("%d tasks ran where the slots were enough for %d", n, most)
			}
			r.end()
		})
	})

	t.Run("BulkIsNotStarvedByOneSlot", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Slots = 1
			r.extract = lasting(time.Second)
			r.begin()
			for range 50 {
				r.hint(nil)
			}
			m := &message{rig: r, id: r.add(nil)}
			r.hints.bulk <- m
			r.elapse(10 * time.Second)
			if m.acks != 1 {
				t.Error("the bulk task did not run within ten others")
			}
			r.end()
		})
	})

	t.Run("IdleWorkerWithOneSlotTakesBulkSoon", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Slots = 1
			r.begin()
			for range 5 {
				r.elapse(3700 * time.Millisecond)
				m := &message{rig: r, id: r.add(nil)}
				r.hints.bulk <- m
				r.elapse(pullWait + lastSlotWait)
				if m.acks != 1 {
					t.Error("a bulk task waited for more than one pull of the other class")
				}
			}
			r.end()
		})
	})

	t.Run("TaskThatIsNotToBeHadIsAcked", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			m := &message{rig: r, id: uuid.New()}
			r.hints.interactive <- m
			r.elapse(0)
			if m.acks != 1 || r.extractions != 0 {
				t.Errorf("acked %d times", m.acks)
			}
			r.end()
		})
	})

	t.Run("FailedClaimReturnsTheHintAndSlowsDown", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.claim = func() error { return errDatabase }
			r.begin()
			var sent []*message
			for range 100 {
				sent = append(sent, r.hint(nil))
			}
			r.elapse(10 * time.Second)
			for _, m := range sent {
				if m.acks != 0 {
					t.Fatal("a hint was acked that nobody looked at")
				}
				for _, d := range m.naks {
					if d < nakDelay || d > 2*nakDelay {
						t.Errorf("a hint comes again after %s", d)
					}
				}
			}
			if len(r.claims) == 0 || len(r.claims) > 50 {
				t.Errorf("%d claims within 10 s of a database that is down", len(r.claims))
			}
			r.end()
		})
	})

	t.Run("UnknownClaimIsAskedForWithTheSameToken", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			tries := 0
			r.claim = func() error {
				if tries++; tries < 3 {
					return fmt.Errorf("claim: %w", fault.ErrCommitUnknown)
				}
				return nil
			}
			tokens := &tokens{Claims: r}
			r.deps.Claims = tokens
			r.begin()
			m := r.hint(nil)
			r.elapse(time.Second)
			if len(tokens.seen) != 3 || len(slices.Compact(tokens.seen)) != 1 || m.acks != 1 {
				t.Errorf("the tokens were %v", tokens.seen)
			}
			r.end()
		})
	})

	t.Run("SourceThatFailsIsAskedEverMoreRarelyAndPollingGoesOn", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll = 5 * time.Second
			r.hints.err = errors.New("no stream")
			r.begin()
			r.due = append(r.due, r.add(nil))
			r.elapse(time.Minute)
			if len(r.commits) != 1 {
				t.Error("the due task did not run")
			}
			if n := len(r.hints.asked); n < 20 || n > 60 {
				t.Errorf("asked %d times in a minute", n)
			}
			r.hints.err = nil
			r.elapse(longBreath)
			m := r.hint(nil)
			r.elapse(0)
			if m.acks != 1 {
				t.Error("hints did not come back")
			}
			r.end()
		})
	})

	t.Run("EmptyAnswersAtOnceDoNotSpin", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			eager := &eager{}
			r.deps.Wakeups = eager
			r.begin()
			r.elapse(time.Second)
			if eager.n > 2*int(time.Second/emptyPace)+2 {
				t.Errorf("asked %d times in a second", eager.n)
			}
			r.end()
		})
	})

	t.Run("MoreThanAskedForGoesBack", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Slots = 1
			flood := &eager{flood: []*message{{rig: r, id: r.add(nil)}, {rig: r, id: r.add(nil)}}}
			r.deps.Wakeups = flood
			first, second := flood.flood[0], flood.flood[1]
			r.begin()
			r.elapse(0)
			if first.acks != 1 || second.acks != 0 || !slices.Equal(second.naks, []time.Duration{0}) {
				t.Errorf("acked %d and %d times, returned %v", first.acks, second.acks, second.naks)
			}
			r.end()
		})
	})
}

// tokens notes the tokens of claims.
type tokens struct {
	Claims
	seen []uuid.UUID
}

func (c *tokens) Claim(ctx context.Context, who Claimant, asks []ClaimAsk, skip bool) []Claimed {
	c.seen = append(c.seen, asks[0].Token)
	return c.Claims.Claim(ctx, who, asks, skip)
}

// plenty answers with as many interactive hints as it is asked for, after a round trip.
type plenty struct {
	rig  *rig
	trip time.Duration
}

func (p *plenty) Fetch(ctx context.Context, class string, n int) ([]Wakeup, error) {
	if class == task.Bulk {
		<-ctx.Done()
		return nil, nil
	}
	pause(ctx, p.trip)
	p.rig.mu.Lock()
	defer p.rig.mu.Unlock()
	found := make([]Wakeup, n)
	for i := range found {
		found[i] = &message{rig: p.rig, id: p.rig.add(nil), workspace: uuid.New()}
	}
	return found, nil
}

// eager answers at once: first with a flood, then with nothing.
type eager struct {
	n     int
	flood []*message
}

func (e *eager) Fetch(_ context.Context, class string, _ int) ([]Wakeup, error) {
	if class == task.Bulk {
		return nil, nil
	}
	e.n++
	var found []Wakeup
	for _, m := range e.flood {
		found = append(found, m)
	}
	e.flood = nil
	return found, nil
}
