package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// unhintedSQL walks the workspaces that have waiting work as the due scan does, and takes of each the first due tasks
// whose last hint is old. It looks at @limit tasks of a workspace and no further: when all of them have a fresh hint,
// enough hints are on their way, and what comes later in the queue waits for its turn. Not hinted is what no claim
// may take: exhausted tasks and those of a suspended workspace.
const unhintedSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), ws (id, n) AS (
  (SELECT workspace_id, 1 FROM tasks WHERE status = 'pending' AND ready AND workspace_id > @after
    ORDER BY workspace_id LIMIT 1)
  UNION ALL
  SELECT (SELECT t.workspace_id FROM tasks t WHERE t.status = 'pending' AND t.ready AND t.workspace_id > ws.id
           ORDER BY t.workspace_id LIMIT 1), ws.n + 1
    FROM ws WHERE ws.id IS NOT NULL AND ws.n < @workspaces
)
SELECT d.id, d.hint_seq
  FROM ws, LATERAL (
    SELECT t.id, t.hint_seq, t.hint_at, row_number() OVER (ORDER BY t.run_after, t.id) AS place
      FROM (SELECT c.id, c.hint_seq, c.hint_at, c.stage, c.crashes, c.run_after FROM tasks c
             WHERE c.status = 'pending' AND c.ready AND c.workspace_id = ws.id
               AND c.run_after <= (SELECT at FROM clock)
             ORDER BY c.run_after, c.id LIMIT @limit) t
     WHERE t.hint_at <= (SELECT at FROM clock) - make_interval(secs => @age)
       AND (t.stage <> 'accepted' OR t.crashes < @max_attempts)) d
 WHERE ws.id IS NOT NULL
   AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = ws.id AND w.suspended_at IS NOT NULL)
 ORDER BY d.place, d.hint_at, d.id
 LIMIT @limit`

// rehintSQL is a CAS on the hint's number: of several repairers that saw the same task one raises it, and a task that
// was claimed or hinted meanwhile stays as it is. Rows are locked in id order and never waited for. The columns are in
// no index, so that the update is HOT.
const rehintSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), mine AS (
  SELECT t.id
    FROM tasks t JOIN unnest(@ids::uuid[], @seqs::bigint[]) AS seen (id, seq) ON seen.id = t.id
   WHERE t.status = 'pending' AND t.ready AND t.hint_seq = seen.seq
   ORDER BY t.id
     FOR UPDATE OF t SKIP LOCKED
)
UPDATE tasks AS t SET hint_seq = t.hint_seq + 1, hint_at = clock.at
  FROM mine, clock
 WHERE t.id = mine.id
RETURNING t.id, t.workspace_id, t.hint_seq, t.priority`

// waitingRangeSQL finds the first and the last workspace that has waiting work.
const waitingRangeSQL = `
SELECT coalesce((SELECT workspace_id FROM tasks WHERE status = 'pending' AND ready ORDER BY workspace_id LIMIT 1), @none),
       coalesce((SELECT workspace_id FROM tasks WHERE status = 'pending' AND ready ORDER BY workspace_id DESC LIMIT 1), @none)`

// Rehint implements repair.Hints. It starts behind a random place among the workspaces that have waiting work and
// wraps around, so that every one of them comes to be looked at however many there are.
func (db *DB) Rehint(ctx context.Context, ask repair.Rehint) (int, []task.Hint, error) {
	start, err := db.waitingStart(ctx)
	if err != nil {
		return 0, nil, err
	}
	seen := make(map[uuid.UUID]int64, ask.Limit)
	for _, after := range []uuid.UUID{start, {}} {
		if len(seen) == ask.Limit {
			break
		}
		if err := db.unhinted(ctx, ask, after, seen); err != nil {
			return 0, nil, err
		}
	}
	if len(seen) == 0 {
		return 0, nil, nil
	}
	raised, err := db.rehint(ctx, seen)
	return len(seen), raised, err
}

// waitingStart answers a place between the first and the last workspace that has waiting work.
func (db *DB) waitingStart(ctx context.Context) (uuid.UUID, error) {
	var first, last uuid.UUID
	err := db.read(ctx, "workspaces with waiting work", waitingRangeSQL, pgx.NamedArgs{"none": uuid.UUID{}},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&first, &last); err != nil {
					return err
				}
			}
			return nil
		})
	low, high := binary.BigEndian.Uint64(first[:8]), binary.BigEndian.Uint64(last[:8])
	if err != nil || high <= low {
		return uuid.UUID{}, err
	}
	binary.BigEndian.PutUint64(first[:8], low+rand.Uint64N(high-low)) // #nosec G404 -- spreads load
	return first, nil
}

// unhinted adds tasks that need a hint to seen, as many as are left of the limit.
func (db *DB) unhinted(ctx context.Context, ask repair.Rehint, after uuid.UUID, seen map[uuid.UUID]int64) error {
	return db.read(ctx, "due without a hint", unhintedSQL, pgx.NamedArgs{
		"now": db.now(), "after": after, "workspaces": dueWorkspaces, "limit": ask.Limit, "age": inSeconds(ask.Age),
		"max_attempts": ask.MaxAttempts,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var seq int64
			if err := rows.Scan(&id, &seq); err != nil {
				return err
			}
			if len(seen) < ask.Limit {
				seen[id] = seq
			}
		}
		return nil
	})
}

