package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// dispatchLook bounds the webhooks that one round serves, one transaction each.
	dispatchLook = 50
	// dispatchPage bounds the ends of runs that one transaction turns into deliveries.
	dispatchPage = 500
	// maxWaiting bounds the deliveries of one webhook that wait: some megabytes. What ends meanwhile stays in the feed,
	// which is as durable.
	maxWaiting = 20_000
)

// newsSQL finds webhooks that have something to be told, and deleted ones that have left something behind. Without any
// webhook it looks into two empty indexes. The order of the closings is that of their index, so that the planner reads
// the first one behind the place and nothing else.
const newsSQL = `
(SELECT w.id, w.workspace_id, false AS deleted
   FROM webhooks w
  WHERE w.active AND w.deleted_at IS NULL AND w.id > @after
    AND NOT EXISTS (SELECT FROM workspaces s WHERE s.id = w.workspace_id AND s.suspended_at IS NOT NULL)
    AND ((SELECT true FROM credit_closings c
           WHERE c.workspace_id = w.workspace_id AND c.xid < pg_snapshot_xmin(pg_current_snapshot())
             AND (c.xid, c.task_id, c.generation) > (w.feed_xid, w.feed_task, w.feed_generation)
           ORDER BY c.xid, c.task_id, c.generation LIMIT 1)
         OR w.feed_xid > pg_snapshot_xmin(pg_current_snapshot())) -- a place of another database
  ORDER BY w.id LIMIT @limit)
UNION ALL
(SELECT w.id, w.workspace_id, true FROM webhooks w WHERE w.deleted_at IS NOT NULL ORDER BY w.id LIMIT @limit)`

// takeEndpointSQL takes a webhook unless another process has it, with its place in the feed.
const takeEndpointSQL = `
SELECT event_types, kinds, feed_xid::text, feed_task, feed_generation, feed_claim,
       (SELECT count(*) FROM (SELECT FROM tasks t WHERE t.lane = @lane AND t.status = 'pending' AND t.kind = 'webhook_delivery'
                               LIMIT @most) waiting)
  FROM webhooks
 WHERE id = @webhook AND active AND deleted_at IS NULL
   FOR NO KEY UPDATE SKIP LOCKED`

// runFactsSQL reads what a run came to, as long as it is the task's last one.
const runFactsSQL = `
SELECT id, generation, coalesce(outcome, ''), coalesce(error_code, '') FROM all_tasks WHERE id = ANY(@ids::uuid[])`

// insertDeliveriesSQL makes a task for each message that is new. What was made before stays: its id says what it tells.
const insertDeliveriesSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), d AS (
  INSERT INTO webhook_deliveries (id, workspace_id, webhook_id, task_id, type, about, generation, body, created_at)
  SELECT m.id, @workspace, @webhook, m.task, m.type, nullif(m.about, '00000000-0000-0000-0000-000000000000'), m.generation,
         m.body, clock.at
    FROM unnest(@ids::uuid[], @tasks::uuid[], @types::text[], @abouts::uuid[], @generations::int[], @bodies::bytea[])
         AS m (id, task, type, about, generation, body), clock
  ON CONFLICT (id) DO NOTHING
  RETURNING id, task_id
), t AS (` + insertDeliveryTasksSQL + `)
SELECT count(*) FROM t`

// insertDeliveryTasksSQL inserts the tasks of the rows d with their runs' rows, which cost nothing.
const insertDeliveryTasksSQL = `
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, priority, command, payload_format,
                     accepted_at, updated_at)
  SELECT d.task_id, @workspace, 'webhook_delivery', 'pending', 'accepted', clock.at, clock.at, @lane, 'bulk',
         convert_to('{"message":"' || d.id || '"}', 'UTF8'), @payload_format, clock.at, clock.at
    FROM d, clock
  RETURNING id, workspace_id, accepted_at
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
  SELECT id, 1, workspace_id, 0, accepted_at FROM t
