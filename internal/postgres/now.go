package postgres

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// exactRepeatsSQL finds live records of the lane with one of the texts, byte for byte. Equal bytes have equal
// content keys, so that the index finds them. What an open erase is about to remove is no record to repeat.
const exactRepeatsSQL = `
SELECT DISTINCT ON (m.text) m.text, m.id
  FROM memories m
 WHERE m.workspace_id = @workspace AND m.lane = @lane AND m.content_key = ANY(@keys::bytea[])
   AND m.text = ANY(@texts::text[]) AND m.deleted_at IS NULL AND m.valid_to IS NULL
   AND (m.expires_at IS NULL OR m.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))
   AND NOT ` + fencedRecordSQL + `
 ORDER BY m.text, m.accepted_at, m.id`

// insertWrittenSQL writes the task of a verbatim add with its run: born succeeded with its run closed, or born
// committed with its run open when vectors are still to come. It keeps no input.
const insertWrittenSQL = `
WITH lane AS (
  SELECT last_accepted_at AS at FROM lanes WHERE workspace_id = @workspace AND lane = @lane
), t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, agent_id, run_id, app_id,
                     lane, priority, payload_format, policy, key_hash, outcome, trace, accepted_at, updated_at, committed_at,
                     completed_at)
  SELECT @task, @workspace, 'memory_add', CASE WHEN @complete THEN 'succeeded' ELSE 'pending' END,
         CASE WHEN @complete THEN 'projected' ELSE 'committed' END, lane.at, lane.at, nullif(@user_id, ''),
         nullif(@agent_id, ''), nullif(@run_id, ''), nullif(@app_id, ''), @lane, 'bulk', 1, @policy, @key_hash,
         CASE WHEN @complete THEN @outcome END, @trace, lane.at, lane.at, lane.at, CASE WHEN @complete THEN lane.at END
    FROM lane
  RETURNING id, workspace_id, accepted_at
), p AS (
  INSERT INTO plans (task_id, workspace_id, generation, body, created_at)
  SELECT id, workspace_id, 1, NULL, accepted_at FROM t
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
  SELECT id, 1, workspace_id, @price, CASE WHEN @complete THEN 'succeeded' END, accepted_at FROM t
  RETURNING task_id, workspace_id, amount, outcome, opened_at
)
INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
SELECT task_id, 1, workspace_id, outcome, amount, amount, 0, opened_at FROM r WHERE outcome IS NOT NULL`

// paySQL takes the price of a run that is born succeeded.
const paySQL = `
UPDATE credit_accounts SET available = available - @price WHERE workspace_id = @workspace AND available >= @price`

// writtenSQL reads what an earlier verbatim add did, with the text of that command's own history.
const writtenSQL = `
SELECT r.ordinal, r.record_id, r.event, h.new_text
  FROM task_results r
  LEFT JOIN memory_history h ON h.task_id = r.task_id AND h.ordinal = r.ordinal AND h.workspace_id = r.workspace_id
 WHERE r.task_id = @task AND r.workspace_id = @workspace
 ORDER BY r.ordinal`

// WriteNow implements write.NowStore.
func (db *DB) WriteNow(ctx context.Context, w write.Written) (write.Stored, *task.Hint, error) {
	var stored write.Stored
	err := db.inKeyTx(ctx, w.WorkspaceID, db.lockTimeout, func(ctx context.Context, tx *Tx) error {
		stored = write.Stored{EventID: w.TaskID}
		repeats, holder, err := tx.openWrite(ctx, w)
		if err != nil {
			return err
		}
		if holder != nil {
			stored.EventID, stored.Replayed = *holder, true
			return tx.readWritten(ctx, w.WorkspaceID, &stored)
		}
		return tx.insertWritten(ctx, w, repeats, &stored)
	})
	failpoint.Hit("write.committed")
	if errors.Is(err, errInsufficient) {
		err = db.insufficient(ctx, w.WorkspaceID, w.Price)
	}
	if err != nil {
		return write.Stored{}, nil, err
	}
	if stored.Replayed || w.BornComplete {
		return stored, nil, nil
	}
	return stored, &task.Hint{TaskID: w.TaskID, WorkspaceID: w.WorkspaceID, Seq: 1, Priority: task.Bulk}, nil
}

