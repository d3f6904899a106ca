package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

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
			if _, err := retrier.Retry(context.Background(), w.caller, id, &generation, nil); err != nil {
				t.Errorf("retry: %v", err)
			}
		})
		wantBalance(t, w, 2, 2)
		wantDone(t, "complete", w.complete(w.mustClaim(id), "fact"))
		if _, err := retrier.Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
			t.Fatalf("the same retry after its success: %v", err)
		}
		second := 2
		if _, err := retrier.Retry(t.Context(), w.caller, id, &second, nil); !fault.Is(err, fault.NotRetryable) {
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
			if _, err := w.retrier().Retry(t.Context(), w.caller, id, &seen, nil); err != nil {
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
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &ahead, nil); !fault.Is(err, fault.InvalidRequest) {
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
		var first atomic.Int32
		together(10, func(int) {
			replayed, err := retrier.Retry(context.Background(), w.caller, id, nil, &k)
			if err != nil {
				t.Errorf("retry: %v", err)
			}
			if !replayed {
				first.Add(1)
			}
		})
		if first.Load() != 1 {
			t.Fatalf("%d of ten calls with one key say that they are the first", first.Load())
		}
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
		if _, err := retrier.Retry(t.Context(), w.caller, other, nil, &k2); !fault.Is(err, fault.InsufficientCredits) {
			t.Fatalf("retry when broke: %v", err)
		}
		if n := one[int64](w, `SELECT count(*) FROM idempotency_keys WHERE retry`); n != 1 {
			t.Fatalf("%d retry keys", n)
		}
		if _, err := retrier.Retry(t.Context(), w.caller, id, nil, &k2); !fault.Is(err, fault.NotRetryable) {
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
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); !fault.Is(err, fault.InputExpired) {
			t.Fatalf("retry: %v", err)
		}
		if _, err := w.retrier().Retry(t.Context(), w.workspace(10), id, &generation, nil); !fault.Is(err, fault.EventNotFound) {
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
