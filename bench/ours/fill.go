package ours

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// What a filled task takes on disk at most, with its key, run, settlement, lane and indexes: 20,000 finished and 5,000
// waiting ones took 2,650 bytes each. The write-ahead log comes on top.
const (
	FinishedBytes = 2_200
	WaitingBytes  = 4_500
)

// fillStep is how many tasks one transaction makes: the log between two checkpoints stays small.
const fillStep = 50_000

// numberedSQL makes task n: its id in the order of time, its workspace, its lane and its times.
const numberedSQL = `
WITH n AS (
  SELECT n, (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid AS id,
         (@workspaces::uuid[])[1 + n % cardinality(@workspaces::uuid[])] AS workspace,
         sha256(('fill-' || n)::bytea) AS hash, 'fill-' || n AS person,
         clock_timestamp() - interval '3 hours' + n * interval '1 microsecond' AS at
    FROM generate_series(@first::bigint, @last::bigint) n
), k AS (
  INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id)
  SELECT workspace, hash, hash, 1, id FROM n
), l AS (
  INSERT INTO lanes (workspace_id, lane, next_seq, last_accepted_at) SELECT workspace, hash, 2, at FROM n
), `

const fillFinishedSQL = numberedSQL + `t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, claims, starts, run_after, hint_at, user_id, lane, lane_seq, head,
                     priority, payload_format, key_hash, outcome, accepted_at, updated_at, started_at, committed_at, completed_at)
  SELECT id, workspace, @kind, 'succeeded', 'projected', 1, 1, at, at, person, hash, 1, false, @priority, @format, hash,
         'STORED', at, at, at, at, at FROM n
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, outcome, opened_at)
  SELECT id, 1, workspace, @price, 'succeeded', at FROM n
)
INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
SELECT id, 1, workspace, 'succeeded', @price, @price, 0, at FROM n`

const fillWaitingSQL = numberedSQL + `t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, lane_seq, head, priority, command,
                     payload_format, key_hash, accepted_at, updated_at)
  SELECT id, workspace, @kind, 'pending', 'accepted', at, at, person, hash, 1, true, @priority, @command, @format, hash, at, at FROM n
), a AS (
  UPDATE credit_accounts c SET held = c.held + @price * w.tasks, available = c.available - @price * w.tasks
    FROM (SELECT workspace, count(*) AS tasks FROM n GROUP BY workspace) w WHERE c.workspace_id = w.workspace
)
INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at) SELECT id, 1, workspace, @price, at FROM n`

// Fill makes finished tasks and then waiting ones, which are due and unhinted, each the first of its lane. It is not
// what writes would leave: there are no records, and foreign keys are not checked.
func Fill(ctx context.Context, databaseURL string, tenants []Tenant, finished, waiting int) (err error) {
	payload, err := add().Encode()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return errors.New("fill: cannot connect") // its error can quote the URL with its password
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, "SET session_replication_role = replica"); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	workspaces := make([]uuid.UUID, len(tenants))
	for i, t := range tenants {
		workspaces[i] = t.ID
	}
	prices := credit.DefaultPrices()
	args := pgx.NamedArgs{
		"workspaces": workspaces, "kind": string(task.Infer), "priority": task.Interactive, "format": command.Format,
		"price": prices.Of(task.Infer, true), "command": payload,
	}
	for first := 1; first <= finished+waiting; {
		sql, last := fillFinishedSQL, min(first+fillStep-1, finished)
		if first > finished {
			sql, last = fillWaitingSQL, min(first+fillStep-1, finished+waiting)
		}
		args["first"], args["last"] = first, last
		if _, err := conn.Exec(ctx, sql, args); err != nil {
			return fmt.Errorf("fill tasks %d to %d: %w", first, last, err)
		}
		first = last + 1
	}
	if _, err := conn.Exec(ctx, "VACUUM (ANALYZE)"); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return nil
}

// Rehinted fails unless a waiting task has been hinted a second time.
func Rehinted(ctx context.Context, databaseURL string) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return errors.New("look for hints: cannot connect")
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var found bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM tasks WHERE hint_seq > 1)").Scan(&found); err != nil {
		return fmt.Errorf("look for hints: %w", err)
	}
	if !found {
		return errors.New("repair has hinted nothing again")
	}
	return nil
}

// DatabaseBytes is how much the database takes on disk.
func DatabaseBytes(ctx context.Context, databaseURL string) (n int64, err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return 0, errors.New("measure the database: cannot connect")
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if err := conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&n); err != nil {
		return 0, fmt.Errorf("measure the database: %w", err)
	}
	return n, nil
}

// HoldSnapshot opens a transaction that sees the database as it is now, until release is called: what it might still
// read cannot be cleaned away.
func HoldSnapshot(ctx context.Context, databaseURL string) (release func(), err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, errors.New("hold a snapshot: cannot connect")
	}
	release = func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // an idle session answers at once
		defer cancel()
		_ = conn.Close(bounded) // which ends the transaction
	}
	for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM workspaces"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			release()
			return nil, fmt.Errorf("hold a snapshot: %w", err)
		}
	}
	return release, nil
}
