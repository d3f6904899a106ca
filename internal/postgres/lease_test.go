package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	t.Run("ExpiredLeaseHasOneWinner", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		var winners atomic.Int32
		together(10, func(i int) {
			c := w.db.Claim(context.Background(), claimant(keyName(i)), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
			if c.Err != nil {
				t.Errorf("claim: %v", c.Err)
			}
			if c.Lease != nil {
				winners.Add(1)
			}
		})
		if winners.Load() != 1 {
			t.Fatalf("%d winners", winners.Load())
		}
		if n := one[int64](w, `SELECT count(*) FROM task_attempts WHERE ending = 'crashed' AND claim = 1`); n != 1 {
			t.Fatalf("the crash has %d attempt rows", n)
		}
	})
	t.Run("NothingOfALostLeaseIsWritten", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		old := w.mustClaim(id)
		w.advance(2 * time.Minute)
		now := w.mustClaim(id) // the same worker, another claim
		if now.Claim != 2 || now.Crashes != 2 {
			t.Fatalf("second claim %+v", now)
		}
		if _, err := w.db.Heartbeat(t.Context(), old, time.Minute, ""); !errors.Is(err, fault.ErrLeaseLost) {
			t.Fatalf("heartbeat: %v", err)
		}
		wantLost(t, "commit", w.commit(old, "from the dead"))
		wantLost(t, "complete", w.complete(old, "from the dead"))
		wantLost(t, "settle", w.settle(old))
		wantLost(t, "fail", w.fail(old, task.OutputInvalid))
		wantLost(t, "retry", w.later(old, task.OutputInvalid, 0))
		wantLost(t, "give back", w.later(old, "", 0))
		wantDone(t, "complete", w.complete(now, "alive"))
		wantLost(t, "settle after the end", w.settle(old))
		if got := one[string](w, `SELECT string_agg(text, ',') FROM memories`); got != "alive" {
			t.Fatalf("records %s", got)
		}
		wantBalance(t, w, 98, 0)
	})
	t.Run("AHolderOfACommittedTaskThatWasOvertakenProjectsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		old := w.mustClaim(id)
		wantDone(t, "commit", w.commit(old, "fact"))
		w.advance(2 * time.Minute)
		now := w.mustClaim(id)
		if now.Stage != task.Committed {
			t.Fatalf("stage %s", now.Stage)
		}
		wantLost(t, "settle", w.settle(old))
		if n := one[int64](w, `SELECT count(*) FROM memory_vectors`); n != 0 {
			t.Fatal("vectors of a lost lease")
		}
		wantLost(t, "fail after the canonical commit", w.fail(now, task.InternalFailure))
		wantDone(t, "settle", w.settle(now))
		wantBalance(t, w, 98, 0)
	})
	t.Run("AClaimWhoseAnswerWasLostCountsOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		proxy := testkit.CommitCutProxy(t, w.url)
		far := w.open(proxy.URL())
		lost := proxy.LoseNextAnswer("SET status = 'running'")
		claimed := far.Claim(t.Context(), claimant("w"), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
		<-lost
		if claimed.Err != nil || claimed.Lease == nil || claimed.Lease.Claim != 1 {
			t.Fatalf("claim %+v", claimed)
		}
		if one[int64](w, `SELECT claims FROM tasks`) != 1 || one[int64](w, `SELECT crashes FROM tasks`) != 1 {
			t.Fatal("counted twice")
		}
		wantDone(t, "complete", w.complete(*claimed.Lease, "fact"))
	})
	t.Run("SkipsWhatIsNotToBeHad", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.accept("k1", say("u", "a"))
		second := w.accept("k2", say("u", "b"))
		if w.claim(second, "w") != nil {
			t.Fatal("claimed behind the head of its lane")
		}
		w.exec(`INSERT INTO provider_pauses (provider, paused_until, class, updated_at) VALUES ('stub', now() + interval '1 hour', 'x', now())`)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed for a paused provider")
		}
		w.exec(`DELETE FROM provider_pauses`)
		w.exec(`UPDATE workspaces SET suspended_at = now()`)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed for a suspended workspace")
		}
		w.exec(`UPDATE workspaces SET suspended_at = NULL`)
		w.exec(`UPDATE tasks SET payload_format = 99 WHERE id = $1`, first)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed a payload it cannot read")
		}
		w.exec(`UPDATE tasks SET payload_format = 1 WHERE id = $1`, first)
		w.exec(`UPDATE tasks SET run_after = now() + interval '1 hour' WHERE id = $1`, first)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed before its time")
		}
		w.exec(`UPDATE tasks SET run_after = now() WHERE id = $1`, first)
		l := w.mustClaim(first)
		wantDone(t, "complete", w.complete(l, "a"))
		w.mustClaim(second)
	})
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	t.Run("ALoopEndsFailedWithOneReleaseAlsoBesideACommittedRow", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		committed := w.accept("c", say("other", "a"))
		wantDone(t, "commit", w.commit(w.mustClaim(committed), "fact"))
		id := w.accept("k", say("u", "a"))
		waiting := w.accept("next", say("u", "b"))
		for range 5 {
			w.mustClaim(id)
			w.advance(2 * time.Minute)
		}
		if w.claim(id, "w") != nil {
			t.Fatal("a sixth claim")
		}
		rescued, err := w.db.Rescue(t.Context(), 5, 100)
		if err != nil || len(rescued) != 2 {
			t.Fatalf("rescued %+v: %v", rescued, err)
		}
		if w.status(id) != "failed/accepted" || w.status(committed) != "pending/committed" {
			t.Fatalf("%s, %s", w.status(id), w.status(committed))
		}
		if again, err := w.db.Rescue(t.Context(), 5, 100); err != nil || len(again) != 0 {
			t.Fatalf("rescued again %+v: %v", again, err)
		}
		w.mustClaim(waiting) // the lane went on
		for range 8 {        // after the canonical commit no budget applies
			w.mustClaim(committed)
			w.advance(2 * time.Minute)
		}
		wantDone(t, "settle", w.settle(w.mustClaim(committed)))
		if n := one[int64](w, `SELECT count(*) FROM task_attempts WHERE task_id = $1 AND ending = 'crashed'`, id); n != 5 {
			t.Fatalf("%d crashed attempts", n)
		}
		wantBalance(t, w, 96, 2)
	})
	t.Run("RescueIsACASOnWhatItSaw", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		var moved atomic.Int32
		together(8, func(int) {
			rescued, err := w.db.Rescue(context.Background(), 5, 100)
			if err != nil {
				t.Errorf("rescue: %v", err)
			}
			moved.Add(int32(len(rescued)))
		})
		if moved.Load() != 1 || one[int64](w, `SELECT hint_seq FROM tasks`) != 2 {
			t.Fatalf("moved %d times", moved.Load())
		}
	})
	t.Run("AnEndThatIsDecidedTooLateChangesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		pending, running := w.accept("k", say("u", "a")), w.accept("k2", say("u2", "a"))
		w.mustClaim(running)
		w.advance(2 * time.Minute)
		for _, id := range []uuid.UUID{pending, running} {
			if moved, err := w.db.Exhaust(t.Context(), id, 5); err != nil || moved != nil {
				t.Fatalf("exhaust: %+v, %v", moved, err)
			}
		}
		w.exec(`UPDATE tasks SET crashes = 5`)
		w.mustClaimNot(running)
		wantBalance(t, w, 96, 4)
		if moved, err := w.db.Exhaust(t.Context(), running, 5); err != nil || moved == nil {
			t.Fatalf("exhaust of an exhausted task: %+v, %v", moved, err)
		}
		wantBalance(t, w, 98, 2)
	})
	t.Run("OneBrokenRowDoesNotStopTheRest", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		broken, sound := w.accept("k1", say("u1", "a")), w.accept("k2", say("u2", "a"))
		for _, id := range []uuid.UUID{broken, sound} {
			w.mustClaim(id)
		}
		w.exec(`UPDATE tasks SET crashes = 5`)
		w.exec(`DELETE FROM task_runs WHERE task_id = $1`, broken)
		w.advance(2 * time.Minute)
		rescued, err := w.db.Rescue(t.Context(), 5, 100)
		if err == nil || len(rescued) != 1 || rescued[0].TaskID != sound {
			t.Fatalf("rescued %+v: %v", rescued, err)
		}
	})
	t.Run("AGivenBackLeaseLeavesNoTrace", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		done := wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
		if done.Hint == nil || done.Hint.Seq != 2 {
			t.Fatalf("hint %+v", done.Hint)
		}
		if got := one[string](w, `SELECT crashes || ' ' || starts || ' ' || claims || ' ' || spent FROM tasks`); got != "0 0 1 {}" {
			t.Fatalf("crashes, starts, claims, spent: %s", got)
		}
	})
	t.Run("ARecordedFailureSpendsItsClass", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "later", w.later(w.mustClaim(id), task.OutputInvalid, 0))
		wantDone(t, "later", w.later(w.mustClaim(id), task.ProviderTimeout, 0))
		l := w.mustClaim(id)
		if l.Spent[task.OutputInvalid] != 1 || l.Spent[task.ProviderTimeout] != 1 || l.Crashes != 1 {
			t.Fatalf("lease %+v", l)
		}
	})
}

