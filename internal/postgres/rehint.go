package postgres

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// unhintedSQL walks the workspaces that have waiting work as the due scan does, and takes of each the first due tasks
// whose last hint is old. It looks at @page tasks of a workspace and no further: when all of them have a fresh hint,
// enough hints are on their way, and what comes later in the queue waits for its turn. A claim that was given up for a
// while leaves a hint_at that is when the task may run again, later than its last change: nobody has hinted it yet.
// Exhausted tasks and those of a suspended or paused workspace are left out. Tasks of a paused provider are not: which provider a
// task needs is the workers' knowledge, and a claim that is refused costs one look-up for each hint's age.
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
      FROM (SELECT c.id, c.hint_seq, c.hint_at, c.stage, c.crashes, c.claims, c.run_after, c.updated_at FROM tasks c
             WHERE c.status = 'pending' AND c.ready AND c.workspace_id = ws.id
               AND c.run_after <= (SELECT at FROM clock)
             ORDER BY c.run_after, c.id LIMIT @page) t
     WHERE (t.hint_at <= (SELECT at FROM clock) - make_interval(secs => @age)
            OR t.claims > 0 AND t.hint_at = t.run_after AND t.hint_at > t.updated_at)
       AND (t.stage <> 'accepted' OR t.crashes < @max_attempts)) d
 WHERE ws.id IS NOT NULL
   AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = ws.id AND (w.suspended_at IS NOT NULL OR w.paused_at IS NOT NULL))
 ORDER BY d.place, d.hint_at, d.id
 LIMIT @limit`

// unhintedPage is how many waiting tasks of one workspace a look reads: as many as the hints that may wait in NATS.
const unhintedPage = 500

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
	err := db.read(ctx, unbound, "workspaces with waiting work", waitingRangeSQL, pgx.NamedArgs{"none": uuid.UUID{}},
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
	return db.read(ctx, unbound, "due without a hint", unhintedSQL, pgx.NamedArgs{
		"now": db.now(), "after": after, "workspaces": dueWorkspaces, "page": unhintedPage, "limit": ask.Limit,
		"age": inSeconds(ask.Age), "max_attempts": ask.MaxAttempts,
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
	err := db.alone(ctx, unbound, "rehint", rehintSQL, pgx.NamedArgs{"now": db.now(), "ids": ids, "seqs": seqs},
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
