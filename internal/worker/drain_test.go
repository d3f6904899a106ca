package worker

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestDrain(t *testing.T) {
	t.Parallel()

	t.Run("FreeSlotIsFilledAtOnceWhileTasksWait", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Slots, r.cfg.Poll = 2, 10*time.Second
			r.deps.Wakeups = nil
			r.extract = lasting(time.Second)
			for range 6 {
				r.due = append(r.due, r.add(nil))
			}
			r.begin()
			r.elapse(30 * time.Second)
			want := []time.Duration{5, 5, 6, 6, 7, 7}
			for i := range want {
				want[i] *= time.Second
			}
			if got := r.since(r.claims); !slices.Equal(got, want) {
				t.Errorf("claimed at %v, want %v", got, want)
			}
			if len(r.commits) != 6 {
				t.Errorf("%d of 6 ran", len(r.commits))
			}
			r.end()
		})
	})

	t.Run("PollsAreSpread", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			next := 0.75 // the worker draws once as it begins
			r.cfg.Poll, r.deps.Wakeups = 8*time.Second, nil
			r.cfg.Rand = func() float64 {
				next += 0.25
				if next >= 1 {
					next = 0
				}
				return next
			}
			r.begin()
			r.elapse(40 * time.Second)
			// The first after a quarter of the interval; then a half plus 0.5 and 0 of it in turn: each look draws too.
			want := []time.Duration{2, 10, 14, 22, 26, 34, 38}
			for i := range want {
				want[i] *= time.Second
			}
			if got := r.since(r.dues); !slices.Equal(got, want) {
				t.Errorf("polled at %v, want %v", got, want)
			}
			r.end()
		})
	})

	t.Run("OffMeansOff", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.due = append(r.due, r.add(nil))
			r.begin()
			r.elapse(time.Hour)
			if len(r.dues) != 0 || len(r.claims) != 0 {
				t.Errorf("polled at %v", r.since(r.dues))
			}
			r.end()
		})
	})

	t.Run("RoundThatGetsNothingWaitsForTheNextPoll", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll, r.cfg.Slots, r.deps.Wakeups = 10*time.Second, 2, nil
			for range 50 {
				r.due = append(r.due, uuid.New()) // somebody else has them
			}
			r.begin()
			r.elapse(26 * time.Second)
			if len(r.dues) != 3 {
				t.Errorf("looked at %v", r.since(r.dues))
			}
			r.end()
		})
	})

	t.Run("RowThatCannotBeMovedOnStopsNothing", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll, r.deps.Wakeups = 10*time.Second, nil
			r.rescue = func() error { return errDatabase }
			r.begin()
			for range 5 {
				r.due = append(r.due, r.add(nil))
				r.elapse(10 * time.Second)
			}
			if len(r.commits) != 5 || r.rescues != 5 {
				t.Errorf("%d of 5 tasks ran beside %d rescues that failed", len(r.commits), r.rescues)
			}
			r.end()
			if n := bytes.Count(r.logs.bytes(), []byte("expired leases cannot be moved on")); n != 1 {
				t.Errorf("logged %d times", n)
			}
		})
	})

	t.Run("BusyWorkerStillMovesExpiredLeasesOn", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll, r.cfg.Slots = 10*time.Second, 1
			r.extract = lasting(5 * time.Minute)
			r.begin()
			r.hint(nil)
			r.elapse(time.Second)
			hint := task.Hint{TaskID: uuid.New(), Seq: 9}
			failed := uuid.New()
			r.rescued = []Rescued{{TaskID: hint.TaskID, Hints: []task.Hint{hint}}, {TaskID: failed, Failed: true}}
			r.elapse(15 * time.Second)
			if !slices.Equal(r.published, []task.Hint{hint}) || !slices.Equal(r.notified, []uuid.UUID{failed}) {
				t.Errorf("published %v, notified %v", r.published, r.notified)
			}
			if len(r.dues) != 0 {
				t.Error("it looked for tasks without a slot for them")
			}
			r.end()
		})
	})
}