func TestCredits(t *testing.T) {
	t.Parallel()
	t.Run("EachEndReleasesOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for i, class := range []task.Class{
			task.ProviderTimeout, task.ProviderUnavailable, task.ProviderRateLimited, task.ProviderRejected,
			task.OutputInvalid, task.ExtractionRejected, task.InternalFailure,
		} {
			id := w.accept(keyName(i), say("u", "a"))
			l := w.mustClaim(id)
			wantDone(t, "fail", w.fail(l, class))
			wantLost(t, "fail again", w.fail(l, class))
			wantLost(t, "complete after failure", w.complete(l, "x"))
			wantBalance(t, w, 100, 0)
		}
	})
	t.Run("ASecondClosingIsImpossibleByConstraint", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		for name, sql := range map[string]string{
			"settle before the outcome": `INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
				SELECT task_id, 1, workspace_id, 'succeeded', 2, 2, 0, now() FROM task_runs WHERE task_id = $1`,
			"outcome without a closing": `UPDATE task_runs SET outcome = 'failed' WHERE task_id = $1`,
			"a second open run":         `INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at) SELECT task_id, 2, workspace_id, 0, now() FROM task_runs WHERE task_id = $1`,
		} {
			if _, err := w.sql.Exec(t.Context(), sql, id); err == nil {
				t.Fatalf("%s was possible", name)
			}
		}
		wantDone(t, "complete", w.complete(w.mustClaim(id), "fact"))
		for name, sql := range map[string]string{
			"a second settle": `INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
				SELECT task_id, generation, workspace_id, 'succeeded', amount, amount, 0, now() FROM task_runs WHERE task_id = $1`,
			"a release after success": `UPDATE credit_closings SET settled = 0, released = 2 WHERE task_id = $1`,
			"another outcome":         `UPDATE task_runs SET outcome = 'failed' WHERE task_id = $1`,
			"another amount":          `UPDATE task_runs SET amount = 1 WHERE task_id = $1`,
			"failing a success":       `UPDATE tasks SET status = 'failed', outcome = NULL WHERE id = $1`,
		} {
			if _, err := w.sql.Exec(t.Context(), sql, id); err == nil {
				t.Fatalf("%s was possible", name)
			}
		}
		wantBalance(t, w, 98, 0)
	})
	t.Run("AManualRetryHoldsAgainOnceForEachSeenGeneration", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 4)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		generation := 1
		retrier := w.retrier()
		together(10, func(int) {
			if err := retrier.Retry(context.Background(), w.caller, id, &generation, nil); err != nil {
				t.Errorf("retry: %v", err)
			}
		})
		wantBalance(t, w, 2, 2)
		wantDone(t, "complete", w.complete(w.mustClaim(id), "fact"))
		if err := retrier.Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
			t.Fatalf("the same retry after its success: %v", err)
		}
		second := 2
		if err := retrier.Retry(t.Context(), w.caller, id, &second, nil); !fault.Is(err, fault.NotRetryable) {
			t.Fatalf("retry of a success: %v", err)
		}
		wantBalance(t, w, 2, 0)
	})
	t.Run("ARetryOfAnEarlierGenerationHoldsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		seen := 1
		for range 2 {
			wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
			if err := w.retrier().Retry(t.Context(), w.caller, id, &seen, nil); err != nil {
				t.Fatal(err)
			}
			if w.status(id) == "failed/accepted" {
				break
			}
		}
		if got := one[int64](w, `SELECT generation FROM tasks`); got != 2 {
			t.Fatalf("generation %d", got)
		}
		wantBalance(t, w, 100, 0)
		ahead := 3
		if err := w.retrier().Retry(t.Context(), w.caller, id, &ahead, nil); !fault.Is(err, fault.InvalidRequest) {
			t.Fatalf("retry of a generation to come: %v", err)
		}
	})
	t.Run("AManualRetryByKeyHoldsOnceAndIsRefusedWhenBroke", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 3)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		retrier := w.retrier()
		k := key(t, "retry-1")
		together(10, func(int) {
			if err := retrier.Retry(context.Background(), w.caller, id, nil, &k); err != nil {
				t.Errorf("retry: %v", err)
			}
		})
		wantBalance(t, w, 1, 2)
		wantDone(t, "complete", w.complete(w.mustClaim(id), "fact"))
		second := w.accept2("k2")
		if second != nil {
			t.Fatal("accepted without credits")
		}
		w.exec(`UPDATE credit_accounts SET available = available + 1`)
		w.exec(`UPDATE credit_grants SET amount = amount + 1`)
		other := w.accept("k3", say("u", "b"))
		wantDone(t, "fail", w.fail(w.mustClaim(other), task.OutputInvalid))
		w.exec(`UPDATE credit_accounts SET available = 1`)
		w.exec(`UPDATE credit_grants SET amount = 3`)
		k2 := key(t, "retry-2")
		if err := retrier.Retry(t.Context(), w.caller, other, nil, &k2); !fault.Is(err, fault.InsufficientCredits) {
			t.Fatalf("retry when broke: %v", err)
		}
		if n := one[int64](w, `SELECT count(*) FROM idempotency_keys WHERE retry`); n != 1 {
			t.Fatalf("%d retry keys", n)
		}
		if err := retrier.Retry(t.Context(), w.caller, id, nil, &k2); !fault.Is(err, fault.NotRetryable) {
			t.Fatalf("retry of a success by key: %v", err)
		}
		wantBalance(t, w, 1, 0)
	})
	t.Run("ARetryWithoutItsInputIsGone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		w.exec(`UPDATE tasks SET command = NULL`)
		generation := 1
		if err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); !fault.Is(err, fault.InputExpired) {
			t.Fatalf("retry: %v", err)
		}
		if err := w.retrier().Retry(t.Context(), w.workspace(10), id, &generation, nil); !fault.Is(err, fault.EventNotFound) {
			t.Fatalf("retry of another workspace's event: %v", err)
		}
		wantBalance(t, w, 100, 0)
	})
	t.Run("ACancelReleasesOnceAndTakesTheLease", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		next := w.accept("k2", say("u", "b"))
		l := w.mustClaim(id)
		canceller := w.canceller()
		together(5, func(int) {
			if err := canceller.Cancel(context.Background(), w.caller, id); err != nil {
				t.Errorf("cancel: %v", err)
			}
		})
		wantLost(t, "commit of a cancelled task", w.complete(l, "x"))
		wantBalance(t, w, 98, 2)
		wantDone(t, "complete", w.complete(w.mustClaim(next), "b"))
		if err := canceller.Cancel(t.Context(), w.caller, next); !fault.Is(err, fault.NotCancellable) {
			t.Fatalf("cancel of a success: %v", err)
		}
		if err := canceller.Cancel(t.Context(), w.workspace(1), id); !fault.Is(err, fault.EventNotFound) {
			t.Fatalf("cancel of another workspace's event: %v", err)
		}
		wantBalance(t, w, 98, 0)
	})
}

