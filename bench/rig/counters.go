package rig

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Counters are what the server has done since it started. They are complete only when those that are counted have
// closed their connections: a session hands over what it counted once a second at most.
type Counters struct {
	WALBytes int64 // exact at any time
	Flushes  int64 // of the write-ahead log to disk
	Commits  int64 // over all databases but the counters' own
}

const countersSQL = `
SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, w.wal_sync,
       (SELECT sum(d.xact_commit)::bigint FROM pg_stat_database d WHERE d.datname <> current_database())
  FROM pg_stat_wal w`

// goneBound is how long sessions may take to end that their clients have left.
const goneBound = 30 * time.Second

// Gone returns once nobody is connected to a database any more: a session hands over what it counted as it ends, which
// may be after its client has gone.
func (r *Rig) Gone(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, goneBound)
	defer cancel()
	for {
		var left int
		err := r.admin.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
			database).Scan(&left)
		if err != nil {
			return fmt.Errorf("wait for sessions to end: %w", err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d sessions of %s have not ended after %s", left, database, goneBound)
		}
	}
}

// Counters reads them.
func (r *Rig) Counters(ctx context.Context) (Counters, error) {
	var c Counters
	if err := r.admin.QueryRow(ctx, countersSQL).Scan(&c.WALBytes, &c.Flushes, &c.Commits); err != nil {
		return c, fmt.Errorf("read counters: %w", err)
	}
	return c, nil
}

// Since is what happened between an earlier reading and this one.
func (c Counters) Since(before Counters) Counters {
	return Counters{c.WALBytes - before.WALBytes, c.Flushes - before.Flushes, c.Commits - before.Commits}
}

// Statement is one form of statement with all its runs.
type Statement struct {
	Text     string  `json:"text"`
	Calls    int64   `json:"calls"`
	Rows     int64   `json:"rows"`
	WALBytes int64   `json:"wal_bytes"`
	Buffers  int64   `json:"buffers"`
	TotalMS  float64 `json:"total_ms"`
}

const statementsSQL = `
SELECT left(regexp_replace(s.query, '\s+', ' ', 'g'), 90), s.calls, s.rows, s.wal_bytes::bigint,
       s.shared_blks_hit + s.shared_blks_read, s.total_exec_time
  FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
 WHERE d.datname = @database AND s.query NOT LIKE '%pg_stat_%' AND s.query NOT LIKE '%/* bench */%'
 ORDER BY s.total_exec_time DESC`

// ForgetStatements sets the counters of statements to zero.
func (r *Rig) ForgetStatements(ctx context.Context) error {
	if _, err := r.admin.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return fmt.Errorf("forget statements: %w", err)
	}
	return nil
}

// Statements are those of one database since ForgetStatements, the most expensive first, without the bench's own.
func (r *Rig) Statements(ctx context.Context, database string) ([]Statement, error) {
	rows, err := r.admin.Query(ctx, statementsSQL, pgx.NamedArgs{"database": database})
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Statement])
	if err != nil {
		return nil, fmt.Errorf("read statements: %w", err)
	}
	return found, nil
}
