package repair_test

import (
	"context"
	"fmt"
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

// waiting is a NATS that holds so many hints of each class.
type waiting uint64

func (w waiting) Waiting(context.Context, string) (uint64, error) { return uint64(w), nil }

func TestHints(t *testing.T) {
	t.Parallel()

	t.Run("ATaskThatStayedDueIsHintedOnceInAHintsAge", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		head, behind := w.accept(w.main, "a"), w.accept(w.main, "a")
		require.Zero(t, w.once()[repair.PassHints].Found, "its first hint is fresh")
		w.advance(31 * time.Second)
		require.Equal(t, repair.Result{Pass: repair.PassHints, Found: 1, Fixed: 1}, w.once()[repair.PassHints])
		require.Equal(t, []uuid.UUID{head}, w.post.taken(), "%s waits in its lane", behind)
		require.Zero(t, w.once()[repair.PassHints].Found)
		w.advance(31 * time.Second)
		require.Equal(t, 1, w.once()[repair.PassHints].Fixed)
		require.EqualValues(t, 3, one[int64](w, `SELECT hint_seq FROM tasks WHERE id = $1`, head))
		require.EqualValues(t, 1, one[int64](w, `SELECT hint_seq FROM tasks WHERE id = $1`, behind))
	})

	t.Run("WhatCannotBeClaimedIsNotHinted", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		later, running, suspended := w.accept(w.main, "a"), w.accept(w.main, "b"), w.workspace()
		w.accept(suspended, "c")
		_, err := w.db.SuspendWorkspace(t.Context(), suspended.Workspace.ID.String(), true)
		require.NoError(t, err)
		class := task.ProviderTimeout
		done := w.db.Later(t.Context(), []worker.Later{{
			Lease: w.mustClaim(later), Class: class, Code: task.CodeOf(class), Delay: time.Hour,
		}})[0]
		require.NoError(t, done.Err)
		lease := w.mustClaim(running)
		w.advance(50 * time.Second)
		require.Zero(t, w.once()[repair.PassHints].Found)
		_, err = w.db.Heartbeat(t.Context(), lease, 2*time.Hour, "stub")
		require.NoError(t, err)
		w.advance(time.Hour)
		require.Equal(t, 1, w.once()[repair.PassHints].Fixed)
		require.Equal(t, []uuid.UUID{later}, w.post.taken(), "it has become due")
	})

	t.Run("FourAtOnceRaiseTheNumberByOne", func(t *testing.T) {
		t.Parallel()
		for _, kicked := range []bool{false, true} {
			w := setup(t)
			w.accepted(50)
			w.advance(31 * time.Second)
			ask := repair.Rehint{MaxAttempts: 5, Age: 30 * time.Second, Limit: 500}
			if kicked {
				ask.Age = 0
			}
			// All four have seen the same tasks before the first of them raises a number.
			tx, err := w.sql.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `LOCK TABLE tasks IN EXCLUSIVE MODE`)
			require.NoError(t, err)
			var raised atomic.Int64
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				together(4, func(int) {
					_, hints, err := w.db.Rehint(context.WithoutCancel(t.Context()), ask)
					if err != nil {
						t.Errorf("rehint: %v", err)
					}
					raised.Add(int64(len(hints)))
				})
			}()
			require.Eventually(t, func() bool {
				return one[int64](w, `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'tasks'::regclass`) == 4
			}, 10*time.Second, time.Millisecond)
			require.NoError(t, tx.Commit(t.Context()))
			<-ended
			require.EqualValues(t, 50, raised.Load())
			require.EqualValues(t, 50, one[int64](w, `SELECT count(*) FROM tasks WHERE hint_seq = 2`))
		}
	})

	t.Run("AMillionDueTasksAreNotAMillionHints", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.exec(`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command,
		                           payload_format, accepted_at, updated_at)
		        SELECT gen_random_uuid(), $1, 'memory_infer', 'pending', 'accepted', at, at, sha256('x'),
		               'interactive', 'x', 1, at, at
		          FROM generate_series(1, 600) n, (SELECT clock_timestamp() - interval '1 hour' AS at) c`, w.main.Workspace.ID)
		for range 3 {
			_, hints, err := w.db.Rehint(t.Context(), repair.Rehint{MaxAttempts: 5, Age: 30 * time.Second, Limit: 300})
			require.NoError(t, err)
			require.LessOrEqual(t, len(hints), 300)
		}
		require.EqualValues(t, 500, one[int64](w, `SELECT count(*) FROM tasks WHERE hint_seq = 2`),
			"the first five hundred have fresh hints: the rest of the queue waits for its turn")
	})

	t.Run("ALostHintBehindFreshOnesIsFoundHoweverSmallTheLimit", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		ids := w.accepted(10)
		w.advance(31 * time.Second)
		w.exec(`UPDATE tasks SET hint_at = $1 WHERE id <> $2`, *w.clock.Load(), ids[9])
		_, err := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.HintLimit = 2 }).Once(t.Context())
		require.NoError(t, err)
		require.Equal(t, ids[9:], w.post.taken())
	})

	t.Run("ADelayedRetryIsHintedOnceItIsDue", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		delayed, at := w.accept(w.main, "a"), w.accept(w.main, "b")
		class := task.ProviderTimeout
		for id, delay := range map[uuid.UUID]time.Duration{delayed: 20 * time.Second, at: 0} {
			done := w.db.Later(t.Context(), []worker.Later{{
				Lease: w.mustClaim(id), Class: class, Code: task.CodeOf(class), Delay: delay,
			}})[0]
			require.NoError(t, done.Err)
		}
		require.Zero(t, w.once()[repair.PassHints].Found, "it is not due")
		w.advance(21 * time.Second)
		require.Equal(t, 1, w.once()[repair.PassHints].Fixed)
		require.Equal(t, []uuid.UUID{delayed}, w.post.taken(), "the other one was hinted when it was given up")
		require.Zero(t, w.once()[repair.PassHints].Found, "it has its hint now")
	})

	t.Run("WhatWaitsInNATSCountsAgainstTheLimit", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.accepted(20)
		w.advance(31 * time.Second)
		for _, c := range []struct {
			waits waiting
			want  int
		}{{250, 0}, {249, 2}} { // of each of two classes, with a limit of 500
			_, err := w.repairer(func(d *repair.Deps, _ *repair.Config) { d.Backlog = c.waits }).Once(t.Context())
			require.NoError(t, err)
			require.Len(t, w.post.taken(), c.want)
		}
	})

	t.Run("OneWorkspacesBacklogHidesNoOthers", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		w.accepted(30)
		small := make([]uuid.UUID, 3)
		for i := range small {
			small[i] = w.accept(w.workspace(), "a")
		}
		w.advance(31 * time.Second)
		_, err := w.repairer(func(_ *repair.Deps, c *repair.Config) { c.HintLimit = 12 }).Once(t.Context())
		require.NoError(t, err)
		hinted := w.post.taken()
		require.Len(t, hinted, 12)
		require.Subset(t, hinted, small)
	})

	t.Run("EveryWorkspaceComesToBeLookedAt", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		want := 205 // more than one look covers
		w.exec(`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command,
		                           payload_format, accepted_at, updated_at)
		        SELECT gen_random_uuid(), gen_random_uuid(), 'memory_infer', 'pending', 'accepted', at, at, sha256('x'),
		               'interactive', 'x', 1, at, at
		          FROM generate_series(1, $1), (SELECT clock_timestamp() - interval '1 minute' AS at) c`, want)
		seen := map[uuid.UUID]bool{}
		for range 500 { // each look starts at a random place; 500 that all miss the same workspace are no chance
			_, raised, err := w.db.Rehint(t.Context(), repair.Rehint{MaxAttempts: 5, Age: 0, Limit: 100})
			require.NoError(t, err)
			for _, hint := range raised {
				seen[hint.WorkspaceID] = true
			}
			if len(seen) == want {
				return
			}
		}
		t.Fatalf("%d of %d workspaces were looked at", len(seen), want)
	})
}

