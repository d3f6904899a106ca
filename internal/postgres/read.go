package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// readBound is how long one read may take: longer than any page that an index serves, shorter than a client
// waits. A read that takes longer lacks an index.
const readBound = 10 * time.Second

// read runs one statement that only reads, within the reach, in its own snapshot, and hands its rows to scan. It never
// leaves anything open: an error is the statement's, a fault UNAVAILABLE when it passes by itself.
func (db *DB) read(ctx context.Context, within reach, name, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	conn, err := db.acquire(ctx)
	if err != nil {
		return &stepError{name, classify(err)}
	}
	defer conn.Release()
	if err := single(ctx, conn, within, sql, args, scan); err != nil {
		return &stepError{name, classify(err)}
	}
	return nil
}

// single runs one statement in a transaction that the server begins and ends by itself. The reach goes before it in the
// same round trip: both are answered at one synchronisation, which is where the transaction ends, the settings with it.
func single(ctx context.Context, conn *pgxpool.Conn, within reach, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	if within == unbound {
		rows, err := conn.Query(ctx, sql, byName(args))
		if err != nil {
			return err
		}
		return scanned(rows, scan)
	}
	workspace, wide := within.settings()
	return behind(ctx, conn, reachSQL, []any{workspace, wide}, sql, args, scan)
}

// behind is single for a statement behind one that makes settings for it.
func behind(ctx context.Context, conn *pgxpool.Conn, first string, firstArgs []any, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	wire := &pgx.Batch{}
	wire.Queue(first, firstArgs...)
	wire.Queue(sql, byName(args))
	results := conn.SendBatch(ctx, wire)
	_, err := results.Exec()
	if err == nil {
		var rows pgx.Rows
		if rows, err = results.Query(); err == nil {
			err = scanned(rows, scan)
		}
	}
	if closed := results.Close(); err == nil {
		err = closed // what the end of the transaction refuses is told here
	}
	return err
}

// scanned hands the rows to scan and answers how reading them ended.
func scanned(rows pgx.Rows, scan func(pgx.Rows) error) error {
	defer rows.Close()
	if err := scan(rows); err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}
