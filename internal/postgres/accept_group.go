package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// claimKeysSQL is claimKeySQL for a group, in key order. What it doesn't answer was not claimed.
const claimKeysSQL = `
INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id, retry)
SELECT k.workspace, k.key_hash, k.fingerprint, k.version, k.task, false
  FROM unnest(@workspaces::uuid[], @key_hashes::bytea[], @fingerprints::bytea[], @versions::smallint[], @tasks::uuid[])
       AS k (workspace, key_hash, fingerprint, version, task)
 WHERE NOT EXISTS (SELECT FROM workspaces w WHERE w.id = k.workspace AND w.deletion IS NOT NULL)
 ORDER BY k.workspace, k.key_hash
ON CONFLICT (workspace_id, key_hash) DO NOTHING
RETURNING task_id`

// lendLanesSQL is takeLaneSQL for a group: a lane gives as many numbers as it has items, and times that go up to the
// last one by a microsecond each.
const lendLanesSQL = `
INSERT INTO lanes AS l (workspace_id, lane, next_seq, last_accepted_at)
SELECT n.workspace, n.lane, n.items + 1,
       greatest((SELECT coalesce(@now::timestamptz, clock_timestamp())),
                (SELECT max(e.erased_at) + interval '1 microsecond' FROM erasures e WHERE e.workspace_id = n.workspace))
         + (n.items - 1) * interval '1 microsecond'
  FROM unnest(@workspaces::uuid[], @lanes::bytea[], @items::bigint[]) AS n (workspace, lane, items)
 ORDER BY n.workspace, n.lane
ON CONFLICT (workspace_id, lane) DO UPDATE
   SET next_seq = l.next_seq + excluded.next_seq - 1,
       last_accepted_at = greatest(excluded.last_accepted_at,
                                   l.last_accepted_at + (excluded.next_seq - 1) * interval '1 microsecond')
RETURNING workspace_id, lane, next_seq, last_accepted_at`

// lockAccountsSQL reads what the group's accounts can pay; they are the last rows that it locks.
const lockAccountsSQL = `
SELECT workspace_id, available FROM credit_accounts WHERE workspace_id = ANY(@workspaces::uuid[])
 ORDER BY workspace_id FOR NO KEY UPDATE`

// insertTasksSQL is insertTaskSQL for a group. It comes after the statement that locked the lanes, so that it sees which
// of them have a head; of the group only a lane's first ordered item may become one.
const insertTasksSQL = `
WITH i AS (
  SELECT * FROM unnest(@tasks::uuid[], @workspaces::uuid[], @kinds::text[], @users::text[], @agents::text[], @runs::text[],
                       @apps::text[], @lanes::bytea[], @seqs::bigint[], @ordered::boolean[], @firsts::boolean[],
                       @priorities::text[], @commands::bytea[], @formats::smallint[], @policies::jsonb[],
                       @key_hashes::bytea[], @traces::bytea[], @ats::timestamptz[], @prices::bigint[])
         AS i (task, workspace, kind, user_id, agent_id, run_id, app_id, lane, seq, ordered, first, priority, command,
               format, policy, key_hash, trace, at, price)
), t AS (
  INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, agent_id, run_id, app_id,
                     lane, lane_seq, head, priority, command, payload_format, policy, key_hash, trace, accepted_at, updated_at)
  SELECT i.task, i.workspace, i.kind, 'pending', 'accepted', (SELECT coalesce(@now::timestamptz, clock_timestamp())),
         (SELECT coalesce(@now::timestamptz, clock_timestamp())), nullif(i.user_id, ''), nullif(i.agent_id, ''),
         nullif(i.run_id, ''), nullif(i.app_id, ''), i.lane, CASE WHEN i.ordered THEN i.seq END,
         i.first AND NOT EXISTS (SELECT FROM tasks h WHERE h.workspace_id = i.workspace AND h.lane = i.lane AND h.head),
         i.priority, i.command, i.format, i.policy, i.key_hash, i.trace, i.at, i.at
    FROM i
  RETURNING id, ready, hint_seq
), r AS (
  INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at)
  SELECT i.task, 1, i.workspace, i.price, i.at FROM i
)
SELECT id, ready, hint_seq FROM t`

const holdAllSQL = `
UPDATE credit_accounts AS a SET available = a.available - n.price, held = a.held + n.price
  FROM unnest(@workspaces::uuid[], @prices::bigint[]) AS n (workspace, price)
 WHERE a.workspace_id = n.workspace AND a.available >= n.price`

