package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// lockGroupLanesSQL is lockLaneSQL for a group, in the order of lanes.
const lockGroupLanesSQL = `
SELECT l.held
  FROM (SELECT * FROM unnest(@workspaces::uuid[], @lanes::bytea[]) AS i (workspace, lane) ORDER BY 1, 2) i
 CROSS JOIN LATERAL (SELECT 1 AS held FROM lanes l WHERE l.workspace_id = i.workspace AND l.lane = i.lane FOR UPDATE) l`

// holdAllAcceptedSQL is the fence of a group's commits, in the order of tasks: what it doesn't answer has lost its lease.
// It also reads whether an open erase covers the task, after the gates, as taskFencedSQL does.
const holdAllAcceptedSQL = `
SELECT i.task, h.fenced
  FROM (SELECT * FROM unnest(@tasks::uuid[], @tokens::uuid[]) AS i (task, token) ORDER BY 1) i
 CROSS JOIN LATERAL (
   SELECT ` + fencedTaskSQL + ` AS fenced FROM tasks t
    WHERE t.id = i.task AND t.status = 'running' AND t.lease_token = i.token AND t.stage = 'accepted'
      FOR NO KEY UPDATE) h`

// allRepeatsSQL is repeatsSQL for a group: no two of its plans are of one lane.
const allRepeatsSQL = `
SELECT i.item, i.content_key, r.id
  FROM unnest(@items::int[], @workspaces::uuid[], @lanes::bytea[], @keys::bytea[]) AS i (item, workspace, lane, content_key)
 CROSS JOIN LATERAL (
   SELECT m.id
     FROM memories m
    WHERE m.workspace_id = i.workspace AND m.lane = i.lane AND m.content_key = i.content_key AND m.deleted_at IS NULL
      AND m.valid_to IS NULL
      AND (m.expires_at IS NULL OR m.expires_at > (SELECT coalesce(@now::timestamptz, clock_timestamp())))
      AND NOT ` + fencedRecordSQL + `
    ORDER BY m.accepted_at, m.id
    LIMIT 1) r`

// committing is a plan on its way through a group.
type committing struct {
	worker.Commit
	repeats map[memory.ContentKey]uuid.UUID
	results []memory.Result
	added   []planned
	body    []byte // the frozen plan as it is stored; nil for a task that ends
	held    bool   // the fence holds it and no erase covers it
	in      bool   // still to be committed
	head    *task.Hint
}

// commitGroup commits plans of different lanes in one transaction. A task that has lost its lease, or that an erase covers,
// falls out and leaves nothing behind; everyone does when something is locked for long or the transaction breaks. After an
// unknown COMMIT each hears of that, and its fence tells when it asks again.
func (db *DB) commitGroup(ctx context.Context, items []worker.Commit) []stepped {
	all := make([]*committing, len(items))
	workspaces := make([]uuid.UUID, len(items))
	for i, item := range items {
		all[i] = &committing{Commit: item, in: true}
		workspaces[i] = item.Lease.WorkspaceID
	}
	err := db.inGroup(ctx, distinct(workspaces), func(ctx context.Context, tx *Tx) error {
		if err := tx.look(ctx, all); err != nil {
			return err
		}
		in := stillIn(all)
		if len(in) == 0 {
			return errNobody
		}
		failpoint.Hit("commit.in_tx")
		return tx.writePlans(ctx, in)
	})
	answers := make([]stepped, len(items))
	for i, c := range all {
		switch {
		case !c.in || err != nil && !isUnknown(err):
			answers[i].alone = true
		case err != nil:
			answers[i].Err = err
		default:
			answers[i].Done = worker.Done{Ended: c.Complete, Head: c.head}
		}
	}
	if err == nil {
		failpoint.Hit("commit.committed")
	}
	return answers
}

func stillIn(all []*committing) []*committing {
	return slices.DeleteFunc(slices.Clone(all), func(c *committing) bool { return !c.in })
}

