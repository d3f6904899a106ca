package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestMinutes(t *testing.T) {
	t.Parallel()

	t.Run("ComeBackAsTheyWereKept", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		kept := operator.ProcessMinute{
			Process: "api-1", Span: 59 * time.Second, Accepted: 1, Replayed: 2, Refused: 3, Succeeded: 4, Retried: 5, Failed: 6, GivenBack: 7,
			HintsPublished: 8, HintsFailed: 9, HintsFixed: 10, ModelCalls: 11, ModelErrors: map[string]int64{"provider_timeout": 12}, Busy: 13,
		}
		kept.AcceptTimes.Add(time.Millisecond)
		kept.ModelTimes.Add(time.Second)
		require.NoError(t, w.db.AddMinute(t.Context(), kept))
		require.NoError(t, w.db.AddMinute(t.Context(), operator.ProcessMinute{Process: "worker-1"}))
		all, err := w.db.Minutes(t.Context(), time.Hour)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, "worker-1", all[0].Process, "the newest comes first")
		kept.At = all[1].At
		require.Equal(t, kept, all[1])
		w.advance(2 * time.Hour)
		all, err = w.db.Minutes(t.Context(), time.Hour)
		require.NoError(t, err)
		require.Empty(t, all)
	})

	t.Run("OneOfAllProcessesKeepsTheStanding", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		running := w.mustClaim(w.accept("a", say("u", "one")))
		w.accept("b", say("v", "two"))
		w.fail(w.mustClaim(w.accept("c", say("x", "three"))), task.ExtractionRejected)
		now := one[time.Time](w, `SELECT clock_timestamp()`)
		w.clock.Store(&now)
		for range 3 {
			require.NoError(t, w.db.KeepStanding(t.Context()))
		}
		all, err := w.db.Standings(t.Context(), time.Hour)
		require.NoError(t, err)
		require.Len(t, all, 1)
		require.Equal(t, [5]int{1, 1, 0, 1, 0}, [5]int{all[0].Waiting, all[0].Running, all[0].Retrying, all[0].Due, all[0].Expired})
		require.Equal(t, 1, all[0].Failed)
		w.advance(2 * time.Minute) // the lease is over, and the failure long ago
		require.NoError(t, w.db.KeepStanding(t.Context()))
		all, err = w.db.Standings(t.Context(), time.Hour)
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, [5]int{1, 0, 1, 1, 1}, [5]int{all[1].Waiting, all[1].Running, all[1].Retrying, all[1].Due, all[1].Expired}, running)
		require.Zero(t, all[1].Failed)
		require.InDelta(t, 2*time.Minute, all[1].OldestDue, float64(30*time.Second))
	})

	t.Run("AreForgottenAfterADay", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		holder := access.Holder{ID: "aaaaaaaaaaaa"}
		require.NoError(t, w.db.AddMinute(t.Context(), operator.ProcessMinute{Process: "old"}))
		require.NoError(t, w.db.KeepStanding(t.Context()))
		require.NoError(t, w.db.OpenSession(t.Context(), [32]byte{1}, holder, 12*time.Hour))
		w.advance(23 * time.Hour)
		require.NoError(t, w.db.AddMinute(t.Context(), operator.ProcessMinute{Process: "new"}))
		require.NoError(t, w.db.OpenSession(t.Context(), [32]byte{2}, holder, 12*time.Hour))
		swept, err := w.db.ForgetConsole(t.Context(), 24*time.Hour, 10)
		require.NoError(t, err)
		require.Equal(t, 1, swept.Fixed, "the session that is over")
		w.advance(2 * time.Hour)
		swept, err = w.db.ForgetConsole(t.Context(), 24*time.Hour, 10)
		require.NoError(t, err)
		require.Equal(t, 2, swept.Fixed, "a row of each kind")
		require.False(t, swept.More)
		require.Equal(t, "new", one[string](w, `SELECT string_agg(process, '') FROM process_minutes`))
		require.EqualValues(t, 1, one[int64](w, `SELECT count(*) FROM console_sessions`))
	})
}

