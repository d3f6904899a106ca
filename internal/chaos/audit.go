package chaos

import (
	"context"
	"crypto/sha256"
	"fmt"
)

const itemSQL = `
SELECT i.text, i.revision, i.landed_revision,
       (SELECT count(*) FROM memories m WHERE m.workspace_id = i.workspace_id AND m.item_key = i.item_key
         AND m.deleted_at IS NULL AND m.valid_to IS NULL)
  FROM items i WHERE i.workspace_id = $1 AND i.account = $2 AND i.item_id = $3`

// checkItems holds that an item has its last words, landed once.
func (w *world) checkItems(ctx context.Context, n *notes, r *report) error {
	for _, it := range n.items {
		rows, err := w.sql.Query(ctx, itemSQL, it.space.id, it.account, it.id)
		if err != nil {
			return fmt.Errorf("read items: %w", err)
		}
		found, text, revision, landed, records := 0, "", 0, 0, 0
		for rows.Next() {
			found++
			if err := rows.Scan(&text, &revision, &landed, &records); err != nil {
				rows.Close()
				return fmt.Errorf("read items: %w", err)
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return fmt.Errorf("read items: %w", err)
		}
		switch {
		case found > 1:
			r.find(duplicated, "an item is there twice", "%s", it.id)
		case !it.sure:
		case it.forgotten && found > 0:
			r.find(leaked, "a forgotten item is there", "%s of %s", it.id, it.account)
		case it.kept && !it.forgotten && found == 0:
			r.find(lost, "an item is gone", "%s of %s", it.id, it.account)
		case it.kept && !it.forgotten && canaryPattern().FindString(text) != it.texts[len(it.texts)-1]:
			r.find(lost, "an item has other words", "%s of %s", it.id, it.account)
		case landed == revision && found == 1 && records != 1:
			r.find(duplicated, "an item has other records than one", "%s of %s: %d", it.id, it.account, records)
		}
	}
	return nil
}

// checkCalls holds that the model was called for claims only: a committed plan never calls again, and nobody calls without
// having been counted.
func (w *world) checkCalls(ctx context.Context, n *notes, r *report) error {
	tasks, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	calls := w.mind.counts()
	for _, c := range n.accepted() {
		if c.kind == kindInfer && len(c.raw) > 0 && calls[c.raw[len(c.raw)-1]] > tasks[c.event].claims {
			r.find(duplicated, "more model calls than attempts", "%s: %d calls, %d attempts", c.event, calls[c.raw[len(c.raw)-1]], tasks[c.event].claims)
		}
	}
	return nil
}

// bad is one look at the tables: what it counts must be zero when all is quiet.
type bad struct{ column, check, sql string }

func looks() []bad {
	return []bad{
		{stuck, "unfinished tasks", `SELECT count(*) FROM tasks WHERE completed_at IS NULL`},
		{stuck, "open runs", `SELECT count(*) FROM task_runs WHERE outcome IS NULL`},
		{stuck, "unfinished erasures", `SELECT count(*) FROM erasures`},
		{stuck, "heads of ended tasks", `SELECT count(*) FROM tasks WHERE head`},
		{leaked, "input after success", `SELECT count(*) FROM all_tasks WHERE status = 'succeeded' AND command IS NOT NULL`},
		{leaked, "plan bodies after success", `SELECT count(*) FROM plans p JOIN all_tasks t ON t.id = p.task_id WHERE t.status = 'succeeded' AND p.body IS NOT NULL`},
		{duplicated, "two additions of one record", `SELECT count(*) FROM (SELECT 1 FROM task_results WHERE event = 'ADD' GROUP BY record_id HAVING count(*) > 1) x`},
		{duplicated, "records without a result", `SELECT count(*) FROM memories m JOIN all_tasks o ON o.id = m.task_id WHERE NOT EXISTS
			(SELECT FROM task_results r WHERE r.record_id = m.id AND r.event = 'ADD' AND r.task_id = m.task_id)`},
		{lost, "records without their terms", `SELECT count(*) FROM memories m WHERE deleted_at IS NULL AND valid_to IS NULL
			AND NOT EXISTS (SELECT FROM memory_terms t WHERE t.memory_id = m.id AND t.content_key = m.content_key)`},
		{lost, "records without their vector", `SELECT count(*) FROM memories m WHERE deleted_at IS NULL AND valid_to IS NULL
			AND NOT EXISTS (SELECT FROM memory_vectors v WHERE v.memory_id = m.id AND v.content_key = m.content_key)`},
		{lost, "projections of no record", `SELECT count(*) FROM memory_terms t WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = t.memory_id)`},
		{lost, "claims without an attempt", `SELECT count(*) FROM all_tasks t WHERE claims <> (SELECT count(*) FROM task_attempts a WHERE a.task_id = t.id)`},
		{lost, "ordered commands of a lane committed out of order", `SELECT count(*) FROM (
			SELECT committed_at < lag(committed_at) OVER (PARTITION BY workspace_id, lane ORDER BY lane_seq) AS early
			  FROM all_tasks WHERE kind = 'memory_infer' AND lane_seq IS NOT NULL AND committed_at IS NOT NULL) x WHERE early`},
	}
}

func (w *world) checkStuck(ctx context.Context, _ *notes, r *report) error {
	for _, look := range looks() {
		var count int
		if err := w.sql.QueryRow(ctx, look.sql).Scan(&count); err != nil {
			return fmt.Errorf("look for %s: %w", look.check, err)
		}
		if count > 0 {
			r.find(look.column, look.check, "%d", count)
		}
	}
	return nil
}

// keyHash is what the database keeps of a key.
func keyHash(key string) []byte {
	hash := sha256.Sum256([]byte("key/1\x00" + key))
	return hash[:]
}
