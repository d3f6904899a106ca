package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// dueSQL walks the workspaces that have due work by skipping through the index, once around from @after, and takes the
// first rows of each, so that one workspace's backlog hides no other's. First comes what would be its workspace's lowest
// number of leases, and among equals whose turn it is. The conditions are on how often a task crashed: of the index's rows
// that the walk steps on, and of the rows that are taken.
const dueSQL = `
WITH RECURSIVE clock AS MATERIALIZED (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), paused AS MATERIALIZED (
  SELECT coalesce(bool_or(p.provider = @extractor), false) AS extractor,
         coalesce(bool_or(p.provider = @embedder), false) AS embedder
    FROM provider_pauses p, clock
   WHERE p.provider IN (@extractor, @embedder) AND ` + pausedSQL + `@restart::float8)
), ws (id, around, n) AS (
  SELECT (SELECT workspace_id FROM tasks WHERE status = 'pending' AND ready%[1]s AND workspace_id > @after
           ORDER BY workspace_id LIMIT 1), false, 1
  UNION ALL
  SELECT (SELECT t.workspace_id FROM tasks t
           WHERE t.status = 'pending' AND t.ready%[1]s AND t.workspace_id > coalesce(ws.id, @none)
           ORDER BY t.workspace_id LIMIT 1), ws.around OR ws.id IS NULL, ws.n + 1
    FROM ws WHERE ws.n < @workspaces AND (NOT ws.around OR ws.id <= @after)
), live AS MATERIALIZED (
  SELECT * FROM unnest(@live_of::uuid[], @live::int[]) AS l (id, leases)
)
SELECT d.id, ws.id, (SELECT max(n) < @workspaces FROM ws)
  FROM ws LEFT JOIN live ON live.id = ws.id, paused, LATERAL (
    SELECT t.id, row_number() OVER (ORDER BY t.run_after, t.id) AS place
      FROM (SELECT c.id, c.stage, c.kind, c.crashes, c.payload_format, c.run_after, c.workspace_id, c.accepted_at,
                   c.user_id, c.agent_id, c.run_id, c.app_id, c.data_key FROM tasks c
             WHERE c.status = 'pending' AND c.ready%[2]s AND c.workspace_id = ws.id
               AND c.run_after <= (SELECT at FROM clock)
             ORDER BY c.run_after, c.id LIMIT @look) t
     WHERE t.kind = ANY(@kinds) AND t.payload_format <= @payload_format
       AND ` + openableSQL + `
       AND (t.stage <> 'accepted' OR t.crashes < @max_attempts)
       AND (t.kind = 'scope_erase' OR NOT CASE t.stage WHEN 'accepted' THEN paused.extractor ELSE paused.embedder END)
       AND NOT ` + fencedTaskSQL + `
     ORDER BY t.run_after, t.id LIMIT @each) d
 WHERE (NOT ws.around OR ws.id <= @after)
   AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = ws.id AND (w.suspended_at IS NOT NULL
                      OR w.paused_at IS NOT NULL))
 ORDER BY coalesce(live.leases, 0) + d.place, ws.n, d.place
 LIMIT @limit`

// dueAmong returns dueSQL for those who are asked for. The few that crashed have an index of their own; the others are
// found past them in the index of all.
func dueAmong(among worker.Among) string {
	switch among {
	case worker.Crashed:
		return fmt.Sprintf(dueSQL, " AND crashes >= 2", " AND crashes >= 2")
	case worker.Steady:
		return fmt.Sprintf(dueSQL, "", " AND crashes < 2")
	case worker.Anyone:
	}
	return fmt.Sprintf(dueSQL, "", "")
}

const (
	// dueWorkspaces bounds how many workspaces one drain looks at; the random start reaches the others soon.
	dueWorkspaces = 200
	// dueTurn and dueShare bound how many it looks at first, from those whose turn it is: a freed slot costs some
	// hundred pages however many workspaces wait, and each has its turn.
	dueTurn  = 16
	dueShare = 4
	// dueLook bounds how many due tasks of one workspace are looked past that this worker can't have: paused, exhausted,
	// of a newer kind, sealed with a key that it lacks.
	dueLook = 500
)

// dueTask is a task that is due, of its workspace.
type dueTask struct{ id, workspace uuid.UUID }

