package postgres_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestConstraints writes what no code of ours would, past all of its guards: the database itself refuses it.
func TestConstraints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	head := w.accept("head", say("waits", "a"))
	waiting := w.accept("waiting", say("waits", "b"))
	committed := w.accept("committed", say("committed", "a"))
	wantDone(t, "commit", w.commit(w.mustClaim(committed), "fact"))
	succeeded := w.accept("succeeded", say("succeeded", "a"))
	wantDone(t, "complete", w.complete(w.mustClaim(succeeded), "fact"))
	failed := w.accept("failed", say("failed", "a"))
	wantDone(t, "fail", w.fail(w.mustClaim(failed), task.OutputInvalid))
	record := w.remember(memory.Scope{UserID: "verbatim"}, "said")[0]
	closing := `INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
		SELECT task_id, generation, workspace_id, `
	for name, c := range map[string]struct {
		constraint, sql string
		id              uuid.UUID
	}{
		"ATaskHasOnePlan":                {"plans_pkey", `INSERT INTO plans (task_id, workspace_id, generation, created_at) SELECT task_id, workspace_id, 2, now() FROM plans WHERE task_id = $1`, committed},
		"AFailedTaskIsNotCommitted":      {"tasks_failed_uncommitted", `UPDATE tasks SET status = 'failed', lease_token = NULL, lease_until = NULL, completed_at = now() WHERE id = $1`, committed},
		"ASucceededTaskIsProjected":      {"tasks_succeeded_projected", `UPDATE tasks SET status = 'succeeded', outcome = 'STORED', command = NULL, lease_token = NULL, lease_until = NULL, completed_at = now() WHERE id = $1`, committed},
		"ARunningTaskHasALease":          {"tasks_lease", `UPDATE tasks SET status = 'running' WHERE id = $1`, head},
		"ALeaseHasAnEnd":                 {"tasks_lease_until", `UPDATE tasks SET lease_until = NULL WHERE id = $1`, committed},
		"AnEndedTaskSaysWhen":            {"tasks_completed", `UPDATE tasks SET completed_at = NULL WHERE id = $1`, failed},
		"ASucceededTaskKeepsNoInput":     {"tasks_input", `UPDATE tasks SET command = 'x' WHERE id = $1`, succeeded},
		"AWaitingTaskHasItsInput":        {"tasks_input", `UPDATE tasks SET command = NULL WHERE id = $1`, head},
		"ALaneHasOneHead":                {"tasks_head", `UPDATE tasks SET head = true WHERE id = $1`, waiting},
		"NoEndedTaskIsAHead":             {"tasks_head", `UPDATE tasks SET head = true WHERE id = $1`, failed},
		"ATaskHasOneOpenRun":             {"task_runs_open", `INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at) SELECT task_id, 2, workspace_id, 2, now() FROM task_runs WHERE task_id = $1`, head},
		"ARunHasOneClosing":              {"credit_closings_pkey", closing + `outcome, amount, 0, amount, now() FROM credit_closings WHERE task_id = $1`, failed},
		"AClosingHasItsRunsOutcome":      {"credit_closings_run", closing + `'succeeded', amount, amount, 0, now() FROM task_runs WHERE task_id = $1`, head},
		"AClosingHasItsRunsAmount":       {"credit_closings_run", closing + `'failed', 1, 0, 1, now() FROM task_runs WHERE task_id = $1`, head},
		"AClosingSplitsTheWholeAmount":   {"credit_closings_amounts", closing + `'failed', amount, 0, amount + 1, now() FROM task_runs WHERE task_id = $1`, head},
		"AFailureSettlesNothing":         {"credit_closings_kind", closing + `'failed', amount, amount, 0, now() FROM task_runs WHERE task_id = $1`, head},
		"AnOutcomeHasItsClosing":         {"task_runs_closing", `UPDATE task_runs SET outcome = 'failed' WHERE task_id = $1`, head},
		"NoAccountIsOverdrawn":           {"credit_accounts_available", `UPDATE credit_accounts a SET available = -1 FROM tasks t WHERE t.id = $1 AND t.workspace_id = a.workspace_id`, head},
		"NoAccountHoldsLessThanNothing":  {"credit_accounts_held", `UPDATE credit_accounts a SET held = -1 FROM tasks t WHERE t.id = $1 AND t.workspace_id = a.workspace_id`, head},
		"AKeyIsTakenOnce":                {"idempotency_keys_pkey", `INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id) SELECT workspace_id, key_hash, fingerprint, fingerprint_version, $1 FROM idempotency_keys WHERE task_id = $1`, head},
		"AReferenceGrantsOnce":           {"credit_grants_workspace_id_reference_key", `INSERT INTO credit_grants (id, workspace_id, reference, amount) SELECT $1, workspace_id, reference, amount FROM credit_grants`, uuid.New()},
		"AVectorIsThereOrSaysThatItIsnt": {"memory_vectors_state", `UPDATE memory_vectors SET vector = NULL WHERE memory_id = $1`, record},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tx, err := w.sql.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			tag, err := tx.Exec(t.Context(), c.sql, c.id)
			if err == nil && tag.RowsAffected() == 0 {
				t.Fatal("the statement is about nothing")
			}
			if err == nil {
				_, err = tx.Exec(t.Context(), `SET CONSTRAINTS ALL IMMEDIATE`)
			}
			refusal, refused := errors.AsType[*pgconn.PgError](err)
			if !refused || refusal.ConstraintName != c.constraint {
				t.Fatalf("not refused by %s but: %v", c.constraint, err)
			}
		})
	}
}