// accept2 tries to accept what cannot be paid; nil when it was refused for that.
func (w *world) accept2(k string) *uuid.UUID {
	w.t.Helper()
	r, err := w.accepter(w.db).Accept(w.t.Context(), w.caller, key(w.t, k), say("u", "x"))
	if fault.Is(err, fault.InsufficientCredits) {
		return nil
	}
	return &r.EventID
}

func TestProjection(t *testing.T) {
	t.Parallel()
	project := func(w *world, l worker.Lease, live []worker.LiveRecord, v model.Vector) worker.Done {
		l.Stage = task.Committed
		projected := make([]worker.Projection, len(live))
		for i, r := range live {
			projected[i] = worker.Projection{RecordID: r.ID, Version: r.Version, Vector: v}
		}
		return w.db.Settle(t.Context(), []worker.Settle{{Lease: l, VectorModel: "m", Projected: projected}})[0]
	}
	t.Run("FailsAndHealsWithoutANewExtraction", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		wantDone(t, "commit", w.commit(l, "fact"))
		record := one[uuid.UUID](w, `SELECT id FROM memories`)
		l.Stage = task.Committed
		wantDone(t, "later", w.later(l, task.ProjectionFailed, 0))
		r, err := w.accepter(w.db).Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		if err != nil || r.Status != task.EventRetrying {
			t.Fatalf("meanwhile %+v: %v", r, err)
		}
		again := w.mustClaim(id)
		if again.Stage != task.Committed {
			t.Fatalf("stage %s", again.Stage)
		}
		wantLost(t, "a second commit", w.commit(again, "other fact"))
		wantDone(t, "settle", w.settle(again))
		if one[uuid.UUID](w, `SELECT record_id FROM task_results`) != record || one[int64](w, `SELECT count(*) FROM memory_history`) != 1 {
			t.Fatal("the records changed")
		}
		if one[bool](w, `SELECT body IS NOT NULL FROM plans`) || one[bool](w, `SELECT command IS NOT NULL FROM tasks`) {
			t.Fatal("input left after success")
		}
	})
	t.Run("TheNewerVersionWins", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		l := w.mustClaim(w.accept("k", say("u", "a")))
		wantDone(t, "commit", w.commit(l, "edited", "deleted", "same"))
		live, err := w.db.Unprojected(t.Context(), l, "m")
		if err != nil || len(live) != 3 {
			t.Fatalf("live %+v: %v", live, err)
		}
		w.exec(`UPDATE memories SET version = 2 WHERE text = 'edited'`)
		w.exec(`UPDATE memories SET deleted_at = now() WHERE text = 'deleted'`)
		w.exec(`INSERT INTO memory_vectors (memory_id, workspace_id, version, model, vector, made_at)
			SELECT id, workspace_id, 2, 'm', '\x0000803f', now() FROM memories WHERE text = 'edited'`)
		wantDone(t, "settle", project(w, l, live, model.Vector{2}))
		if got := one[string](w, `SELECT string_agg(m.text || ' ' || v.version || ' ' || encode(v.vector, 'hex'), ',' ORDER BY m.text)
			FROM memory_vectors v JOIN memories m ON m.id = v.memory_id`); got != "edited 2 0000803f,same 1 00000040" {
			t.Fatalf("vectors %s", got)
		}
	})
	t.Run("ARefusedTextIsMarkedAndTheTaskSucceeds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		l := w.mustClaim(id)
		wantDone(t, "commit", w.commit(l, "fact"))
		live, err := w.db.Unprojected(t.Context(), l, "m")
		if err != nil {
			t.Fatal(err)
		}
		wantDone(t, "settle", project(w, l, live, nil))
		if w.status(id) != "succeeded/projected" || !one[bool](w, `SELECT skipped FROM memory_vectors`) {
			t.Fatal("not marked")
		}
	})
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	first := w.mustClaim(w.accept("k1", say("u", "a")))
	wantDone(t, "complete", w.complete(first, "Likes Coffee", "likes coffee "))
	if got := one[string](w, `SELECT outcome || ' ' || (SELECT string_agg(event, ',' ORDER BY ordinal) FROM task_results) FROM tasks`); got != "STORED ADD,NONE" {
		t.Fatalf("first: %s", got)
	}
	second := w.accept("k2", say("u", "b"))
	wantDone(t, "complete", w.complete(w.mustClaim(second), "LIKES COFFEE"))
	if got := one[string](w, `SELECT outcome FROM tasks WHERE id = $1`, second); got != "UNCHANGED" {
		t.Fatalf("second: %s", got)
	}
	third := w.accept("k3", say("u", "c"))
	wantDone(t, "complete", w.complete(w.mustClaim(third)))
	if got := one[string](w, `SELECT outcome FROM tasks WHERE id = $1`, third); got != "NO_MEMORY" {
		t.Fatalf("third: %s", got)
	}
	fourth := w.accept("k4", say("other", "c"))
	wantDone(t, "complete", w.complete(w.mustClaim(fourth), "likes coffee"))
	if got := one[string](w, `SELECT outcome FROM tasks WHERE id = $1`, fourth); got != "STORED" {
		t.Fatalf("another lane: %s", got)
	}
	if one[int64](w, `SELECT count(*) FROM memories`) != 2 || one[int64](w, `SELECT count(*) FROM memory_vectors`) != 2 {
		t.Fatal("a repeat was stored")
	}
	wantBalance(t, w, 92, 0)
}