// Due implements worker.Claims. It goes on behind the workspace that was served last; where too little is found there,
// as when everything there is paused or suspended, it looks further from a random place. Exhausted tasks are left to
// repair.
func (db *DB) Due(ctx context.Context, who worker.Claimant, limit int) ([]uuid.UUID, bool, error) {
	after := uuid.UUID{}
	served := &db.served
	if who.Among == worker.Crashed { // a turn of those few is no turn of the others
		served = &db.servedCrashed
	}
	last := served.Load()
	if last != nil {
		after = *last
	}
	var found []dueTask
	whole, err := db.due(ctx, who, after, min(dueWorkspaces, dueTurn+dueShare*limit), limit+1, &found)
	if err != nil {
		return nil, false, err
	}
	if len(found) <= limit && !whole {
		start, err := db.waitingStart(ctx)
		if err != nil {
			return nil, false, err
		}
		if _, err := db.due(ctx, who, start, dueWorkspaces, limit+1, &found); err != nil {
			return nil, false, err
		}
	}
	ids := make([]uuid.UUID, min(len(found), limit))
	if len(ids) == 0 {
		return ids, false, nil
	}
	turn := len(ids) - 1
	if who.Among == worker.Crashed {
		turn = 0 // the first that is to be had is taken, and the others are looked for again
		if last == nil {
			anyFirst(found)
		}
	}
	served.Store(&found[turn].workspace)
	for i := range ids {
		ids[i] = found[i].id
	}
	return ids, len(found) > limit, nil
}

// anyFirst puts the workspaces that come first in any order. A process that begins doesn't know whose turn it is, and those
// that such tasks take down begin often: it must not always be the same one's.
func anyFirst(found []dueTask) {
	heads := 0
	for heads < len(found) && !slices.ContainsFunc(found[:heads], func(t dueTask) bool { return t.workspace == found[heads].workspace }) {
		heads++
	}
	rand.Shuffle(heads, func(i, j int) { found[i], found[j] = found[j], found[i] }) // #nosec G404 -- spreads turns
}

// due adds due tasks to found and tells whether it has looked at every workspace. It can't tell that of nothing.
func (db *DB) due(ctx context.Context, who worker.Claimant, after uuid.UUID, workspaces, limit int, found *[]dueTask) (whole bool, err error) {
	of, live := make([]uuid.UUID, 0, len(who.Live)), make([]int, 0, len(who.Live))
	for workspace, leases := range who.Live {
		of, live = append(of, workspace), append(live, leases)
	}
	err = db.read(ctx, unbound, "due", dueAmong(who.Among), pgx.NamedArgs{
		"now": db.now(), "after": after, "none": uuid.UUID{}, "workspaces": workspaces, "look": dueLook, "each": limit, "limit": limit,
		"extractor": who.Extractor, "embedder": who.Embedder, "kinds": kindNames(who.Kinds), "payload_format": who.Format,
		"max_attempts": who.MaxAttempts, "restart": who.Restart, "live_of": of, "live": live, "master_keys": db.sealer.masters(),
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var t dueTask
			if err := rows.Scan(&t.id, &t.workspace, &whole); err != nil {
				return err
			}
			if !slices.Contains(*found, t) {
				*found = append(*found, t)
			}
		}
		return nil
	})
	return whole, err
}

// leasesSQL reads the few rows that run. A workspace whose leases are all the worker's own is there for its cap. What
// waits for a receiver outside takes no slot and doesn't count.
const leasesSQL = `
SELECT t.workspace_id, count(*) FILTER (WHERE t.worker_incarnation <> @worker), coalesce(max(w.lease_cap), 0)
  FROM tasks t
  LEFT JOIN workspaces w ON w.id = t.workspace_id
 WHERE t.status = 'running' AND t.kind <> 'webhook_delivery'
   AND t.lease_until > (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 GROUP BY t.workspace_id`

// Leases implements worker.Claims.
func (db *DB) Leases(ctx context.Context, name string) (map[uuid.UUID]worker.Load, error) {
	found := map[uuid.UUID]worker.Load{}
	err := db.read(ctx, unbound, "live leases", leasesSQL, pgx.NamedArgs{"now": db.now(), "worker": name}, func(rows pgx.Rows) error {
		for rows.Next() {
			var workspace uuid.UUID
			var load worker.Load
			if err := rows.Scan(&workspace, &load.Leases, &load.Cap); err != nil {
				return err
			}
			found[workspace] = load
		}
		return nil
	})
	return found, err
}