const dropClaimsSQL = `DELETE FROM idempotency_keys WHERE workspace_id = ANY(@workspaces::uuid[]) AND task_id = ANY(@tasks::uuid[])`

// grouped is what became of one item in a group. Alone sends its caller to try for itself: nothing was done.
type grouped struct {
	write.Accepted
	alone bool
}

// candidate is an item on its way through a group.
type candidate struct {
	write.Acceptance
	lane   memory.Lane
	stored []byte // the payload as it is stored
	seq    int64
	at     time.Time
	first  bool // of the group in its lane, and ordered
	in     bool // still to be accepted
	hint   *task.Hint
}

// errNobody rolls back a group that accepts nothing.
const errNobody verdict = "nothing of the group is left"

// acceptGroup accepts commands of different keys in one transaction. Whatever isn't plainly new and payable falls out of
// it and leaves nothing behind: its caller tries alone and gets the words for it. So does everyone when something is locked
// for long or the transaction breaks; after an unknown COMMIT each hears of that.
func (db *DB) acceptGroup(ctx context.Context, items []write.Acceptance) []grouped {
	answers := make([]grouped, len(items))
	for i := range answers {
		answers[i].alone = true
	}
	all := make([]candidate, len(items))
	err := db.inGroup(ctx, workspacesOf(items), func(ctx context.Context, tx *Tx) error {
		for i, item := range items {
			all[i] = candidate{Acceptance: item, lane: item.Scope.Lane()}
			stored, err := tx.seal(atCommand(item.WorkspaceID, item.TaskID), item.Payload)
			if err != nil {
				continue // alone makes the key of the day
			}
			all[i].stored, all[i].in = stored, true
		}
		return tx.acceptAll(ctx, all)
	})
	failpoint.Hit("accept.committed")
	for i, c := range all {
		switch {
		case !c.in:
		case err == nil:
			answers[i] = grouped{Accepted: write.Accepted{TaskID: c.TaskID, Status: task.EventPending, Hint: c.hint}}
		case isUnknown(err):
			answers[i] = grouped{Accepted: write.Accepted{Refused: err}}
		}
	}
	return answers
}

func (tx *Tx) acceptAll(ctx context.Context, all []candidate) error {
	if err := tx.claimKeys(ctx, all); err != nil {
		return err
	}
	claimed := left(all)
	available, err := tx.takeLanes(ctx, claimed)
	if err != nil {
		return err
	}
	decidePayable(claimed, available)
	accepted := left(all)
	if len(accepted) == 0 {
		return errNobody
	}
	b := &batch{}
	addDropKeys(b, claimed)
	tx.addTasks(b, accepted)
	addHolds(b, accepted)
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	failpoint.Hit("accept.in_tx")
	return nil
}

// left are the candidates that are still in.
func left(all []candidate) []*candidate {
	in := make([]*candidate, 0, len(all))
	for i := range all {
		if all[i].in {
			in = append(in, &all[i])
		}
	}
	return in
}

// claimKeys leaves those in whose keys are new and theirs.
func (tx *Tx) claimKeys(ctx context.Context, all []candidate) error {
	in := left(all)
	n := len(in)
	workspaces, tasks := make([]uuid.UUID, n), make([]uuid.UUID, n)
	hashes, prints, versions := make([][]byte, n), make([][]byte, n), make([]int16, n)
	for i, c := range in {
		workspaces[i], tasks[i] = c.WorkspaceID, c.TaskID
		hashes[i], prints[i], versions[i] = c.Claim.KeyHash[:], c.Claim.Fingerprint[:], int16(c.Claim.FingerprintVersion) // #nosec G115 -- a small number
	}
	mine := make(map[uuid.UUID]bool, n)
	b := &batch{}
	b.query("claim keys", claimKeysSQL, pgx.NamedArgs{
		"workspaces": workspaces, "key_hashes": hashes, "fingerprints": prints, "versions": versions, "tasks": tasks,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			if err := rows.Scan(&id); err != nil {
				return err
			}
			mine[id] = true
		}
		return nil
	})
	if err := tx.send(ctx, b); err != nil {
		return err
	}
	for _, c := range in {
		c.in = mine[c.TaskID]
	}
	return nil
}

// laneKey is one lane of a group.
type laneKey struct {
	workspace uuid.UUID
	lane      memory.Lane
}

