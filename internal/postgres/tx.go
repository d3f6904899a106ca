package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// commitBound is how long a COMMIT may take to answer before its outcome is unknown; fsync of a slow disk
	// takes seconds, not more.
	commitBound = 10 * time.Second
	// rollbackBound keeps a connection from being lost to a slow ROLLBACK; after it the connection is closed.
	rollbackBound = 2 * time.Second
	// closureRuns is how often a closure runs when the database picks it as a deadlock or serialization victim.
	closureRuns = 3
)

// openSQL bounds waits, says whose rows the transaction is about and takes the workspace's gate, shared. The settings
// come first, so that they bound the wait for the gate too. Between two batches of a transaction there is nothing but our own code: a process that is
// silent for ten seconds is frozen or gone, and must not keep lanes and gate from others.
const openSQL = `
SELECT set_config('lock_timeout', $2, true), set_config('statement_timeout', $3, true),
       set_config('idle_in_transaction_session_timeout', '10s', true),
       set_config('holdfast.workspace', $4, true), set_config('holdfast.reach', '', true),
       pg_advisory_xact_lock_shared($1)`

// openAloneSQL is openSQL with the gate taken exclusively: it waits for every transaction of the workspace that has
// the gate, and holds off the next ones.
const openAloneSQL = `
SELECT set_config('lock_timeout', $2, true), set_config('statement_timeout', $3, true),
       set_config('idle_in_transaction_session_timeout', '10s', true),
       set_config('holdfast.workspace', $4, true), set_config('holdfast.reach', '', true),
       pg_advisory_xact_lock($1)`

// openGroupSQL is openSQL for the workspaces of a group, their gates taken in order. Statements over sets keep one plan,
// and it must be that of a full table, also when it is made for an empty one: one index look for each item.
const openGroupSQL = `
SELECT set_config('lock_timeout', $2, true), set_config('statement_timeout', $3, true),
       set_config('idle_in_transaction_session_timeout', '10s', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true),
       set_config('holdfast.workspace', $4, true), set_config('holdfast.reach', '', true),
       (SELECT count(pg_advisory_xact_lock_shared(g)) FROM unnest($1::bigint[]) AS g)`

// Tx is an open transaction of one workspace, or of those of a group. It opens with its first batch, in the same round
// trip.
type Tx struct {
	db      *DB
	conn    *pgxpool.Conn
	opening opening
	begun   bool
	// workspace is nil in a group's.
	workspace uuid.UUID
}

// opening is the statement that a transaction begins with.
type opening struct {
	sql       string
	args      []any
	workspace uuid.UUID
}

// opening begins a transaction of one workspace, in which a lock is waited for so long.
func (db *DB) opening(sql string, workspace uuid.UUID, patience string) opening {
	return opening{sql, []any{gateOf(workspace), patience, db.stmtTimeout, string(of(workspace))}, workspace}
}

// InTx runs fn in one transaction of the workspace, with the gate as its first statement, and commits it when
// fn answers nil. fn runs again, at most three times, when the database picks it as a victim, and must have no
// effects outside the transaction. Errors: fn's own after a rollback; fault.ErrCommitUnknown; a fault
// UNAVAILABLE when the transaction is known not to have happened.
func (db *DB) InTx(ctx context.Context, workspace uuid.UUID, fn func(ctx context.Context, tx *Tx) error) error {
	return db.inTx(ctx, db.opening(openSQL, workspace, db.lockTimeout), fn)
}

// InTxAlone is InTx with the gate taken exclusively: no other transaction of the workspace that accepts a command,
// writes records or retries is open while fn runs. All that were open before are visible to it, all later ones see
// what it has committed.
func (db *DB) InTxAlone(ctx context.Context, workspace uuid.UUID, fn func(ctx context.Context, tx *Tx) error) error {
	return db.inTx(ctx, db.opening(openAloneSQL, workspace, db.lockTimeout), fn)
}