func (db *DB) rehint(ctx context.Context, seen map[uuid.UUID]int64) ([]task.Hint, error) {
	ids := make([]uuid.UUID, 0, len(seen))
	seqs := make([]int64, 0, len(seen))
	for id, seq := range seen {
		ids, seqs = append(ids, id), append(seqs, seq)
	}
	var raised []task.Hint
	err := db.alone(ctx, "rehint", rehintSQL, pgx.NamedArgs{"now": db.now(), "ids": ids, "seqs": seqs},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var hint task.Hint
				if err := rows.Scan(&hint.TaskID, &hint.WorkspaceID, &hint.Seq, &hint.Priority); err != nil {
					return err
				}
				raised = append(raised, hint)
			}
			return nil
		})
	return raised, err
}

// RescueAfter implements repair.Leases: Rescue's moves, page by page, so that no number of rows that can't be moved
// hides those behind them.
func (db *DB) RescueAfter(ctx context.Context, maxAttempts int, after repair.Cursor, limit int) ([]worker.Rescued, repair.Swept, error) {
	var found []repair.Cursor
	leases := map[uuid.UUID]expiredLease{}
	err := db.read(ctx, "expired leases", expiredSQL, pgx.NamedArgs{
		"now": db.now(), "max_attempts": maxAttempts, "after": after.ID, "limit": limit,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var e expiredLease
			if err := rows.Scan(&e.id, &e.workspace, &e.token, &e.until, &e.exhausted); err != nil {
				return err
			}
			found = append(found, repair.Cursor{ID: e.id})
			leases[e.id] = e
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return nil, repair.Swept{}, err
	}
	page := repair.Swept{Next: found[len(found)-1], More: len(found) == limit}
	return db.moveEach(ctx, found, page, func(ctx context.Context, id uuid.UUID) (*worker.Rescued, error) {
		if e := leases[id]; !e.exhausted {
			return db.rescue(ctx, e, maxAttempts)
		}
		return db.exhaust(ctx, id, maxAttempts)
	})
}

// waitingSQL reads a page of the index of waiting tasks and answers the exhausted ones of it, and its last row.
const waitingSQL = `
WITH page AS MATERIALIZED (
  SELECT t.workspace_id, t.run_after, t.id, t.stage = 'accepted' AND t.crashes >= @max_attempts AS exhausted
    FROM tasks t
   WHERE t.status = 'pending' AND t.ready AND (t.workspace_id, t.run_after, t.id) > (@workspace, @at, @after)
   ORDER BY t.workspace_id, t.run_after, t.id
   LIMIT @limit
), counted AS (
  SELECT page.*, count(*) OVER () AS total, row_number() OVER (ORDER BY workspace_id, run_after, id) AS place FROM page
)
SELECT workspace_id, run_after, id, exhausted, total FROM counted WHERE exhausted OR place = total ORDER BY place`

// ExhaustAfter implements repair.Leases.
func (db *DB) ExhaustAfter(ctx context.Context, maxAttempts int, after repair.Cursor, limit int) ([]worker.Rescued, repair.Swept, error) {
	var found []repair.Cursor
	page := repair.Swept{Next: after}
	err := db.read(ctx, "waiting tasks", waitingSQL, pgx.NamedArgs{
		"max_attempts": maxAttempts, "workspace": after.Workspace, "at": after.At, "after": after.ID, "limit": limit,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var exhausted bool
			var total int
			if err := rows.Scan(&page.Next.Workspace, &page.Next.At, &page.Next.ID, &exhausted, &total); err != nil {
				return err
			}
			page.More = total == limit
			if exhausted {
				found = append(found, page.Next)
			}
		}
		return nil
	})
	if err != nil {
		return nil, repair.Swept{}, err
	}
	return db.moveEach(ctx, found, page, func(ctx context.Context, id uuid.UUID) (*worker.Rescued, error) {
		return db.exhaust(ctx, id, maxAttempts)
	})
}

// moveEach moves one row of a page after the other. Each has a transaction of its own, with its bounds, and its own
// error: a worker that was frozen in the middle of a transaction costs the others ten seconds. When the database is
// away or the caller's time is over it stops, and the next step goes on behind the row that it stopped at.
func (db *DB) moveEach(ctx context.Context, rows []repair.Cursor, page repair.Swept, move func(ctx context.Context, id uuid.UUID) (*worker.Rescued, error)) ([]worker.Rescued, repair.Swept, error) {
	var moved []worker.Rescued
	var failed failures
	for _, row := range rows {
		page.Found++
		one, err := move(ctx, row.ID)
		switch {
		case err == nil && one != nil:
			page.Fixed++
			moved = append(moved, *one)
		case err != nil:
			page.Failed++
			failed.add(fmt.Errorf("task %s: %w", row.ID, err))
		}
		if err != nil && db.away(ctx, err) {
			page.Next, page.More = row, true
			break
		}
	}
	return moved, page, failed.join()
}

// away tells, after err, that the database can't be reached or the caller's time is over: there is no sense in going
// on with the next row.
func (db *DB) away(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	if state := stateOf(err); state != "" && state != stateAdminShutdown && state != stateCrashShutdown {
		return false // the server answered: it is about this row
	}
	return db.Ping(ctx) != nil
}

// failures joins the errors of rows. It keeps the first five, which are enough to see what is wrong.
type failures struct {
	first []error
	more  int
}

func (f *failures) add(err error) {
	if len(f.first) == 5 {
		f.more++
		return
	}
	f.first = append(f.first, err)
}

func (f *failures) join() error {
	if f.more == 0 {
		return errors.Join(f.first...)
	}
	return errors.Join(append(f.first, fmt.Errorf("and %d more", f.more))...)
}