// takeLanes gives each item its number and time in its lane, and answers what the accounts can pay. Where a workspace has
// no room its items stay out.
func (tx *Tx) takeLanes(ctx context.Context, claimed []*candidate) (map[uuid.UUID]credit.Amount, error) {
	b := &batch{}
	tx.addRooms(b, claimed)
	lanes := map[laneKey][]*candidate{}
	var priced []uuid.UUID
	for _, c := range claimed {
		if !c.in {
			continue
		}
		at := laneKey{c.WorkspaceID, c.lane}
		lanes[at] = append(lanes[at], c)
		if c.Price > 0 {
			priced = append(priced, c.WorkspaceID)
		}
	}
	if len(lanes) == 0 {
		return nil, errNobody
	}
	addLanes(b, lanes, tx.db.now())
	available := map[uuid.UUID]credit.Amount{}
	if len(priced) > 0 {
		b.query("lock accounts", lockAccountsSQL, pgx.NamedArgs{"workspaces": distinct(priced)}, func(rows pgx.Rows) error {
			var workspace uuid.UUID
			var left credit.Amount
			for rows.Next() {
				if err := rows.Scan(&workspace, &left); err != nil {
					return err
				}
				available[workspace] = left
			}
			return nil
		})
	}
	return available, tx.send(ctx, b)
}

// addRooms keeps those out whose workspace has no room for what the group brings it.
func (tx *Tx) addRooms(b *batch, claimed []*candidate) {
	byWorkspace := map[uuid.UUID][]*candidate{}
	for _, c := range claimed {
		byWorkspace[c.WorkspaceID] = append(byWorkspace[c.WorkspaceID], c)
	}
	for workspace, brought := range byWorkspace {
		_ = tx.addRoomOr(b, workspace, len(brought), func(error) error { // refuses by keeping them out
			for _, c := range brought {
				c.in = false
			}
			return nil
		})
	}
}

func addLanes(b *batch, lanes map[laneKey][]*candidate, now *time.Time) {
	n := len(lanes)
	workspaces, names, items := make([]uuid.UUID, 0, n), make([][]byte, 0, n), make([]int64, 0, n)
	for at, waiting := range lanes {
		workspaces, names, items = append(workspaces, at.workspace), append(names, at.lane[:]), append(items, int64(len(waiting)))
	}
	b.query("take lanes", lendLanesSQL, pgx.NamedArgs{"workspaces": workspaces, "lanes": names, "items": items, "now": now},
		func(rows pgx.Rows) error {
			for rows.Next() {
				var at laneKey
				var name []byte
				var next int64
				var last time.Time
				if err := rows.Scan(&at.workspace, &name, &next, &last); err != nil {
					return err
				}
				at.lane = memory.Lane(name)
				number(lanes[at], next, last)
			}
			return nil
		})
}

// number gives the items of a lane the last numbers that it gave, in the order of their arrival.
func number(waiting []*candidate, next int64, last time.Time) {
	headed := false
	for i, c := range waiting {
		behind := len(waiting) - 1 - i
		c.seq = next - 1 - int64(behind)
		c.at = last.Add(-time.Duration(behind) * time.Microsecond)
		c.first = c.Ordered && !headed
		headed = headed || c.Ordered
	}
}

// decidePayable keeps those in that their account can pay, in the order of their arrival. A lane's head may fall out: then
// the one behind it is the first.
func decidePayable(claimed []*candidate, available map[uuid.UUID]credit.Amount) {
	headless := map[laneKey]bool{}
	for _, c := range claimed {
		at := laneKey{c.WorkspaceID, c.lane}
		if !c.in || c.Price > available[c.WorkspaceID] {
			c.in = false
			headless[at] = headless[at] || c.first
			continue
		}
		available[c.WorkspaceID] -= c.Price
		if headless[at] && c.Ordered {
			c.first, headless[at] = true, false
		}
	}
}

// addDropKeys removes the keys of those that fell out, so that they are new to whoever brings them again.
func addDropKeys(b *batch, claimed []*candidate) {
	var workspaces, tasks []uuid.UUID
	for _, c := range claimed {
		if !c.in {
			workspaces, tasks = append(workspaces, c.WorkspaceID), append(tasks, c.TaskID)
		}
	}
	if len(tasks) > 0 {
		b.exec("drop keys", dropClaimsSQL, pgx.NamedArgs{"workspaces": workspaces, "tasks": tasks}, nil)
	}
}

