package ours

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Open tasks may be under way meanwhile, so that everything is read in one snapshot.
const balancedSQL = `
SELECT (SELECT coalesce(sum(held), 0) FROM credit_accounts) - (SELECT coalesce(sum(amount), 0) FROM task_runs WHERE outcome IS NULL),
       (SELECT count(*) FROM task_runs WHERE outcome = 'succeeded') - (SELECT count(*) FROM credit_closings WHERE outcome = 'succeeded'),
       (SELECT count(*) FROM task_runs WHERE outcome = 'succeeded') - (SELECT count(*) FROM tasks WHERE status = 'succeeded'),
       (SELECT count(*) FROM task_results WHERE event = 'ADD') - (SELECT count(*) FROM memories),
       (SELECT count(*) FROM tasks WHERE status = 'failed')`

// Balanced checks the books of a database that only this package has written to, without Fill and Corpus: a run whose
// books don't balance, or in which a task failed, measures nothing.
func Balanced(ctx context.Context, databaseURL string) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return errors.New("check the books: cannot connect") // its error can quote the URL with its password
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	var held, closed, ended, records, failed int64
	if err := conn.QueryRow(ctx, balancedSQL).Scan(&held, &closed, &ended, &records, &failed); err != nil {
		return fmt.Errorf("check the books: %w", err)
	}
	if held != 0 || closed != 0 || ended != 0 || records != 0 || failed != 0 {
		return fmt.Errorf("the books don't balance: %d too much held, %d runs without settlement, %d without task, %d results without record, %d failed",
			held, closed, ended, records, failed)
	}
	return nil
}

// Table is what was done to one table.
type Table struct {
	Name       string
	Updates    int64
	HOT        int64 // updates that touched no index
	Sequential int64 // scans of the whole table
}

const tablesSQL = `
SELECT relname::text, n_tup_upd, n_tup_hot_upd, seq_scan FROM pg_stat_user_tables
 WHERE relname IN ('tasks', 'credit_accounts', 'lanes', 'task_runs', 'idempotency_keys') ORDER BY relname`

// Tables are the hot tables' counters, complete once whoever used them has ended.
func Tables(ctx context.Context, databaseURL string) (tables []Table, err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, errors.New("read table counters: cannot connect")
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	rows, err := conn.Query(ctx, tablesSQL)
	if err != nil {
		return nil, fmt.Errorf("read table counters: %w", err)
	}
	if tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Table]); err != nil {
		return nil, fmt.Errorf("read table counters: %w", err)
	}
	return tables, nil
}