// openWrite claims the key and locks the lane. An add without a caller's key has a random one, which nobody else
// can hold: there the lane's repeats are read in the same round trip.
func (tx *Tx) openWrite(ctx context.Context, w write.Written) (map[string]uuid.UUID, *uuid.UUID, error) {
	if !w.DedupeExact {
		holder, err := tx.claimKey(ctx, w.WorkspaceID, w.TaskID, w.Claim, false)
		return nil, holder, err
	}
	lane, now := w.Scope.Lane(), tx.db.now()
	texts := make([]string, len(w.Plan.Records))
	keys := make([][]byte, len(w.Plan.Records))
	for i, r := range w.Plan.Records {
		key := memory.KeyOf(r.Text)
		texts[i], keys[i] = r.Text, key[:]
	}
	repeats := make(map[string]uuid.UUID, len(texts))
	if w.Claim.Suspended { // a random key is never a replay of a caller's
		return nil, nil, fault.New(fault.InsufficientPermission)
	}
	fresh := false
	b := &batch{}
	b.exec("claim key", claimKeySQL, pgx.NamedArgs{
		"workspace": w.WorkspaceID, "key_hash": w.Claim.KeyHash[:], "fingerprint": w.Claim.Fingerprint[:],
		"fingerprint_version": w.Claim.FingerprintVersion, "task": w.TaskID, "retry": false,
	}, func(rows int64) error {
		fresh = rows == 1
		return nil
	})
	b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": w.WorkspaceID, "lane": lane[:], "now": now}, nil)
	b.query("exact repeats", exactRepeatsSQL, pgx.NamedArgs{
		"workspace": w.WorkspaceID, "lane": lane[:], "keys": keys, "texts": texts, "now": now,
	}, func(rows pgx.Rows) error {
		clear(repeats)
		for rows.Next() {
			var text string
			var id uuid.UUID
			if err := rows.Scan(&text, &id); err != nil {
				return err
			}
			repeats[text] = id
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return nil, nil, err
	}
	if !fresh { // a random key that is taken is our own: the answer to our COMMIT was lost
		return nil, &w.TaskID, tx.requireLiving(ctx, w.WorkspaceID)
	}
	return repeats, nil, nil
}

func (tx *Tx) insertWritten(ctx context.Context, w write.Written, repeats map[string]uuid.UUID, stored *write.Stored) error {
	lane, now := w.Scope.Lane(), tx.db.now()
	results, added := decideExact(w.Plan, repeats)
	b := &batch{}
	if !w.DedupeExact {
		b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": w.WorkspaceID, "lane": lane[:], "now": now}, nil)
	}
	b.exec("insert written", insertWrittenSQL, pgx.NamedArgs{
		"task": w.TaskID, "workspace": w.WorkspaceID, "lane": lane[:], "complete": w.BornComplete,
		"user_id": w.Scope.UserID, "agent_id": w.Scope.AgentID, "run_id": w.Scope.RunID, "app_id": w.Scope.AppID,
		"policy": w.Policy, "key_hash": w.Claim.KeyHash[:], "outcome": string(outcomeOf(results)), "price": w.Price,
		"trace": task.OriginOf(ctx).Bytes(),
	}, nil)
	addRecords(b, recordOwner{w.TaskID, w.WorkspaceID, w.Scope, lane, nil}, added, now)
	addResults(b, w.TaskID, w.WorkspaceID, results)
	if w.BornComplete {
		item := worker.Commit{Vectors: w.Vectors}
		addVectors(b, w.WorkspaceID, w.VectorModel, vectorsOf(added, item), now)
	}
	addPayment(b, w)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	failpoint.Hit("write.in_tx")
	for i := range results {
		results[i].Text = &w.Plan.Records[i].Text
	}
	stored.Results = results
	return nil
}

// addPayment takes the price at the end of the batch: at once for a task that is born succeeded, as a hold for
// one whose vectors are still to come.
func addPayment(b *batch, w write.Written) {
	if !w.BornComplete {
		addHold(b, w.WorkspaceID, w.Price)
		return
	}
	if w.Price == 0 {
		return
	}
	b.exec("pay", paySQL, pgx.NamedArgs{"workspace": w.WorkspaceID, "price": w.Price}, func(rows int64) error {
		if rows == 0 {
			return errInsufficient
		}
		return nil
	})
}

// decideExact drops messages whose exact bytes a live record of the lane has. Equal messages of one call are each
// stored: who sends them at once means them. With a caller's key repeats is nil and everything is stored.
func decideExact(plan memory.Plan, repeats map[string]uuid.UUID) ([]memory.Result, []planned) {
	results := make([]memory.Result, 0, len(plan.Records))
	added := make([]planned, 0, len(plan.Records))
	for i, r := range plan.Records {
		if id, repeat := repeats[r.Text]; repeat {
			results = append(results, memory.Result{Ordinal: i, RecordID: id, Change: memory.None})
			continue
		}
		results = append(results, memory.Result{Ordinal: i, RecordID: r.ID, Change: memory.Added})
		added = append(added, planned{r, i})
	}
	return results, added
}

func (tx *Tx) readWritten(ctx context.Context, workspace uuid.UUID, stored *write.Stored) error {
	b := &batch{}
	b.query("read written", writtenSQL, pgx.NamedArgs{"task": stored.EventID, "workspace": workspace},
		func(rows pgx.Rows) error {
			stored.Results = nil
			for rows.Next() {
				var r memory.Result
				if err := rows.Scan(&r.Ordinal, &r.RecordID, &r.Change, &r.Text); err != nil {
					return err
				}
				stored.Results = append(stored.Results, r)
			}
			return nil
		})
	return tx.send(ctx, b)
}