func (tx *Tx) addTasks(b *batch, accepted []*candidate) {
	n := len(accepted)
	tasks, workspaces, kinds := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]string, n)
	users, agents, runs, apps := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	lanes, seqs, ordered, firsts := make([][]byte, n), make([]int64, n), make([]bool, n), make([]bool, n)
	priorities, commands, formats, policies := make([]string, n), make([][]byte, n), make([]int16, n), make([][]byte, n)
	hashes, traces, ats, prices := make([][]byte, n), make([][]byte, n), make([]time.Time, n), make([]int64, n)
	byID := make(map[uuid.UUID]*candidate, n)
	for i, c := range accepted {
		byID[c.TaskID] = c
		tasks[i], workspaces[i], kinds[i] = c.TaskID, c.WorkspaceID, string(c.Kind)
		users[i], agents[i], runs[i], apps[i] = c.Scope.UserID, c.Scope.AgentID, c.Scope.RunID, c.Scope.AppID
		lanes[i], seqs[i], ordered[i], firsts[i] = c.lane[:], c.seq, c.Ordered, c.first
		priorities[i], commands[i], formats[i], policies[i] = c.Priority, c.stored, int16(c.Format), c.Policy // #nosec G115 -- a small number
		hashes[i], traces[i], ats[i], prices[i] = c.Claim.KeyHash[:], c.Origin.Bytes(), c.at, int64(c.Price)
	}
	b.query("insert tasks", insertTasksSQL, pgx.NamedArgs{
		"tasks": tasks, "workspaces": workspaces, "kinds": kinds, "users": users, "agents": agents, "runs": runs, "apps": apps,
		"lanes": lanes, "seqs": seqs, "ordered": ordered, "firsts": firsts, "priorities": priorities, "commands": commands,
		"formats": formats, "policies": policies, "key_hashes": hashes, "traces": traces, "ats": ats, "prices": prices, "now": tx.db.now(),
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id uuid.UUID
			var ready bool
			var seq int64
			if err := rows.Scan(&id, &ready, &seq); err != nil {
				return err
			}
			if c := byID[id]; ready {
				c.hint = &task.Hint{TaskID: id, WorkspaceID: c.WorkspaceID, Seq: seq, Priority: c.Priority}
			}
		}
		return nil
	})
}

// addHolds takes what each account pays in one piece. They were locked and have it; a row that is missing all the same
// rolls the group back.
func addHolds(b *batch, accepted []*candidate) {
	sums := map[uuid.UUID]int64{}
	for _, c := range accepted {
		if c.Price > 0 {
			sums[c.WorkspaceID] += int64(c.Price)
		}
	}
	if len(sums) == 0 {
		return
	}
	workspaces, prices := make([]uuid.UUID, 0, len(sums)), make([]int64, 0, len(sums))
	for workspace, sum := range sums {
		workspaces, prices = append(workspaces, workspace), append(prices, sum)
	}
	b.exec("hold", holdAllSQL, pgx.NamedArgs{"workspaces": workspaces, "prices": prices}, func(rows int64) error {
		if rows != int64(len(sums)) {
			return errInsufficient
		}
		return nil
	})
}

func workspacesOf(items []write.Acceptance) []uuid.UUID {
	all := make([]uuid.UUID, len(items))
	for i, item := range items {
		all[i] = item.WorkspaceID
	}
	return distinct(all)
}

// distinct sorts ids and leaves each once.
func distinct(ids []uuid.UUID) []uuid.UUID {
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// groupPatience is how long a group waits for a lock. Who has it may have it for long, and everyone in the group would
// wait for one.
const groupPatience = "50ms"

// inGroup runs fn in one transaction of several workspaces, once: what can't be done at once is done alone.
func (db *DB) inGroup(ctx context.Context, workspaces []uuid.UUID, fn func(ctx context.Context, tx *Tx) error) error {
	gates, names := make([]int64, len(workspaces)), make([]string, len(workspaces))
	for i, w := range workspaces {
		gates[i], names[i] = gateOf(w), w.String()
	}
	slices.SortFunc(gates, cmp.Compare[int64])
	open := opening{sql: openGroupSQL, args: []any{gates, groupPatience, db.stmtTimeout, strings.Join(names, ",")}}
	return db.once(ctx, open, fn)
}

func isUnknown(err error) bool { return errors.Is(err, fault.ErrCommitUnknown) }
