package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// lengthy is a job of one piece that notes how many other tasks had ended before it.
type lengthy struct {
	rig   *rig
	takes time.Duration
	after []int
}

func (j *lengthy) Next(context.Context, Lease) (Chunk, error) { return Chunk{}, nil }

func (j *lengthy) Apply(ctx context.Context, _ Lease, _ Chunk, _ string, _ []model.Vector, _ Work) Done {
	pause(ctx, j.takes)
	j.rig.mu.Lock()
	defer j.rig.mu.Unlock()
	j.after = append(j.after, len(j.rig.commits))
	return Done{Ended: true}
}

// claimed are the claims that got a lease.
func (r *rig) claimed() []string {
	return slices.DeleteFunc(slices.Clone(r.order), func(what string) bool { return what != "claim" })
}

func TestSolo(t *testing.T) {
	t.Parallel()
	crashed := func(l *Lease) { l.Crashes = 3 }

	t.Run("CrashedTaskRunsAlone", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			running, most := 0, 0
			var alone []int
			r.extract = func(ctx context.Context) (model.Extraction, error) {
				r.mu.Lock()
				running++
				most = max(most, running)
				alone = append(alone, running)
				r.mu.Unlock()
				pause(ctx, 10*time.Second)
				r.mu.Lock()
				running--
				r.mu.Unlock()
				return oneFact(), nil
			}
			r.begin()
			r.hint(nil)
			r.hint(nil)
			r.elapse(time.Second)
			r.hint(crashed)
			r.elapse(time.Second)
			late := r.hint(nil)
			r.elapse(5 * time.Second)
			if r.extractions != 2 {
				t.Errorf("%d calls while the crashed task waits for the two before it", r.extractions)
			}
			r.elapse(5 * time.Second) // 12 s: the two are done
			if running != 1 || r.extractions != 3 {
				t.Errorf("%d tasks run, %d calls were made", running, r.extractions)
			}
			r.elapse(20 * time.Second)
			if late.acks != 1 || len(r.commits) != 4 || alone[2] != 1 || alone[3] != 1 || most != 2 {
				t.Errorf("the calls had %v running, at most %d", alone, most)
			}
			r.end()
		})
	})

	t.Run("NextIsNotClaimedBeforeItsTurn", func(t *testing.T) {
		t.Parallel()
		for _, poll := range []time.Duration{0, 5 * time.Second} {
			bubble(t, func(t *testing.T, r *rig) {
				r.extract = lasting(10 * time.Second)
				r.cfg.Poll = poll
				r.begin()
				for range 12 {
					r.hint(crashed)
				}
				for range 12 * 20 {
					r.elapse(time.Second / 2)
					if claimed := len(r.claimed()); claimed > len(r.commits)+1 {
						t.Fatalf("%d were claimed when %d had ended", claimed, len(r.commits))
					}
				}
				r.elapse(pullWait + 12*(lull+lastSlotWait))
				if len(r.laters) != 0 || len(r.commits) != 12 {
					t.Errorf("%d of 12 ended, %d were given back", len(r.commits), len(r.laters))
				}
				r.end()
			})
		}
	})

	t.Run("QueueOfThemTakesHalfOfTheTime", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			const slots, alone, each = 4, 4 * time.Second, 200 * time.Millisecond
			r.cfg.Poll, r.cfg.Slots = time.Second, slots
			r.extract = lasting(each)
			job := &lengthy{rig: r, takes: alone}
			r.deps.Jobs = map[task.Kind]Job{task.Import: job}
			for range 1000 {
				r.due = append(r.due, r.add(nil))
			}
			for range 4 {
				r.add(func(l *Lease) { l.Kind, l.Crashes = task.Import, 3 })
			}
			r.begin()
			r.elapse(time.Minute)
			if len(job.after) != 4 || len(r.laters) != 0 {
				t.Fatalf("%d of 4 ended alone, %d were given back", len(job.after), len(r.laters))
			}
			for i := range 3 {
				// In as much time as the one took that was alone, and the others' last run.
				full := int(alone/each) * slots
				if between := job.after[i+1] - job.after[i]; between < full/2 || between > full+4*slots {
					t.Errorf("%d of the others ended between two that ran alone, and in that time %d can: %v", between, full, job.after)
				}
			}
			r.end()
		})
	})

	t.Run("OthersThatTakeLongAreNotHeldUp", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.ModelTimeout = 20 * time.Second
			r.extract = lasting(time.Second)
			r.commit = func(ctx context.Context, try int) Done {
				if try <= 4 { // the first task's, whose step takes a minute
					pause(ctx, stepBound)
					return Done{Err: errDatabase}
				}
				return Done{Ended: true}
			}
			r.begin()
			r.hint(nil)
			r.elapse(time.Second)
			r.hint(crashed)
			r.elapse(2 * pullWait)
			late := r.hint(nil)
			r.elapse(20*time.Second + stepBound - 3*time.Second)
			if late.acks != 0 || len(r.claimed()) != 1 {
				t.Errorf("the process was not kept for the one that waits: it went %v", r.order)
			}
			r.elapse(5 * time.Second)
			if len(r.laters) != 0 {
				t.Errorf("%d were given back", len(r.laters))
			}
			if _, waits := r.leases[late.id]; waits {
				t.Error("the others don't have their time after it")
			}
			r.end()
		})
	})

	t.Run("JobInPiecesGivesWay", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			job := &slowly{left: 1000}
			r.deps.Jobs = map[task.Kind]Job{task.Import: job}
			r.begin()
			r.hint(func(l *Lease) { l.Kind = task.Import })
			r.elapse(10 * time.Second)
			if len(r.published) < 9 { // each piece asks for a hint
				t.Fatalf("%d pieces", len(r.published))
			}
			lone := r.hint(crashed)
			r.elapse(pullWait + 2*time.Second)
			if len(r.laters) != 1 || r.laters[0].Class != "" || r.laters[0].Lease.Kind != task.Import || len(r.commits) != 1 || lone.acks != 1 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("JobThatCrashedDoesNotGiveWayToItself", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			job := &slowly{left: 5}
			r.deps.Jobs = map[task.Kind]Job{task.Import: job}
			r.begin()
			r.hint(func(l *Lease) { l.Kind, l.Crashes = task.Import, 3 })
			r.elapse(10 * time.Second)
			if len(r.laters) != 0 || len(r.published) != 5 {
				t.Errorf("%d pieces, %d times given back", len(r.published), len(r.laters))
			}
			r.end()
		})
	})

	t.Run("PollFindsThemWithoutAHint", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Poll, r.deps.Wakeups = 10*time.Second, nil
			r.begin()
			r.elapse(time.Second)
			r.add(crashed)
			r.elapse(10 * time.Second)
			if len(r.commits) != 1 {
				t.Errorf("looked at %v", r.since(r.looks))
			}
			r.end()
		})
	})

	t.Run("LookThatFailsIsRepeated", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			failing := true
			r.lookAlone = func() error {
				if failing {
					return errDatabase
				}
				return nil
			}
			r.begin() // without a poll: nothing else would look again
			r.hint(crashed)
			r.elapse(10 * time.Second)
			if n := len(r.looks); n < 3 || n > 40 {
				t.Errorf("looked %d times in ten seconds of a database that is down", n)
			}
			failing = false
			r.elapse(longBreath + time.Second)
			if len(r.commits) != 1 {
				t.Errorf("it went %v", r.order)
			}
			r.end()
		})
	})

	t.Run("HintsOfWhatHasEndedAskForFewLooks", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.begin()
			for range 100 {
				r.hints.interactive <- &message{rig: r, id: uuid.New()}
				r.elapse(50 * time.Millisecond)
			}
			if n := len(r.looks); n < 10 || n > 21 {
				t.Errorf("looked %d times in five seconds", n)
			}
			r.end()
		})
	})

	t.Run("NoneIsClaimedAfterTheEndOfIntake", func(t *testing.T) {
		t.Parallel()
		for range 20 { // a free slot and the end of intake are there at once: which one is seen first is chance
			bubble(t, func(t *testing.T, r *rig) {
				r.lookAlone = func() error {
					r.w.EndIntake()
					return nil
				}
				r.begin()
				r.hint(crashed)
				r.elapse(time.Second)
				if len(r.looks) != 1 || len(r.claimed()) != 0 {
					t.Errorf("after %d looks it went %v", len(r.looks), r.order)
				}
				r.end()
			})
		}
	})

	t.Run("StopEndsTheWait", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = untilDone
			r.begin()
			r.hint(nil)
			r.elapse(0)
			m := r.hint(crashed)
			r.elapse(time.Second)
			r.end()
			if len(r.laters) != 1 || r.extractions != 1 || m.acks != 1 || len(r.claimed()) != 1 {
				t.Errorf("%d given back: %v", len(r.laters), r.order)
			}
		})
	})

	t.Run("NoneIsClaimedWhileAnotherRuns", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.extract = lasting(10 * time.Second)
			r.begin()
			r.hint(nil)
			r.elapse(0)
			r.hint(crashed)
			r.elapse(9 * time.Second)
			if len(r.claimed()) != 1 {
				t.Errorf("while another runs that may take the process down: %v", r.order)
			}
			r.elapse(2 * time.Second)
			if len(r.claimed()) != 2 {
				t.Errorf("after it: %v", r.order)
			}
			r.end()
		})
	})

	t.Run("EverySecondWorkerBeginsWithThem", func(t *testing.T) {
		t.Parallel()
		for coin, want := range map[float64]int{0.25: 1, 0.75: 4} {
			bubble(t, func(t *testing.T, r *rig) {
				r.extract = lasting(200 * time.Millisecond)
				r.cfg.Rand = func() float64 { return coin }
				for range 3 {
					r.add(crashed)
				}
				for range 4 {
					r.hint(nil)
				}
				r.begin()
				r.elapse(100 * time.Millisecond)
				if got := len(r.claimed()); got != want {
					t.Errorf("%d run at first, not %d", got, want)
				}
				r.elapse(10 * time.Second)
				if len(r.commits) < 4 {
					t.Errorf("it went %v", r.order)
				}
				r.end()
			})
		}
	})

	t.Run("SeveralRunWhileTheProcessIsClosed", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			const wait, each = 10 * time.Second, 500 * time.Millisecond
			r.cfg.Poll = time.Second
			job := &lengthy{rig: r, takes: wait}
			r.deps.Jobs = map[task.Kind]Job{task.Import: job}
			r.extract = lasting(each)
			r.begin()
			r.hint(func(l *Lease) { l.Kind = task.Import })
			r.elapse(0)
			for range 12 {
				r.add(crashed)
			}
			r.elapse(wait + 12*each + time.Second) // no longer than the wait was: all of them have their turn in it
			if len(r.commits) != 12 {
				t.Errorf("%d of 12 ended: %v", len(r.commits), r.order)
			}
			r.end()
		})
	})
}
