package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// SQLSTATEs that decide something. They are named here and nowhere else.
const (
	stateLockNotAvailable     = "55P03"
	stateQueryCanceled        = "57014"
	stateSerialization        = "40001"
	stateForeignKey           = "23503"
	stateDeadlock             = "40P01"
	stateTooManyConnections   = "53300"
	stateDiskFull             = "53100"
	stateOutOfMemory          = "53200"
	stateAdminShutdown        = "57P01"
	stateCrashShutdown        = "57P02"
	stateCannotConnectNow     = "57P03"
	stateReadOnlyTransaction  = "25006"
	stateIdleInTransactionEnd = "25P03"
	stateNoRoles              = "HF001" // of ours: the migrations may not make the roles that they grant to
)

// sqlError is a database error stripped of row text: code, constraint and table only.
type sqlError struct {
	code       string
	constraint string
	table      string
	fatal      bool
}

func (e *sqlError) Error() string {
	text := "database error " + e.code
	if e.constraint != "" {
		text += " constraint " + e.constraint
	}
	if e.table != "" {
		text += " table " + e.table
	}
	return text
}

// verdict is a finding of ours while reading an answer, not an error of the database.
type verdict string

func (v verdict) Error() string { return string(v) }

const (
	// errInsufficient rolls a hold back; the refusal with its numbers is made after the rollback.
	errInsufficient verdict = "the account cannot pay"
	// errNoRun says that a task ended without an open run: the books would be wrong, so nothing is written.
	errNoRun verdict = "the task has no open run"
	// errRetired says that a key was retired between two statements of one transaction; the closure runs again.
	errRetired verdict = "the key was retired meanwhile"
	// errNotHere rolls a fenced step back whose task is not in the state that the step needs.
	errNotHere verdict = "the task is not in the state that the step needs"
)

// classify gives every error of the driver its place in our vocabulary: faults UNAVAILABLE for what passes by
// itself, a stripped database error for the rest. Context errors stay what they are.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		stripped := &sqlError{
			code: pgErr.Code, constraint: pgErr.ConstraintName, table: pgErr.TableName,
			fatal: pgErr.Severity == "FATAL" || pgErr.Severity == "PANIC",
		}
		switch pgErr.Code {
		case stateLockNotAvailable, stateQueryCanceled, stateTooManyConnections, stateDiskFull, stateOutOfMemory,
			stateAdminShutdown, stateCrashShutdown, stateCannotConnectNow, stateReadOnlyTransaction,
			stateIdleInTransactionEnd, stateSerialization, stateDeadlock:
			return fault.Wrap(fault.UnavailableNow, stripped)
		}
		return stripped
	}
	if _, ok := errors.AsType[verdict](err); ok {
		return err
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, fault.ErrCommitUnknown), errors.Is(err, fault.ErrLeaseLost):
		return err
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fault.Wrap(fault.UnavailableNow, fault.Plain("the commit was rolled back"))
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.UnavailableNow, fmt.Errorf("database call ended by its context: %w", contextError(err)))
	}
	if reason := distrust(err); reason != "" {
		return fault.Wrap(fault.UnavailableNow, fault.Plain("no connection to the database: "+reason))
	}
	if brokenConnection(err) {
		return fault.Wrap(fault.UnavailableNow, fault.Plain("the database connection failed"))
	}
	return fmt.Errorf("database driver: %T", err) // the text could hold values
}

// brokenConnection tells whether err is about the connection: it could not be made, or it broke.
func brokenConnection(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed)
}

func contextError(err error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	return context.DeadlineExceeded
}

// stateOf returns the SQLSTATE in err's chain, empty without one.
func stateOf(err error) string {
	if e, ok := errors.AsType[*sqlError](err); ok {
		return e.code
	}
	return ""
}

// repeatable tells whether the whole closure may run again: the database chose it as a victim.
func repeatable(err error) bool {
	state := stateOf(err)
	return state == stateSerialization || state == stateDeadlock
}
