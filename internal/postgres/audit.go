package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/audit"
)

// openAuditSQL follows begin. An audit takes no lock that anybody waits for; a schema change that it waits for itself
// ends it. Who asks is silent between two checks for as long as it takes to send the next one.
const openAuditSQL = `
SELECT set_config('lock_timeout', '3s', true), set_config('idle_in_transaction_session_timeout', '60s', true)`

// auditClockSQL is the statement that takes the snapshot.
const auditClockSQL = `SELECT coalesce(@now::timestamptz, clock_timestamp())`

const boundCheckSQL = `SELECT set_config('statement_timeout', @bound, true)`

// foundSQL wraps a check, a query of what is wrong, in which workspace, with which event and which memory. It counts the
// rows of each way of being wrong and names the first ones.
const foundSQL = `
SELECT n.what, n.total, n.workspace, n.event, n.memory
  FROM (SELECT f.what, f.workspace, f.event, f.memory, count(*) OVER (PARTITION BY f.what) AS total,
               row_number() OVER (PARTITION BY f.what ORDER BY f.event, f.memory, f.workspace) AS place
          FROM (%s
               ) AS f (what, workspace, event, memory)
         WHERE @workspace::uuid IS NULL OR f.workspace = @workspace) n
 WHERE n.place <= @events
 ORDER BY n.what, n.place`

// InSnapshot implements audit.Store: a REPEATABLE READ, READ ONLY transaction, which also a standby can run.
func (db *DB) InSnapshot(ctx context.Context, fn func(ctx context.Context, s audit.Snapshot) error) error {
	conn, err := db.acquire(ctx)
	if err != nil {
		return &stepError{"acquire connection", classify(err)}
	}
	s := &snapshot{conn: conn}
	defer s.end(ctx)
	if _, err := conn.Exec(ctx, "begin isolation level repeatable read, read only"); err != nil {
		return &stepError{"begin", classify(err)}
	}
	if _, err := conn.Exec(ctx, openAuditSQL); err != nil {
		return &stepError{"open audit", classify(err)}
	}
	if err := conn.QueryRow(ctx, auditClockSQL, pgx.NamedArgs{"now": db.now()}).Scan(&s.at); err != nil {
		return &stepError{"read clock", classify(err)}
	}
	return fn(ctx, s)
}

// snapshot is an open transaction that only reads.
type snapshot struct {
	conn *pgxpool.Conn
	at   time.Time
}

// At implements audit.Snapshot.
func (s *snapshot) At() time.Time { return s.at }

// end closes the transaction and gives the connection back, or closes it.
func (s *snapshot) end(ctx context.Context) {
	defer s.conn.Release()
	if s.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackBound)
	defer cancel()
	if _, err := s.conn.Exec(ctx, "rollback"); err != nil {
		_ = s.conn.Conn().Close(ctx) // the pool drops a closed connection; the server rolls back
	}
}

// Find implements audit.Snapshot. Each check has a savepoint, so that one that takes too long is given up alone.
func (s *snapshot) Find(ctx context.Context, check string, q audit.Question) ([]audit.Finding, error) {
	sql, known := auditSQL(check)
	if !known {
		return nil, fmt.Errorf("audit: check %s is not known here", check)
	}
	if _, err := s.conn.Exec(ctx, "savepoint audit_check"); err != nil {
		return nil, fmt.Errorf("%w: %w", audit.ErrSnapshotLost, classify(err))
	}
	found, err := s.find(ctx, check, sql, q)
	if err == nil {
		return found, nil
	}
	err = classify(err)
	if ctx.Err() == nil && stateOf(err) == stateQueryCanceled {
		err = errCheckBound
	}
	err = &stepError{"check " + check, err}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackBound)
	defer cancel()
	if _, lost := s.conn.Exec(ctx, "rollback to savepoint audit_check"); lost != nil {
		return nil, fmt.Errorf("%w: %w", audit.ErrSnapshotLost, err)
	}
	return nil, err
}

// errCheckBound says that the server has ended a check at its bound.
const errCheckBound verdict = "it took longer than a check may"

func (s *snapshot) find(ctx context.Context, check, sql string, q audit.Question) ([]audit.Finding, error) {
	bound := fmt.Sprintf("%dms", q.Bound.Milliseconds())
	if _, err := s.conn.Exec(ctx, boundCheckSQL, pgx.NamedArgs{"bound": bound}); err != nil {
		return nil, err
	}
	rows, err := s.conn.Query(ctx, fmt.Sprintf(foundSQL, sql), checkArgs(s.at, q))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []audit.Finding
	for rows.Next() {
		var what string
		var total int64
		var workspace, event, memory *uuid.UUID
		if err := rows.Scan(&what, &total, &workspace, &event, &memory); err != nil {
			return nil, err
		}
		if n := len(found); n == 0 || found[n-1].Detail != what {
			found = append(found, audit.Finding{Check: check, Detail: what, Count: total})
		}
		last := &found[len(found)-1]
		last.Events, last.Memories = named(last.Events, event), named(last.Memories, memory)
		last.Workspaces = named(last.Workspaces, workspace)
	}
	rows.Close()
	return found, rows.Err()
}

func checkArgs(at time.Time, q audit.Question) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspace": q.Workspace, "events": q.Events, "at": at, "stuck": inSeconds(q.StuckAfter),
		"input_kept": inSeconds(q.InputKept), "max_attempts": q.MaxAttempts,
	}
}

// named adds an id that isn't there yet.
func named(ids []uuid.UUID, id *uuid.UUID) []uuid.UUID {
	if id == nil || slices.Contains(ids, *id) {
		return ids
	}
	return append(ids, *id)
}

// auditSQL returns the query of a check, false for one that isn't known. A query may use @at, the snapshot's time,
// @stuck, @input_kept and @max_attempts.
func auditSQL(check string) (sql string, known bool) {
	for _, part := range []func(string) string{auditTaskSQL, auditRecordSQL, auditMoneySQL, auditPrivacySQL, auditEdgeSQL, auditActSQL} {
		if sql := part(check); sql != "" {
			return sql, true
		}
	}
	return "", false
}