func TestPulse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	at := w.frozen()
	w.accept("a", say("u", "one"))
	w.advance(10 * time.Minute)
	w.fail(w.mustClaim(w.accept("b", say("v", "two"))), task.ExtractionRejected)
	w.mustClaim(w.accept("c", say("x", "three")))
	pulse, err := w.db.Pulse(t.Context(), w.caller.Workspace.ID)
	require.NoError(t, err)
	require.Equal(t, [3]int{1, 1, 0}, [3]int{pulse.Pending, pulse.Running, pulse.Retrying})
	require.Equal(t, recall.PulseMinute{Accepted: 3, Failed: 1}, pulse.Totals())
	require.Equal(t, recall.PulseMinute{Accepted: 2, Failed: 1}, pulse.Minutes[59])
	require.Equal(t, recall.PulseMinute{Accepted: 1}, pulse.Minutes[49])
	require.Equal(t, 10*time.Minute, pulse.OldestDue.Round(time.Second), at)
	require.False(t, pulse.More)
	other := w.workspace(10)
	pulse, err = w.db.Pulse(t.Context(), other.Workspace.ID)
	require.NoError(t, err)
	require.Zero(t, pulse.Totals())
	require.Zero(t, pulse.Pending+pulse.Running)
}

func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	id := w.accept("a", say("u", "one"))
	w.mustClaim(id)
	life, err := w.db.Life(t.Context(), w.caller.Workspace.ID, id)
	require.NoError(t, err)
	require.NotNil(t, life.Lease)
	require.False(t, life.Lease.Expired)
	require.Equal(t, 1, life.Lease.Claim)
	w.advance(2 * time.Minute)
	life, err = w.db.Life(t.Context(), w.caller.Workspace.ID, id)
	require.NoError(t, err)
	require.True(t, life.Lease.Expired)
	second := w.mustClaim(id) // over the expired lease: the first claim is a crash
	w.advance(time.Second)
	w.fail(second, task.ExtractionRejected)
	w.advance(time.Second)
	generation := 1
	_, err = w.retrier().Retry(t.Context(), w.caller, id, &generation, nil)
	require.NoError(t, err)
	life, err = w.db.Life(t.Context(), w.caller.Workspace.ID, id)
	require.NoError(t, err)
	var kinds []recall.StepKind
	for _, step := range life.Steps() {
		kinds = append(kinds, step.Kind)
	}
	require.Equal(t, []recall.StepKind{
		recall.StepAccepted, recall.StepClaimed, recall.StepAttempt, recall.StepClaimed, recall.StepAttempt, recall.StepReleased,
		recall.StepReopened, recall.StepHinted,
	}, kinds)
	require.Equal(t, "crashed", life.Attempts[0].Ending)
	require.Equal(t, []int64{2, 2}, []int64{life.Runs[0].Amount, life.Runs[1].Amount})
	require.Nil(t, life.Lease)
	_, err = w.db.Life(t.Context(), uuid.New(), id)
	require.ErrorContains(t, err, "EVENT_NOT_FOUND")
}

// TestFoundEvents looks beyond what one look covers.
func TestFoundEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format, outcome, accepted_at, updated_at, completed_at)
SELECT gen_random_uuid(), $1, 'memory_infer', 'succeeded', 'projected', now(), now(), CASE WHEN n IN (3, 5500) THEN 'rare' ELSE 'common' END, sha256('x'), 'bulk', 1,
       'STORED', now() - n * interval '1 second', now(), now()
  FROM generate_series(1, 6000) n`, w.caller.Workspace.ID)
	filter := recall.EventFilter{Kinds: task.Kinds(), By: recall.User, Value: "rare", Limit: 50}
	var sizes []int
	for {
		page, err := w.db.EventReader(5).FoundEvents(t.Context(), w.caller.Workspace.ID, filter)
		require.NoError(t, err)
		sizes = append(sizes, len(page.Events))
		if filter.After = page.Next; page.Next == nil {
			break
		}
	}
	require.Equal(t, []int{1, 1}, sizes)
	filter = recall.EventFilter{Kinds: task.Kinds(), Within: 10 * time.Second, Limit: 50}
	page, err := w.db.EventReader(5).FoundEvents(t.Context(), w.caller.Workspace.ID, filter)
	require.NoError(t, err)
	require.Less(t, len(page.Events), 10)
}
