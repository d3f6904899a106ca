package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// endTasksSQL ends tasks from outside under the locks of their lanes, as cancelSQL ends one: failed and cancelled,
// with their claims' attempt rows and their runs' closings. A failed one can't be retried any more. What has committed
// stays. None keeps its input, because nothing is to come of it.
const endTasksSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), old AS (
  SELECT id, status, worker_incarnation, claimed_at FROM tasks
   WHERE workspace_id = @workspace AND id = ANY(@tasks::uuid[]) ORDER BY id FOR UPDATE
), ended AS (
  UPDATE tasks AS t SET status = 'failed', head = false, lease_token = NULL, lease_until = NULL, command = NULL,
         error_class = 'cancelled', error_code = 'CANCELLED', completed_at = clock.at, updated_at = clock.at
    FROM old, clock
   WHERE t.id = old.id AND t.status IN ('pending', 'running') AND t.stage = 'accepted'
  RETURNING t.id, t.workspace_id, t.generation, t.claims, old.status = 'running' AS ran, old.worker_incarnation AS worker,
            old.claimed_at
), emptied AS (
  UPDATE tasks AS t SET command = NULL, updated_at = clock.at
    FROM old, clock
   WHERE t.id = old.id AND t.status = 'failed' AND t.command IS NOT NULL
), attempts AS (
  INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class)
  SELECT e.id, e.claims, e.workspace_id, e.generation, e.worker, e.claimed_at, clock.at, 'failed', 'cancelled'
    FROM ended e, clock WHERE e.ran
), runs AS (
  UPDATE task_runs AS r SET outcome = 'failed'
    FROM ended e
   WHERE r.task_id = e.id AND r.generation = e.generation AND r.outcome IS NULL
  RETURNING r.task_id, r.generation, r.workspace_id, r.amount
), closings AS (
  INSERT INTO credit_closings (task_id, generation, workspace_id, outcome, amount, settled, released, closed_at)
  SELECT r.task_id, r.generation, r.workspace_id, 'failed', r.amount, 0, r.amount, clock.at FROM runs r, clock
  RETURNING task_id
)
SELECT e.id, c.task_id IS NOT NULL FROM ended e LEFT JOIN closings c ON c.task_id = e.id`

// addEndTasks ends those of the tasks that have not committed and tells each to ended. The account follows with
// addReleased at the end of the transaction.
func addEndTasks(b *batch, workspace uuid.UUID, ids []uuid.UUID, now *time.Time, ended func(uuid.UUID)) {
	if len(ids) == 0 {
		return
	}
	b.query("end tasks", endTasksSQL, pgx.NamedArgs{"workspace": workspace, "tasks": ids, "now": now}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var closed bool
			if err := rows.Scan(&id, &closed); err != nil {
				return err
			}
			if !closed {
				return errNoRun
			}
			ended(id)
		}
		return nil
	})
}

// releasedSQL gives back what this transaction's closings of the tasks have released, with one update.
const releasedSQL = `
UPDATE credit_accounts AS a SET held = a.held - r.amount, available = a.available + r.amount
  FROM (SELECT coalesce(sum(c.released), 0)::bigint AS amount FROM credit_closings c
         WHERE c.task_id = ANY(@tasks::uuid[]) AND c.xid = pg_current_xact_id()) r
 WHERE a.workspace_id = @workspace AND r.amount > 0`

func addReleased(b *batch, workspace uuid.UUID, ids []uuid.UUID) {
	if len(ids) > 0 {
		b.exec("release", releasedSQL, pgx.NamedArgs{"workspace": workspace, "tasks": ids}, nil)
	}
}

// insertItemTasksSQL queues revisions at the end of their lanes, whose rows are locked and have been moved on already:
// back counts from the last number that the lane has given. Their keys are random, so that rows have one shape.
const insertItemTasksSQL = `
WITH n AS (
  SELECT n.*, l.next_seq - 1 - n.back AS seq, l.last_accepted_at - n.back * interval '1 microsecond' AS at
    FROM unnest(@tasks::uuid[], @item_keys::bytea[], @revisions::int[], @payloads::bytea[], @lanes::bytea[],
                @backs::bigint[], @sessions::text[], @key_hashes::bytea[], @fingerprints::bytea[])
           AS n (task, item_key, revision, payload, lane, back, session, key_hash, fingerprint)
    JOIN lanes l ON l.workspace_id = @workspace AND l.lane = n.lane
), k AS (
  INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id)
  SELECT @workspace, n.key_hash, n.fingerprint, @fingerprint_version, n.task FROM n
), t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, run_id, lane, lane_seq, priority,
                     command, payload_format, policy, key_hash, item_key, item_revision, trace, accepted_at, updated_at)
  SELECT n.task, @workspace, 'memory_item', 'pending', 'accepted', n.at, n.at, @account, nullif(n.session, ''), n.lane,
         n.seq, 'bulk', n.payload, @payload_format, @policy, n.key_hash, n.item_key, n.revision, @trace, n.at, n.at
    FROM n
  RETURNING id, workspace_id, accepted_at
)
INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
SELECT id, 1, workspace_id, @price, accepted_at FROM t`

// addItemTasks queues the revisions in the order of the call.
func (tx *Tx) addItemTasks(ctx context.Context, b *batch, ask write.ItemsAsk, todo []queuing) error {
	n := len(todo)
	left := make(map[memory.Lane]int64)
	for _, q := range todo {
		left[q.lane]++
	}
	tasks, revisions, backs := make([]uuid.UUID, n), make([]int32, n), make([]int64, n)
	keys, payloads, lanes := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	hashes, prints, sessions := make([][]byte, n), make([][]byte, n), make([]string, n)
	for i, q := range todo {
		a := ask.Items[q.place]
		item := a.Item
		item.At = &q.at
		payload, err := item.Encode()
		if err != nil {
			return err
		}
		if payload, err = tx.seal(atCommand(ask.WorkspaceID, a.TaskID), payload); err != nil {
			return err
		}
		left[q.lane]--
		tasks[i], revisions[i], backs[i] = a.TaskID, int32(q.revision), left[q.lane] // #nosec G115 -- counts edits
		keys[i], payloads[i], lanes[i], sessions[i] = a.Key[:], payload, q.lane[:], item.Session
		hashes[i], prints[i] = a.Claim.KeyHash[:], a.Claim.Fingerprint[:]
	}
	b.exec("insert item tasks", insertItemTasksSQL, pgx.NamedArgs{
		"workspace": ask.WorkspaceID, "account": ask.Account, "tasks": tasks, "item_keys": keys, "revisions": revisions,
		"payloads": payloads, "lanes": lanes, "backs": backs, "sessions": sessions, "key_hashes": hashes,
		"fingerprints": prints, "fingerprint_version": ask.Items[0].Claim.FingerprintVersion,
		"payload_format": ask.Format, "policy": ask.Policy, "price": ask.Price,
		"trace": task.OriginOf(ctx).Bytes(),
	}, nil)
	return nil
}

// reviseItemsSQL points items at their new tasks, with the content that those will land. The time stays,
// unless the item begins anew.
const reviseItemsSQL = `
UPDATE items AS i SET revision = n.revision, content_hash = n.content_hash, text = n.text, author = n.author,
       session = n.session, at = CASE WHEN n.anew THEN n.at ELSE i.at END,
       at_text = CASE WHEN n.anew THEN n.at_text ELSE i.at_text END, task_id = n.task,
       updated_at = greatest(i.created_at, (SELECT coalesce(@now::timestamptz, clock_timestamp())))
  FROM unnest(@keys::bytea[], @revisions::int[], @contents::bytea[], @texts::text[], @authors::text[],
              @sessions::text[], @tasks::uuid[], @anew::boolean[], @ats::timestamptz[], @at_texts::text[])
         AS n (item_key, revision, content_hash, text, author, session, task, anew, at, at_text)
 WHERE i.workspace_id = @workspace AND i.item_key = n.item_key AND i.task_id <> n.task`

func addRevisions(b *batch, ask write.ItemsAsk, todo []queuing, now *time.Time) {
	n := len(todo)
	keys, contents, revisions, tasks := make([][]byte, n), make([][]byte, n), make([]int32, n), make([]uuid.UUID, n)
	texts, authors, sessions := make([]string, n), make([]string, n), make([]string, n)
	anew, ats, atTexts := make([]bool, n), make([]time.Time, n), make([]string, n)
	for i, q := range todo {
		a := ask.Items[q.place]
		anew[i], ats[i], atTexts[i] = q.anew, q.at, a.Item.AtText
		keys[i], contents[i], revisions[i], tasks[i] = a.Key[:], a.Content[:], int32(q.revision), a.TaskID // #nosec G115 -- counts edits
		texts[i], authors[i], sessions[i] = a.Item.Text, a.Item.Author, a.Item.Session
	}
	b.exec("revise items", reviseItemsSQL, pgx.NamedArgs{
		"workspace": ask.WorkspaceID, "keys": keys, "revisions": revisions, "contents": contents, "texts": texts,
		"authors": authors, "sessions": sessions, "tasks": tasks, "anew": anew, "ats": ats, "at_texts": atTexts, "now": now,
	}, nil)
}

// itemHeadsSQL is nextHeadSQL for several lanes, all of them locked.
const itemHeadsSQL = `
UPDATE tasks SET head = true, hint_seq = hint_seq + 1,
       hint_at = (SELECT coalesce(@now::timestamptz, clock_timestamp())),
       updated_at = (SELECT coalesce(@now::timestamptz, clock_timestamp()))
 WHERE id IN (
   SELECT next.id
     FROM unnest(@lanes::bytea[]) AS l (lane)
    CROSS JOIN LATERAL (
          SELECT w.id FROM tasks w
           WHERE w.workspace_id = @workspace AND w.lane = l.lane AND w.lane_seq IS NOT NULL AND NOT w.head
             AND w.stage = 'accepted' AND w.completed_at IS NULL
           ORDER BY w.lane_seq LIMIT 1) next
    WHERE NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = @workspace AND h.lane = l.lane AND h.head))
RETURNING id, hint_seq, priority`

func addNextHeads(b *batch, workspace uuid.UUID, lanes map[memory.Lane]int64, now *time.Time, found func(task.Hint)) {
	names := make([][]byte, 0, len(lanes))
	for lane := range lanes {
		names = append(names, lane[:])
	}
	b.query("pass heads", itemHeadsSQL, pgx.NamedArgs{"workspace": workspace, "lanes": names, "now": now},
		func(rows pgx.Rows) error {
			for rows.Next() {
				hint := task.Hint{WorkspaceID: workspace}
				if err := rows.Scan(&hint.TaskID, &hint.Seq, &hint.Priority); err != nil {
					return err
				}
				found(hint)
			}
			return nil
		})
}