func (db *DB) inTx(ctx context.Context, open opening, fn func(ctx context.Context, tx *Tx) error) error {
	var err error
	for run := range closureRuns {
		err = db.once(ctx, open, fn)
		for range sealRuns {
			var again bool
			if again, err = db.sealedAgain(ctx, open.workspace, err); !again {
				break
			}
			err = db.once(ctx, open, fn)
		}
		if !repeatable(err) {
			return err
		}
		pause := time.NewTimer(time.Duration(rand.IntN(20*(run+1))) * time.Millisecond) // #nosec G404 -- jitter
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
	return err
}

func (db *DB) once(ctx context.Context, open opening, fn func(ctx context.Context, tx *Tx) error) (err error) {
	conn, err := db.acquire(ctx)
	if err != nil {
		return &stepError{"acquire connection", classify(err)}
	}
	tx := &Tx{db: db, conn: conn, opening: open, workspace: open.workspace}
	done := false
	defer func() {
		if !done { // fn panicked: the connection must not go back with an open transaction
			tx.rollback(ctx)
		}
		conn.Release()
	}()
	err = fn(ctx, tx)
	done = true
	if err != nil {
		tx.rollback(ctx)
		return err
	}
	return tx.commit(ctx)
}

// gateOf maps a workspace to its advisory lock: the random half of its UUIDv7.
func gateOf(workspace uuid.UUID) int64 {
	return int64(binary.BigEndian.Uint64(workspace[8:])) // #nosec G115 -- any 64 bits will do
}

// step is one statement of a batch and what reads its answer.
type step struct {
	name string
	sql  string
	args []any
	read func(pgx.BatchResults) error
}

// batch is a list of statements that travel in one round trip.
type batch struct{ steps []step }

// exec adds a statement whose rows are not read; want, if given, gets the number of rows it touched.
func (b *batch) exec(name, sql string, args pgx.NamedArgs, want func(rows int64) error) {
	b.steps = append(b.steps, step{name, sql, []any{byName(args)}, func(r pgx.BatchResults) error {
		tag, err := r.Exec()
		if err != nil || want == nil {
			return err
		}
		return want(tag.RowsAffected())
	}})
}

// query adds a statement whose rows scan reads.
func (b *batch) query(name, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) {
	b.steps = append(b.steps, step{name, sql, []any{byName(args)}, func(r pgx.BatchResults) error {
		rows, err := r.Query()
		if err != nil {
			return err
		}
		defer rows.Close()
		if err := scan(rows); err != nil {
			return err
		}
		rows.Close()
		return rows.Err()
	}})
}

// stepError names the step that failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// Step names the step, for logs; it is ours alone.
func (e *stepError) Step() string { return e.step }

// failedAt tells whether err came from the step of that name.
func failedAt(err error, name string) bool {
	e, ok := errors.AsType[*stepError](err)
	return ok && e.step == name
}

// send runs the batch in one round trip, the transaction's opening with the first one.
func (tx *Tx) send(ctx context.Context, b *batch) error {
	steps := b.steps
	if !tx.begun {
		opening := []step{
			{"begin", "begin", nil, execOnly},
			{"gate", tx.opening.sql, tx.opening.args, execOnly},
		}
		steps = append(opening, steps...)
		tx.begun = true
	}
	wire := &pgx.Batch{}
	for _, s := range steps {
		wire.Queue(s.sql, s.args...)
	}
	results := tx.conn.SendBatch(ctx, wire)
	for _, s := range steps {
		if err := s.read(results); err != nil {
			_ = results.Close() // the first error is the one that tells
			return &stepError{s.name, classify(err)}
		}
	}
	if err := results.Close(); err != nil {
		return &stepError{"end of batch", classify(err)}
	}
	return nil
}

func execOnly(r pgx.BatchResults) error {
	_, err := r.Exec()
	return err
}

// commit ends the transaction. It is not cut short by the caller's context: a COMMIT under way must be heard.
func (tx *Tx) commit(ctx context.Context) error {
	if !tx.begun {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitBound)
	defer cancel()
	tag, err := tx.conn.Exec(ctx, "commit")
	if err == nil {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("commit: %w", classify(pgx.ErrTxCommitRollback))
		}
		return nil
	}
	if pgconn.SafeToRetry(err) { // the COMMIT was never sent
		return fmt.Errorf("commit: %w", classify(err))
	}
	if e, ok := errors.AsType[*sqlError](classify(err)); ok && !e.fatal {
		return fmt.Errorf("commit: %w", classify(err)) // the server refused it: a deferred constraint
	}
	return fmt.Errorf("commit: %w", fault.ErrCommitUnknown)
}

// rollback undoes the transaction with a context of its own, so that a cancelled request keeps its connection.
func (tx *Tx) rollback(ctx context.Context) {
	if !tx.begun || tx.conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackBound)
	defer cancel()
	if _, err := tx.conn.Exec(ctx, "rollback"); err != nil {
		_ = tx.conn.Conn().Close(ctx) // the pool drops a closed connection; the server rolls back
	}
}

// alone runs one statement as its own transaction within the reach and reads its rows, bounded like a statement in a
// transaction. A broken connection leaves its outcome unknown unless the statement was never sent.
func (db *DB) alone(ctx context.Context, within reach, name, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	return db.borrowed(ctx, name, func(ctx context.Context, conn *pgxpool.Conn) error {
		return single(ctx, conn, within, sql, args, scan)
	})
}

// borrowed lets run have a connection for a statement that commits by itself.
func (db *DB) borrowed(ctx context.Context, name string, run func(ctx context.Context, conn *pgxpool.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, db.aloneBound)
	defer cancel()
	conn, err := db.acquire(ctx)
	if err != nil { // nothing was sent
		return &stepError{name, classify(err)}
	}
	defer conn.Release()
	if err := run(ctx, conn); err != nil {
		return &stepError{name, outcome(err)}
	}
	return nil
}

// outcome classifies the error of a statement that commits by itself.
func outcome(err error) error {
	classified := classify(err)
	if e, ok := errors.AsType[*sqlError](classified); ok && !e.fatal {
		return classified
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || pgconn.SafeToRetry(err) {
		return classified
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%w: %w", fault.ErrCommitUnknown, classified)
}
