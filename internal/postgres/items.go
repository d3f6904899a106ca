package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// holdItemsSQL inserts items that are new and locks those that are there, in one pass in key order: the update never
// changes anything, but a row that it looks at is locked. A new item without a time was said when it came; the place
// keeps items of one call apart.
const holdItemsSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
)
INSERT INTO items AS i (workspace_id, item_key, account, item_id, event_id, revision, content_hash, text, author, session,
                        at, at_text, task_id, created_at, updated_at)
SELECT @workspace, n.item_key, @account, n.item_id, n.event_id, 1, n.content_hash, n.text, n.author, n.session,
       coalesce(n.at, clock.at + n.place * interval '1 microsecond'), n.at_text, n.task,
       clock.at + n.place * interval '1 microsecond', clock.at + n.place * interval '1 microsecond'
  FROM unnest(@keys::bytea[], @ids::text[], @events::text[], @contents::bytea[], @texts::text[], @authors::text[],
              @sessions::text[], @ats::timestamptz[], @at_texts::text[], @tasks::uuid[]) WITH ORDINALITY
         AS n (item_key, item_id, event_id, content_hash, text, author, session, at, at_text, task, place), clock
 ORDER BY n.item_key
    ON CONFLICT (workspace_id, item_key) DO UPDATE SET revision = i.revision WHERE false`

// heldItemsSQL reads the locked items with the task of their latest revision, which may have been archived. Of what an
// open erase is about to remove, whatever comes now is an edit, and its time is anew: it stays when the rest goes.
const heldItemsSQL = `
SELECT i.item_key, i.revision, CASE WHEN t.going THEN ''::bytea ELSE i.content_hash END, coalesce(t.going, false),
       CASE WHEN t.going THEN coalesce(@now::timestamptz, clock_timestamp()) ELSE i.at END, i.task_id,
       i.landed_revision >= i.revision, coalesce(t.status, ''), coalesce(t.stage, ''), t.lane
  FROM items i
  LEFT JOIN LATERAL (SELECT t.status, t.stage, t.lane, t.erased OR ` + fencedTaskSQL + ` AS going
                       FROM all_tasks t WHERE t.id = i.task_id AND t.workspace_id = i.workspace_id LIMIT 1) t ON true
 WHERE i.workspace_id = @workspace AND i.item_key = ANY(@keys::bytea[])`

// takeLanesSQL locks lanes in their order and gives each as many sequence numbers as it gets tasks, with a time for
// each; a lane that gets none is only locked.
const takeLanesSQL = `
INSERT INTO lanes AS l (workspace_id, lane, next_seq, last_accepted_at)
SELECT @workspace, n.lane, n.tasks + 1,
       greatest((SELECT coalesce(@now::timestamptz, clock_timestamp())),
                (SELECT max(e.erased_at) FROM erasures e WHERE e.workspace_id = @workspace) + n.tasks * interval '1 microsecond')
  FROM unnest(@lanes::bytea[], @counts::bigint[]) AS n (lane, tasks)
 ORDER BY n.lane
    ON CONFLICT (workspace_id, lane) DO UPDATE
   SET next_seq = l.next_seq + excluded.next_seq - 1,
       last_accepted_at = CASE WHEN excluded.next_seq = 1 THEN l.last_accepted_at
                          ELSE greatest(excluded.last_accepted_at,
                                        l.last_accepted_at + (excluded.next_seq - 1) * interval '1 microsecond') END`

// waitingItemsSQL counts the revisions of an account that have not landed yet.
const waitingItemsSQL = `
SELECT count(*) FROM tasks
 WHERE workspace_id = @workspace AND user_id = @account AND kind = 'memory_item' AND stage = 'accepted'
   AND completed_at IS NULL`

// heldItem is a locked item with what its latest task has come to.
type heldItem struct {
	revision int
	content  []byte
	going    bool
	at       time.Time
	task     uuid.UUID
	landed   bool
	status   task.Status
	stage    task.Stage
	lane     []byte
}

// reached tells whether the records of the item's revision are there.
func (h heldItem) reached() bool {
	return h.landed || h.status != "" && h.stage != task.Accepted
}

// queuing is one revision that a call queues. Earlier is the task whose place it takes, if there is one.
type queuing struct {
	place    int // in the ask
	revision int
	anew     bool // of what went before, nothing is kept
	at       time.Time
	earlier  *uuid.UUID
	lane     memory.Lane
}

// KeepItems implements write.ItemStore. All of it is one transaction: what can't be paid leaves nothing.
func (db *DB) KeepItems(ctx context.Context, ask write.ItemsAsk) (write.ItemsKept, error) {
	var kept write.ItemsKept
	queued := 0
	err := db.InTx(ctx, ask.WorkspaceID, func(ctx context.Context, tx *Tx) error {
		kept = write.ItemsKept{Items: make([]write.ItemState, len(ask.Items))}
		held, err := tx.holdItems(ctx, ask)
		if err != nil {
			return err
		}
		todo, lanes := decideItems(ask, held, &kept)
		queued = len(todo)
		return tx.queueItems(ctx, ask, todo, lanes, &kept)
	})
	failpoint.Hit("items.committed")
	if errors.Is(err, errInsufficient) {
		err = db.insufficient(ctx, ask.WorkspaceID, ask.Price*int64(queued))
	}
	if err != nil {
		return write.ItemsKept{}, err
	}
	return kept, nil
}

// holdItems inserts and locks the items of the ask and reads them in its order.
func (tx *Tx) holdItems(ctx context.Context, ask write.ItemsAsk) ([]heldItem, error) {
	n := len(ask.Items)
	keys, contents := make([][]byte, n), make([][]byte, n)
	ids, events, texts, authors := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	sessions, atTexts, ats := make([]string, n), make([]string, n), make([]*time.Time, n)
	tasks := make([]uuid.UUID, n)
	places := make(map[command.ItemKey]int, n)
	for i, a := range ask.Items {
		keys[i], contents[i], ids[i], events[i] = a.Key[:], a.Content[:], a.Item.ID, a.EventID
		texts[i], authors[i], sessions[i] = a.Item.Text, a.Item.Author, a.Item.Session
		ats[i], atTexts[i], tasks[i] = a.Item.At, a.Item.AtText, a.TaskID
		places[a.Key] = i
	}
	held := make([]heldItem, n)
	b := &batch{}
	addLiving(b, ask.WorkspaceID)
	b.exec("hold items", holdItemsSQL, pgx.NamedArgs{
		"workspace": ask.WorkspaceID, "account": ask.Account, "keys": keys, "ids": ids, "events": events,
		"contents": contents, "texts": texts, "authors": authors, "sessions": sessions, "ats": ats, "at_texts": atTexts,
		"tasks": tasks, "now": tx.db.now(),
	}, nil)
	b.query("held items", heldItemsSQL, pgx.NamedArgs{
		"workspace": ask.WorkspaceID, "keys": keys, "now": tx.db.now(),
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var h heldItem
			var key []byte
			if err := rows.Scan(&key, &h.revision, &h.content, &h.going, &h.at, &h.task, &h.landed, &h.status, &h.stage, &h.lane); err != nil {
				return err
			}
			held[places[command.ItemKey(key)]] = h
		}
		return nil
	})
	return held, tx.send(ctx, b)
}

// decideItems says what each item needs: nothing, a task for a new item, for an edit, or again for a revision whose
// task failed; and which lanes have to be held for that.
func decideItems(ask write.ItemsAsk, held []heldItem, kept *write.ItemsKept) ([]queuing, map[memory.Lane]int64) {
	var todo []queuing
	lanes := map[memory.Lane]int64{}
	for i, h := range held {
		a := ask.Items[i]
		q := queuing{place: i, revision: h.revision, anew: h.going, at: h.at, lane: a.Item.Scope().Lane()}
		if h.going && a.Item.At != nil {
			q.at = *a.Item.At
		} else if h.going { // items of one call are kept apart
			q.at = h.at.Add(time.Duration(i+1) * time.Microsecond)
		}
		if h.task != a.TaskID && h.status != "" {
			q.earlier = &h.task
		}
		edited := string(h.content) != string(a.Content[:])
		switch {
		case h.task == a.TaskID && h.status != "": // this very call, whose answer was lost
			kept.Items[i].Queued = true
			continue
		case h.task == a.TaskID: // new
		case edited:
			q.revision++
		case h.reached(), h.status != "" && h.status != task.Failed:
			kept.Items[i].Landed = h.reached()
			continue
		}
		todo = append(todo, q)
		lanes[q.lane]++
		if len(h.lane) == len(q.lane) {
			lanes[memory.Lane(h.lane)] += 0
		}
	}
	return todo, lanes
}

func addTakeLanes(b *batch, workspace uuid.UUID, counts map[memory.Lane]int64, now *time.Time) {
	lanes, tasks := make([][]byte, 0, len(counts)), make([]int64, 0, len(counts))
	for lane, count := range counts {
		lanes, tasks = append(lanes, lane[:]), append(tasks, count)
	}
	b.exec("take lanes", takeLanesSQL, pgx.NamedArgs{"workspace": workspace, "lanes": lanes, "counts": tasks, "now": now}, nil)
}

func earlierOf(todo []queuing) []uuid.UUID {
	ids := []uuid.UUID{}
	for _, q := range todo {
		if q.earlier != nil {
			ids = append(ids, *q.earlier)
		}
	}
	return ids
}

// queueItems takes the lanes, ends the earlier revisions' tasks, queues the new ones and takes their price, the account
// last. A failed task that is retried by hand at this moment is ended like any other: its revision is queued anyway.
func (tx *Tx) queueItems(ctx context.Context, ask write.ItemsAsk, todo []queuing, lanes map[memory.Lane]int64, kept *write.ItemsKept) error {
	now := tx.db.now()
	b := &batch{}
	if len(todo) > 0 {
		if err := tx.addRoom(b, ask.WorkspaceID, len(todo)); err != nil {
			return err
		}
		earlier := earlierOf(todo)
		addTakeLanes(b, ask.WorkspaceID, lanes, now)
		addEndTasks(b, ask.WorkspaceID, earlier, now, func(id uuid.UUID) { kept.Ended = append(kept.Ended, id) })
		if err := tx.addItemTasks(ctx, b, ask, todo); err != nil {
			return err
		}
		addRevisions(b, ask, todo, now)
		for _, q := range todo {
			kept.Items[q.place].Queued = true
		}
		addNextHeads(b, ask.WorkspaceID, lanes, now, func(h task.Hint) { kept.Hints = append(kept.Hints, h) })
		addReleased(b, ask.WorkspaceID, earlier)
		addHold(b, ask.WorkspaceID, ask.Price*int64(len(todo)))
	}
	b.query("waiting items", waitingItemsSQL, pgx.NamedArgs{"workspace": ask.WorkspaceID, "account": ask.Account},
		func(rows pgx.Rows) (err error) {
			kept.Pending, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
			return err
		})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	failpoint.Hit("items.in_tx")
	return nil
}
