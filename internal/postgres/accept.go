package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// claimKeySQL and readKeySQL are two statements under READ COMMITTED: the loser of a race waits for the winner
// in the first and reads the winner's row in the second. A workspace that is being deleted takes no new key: both come
// behind the gate, so that a deletion which isn't seen is later and finds what this transaction does.
const claimKeySQL = `
INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id, retry)
SELECT @workspace::uuid, @key_hash, @fingerprint, @fingerprint_version, @task, @retry
 WHERE NOT EXISTS (SELECT FROM workspaces w WHERE w.id = @workspace AND w.deletion IS NOT NULL)
ON CONFLICT (workspace_id, key_hash) DO NOTHING`

const readKeySQL = `
SELECT fingerprint, fingerprint_version, task_id
  FROM idempotency_keys
 WHERE workspace_id = @workspace AND key_hash = @key_hash`

const readReplaySQL = `
SELECT ` + eventStatusSQL + `, t.hint_seq, t.priority,
       t.status = 'pending' AND t.ready AND t.run_after <= (SELECT coalesce(@now::timestamptz, clock_timestamp()))
  FROM all_tasks t
 WHERE t.id = @task AND t.workspace_id = @workspace`

// takeLaneSQL locks the lane's row and gives the next sequence number; under its lock accepted_at grows, so that
// time and sequence agree. It is later than every open fence of the workspace, so that an erase tells by the time
// alone what came after it.
const takeLaneSQL = `
INSERT INTO lanes AS l (workspace_id, lane, next_seq, last_accepted_at)
VALUES (@workspace, @lane, 2,
        greatest((SELECT coalesce(@now::timestamptz, clock_timestamp())),
                 (SELECT max(e.erased_at) + interval '1 microsecond' FROM erasures e WHERE e.workspace_id = @workspace)))
ON CONFLICT (workspace_id, lane) DO UPDATE
   SET next_seq = l.next_seq + 1,
       last_accepted_at = greatest(excluded.last_accepted_at, l.last_accepted_at + interval '1 microsecond')`

// insertTaskSQL comes after the statement that locked the lane, so that it sees whether the lane has a head. When the
// task is due is the clock's matter: the lane's time may run ahead of it after a failover to a slower clock.
const insertTaskSQL = `
WITH lane AS (
  SELECT next_seq - 1 AS seq, last_accepted_at AS at FROM lanes WHERE workspace_id = @workspace AND lane = @lane
), t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, agent_id, run_id, app_id,
                     lane, lane_seq, head, priority, command, payload_format, policy, key_hash, trace, accepted_at, updated_at)
  SELECT @task, @workspace, @kind, 'pending', 'accepted', (SELECT coalesce(@now::timestamptz, clock_timestamp())),
         (SELECT coalesce(@now::timestamptz, clock_timestamp())), nullif(@user_id, ''), nullif(@agent_id, ''),
         nullif(@run_id, ''), nullif(@app_id, ''), @lane, CASE WHEN @ordered THEN lane.seq END,
         @ordered AND NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = @workspace AND h.lane = @lane AND h.head),
         @priority, @command, @payload_format, @policy, @key_hash, @trace, lane.at, lane.at
    FROM lane
  RETURNING id, workspace_id, accepted_at, ready, hint_seq
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
  SELECT id, 1, workspace_id, @price, accepted_at FROM t
)
SELECT ready, hint_seq FROM t`

// holdSQL is the last statement of an acceptance, so that the account's row is locked for the shortest time.
const holdSQL = `
UPDATE credit_accounts SET available = available - @price, held = held + @price
 WHERE workspace_id = @workspace AND available >= @price`

const availableSQL = `SELECT available FROM credit_accounts WHERE workspace_id = @workspace`

// keyRuns bounds how often a key is looked for that was retired between insert and select.
const keyRuns = 3

// Accept implements write.AcceptStore.
func (db *DB) Accept(ctx context.Context, items []write.Acceptance) []write.Accepted {
	answers := make([]write.Accepted, len(items))
	for i, item := range items {
		if db.accepts == nil {
			answers[i] = db.accept(ctx, item, db.lockTimeout)
		} else {
			answers[i] = db.accepts.accept(ctx, item)
		}
	}
	return answers
}

func (db *DB) accept(ctx context.Context, item write.Acceptance, patience string) write.Accepted {
	var answer write.Accepted
	err := db.inKeyTx(ctx, item.WorkspaceID, patience, func(ctx context.Context, tx *Tx) error {
		answer = write.Accepted{TaskID: item.TaskID, Status: task.EventPending}
		holder, err := tx.claimKey(ctx, item.WorkspaceID, item.TaskID, item.Claim, false)
		if err != nil {
			return err
		}
		if holder != nil {
			answer.Replayed = true
			return tx.readReplay(ctx, item.WorkspaceID, *holder, &answer)
		}
		return tx.insertAccepted(ctx, item, &answer)
	})
	failpoint.Hit("accept.committed")
	if errors.Is(err, errInsufficient) {
		err = db.insufficient(ctx, item.WorkspaceID, item.Price)
	}
	if err != nil {
		return write.Accepted{Refused: err}
	}
	return answer
}

// inKeyTx is InTx for closures that begin with a key: it runs fn again, at most three times, when the key that
// was found was retired meanwhile.
func (db *DB) inKeyTx(ctx context.Context, workspace uuid.UUID, patience string, fn func(ctx context.Context, tx *Tx) error) error {
	var err error
	for range keyRuns {
		if err = db.inTx(ctx, db.opening(openSQL, workspace, patience), fn); !errors.Is(err, errRetired) {
			return err
		}
	}
	return fault.Wrap(fault.IdempotencyInProgress, err)
}

