package worker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestCap(t *testing.T) {
	t.Parallel()

	t.Run("HintBeyondItIsLeftToTheDrainWhichLooksAtOnce", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			crowded, calm := uuid.New(), uuid.New()
			of := func(workspace uuid.UUID) func(*Lease) { return func(l *Lease) { l.WorkspaceID = workspace } }
			r.cfg.WorkspaceLeases, r.cfg.Poll = 3, 10*time.Second
			r.extract = lasting(time.Minute)
			r.leased = func() (map[uuid.UUID]Load, error) { return map[uuid.UUID]Load{crowded: {Leases: 2}}, nil }
			r.begin()
			r.hint(of(crowded))
			r.elapse(time.Second)
			held := r.hint(of(crowded)) // its own and the two of others are three
			r.elapse(0)
			if held.acks != 1 || len(r.claims) != 1 || len(r.dues) != 1 {
				t.Errorf("acked %d times, claimed at %v, looked at %v", held.acks, r.since(r.claims), r.since(r.dues))
			}
			if other := r.hint(of(calm)); len(r.leases) != 2 || other == nil {
				t.Fatal("the rig lost a task")
			}
			r.elapse(0)
			if len(r.claims) != 2 {
				t.Errorf("another workspace's hint waits: claimed at %v", r.since(r.claims))
			}
			// What others leave free is the crowded one's all the same.
			r.due = append(r.due, held.id)
			r.hint(of(crowded))
			r.elapse(0)
			if _, waits := r.leases[held.id]; waits || len(r.claims) != 3 {
				t.Errorf("a free slot was not filled: claimed at %v", r.since(r.claims))
			}
			r.end()
		})
	})

	t.Run("IsTheWorkspacesOwnIfItHasOne", func(t *testing.T) {
		t.Parallel()
		own, other := uuid.New(), uuid.New()
		c := newCrowd(1)
		c.counted(map[uuid.UUID]Load{own: {Leases: 1, Cap: 3}, other: {Leases: 1}})
		admitted := 0
		for range 10 {
			if c.admit(own) {
				admitted++
			}
		}
		if admitted != 2 || c.admit(other) {
			t.Errorf("%d beside the one that runs elsewhere, with a cap of three", admitted)
		}
		c.leave(own)
		if !c.admit(own) {
			t.Error("a place that was given back is gone")
		}
		unlimited := newCrowd(0)
		for range 1000 {
			if !unlimited.admit(own) {
				t.Fatal("0 is any number")
			}
		}
	})

	t.Run("PlacesComeBackHoweverAClaimEnds", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.WorkspaceLeases, r.cfg.Poll = 100, time.Second
			tries := 0
			r.claim = func() error {
				if tries++; tries%3 == 0 {
					return errDatabase
				}
				return nil
			}
			r.begin()
			for range 10 {
				r.hint(nil)
				delete(r.leases, r.hint(nil).id) // somebody else has it
				r.due = append(r.due, r.add(nil))
				r.elapse(10 * time.Second)
			}
			if n := len(r.w.crowd.own); n != 0 {
				t.Errorf("%d workspaces are thought to have leases", n)
			}
			r.end()
		})
	})

	t.Run("CountsArePacedAndOneThatFailsCapsNobody", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			crowded := uuid.New()
			r.cfg.WorkspaceLeases, r.cfg.Poll = 2, time.Hour
			fails := false
			r.leased = func() (map[uuid.UUID]Load, error) {
				if fails {
					return nil, errDatabase
				}
				return map[uuid.UUID]Load{crowded: {Leases: 2}}, nil
			}
			r.begin()
			var hinted []*message
			for range 50 {
				hinted = append(hinted, r.hint(func(l *Lease) { l.WorkspaceID = crowded }))
				r.elapse(100 * time.Millisecond)
			}
			if n := len(r.counts); n < 4 || n > 6 {
				t.Errorf("counted %d times in five seconds", n)
			}
			if len(r.commits) != 1 {
				t.Errorf("%d ran before and after the first count", len(r.commits))
			}
			fails = true
			r.elapse(2 * time.Second)
			last := r.hint(func(l *Lease) { l.WorkspaceID = crowded })
			r.elapse(2 * time.Second)
			r.hint(func(l *Lease) { l.WorkspaceID = crowded })
			r.elapse(0)
			if last.acks != 1 || hinted[49].acks != 1 || len(r.commits) < 2 {
				t.Errorf("%d ran without a count", len(r.commits))
			}
			r.end()
		})
	})

	t.Run("WithoutAPollThereIsNone", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			crowded := uuid.New()
			r.cfg.WorkspaceLeases, r.cfg.Poll = 1, 0
			r.extract = lasting(time.Minute)
			r.begin()
			for range 3 {
				r.hint(func(l *Lease) { l.WorkspaceID = crowded })
			}
			r.elapse(time.Second)
			if len(r.claims) != 3 {
				t.Errorf("%d of 3 were claimed, and nobody would find the others", len(r.claims))
			}
			r.end()
		})
	})
}

// TestPollersAreSpread lets fifty workers poll for a minute: no second has more than twice the mean, from the first on when
// they start in one moment, and after a minute when something has made them poll in one. The seed makes it the same each
// time.
func TestPollersAreSpread(t *testing.T) {
	t.Parallel()
	const pollers, seconds = 50, 60
	for name, c := range map[string]struct {
		together bool
		from     int
	}{"AfterAStart": {false, 0}, "AfterAStandstill": {true, seconds}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, 11)) // #nosec G404 -- a seed that can be repeated
			w := &Worker{cfg: Config{Poll: 5 * time.Second, Rand: random.Float64}}
			polls := make([]int, c.from+seconds)
			for range pollers {
				first := w.firstPoll()
				if c.together {
					first = 0
				}
				for at := first; at < time.Duration(len(polls))*time.Second; at += w.nextPoll() {
					polls[at/time.Second]++
				}
			}
			total := 0
			for _, n := range polls[c.from:] {
				total += n
			}
			mean := float64(total) / seconds
			if most := slices.Max(polls[c.from:]); float64(most) > 2*mean {
				t.Errorf("%d polls in one second, %.1f on average", most, mean)
			}
			if mean < 9 || mean > 11 {
				t.Errorf("%.1f polls a second by %d workers at one in 5 s", mean, pollers)
			}
		})
	}
}
