package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// insertActSQL goes into the transaction of the act itself. What is repeated on the same occasion, because the answer to
// a COMMIT got lost, is one act.
const insertActSQL = `
INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject, details)
SELECT @act_id::uuid, (SELECT coalesce(@now::timestamptz, clock_timestamp())), @act_actor::text, @act_origin::text,
       @act_request::text, @act_workspace::uuid, @act::text, @act_subject::text, @act_details::text::jsonb`

const onceActSQL = ` ON CONFLICT (id) DO NOTHING`

// act is what is written of one act beside who does it. Details are numbers, codes and names; never a caller's text.
type act struct {
	workspace uuid.UUID
	name      string
	subject   string
	details   map[string]any
}

// args are the arguments of insertActSQL.
func (a act) args(ctx context.Context, now *time.Time) pgx.NamedArgs {
	by := access.ActorOf(ctx)
	if by.Bulk != uuid.Nil {
		a.details = maps.Clone(a.details)
		if a.details == nil {
			a.details = map[string]any{}
		}
		a.details["bulk"] = by.Bulk.String()
	}
	details, err := json.Marshal(a.details)
	if err != nil || a.details == nil { // numbers, texts and lists of them can be encoded
		details = []byte("{}")
	}
	var workspace *uuid.UUID
	if a.workspace != uuid.Nil {
		workspace = &a.workspace
	}
	return pgx.NamedArgs{
		"act_id":    uuid.NewSHA1(by.Occasion, []byte(a.name+" "+a.workspace.String()+" "+a.subject)),
		"act_actor": by.Name, "act_origin": by.Origin, "act_request": by.RequestID, "act_workspace": workspace,
		"act": a.name, "act_subject": a.subject, "act_details": string(details), "now": now,
	}
}

// addAct adds the record of an act to the transaction that does it.
func addAct(ctx context.Context, b *batch, now *time.Time, a act) {
	b.exec("record act", insertActSQL+onceActSQL, a.args(ctx, now), nil)
}

// recordedSQL is a statement that changes rows and returns them, with the record of the act in the same statement: what
// touches no row is no act.
func recordedSQL(sql string) string {
	return `
WITH done AS (` + sql + `), act AS (` + insertActSQL + `
 WHERE EXISTS (SELECT FROM done)` + onceActSQL + `)
SELECT * FROM done`
}

// reach is the act's workspace. An act on operators is about no workspace, and only the owner's to do.
func (a act) reach() reach {
	if a.workspace == uuid.Nil {
		return unbound
	}
	return of(a.workspace)
}

// recorded runs a statement that changes rows and returns them, and records the act with it.
func (db *DB) recorded(ctx context.Context, a act, name, sql string, args pgx.NamedArgs, scan func(pgx.Rows) error) error {
	all := a.args(ctx, db.now())
	maps.Copy(all, args)
	return db.alone(ctx, a.reach(), name, recordedSQL(sql), all, scan)
}

// eventSubject names an event as it is shown.
func eventSubject(id uuid.UUID) string { return "evt_" + id.String() }

// moveAct is the act of accepting a command of that kind, empty for a caller's everyday writes.
func moveAct(kind task.Kind) string {
	if kind == task.Export {
		return operator.Export
	}
	if kind == task.Import {
		return operator.Import
	}
	return ""
}

// maxActs bounds a page.
const maxActs = 1_000

const actsSQL = `
SELECT id, at, actor, origin, request_id, coalesce(workspace_id, @none), act, subject, details::text
  FROM operator_acts
 WHERE (@workspace::uuid IS NULL OR workspace_id = @workspace) AND (@act::text = '' OR act = @act)
   AND (@actor::text = '' OR actor = @actor)
   AND (at, id) < (coalesce(@after_at::timestamptz, 'infinity'),
                   coalesce(@after_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
 ORDER BY at DESC, id DESC
 LIMIT @limit`

// Acts answers a page of the log of acts, newest first.
func (db *DB) Acts(ctx context.Context, query operator.ActQuery) (operator.ActPage, error) {
	limit := min(max(query.Limit, 1), maxActs)
	args := pgx.NamedArgs{
		"none": uuid.Nil, "workspace": nil, "act": query.Act, "actor": query.Actor, "after_at": nil, "after_id": nil,
		"limit": limit + 1,
	}
	within := everyone
	if query.Workspace != uuid.Nil {
		args["workspace"], within = query.Workspace, of(query.Workspace)
	}
	if query.After != nil {
		args["after_at"], args["after_id"] = query.After.At, query.After.ID
	}
	var page operator.ActPage
	err := db.read(ctx, within, "read acts", actsSQL, args, func(rows pgx.Rows) (err error) {
		page.Acts, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a operator.Act, err error) {
			err = row.Scan(&a.ID, &a.At, &a.Actor, &a.Origin, &a.RequestID, &a.Workspace, &a.Act, &a.Subject, &a.Details)
			a.At = a.At.UTC()
			return a, err
		})
		return err
	})
	if err != nil {
		return operator.ActPage{}, fmt.Errorf("list acts: %w", err)
	}
	if len(page.Acts) > limit {
		page.Acts = page.Acts[:limit]
		page.Next = &operator.ActPlace{At: page.Acts[limit-1].At, ID: page.Acts[limit-1].ID}
	}
	return page, nil
}

const forgetActsSQL = `
DELETE FROM operator_acts
 WHERE id IN (SELECT a.id FROM operator_acts a
               WHERE a.at < (SELECT coalesce(@now::timestamptz, clock_timestamp())) - make_interval(secs => @older)
               ORDER BY a.at LIMIT @limit)
RETURNING id`

// ForgetActs implements repair.Retention.
func (db *DB) ForgetActs(ctx context.Context, older time.Duration, limit int) (repair.Swept, error) {
	gone := 0
	args := pgx.NamedArgs{"now": db.now(), "older": inSeconds(older), "limit": limit}
	err := db.alone(ctx, unbound, "forget acts", forgetActsSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			gone++
		}
		return nil
	})
	if err != nil {
		return repair.Swept{}, err // rolled back, or unknown: the next round finds what is left
	}
	return repair.Swept{Found: gone, Fixed: gone, More: gone == limit}, nil
}
