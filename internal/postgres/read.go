package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// readBound is how long one read may take: longer than any page that an index serves, shorter than a client
// waits. A read that takes longer lacks an index.
const readBound = 10 * time.Second

// read runs one statement that only reads, in its own snapshot, and hands its rows to scan. It never leaves
// anything open: an error is the statement's, a fault UNAVAILABLE when it passes by itself.
func (db *DB) read(ctx context.Context, name, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, readBound)
	defer cancel()
	conn, err := db.acquire(ctx)
	if err != nil {
		return &stepError{name, classify(err)}
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, sql, args)
	if err != nil {
		return &stepError{name, classify(err)}
	}
	defer rows.Close()
	if err := scan(rows); err != nil {
		return &stepError{name, classify(err)}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return &stepError{name, classify(err)}
	}
	return nil
}
