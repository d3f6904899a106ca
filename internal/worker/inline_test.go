package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// slowly is a job of pieces that take a second each.
type slowly struct {
	left   int
	pieces int
	err    error
}

func (s *slowly) Next(context.Context, Lease) (Chunk, error) { return Chunk{}, nil }

func (s *slowly) Apply(ctx context.Context, l Lease, _ Chunk, _ string, _ []model.Vector, _ Work) Done {
	pause(ctx, time.Second)
	if s.err != nil {
		return Done{Err: s.err}
	}
	s.pieces++
	return Done{Cursor: l.Cursor + 1, Ended: s.pieces == s.left, Heads: []task.Hint{{TaskID: l.TaskID, Seq: int64(s.pieces)}}}
}

// claimants notes who claims.
type claimants struct {
	Claims
	seen []Claimant
}

func (c *claimants) Claim(ctx context.Context, who Claimant, asks []ClaimAsk, skip bool) []Claimed {
	c.seen = append(c.seen, who)
	return c.Claims.Claim(ctx, who, asks, skip)
}

// inline runs the task for five seconds of the rig's time.
func (r *rig) inline(i *Inline, id uuid.UUID) error {
	ended := make(chan error, 1)
	go func() { ended <- i.Run(r.t.Context(), uuid.Nil, id, 5*time.Second) }()
	r.elapse(time.Minute)
	return <-ended
}

func TestInline(t *testing.T) {
	t.Parallel()

	run := func(t *testing.T, job *slowly, check func(r *rig, err error)) {
		bubble(t, func(t *testing.T, r *rig) {
			id := r.add(func(l *Lease) { l.Stage = task.Committed })
			inline, err := NewInline(r.deps.Claims, r.deps.Steps, task.Erase, job, r.deps.Publisher, r.deps.Notifier, r.cfg.LeaseTTL)
			if err != nil {
				t.Fatal(err)
			}
			check(r, r.inline(inline, id))
		})
	}

	t.Run("RunsAllPiecesThatFit", func(t *testing.T) {
		t.Parallel()
		run(t, &slowly{left: 3}, func(r *rig, err error) {
			if err != nil || len(r.notified) != 1 || len(r.published) != 3 || len(r.laters) != 0 {
				t.Errorf("%v, %+v", err, r.order)
			}
		})
	})

	t.Run("GivesTheLeaseBackWhenTheTimeIsOver", func(t *testing.T) {
		t.Parallel()
		job := &slowly{left: 100}
		run(t, job, func(r *rig, err error) {
			if err != nil || job.pieces != 5 || len(r.laters) != 1 || r.laters[0].Class != "" || r.laters[0].Delay != 0 ||
				r.laters[0].Lease.Cursor != 5 || len(r.notified) != 0 {
				t.Errorf("%v, %d pieces, %+v", err, job.pieces, r.laters)
			}
		})
	})

	t.Run("GivesTheLeaseBackAfterAFailure", func(t *testing.T) {
		t.Parallel()
		run(t, &slowly{err: fault.New(fault.UnavailableNow)}, func(r *rig, err error) {
			if !fault.Is(err, fault.UnavailableNow) || len(r.laters) != 1 {
				t.Errorf("%v, %+v", err, r.laters)
			}
		})
	})

	t.Run("LeaseIsShortAndExtended", func(t *testing.T) {
		t.Parallel()
		for workers, want := range map[time.Duration]time.Duration{
			3 * time.Second: 3 * time.Second, 10 * time.Second: 10 * time.Second, time.Minute: 10 * time.Second,
		} {
			bubble(t, func(t *testing.T, r *rig) {
				claims := &claimants{Claims: r}
				inline, err := NewInline(claims, r.deps.Steps, task.Erase, &slowly{left: 5}, r.deps.Publisher, r.deps.Notifier, workers)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.inline(inline, r.add(nil)); err != nil {
					t.Fatal(err)
				}
				if got := claims.seen[0].TTL; got != want {
					t.Errorf("a lease of %s beside those of %s", got, workers)
				}
				if beats, wanted := len(r.beats), int(5*time.Second/(want/3)); beats < wanted-1 || beats > wanted {
					t.Errorf("%d heartbeats in five seconds with a lease of %s", beats, want)
				}
			})
		}
		bubble(t, func(t *testing.T, r *rig) {
			if _, err := NewInline(r, r, task.Erase, &slowly{}, r, r, minLeaseTTL-1); err == nil {
				t.Error("a lease that a slow disk loses was taken")
			}
		})
	})

	t.Run("LostLeaseEndsItBetweenTwoPieces", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			job := &slowly{left: 100}
			inline, err := NewInline(r, r, task.Erase, job, r, r, 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			r.heartbeat = func(ctx context.Context) (Beat, error) {
				pause(ctx, time.Second/4)
				return Beat{}, fault.ErrLeaseLost
			}
			if err := r.inline(inline, r.add(nil)); !errors.Is(err, fault.ErrLeaseLost) {
				t.Errorf("%v", err)
			}
			if job.pieces != 2 || len(r.laters) != 0 {
				t.Errorf("%d pieces, %d times given back", job.pieces, len(r.laters))
			}
		})
	})

	t.Run("HeartbeatThatFailsIsRepeatedSoon", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			job := &slowly{left: 3}
			inline, err := NewInline(r, r, task.Erase, job, r, r, 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			r.heartbeat = func(context.Context) (Beat, error) { return Beat{}, errDatabase }
			if err := r.inline(inline, r.add(nil)); err != nil || job.pieces != 3 {
				t.Errorf("%v, %d pieces", err, job.pieces)
			}
			if n := len(r.beats); n < 7 || n > 9 { // at 1 s, and then every quarter of a second
				t.Errorf("%d heartbeats: %v", n, r.since(r.beats))
			}
		})
	})

	t.Run("LeavesWhatSomebodyElseHas", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			inline, err := NewInline(r.deps.Claims, r.deps.Steps, task.Erase, &slowly{}, r.deps.Publisher, r.deps.Notifier, r.cfg.LeaseTTL)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.inline(inline, uuid.New()); !errors.Is(err, errTaken) {
				t.Errorf("%v", err)
			}
		})
	})
}

// TestCancelled shows the end of a command that an erase covers: told and acknowledged, no success.
func TestCancelled(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig) {
		r.commit = func(context.Context, int) Done { return Done{Ended: true, Cancelled: true} }
		r.begin()
		m := r.hint(nil)
		r.elapse(time.Second)
		if m.acks != 1 || len(r.notified) != 1 || len(r.fails)+len(r.laters)+len(r.settles) != 0 {
			t.Errorf("it went %v", r.order)
		}
		r.end()
		if log := string(r.logs.bytes()); !strings.Contains(log, `"end":"failed"`) || !strings.Contains(log, `"class":"cancelled"`) {
			t.Errorf("logged %s", log)
		}
	})
}