`

// moveFeedSQL moves the place behind what was read, in the transaction that made the deliveries.
const moveFeedSQL = `
UPDATE webhooks SET feed_xid = @xid::text::xid8, feed_task = @task, feed_generation = @generation, feed_claim = @claim
 WHERE id = @webhook`

// resetFeedSQL begins anew at the feed's now: the place is one of another database.
const resetFeedSQL = `
UPDATE webhooks SET feed_xid = pg_snapshot_xmin(pg_current_snapshot()), feed_task = @none, feed_generation = 0, feed_claim = 0
 WHERE id = @webhook`

// news is a webhook that a round has to look at.
type news struct {
	ID        uuid.UUID
	Workspace uuid.UUID
	Deleted   bool
}

// Dispatch turns what has ended into deliveries, a page for each webhook that has something to be told, and removes what
// deleted webhooks have left behind. It answers how many deliveries it has made and whether there is more to do at once.
// Every call goes on behind the webhooks of the one before. An error joins those of the webhooks that failed, the first
// one of each workspace: its others would wait for the same. The other workspaces are served.
func (db *DB) Dispatch(ctx context.Context) (made int, more bool, err error) {
	after := uuid.Nil
	if place := db.dispatched.Load(); place != nil {
		after = *place
	}
	var all []news
	err = db.read(ctx, unbound, "webhooks with news", newsSQL, pgx.NamedArgs{"after": after, "limit": dispatchLook},
		func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[news])
			return err
		})
	if err != nil {
		return 0, false, err
	}
	active := 0
	var failed error
	stuck := map[uuid.UUID]bool{}
	for _, n := range all {
		if !n.Deleted {
			active++
			db.dispatched.Store(&n.ID)
		}
		if stuck[n.Workspace] {
			continue
		}
		var m int
		var again bool
		if n.Deleted {
			again, err = db.sweepEndpoint(ctx, n.Workspace, n.ID)
		} else {
			m, again, err = db.dispatch(ctx, n)
		}
		if err != nil {
			stuck[n.Workspace] = true
			failed = errors.Join(failed, fmt.Errorf("webhook %s: %w", n.ID, err))
			if ctx.Err() != nil {
				break
			}
		}
		made, more = made+m, more || again
	}
	if active < dispatchLook { // the end of the row
		db.dispatched.Store(nil)
		more = more || after != uuid.Nil
	}
	return made, more || active == dispatchLook, failed
}

// dispatch serves one webhook.
func (db *DB) dispatch(ctx context.Context, n news) (made int, more bool, err error) {
	err = db.InTx(ctx, n.Workspace, func(ctx context.Context, tx *Tx) error {
		made, more = 0, false
		taken, err := tx.takeEndpoint(ctx, n)
		if err != nil || taken == nil || taken.room == 0 {
			return err
		}
		var page task.FeedPage
		b := &batch{}
		addFeed(b, n.Workspace, &taken.place, min(dispatchPage, taken.room), tx.db.now(), &page)
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		more = page.More
		messages, err := tx.messagesOf(ctx, taken.Endpoint, page.Entries)
		if err != nil {
			return err
		}
		b = &batch{}
		if err := addDeliveries(b, n, messages, tx.db.now(), &made); err != nil {
			return err
		}
		b.exec("move feed", moveFeedSQL, pgx.NamedArgs{
			"webhook": n.ID, "xid": strconv.FormatUint(page.Next.XID, 10), "task": page.Next.TaskID,
			"generation": page.Next.Generation, "claim": page.Next.Claim,
		}, nil)
		if err := tx.send(ctx, b); err != nil {
			return err
		}
		failpoint.Hit("dispatch.in_tx")
		return nil
	})
	if fault.Is(err, fault.InvalidCursor) {
		return 0, false, db.alone(ctx, unbound, "reset feed", resetFeedSQL, pgx.NamedArgs{"webhook": n.ID, "none": uuid.Nil}, noRows)
	}
	failpoint.Hit("dispatch.committed")
	return made, more, err
}

// takenEndpoint is a webhook that this transaction has, its place in the feed, and how many deliveries it may have more.
type takenEndpoint struct {
	endpoint.Endpoint
	place task.FeedPlace
	room  int
}

func (tx *Tx) takeEndpoint(ctx context.Context, n news) (*takenEndpoint, error) {
	lane := endpoint.Lane(n.ID)
	var taken *takenEndpoint
	b := &batch{}
	b.query("take webhook", takeEndpointSQL, pgx.NamedArgs{"webhook": n.ID, "lane": lane[:], "most": maxWaiting}, func(rows pgx.Rows) error {
		taken = nil
		for rows.Next() {
			t := &takenEndpoint{Endpoint: endpoint.Endpoint{ID: n.ID, WorkspaceID: n.Workspace}}
			var xid string
			waiting := 0
			err := rows.Scan(&t.Types, &t.Kinds, &xid, &t.place.TaskID, &t.place.Generation, &t.place.Claim, &waiting)
			if err != nil {
				return err
			}
			if t.place.XID, err = strconv.ParseUint(xid, 10, 64); err != nil {
				return err
			}
			t.room = max(0, maxWaiting-waiting)
			taken = t
		}
		return nil
	})
	return taken, tx.send(ctx, b)
}

// messagesOf makes the messages that tell the endpoint of the entries it wants.
func (tx *Tx) messagesOf(ctx context.Context, e endpoint.Endpoint, entries []task.FeedEntry) ([]endpoint.Message, error) {
	var wanted []task.FeedEntry
	var ids []uuid.UUID
	for _, entry := range entries {
		if _, tell := e.Wants(entry); tell {
			wanted, ids = append(wanted, entry), append(ids, entry.Place.TaskID)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	facts := map[uuid.UUID]endpoint.Facts{}
	generations := map[uuid.UUID]int{}
	b := &batch{}
	b.query("facts of runs", runFactsSQL, pgx.NamedArgs{"ids": ids}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var generation int
			var f endpoint.Facts
			if err := rows.Scan(&id, &generation, &f.Outcome, &f.Code); err != nil {
				return err
			}
			facts[id], generations[id] = f, generation
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return nil, err
	}
	messages := make([]endpoint.Message, 0, len(wanted))
	for _, entry := range wanted {
		kind, _ := e.Wants(entry)
		f := facts[entry.Place.TaskID]
		if generations[entry.Place.TaskID] != entry.Place.Generation { // a later run has taken its place
			f = endpoint.Facts{}
		}
		m, err := endpoint.NewMessage(e.ID, kind, entry, f)
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// addDeliveries adds the messages with a task each.
func addDeliveries(b *batch, n news, messages []endpoint.Message, now *time.Time, made *int) error {
	*made = 0
	if len(messages) == 0 {
		return nil
	}
	lane := endpoint.Lane(n.ID)
	ids, tasks, abouts := make([]uuid.UUID, len(messages)), make([]uuid.UUID, len(messages)), make([]uuid.UUID, len(messages))
	types, generations, bodies := make([]string, len(messages)), make([]int32, len(messages)), make([][]byte, len(messages))
	for i, m := range messages {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make task id: %w", err)
		}
		ids[i], tasks[i], types[i], abouts[i], bodies[i] = m.ID, id, string(m.Type), m.About, m.Body
		generations[i] = int32(m.Generation) // #nosec G115 -- a column of that type
	}
	b.query("insert deliveries", insertDeliveriesSQL, pgx.NamedArgs{
		"workspace": n.Workspace, "webhook": n.ID, "lane": lane[:], "ids": ids, "tasks": tasks, "types": types, "abouts": abouts,
		"generations": generations, "bodies": bodies, "payload_format": command.Format, "now": now,
	}, one(made))
	return nil
}

// delivered is the payload of a delivery's task.
type delivered struct {
	Message uuid.UUID `json:"message"`
}

// messageOf reads the message's id from a task's payload.
func messageOf(payload []byte) (uuid.UUID, error) {
	var d delivered
	if err := json.Unmarshal(payload, &d); err != nil || d.Message == uuid.Nil {
		return uuid.Nil, command.ErrUnreadable
	}
	return d.Message, nil
}