// topology counts calls and answers lost and err.
type topology struct {
	calls atomic.Int64
	lost  bool
	err   error
}

func (p *topology) EnsureTopology(context.Context) (bool, error) {
	p.calls.Add(1)
	return p.lost, p.err
}

func TestTopology(t *testing.T) {
	t.Parallel()

	t.Run("HintsThatWereLostWithItAreMadeAnewInTheSameRound", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.accept(w.main, "a")
		for _, p := range []*topology{{lost: true}, {lost: true, err: fmt.Errorf("no consumers yet")}} {
			_, err := w.repairer(func(d *repair.Deps, _ *repair.Config) { d.Topology = p }).Once(t.Context())
			require.NoError(t, err)
			require.Equal(t, []uuid.UUID{id}, w.post.taken(), "its last hint is fresh, but gone")
		}
		_, err := w.repairer(func(d *repair.Deps, _ *repair.Config) { d.Topology = &topology{} }).Once(t.Context())
		require.NoError(t, err)
		require.Empty(t, w.post.taken())
	})

	t.Run("ItsFailureStopsNoOtherPass", func(t *testing.T) {
		t.Parallel()
		w := setup(t)
		id := w.accept(w.main, "a")
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		broken := &topology{err: fmt.Errorf("nats is away")}
		lines := &safeBuffer{}
		report, err := w.repairer(func(d *repair.Deps, c *repair.Config) {
			d.Topology, c.Log = broken, zerolog.New(lines)
		}).Once(t.Context())
		require.NoError(t, err, "NATS is disposable")
		require.Contains(t, lines.String(), "nats is away")
		require.EqualValues(t, 1, broken.calls.Load())
		require.Equal(t, repair.Result{Pass: repair.PassTopology, Failed: 1}, byPass(report)[repair.PassTopology])
		require.Equal(t, 1, byPass(report)[repair.PassLeases].Fixed)
		require.False(t, report.Drift, "the books have nothing to do with it")
	})
}
