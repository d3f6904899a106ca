package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/worker"
)

// claimGroupSQL is claimSQL for tasks of any workspaces, in the order of their ids. It waits for no row. Its first row says
// which asks have been decided: of the others somebody holds the row, or there is none.
const claimGroupSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), old AS (
  SELECT ` + lockedColumnsSQL + `, a.token, a.restart
    FROM unnest(@tasks::uuid[], @tokens::uuid[], @restarts::float8[]) AS a (task, token, restart)
    JOIN tasks t ON t.id = a.task
   ORDER BY t.id
     FOR UPDATE OF t SKIP LOCKED
)` + takeSQL + `
SELECT CASE WHEN row_number() OVER () = 1 THEN (SELECT array_agg(old.token) FROM old) END, ` + leaseSQL + `
  FROM (SELECT) AS answer LEFT JOIN mine m ON true`

// planForManySQL goes before a statement over a set. Such a statement keeps one plan, and that must be the one for a full
// table, also where it is made for an empty one: one look into an index for each item.
const planForManySQL = `
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

// claimGroup claims for several asks in one statement. Those of another claimant than the first fall out of it, and those
// that are not decided if they are to wait for who holds their row; so does everyone when the statement fails.
func (db *DB) claimGroup(ctx context.Context, asks []asking) []claimed {
	answers := make([]claimed, len(asks))
	tasks, tokens, restarts := make([]uuid.UUID, 0, len(asks)), make([]uuid.UUID, 0, len(asks)), make([]float64, 0, len(asks))
	places := make(map[uuid.UUID]int, len(asks)) // by token
	for i, a := range asks {
		answers[i].alone = true
		if alike(a.who, asks[0].who) {
			places[a.ask.Token] = i
			tasks, tokens, restarts = append(tasks, a.ask.TaskID), append(tokens, a.ask.Token), append(restarts, a.who.Restart)
			answers[i].alone = !a.skipLocked
		}
	}
	args := db.claimantArgs(asks[0].who)
	args["tasks"], args["tokens"], args["restarts"] = tasks, tokens, restarts
	err := db.aloneForMany(ctx, "claim group", claimGroupSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := db.scanClaimed(rows, asks[0].who.Worker, places, answers); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for _, i := range places {
			answers[i] = claimed{Claimed: worker.Claimed{Err: err}, alone: !isUnknown(err), lost: isUnknown(err)}
		}
	}
	return answers
}

// scanClaimed reads a lease, of the first row also what has been decided, with or without one.
func (db *DB) scanClaimed(rows pgx.Rows, name string, places map[uuid.UUID]int, answers []claimed) error {
	var decided []uuid.UUID
	var lease *worker.Lease
	var err error
	if raw := rows.RawValues(); raw[1] == nil {
		err = rows.Scan(append([]any{&decided}, make([]any, len(raw)-1)...)...)
	} else {
		lease, err = db.scanLease(rows, name, &decided)
	}
	if err != nil {
		return err
	}
	for _, token := range decided {
		answers[places[token]].alone = false
	}
	if lease != nil {
		answers[places[lease.Token]].Lease = lease
	}
	return nil
}

// aloneForMany is alone for a statement over a set, in the reach of a worker.
func (db *DB) aloneForMany(ctx context.Context, name, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	return db.borrowed(ctx, name, func(ctx context.Context, conn *pgxpool.Conn) error {
		return behind(ctx, conn, planForManySQL, nil, sql, args, scan)
	})
}