// look takes lanes and fences, and decides what each plan adds.
func (tx *Tx) look(ctx context.Context, all []*committing) error {
	b := &batch{}
	addGroupLanes(b, all)
	addHoldAll(b, all)
	addAllRepeats(b, all, tx.db.now())
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	for _, c := range all {
		if c.in = c.held; !c.in {
			continue
		}
		c.results, c.added = decide(c.Plan, c.repeats)
		if c.Complete {
			continue
		}
		body, err := c.Plan.Encode()
		if err == nil {
			c.body, err = tx.seal(atPlan(c.Lease.WorkspaceID, c.Lease.TaskID), body)
		}
		c.in = err == nil // alone makes the key of the day, and says what is wrong
	}
	return nil
}

func addGroupLanes(b *batch, all []*committing) {
	workspaces, lanes := make([]uuid.UUID, len(all)), make([][]byte, len(all))
	for i, c := range all {
		workspaces[i], lanes[i] = c.Lease.WorkspaceID, c.Lease.Lane[:]
	}
	b.exec("lock lanes", lockGroupLanesSQL, pgx.NamedArgs{"workspaces": workspaces, "lanes": lanes}, nil)
}

func addHoldAll(b *batch, all []*committing) {
	tasks, tokens := make([]uuid.UUID, len(all)), make([]uuid.UUID, len(all))
	byID := make(map[uuid.UUID]*committing, len(all))
	for i, c := range all {
		tasks[i], tokens[i], byID[c.Lease.TaskID] = c.Lease.TaskID, c.Lease.Token, c
	}
	b.query("hold accepted", holdAllAcceptedSQL, pgx.NamedArgs{"tasks": tasks, "tokens": tokens}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var fenced bool
			if err := rows.Scan(&id, &fenced); err != nil {
				return err
			}
			byID[id].held = !fenced
		}
		return nil
	})
}

func addAllRepeats(b *batch, all []*committing, now *time.Time) {
	var items []int32
	var workspaces []uuid.UUID
	var lanes, keys [][]byte
	for i, c := range all {
		c.repeats = map[memory.ContentKey]uuid.UUID{}
		for _, r := range c.Plan.Records {
			if r.Verbatim {
				continue
			}
			key := memory.KeyOf(r.Text)
			items, workspaces = append(items, int32(i)), append(workspaces, c.Lease.WorkspaceID) // #nosec G115 -- a group's size
			lanes, keys = append(lanes, c.Lease.Lane[:]), append(keys, key[:])
		}
	}
	if len(items) == 0 {
		return
	}
	b.query("repeats", allRepeatsSQL, pgx.NamedArgs{
		"items": items, "workspaces": workspaces, "lanes": lanes, "keys": keys, "now": now,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var item int
			var key []byte
			var id uuid.UUID
			if err := rows.Scan(&item, &key, &id); err != nil {
				return err
			}
			if len(key) != len(memory.ContentKey{}) {
				return fmt.Errorf("content key of %d bytes", len(key))
			}
			all[item].repeats[memory.ContentKey(key)] = id
		}
		return nil
	})
}

// writePlans writes what the group's commits make visible, the accounts last.
func (tx *Tx) writePlans(ctx context.Context, in []*committing) error {
	now := tx.db.now()
	ended := slices.DeleteFunc(slices.Clone(in), func(c *committing) bool { return !c.Complete })
	b := &batch{}
	addPlans(b, in, now)
	addCommitAll(b, in, now)
	addCompleteAll(b, ended, now)
	addPassHeads(b, in, now)
	addAllRecords(b, in, now)
	addAllResults(b, in)
	addNewVectors(b, ended, now)
	addEnds(b, endsOf(ended), now)
	return tx.send(ctx, b)
}

func endsOf(ended []*committing) []taskEnd {
	ends := make([]taskEnd, len(ended))
	for i, c := range ended {
		ends[i] = taskEnd{c.Lease, c.Work}
	}
	return ends
}