// TestHints walks through every reason for a wakeup: each has a sequence number of its own, so that the broker
// never takes one for another.
func TestHints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	id := w.accept("k", say("u", "a"))
	last := int64(0)
	grew := func(reason string) {
		t.Helper()
		seq := one[int64](w, `SELECT hint_seq FROM tasks WHERE id = $1`, id)
		if seq <= last {
			t.Errorf("%s: hint_seq %d after %d", reason, seq, last)
		}
		last = seq
	}
	grew("accept")
	wantDone(t, "later", w.later(w.mustClaim(id), task.OutputInvalid, 0))
	grew("retry")
	wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
	grew("give back")
	w.mustClaim(id)
	w.advance(2 * time.Minute)
	if _, err := w.db.Rescue(t.Context(), 5, 10); err != nil {
		t.Fatal(err)
	}
	grew("rescue")
	w.advance(time.Minute)
	if _, hints, err := w.db.Rehint(t.Context(), repair.Rehint{MaxAttempts: 5, Age: time.Second, Limit: 10}); err != nil || len(hints) != 1 {
		t.Fatalf("rehint: %v, %v", hints, err)
	}
	grew("repair")
	other := w.accept("k2", say("u", "b"))
	wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
	grewHead := one[int64](w, `SELECT hint_seq FROM tasks WHERE id = $1 AND head`, other)
	if grewHead != 2 {
		t.Errorf("new head: hint_seq %d", grewHead)
	}
	generation := 1
	if err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
		t.Fatal(err)
	}
	grew("manual retry")
}

func (w *world) mustClaimNot(id uuid.UUID) {
	w.t.Helper()
	if w.claim(id, "w") != nil {
		w.t.Fatalf("task %s was claimed", id)
	}
}