// claimKey claims the key for the task. It answers nil when the key is now the task's, and the id of the task
// that has it when the same command was accepted before. Fault INSUFFICIENT_PERMISSION for a new key of a suspended
// workspace, INVALID_API_KEY for one that is being deleted, IDEMPOTENCY_CONFLICT for another command,
// IDEMPOTENCY_IN_PROGRESS when the key's holder could not be waited for.
func (tx *Tx) claimKey(ctx context.Context, workspace, id uuid.UUID, claim write.Claim, retry bool) (*uuid.UUID, error) {
	args := pgx.NamedArgs{
		"workspace": workspace, "key_hash": claim.KeyHash[:], "fingerprint": claim.Fingerprint[:],
		"fingerprint_version": claim.FingerprintVersion, "task": id, "retry": retry,
	}
	for range keyRuns {
		var claimed, found bool
		var print []byte
		var version int
		var holder uuid.UUID
		b := &batch{}
		b.exec("claim key", claimKeySQL, args, func(rows int64) error {
			claimed = rows == 1
			return nil
		})
		b.query("read key", readKeySQL, args, func(rows pgx.Rows) error {
			for rows.Next() {
				found = true
				if err := rows.Scan(&print, &version, &holder); err != nil {
					return err
				}
			}
			return nil
		})
		if err := tx.send(ctx, b); err != nil {
			if failedAt(err, "claim key") && stateOf(err) == stateLockNotAvailable {
				return nil, fault.Wrap(fault.IdempotencyInProgress, err)
			}
			return nil, err
		}
		switch {
		case claimed && claim.Suspended:
			return nil, fault.New(fault.InsufficientPermission)
		case claimed:
			return nil, nil
		case found && (version != claim.FingerprintVersion || !bytes.Equal(print, claim.Fingerprint[:])):
			return nil, fault.New(fault.IdempotencyConflict)
		case found:
			return &holder, nil
		}
		if err := tx.requireLiving(ctx, workspace); err != nil {
			return nil, err
		}
	}
	return nil, fault.Wrap(fault.IdempotencyInProgress, errors.New("the key was retired again and again"))
}

// readReplay reads the present state of the task that has the key, and its hint again if it is due: the work
// continues.
func (tx *Tx) readReplay(ctx context.Context, workspace, holder uuid.UUID, answer *write.Accepted) error {
	b := &batch{}
	b.query("read replay", readReplaySQL, pgx.NamedArgs{"task": holder, "workspace": workspace, "now": tx.db.now()},
		func(rows pgx.Rows) error {
			if !rows.Next() {
				return errRetired
			}
			var due bool
			hint := task.Hint{TaskID: holder, WorkspaceID: workspace}
			if err := rows.Scan(&answer.Status, &hint.Seq, &hint.Priority, &due); err != nil {
				return err
			}
			answer.TaskID = holder
			if due {
				answer.Hint = &hint
			}
			return nil
		})
	return tx.send(ctx, b)
}

func (tx *Tx) insertAccepted(ctx context.Context, item write.Acceptance, answer *write.Accepted) error {
	lane := item.Scope.Lane()
	now := tx.db.now()
	hint := task.Hint{TaskID: item.TaskID, WorkspaceID: item.WorkspaceID, Priority: item.Priority}
	payload, err := tx.seal(atCommand(item.WorkspaceID, item.TaskID), item.Payload)
	if err != nil {
		return err
	}
	b := &batch{}
	if err := tx.addRoom(b, item.WorkspaceID, 1); err != nil {
		return err
	}
	b.exec("take lane", takeLaneSQL, pgx.NamedArgs{"workspace": item.WorkspaceID, "lane": lane[:], "now": now}, nil)
	b.query("insert task", insertTaskSQL, pgx.NamedArgs{
		"task": item.TaskID, "workspace": item.WorkspaceID, "kind": string(item.Kind), "lane": lane[:],
		"user_id": item.Scope.UserID, "agent_id": item.Scope.AgentID, "run_id": item.Scope.RunID,
		"app_id": item.Scope.AppID, "ordered": item.Ordered, "priority": item.Priority, "command": payload,
		"payload_format": item.Format, "policy": item.Policy, "key_hash": item.Claim.KeyHash[:], "price": item.Price,
		"trace": item.Origin.Bytes(), "now": now,
	}, func(rows pgx.Rows) error {
		var ready bool
		for rows.Next() {
			if err := rows.Scan(&ready, &hint.Seq); err != nil {
				return err
			}
		}
		if ready {
			answer.Hint = &hint
		}
		return nil
	})
	if name := moveAct(item.Kind); name != "" {
		addAct(ctx, b, now, act{item.WorkspaceID, name, eventSubject(item.TaskID), nil})
	}
	addHold(b, item.WorkspaceID, item.Price)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	failpoint.Hit("accept.in_tx")
	return nil
}

// addHold puts the hold at the end of the batch; a run without a price touches no account.
func addHold(b *batch, workspace uuid.UUID, price credit.Amount) {
	if price == 0 {
		return
	}
	b.exec("hold", holdSQL, pgx.NamedArgs{"workspace": workspace, "price": price}, func(rows int64) error {
		if rows == 0 {
			return errInsufficient
		}
		return nil
	})
}

// insufficient makes the refusal of a hold, with what was required and what was there a moment later.
func (db *DB) insufficient(ctx context.Context, workspace uuid.UUID, price credit.Amount) error {
	var available int64
	err := db.read(ctx, of(workspace), "balance of a refused hold", availableSQL, pgx.NamedArgs{"workspace": workspace},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&available); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return err
	}
	refusal := fault.New(fault.InsufficientCredits)
	refusal.Details = map[string]any{"required": price, "available": available}
	return refusal
}

// inSeconds renders a duration for an SQL interval argument.
func inSeconds(d time.Duration) float64 { return d.Seconds() }
