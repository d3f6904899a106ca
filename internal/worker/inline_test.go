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

// inline runs the task for five seconds of the rig's time.
func (r *rig) inline(i *Inline, id uuid.UUID) error {
	ended := make(chan error, 1)
	go func() { ended <- i.Run(r.t.Context(), id, 5*time.Second) }()
	r.elapse(time.Minute)
	return <-ended
}

func TestInline(t *testing.T) {
	t.Parallel()

	run := func(t *testing.T, job *slowly, check func(r *rig, err error)) {
		bubble(t, func(t *testing.T, r *rig) {
			id := r.add(func(l *Lease) { l.Stage = task.Committed })
			inline, err := NewInline(r.deps.Claims, r.deps.Steps, task.Erase, job, r.deps.Publisher, r.deps.Notifier)
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

	t.Run("LeavesWhatSomebodyElseHas", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			inline, err := NewInline(r.deps.Claims, r.deps.Steps, task.Erase, &slowly{}, r.deps.Publisher, r.deps.Notifier)
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
