package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// leaseColumnsSQL is what a lease knows of its task t.
const leaseColumnsSQL = `t.id, t.workspace_id, t.kind, t.stage, t.generation, t.claims, t.crashes, t.spent, t.user_id,
       t.agent_id, t.run_id, t.app_id, t.lane, t.lane_seq, t.command, t.data_key, t.payload_format, t.policy, t.cursor,
       t.item_key, t.item_revision, t.accepted_at, t.claimed_at, t.trace`

// claimSQL is addressed by primary key. It locks the row first, so that it is decided by what the row is then; what goes on
// with it is takeSQL.
const claimSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), old AS (
  SELECT ` + lockedColumnsSQL + `, @token::uuid AS token, @restart::float8 AS restart
    FROM tasks t
   WHERE t.id = @task AND (@workspace::uuid IS NULL OR t.workspace_id = @workspace)
     FOR UPDATE %s
)` + takeSQL + `
SELECT ` + leaseSQL + `
  FROM mine m`

// lockedColumnsSQL is what decides of a task t whether it may be had, and what a lease knows of it.
const lockedColumnsSQL = leaseColumnsSQL + `, t.ready, t.status, t.run_after, t.lease_until, t.lease_token, t.worker_incarnation`

// takeSQL takes those of the locked rows old that may be had, each for its token, and writes the crash of an expired lease
// from what the row was. The claim is counted before any work. A row that already has the token is the same claim, whose
// answer was lost: it counts nothing more. The tasks are changed by their ids and no other condition, so that no plan, for
// whatever table it is made, finds them in another way.
const takeSQL = `, pauses AS MATERIALIZED (
  SELECT provider, paused_until, updated_at, stopped_at, in_a_row FROM provider_pauses WHERE provider IN (@extractor, @embedder)
), able AS MATERIALIZED (
  SELECT t.id, t.token, t.status, t.worker_incarnation, t.claimed_at
    FROM old t, clock
   WHERE (t.ready OR t.kind = 'webhook_delivery') AND t.kind = ANY(@kinds) AND t.payload_format <= @payload_format
     AND (t.status = 'pending' AND t.run_after <= clock.at OR t.status = 'running' AND t.lease_until <= clock.at)
     AND ` + openableSQL + `
     AND (t.kind <> 'webhook_delivery' OR ` + signableSQL + `)
     AND (t.stage <> 'accepted' OR t.crashes < @max_attempts)
     AND CASE @among::text WHEN 'steady' THEN t.crashes < 2 WHEN 'crashed' THEN t.crashes >= 2 ELSE true END
     AND (t.kind = 'scope_erase'
          OR NOT EXISTS (SELECT FROM pauses p WHERE ` + pausedSQL + `t.restart)
                            AND p.provider = CASE t.stage WHEN 'accepted' THEN @extractor ELSE @embedder END))
     AND NOT ` + fencedTaskSQL + `
     AND NOT EXISTS (SELECT FROM workspaces w WHERE w.id = t.workspace_id AND (w.suspended_at IS NOT NULL
                      OR w.paused_at IS NOT NULL))
     AND t.lease_token IS DISTINCT FROM t.token
), t AS (
  UPDATE tasks AS t
     SET status = 'running', lease_token = able.token, lease_until = clock.at + make_interval(secs => @ttl),
         worker_incarnation = @worker, claimed_at = clock.at, claims = t.claims + 1, starts = t.starts + 1,
         crashes = t.crashes + 1, started_at = coalesce(t.started_at, clock.at), updated_at = clock.at
    FROM able, clock
   WHERE t.id = able.id
  RETURNING ` + leaseColumnsSQL + `, t.lease_token, able.status AS was, able.worker_incarnation AS last_worker,
         able.claimed_at AS last_claimed_at
), crashed AS (
  INSERT INTO task_attempts (task_id, claim, workspace_id, generation, worker, claimed_at, ended_at, ending, class)
  SELECT t.id, t.claims - 1, t.workspace_id, t.generation, t.last_worker, t.last_claimed_at, t.claimed_at, 'crashed', 'crash'
    FROM t
   WHERE t.was = 'running'
), mine AS (
  SELECT ` + leaseColumnsSQL + `, t.lease_token FROM t
  UNION ALL
  SELECT ` + leaseColumnsSQL + `, t.lease_token FROM old t WHERE t.status = 'running' AND t.lease_token = t.token
)`

// leaseSQL is what scanLease reads of a claimed task m.
const leaseSQL = `m.id, m.lease_token, m.workspace_id, m.kind, m.stage, m.generation, m.claims, m.crashes, m.spent, coalesce(m.user_id, ''),
       coalesce(m.agent_id, ''), coalesce(m.run_id, ''), coalesce(m.app_id, ''), m.lane, m.lane_seq IS NOT NULL,
       m.command, m.payload_format, m.policy, m.cursor, m.item_key, coalesce(m.item_revision, 0), m.accepted_at,
       m.claimed_at, m.trace,
       ` + wrappedSQL + `m.data_key),
       coalesce((SELECT max(p.in_a_row) FROM pauses p), 0)`

// Claim implements worker.Claims.
func (db *DB) Claim(ctx context.Context, who worker.Claimant, asks []worker.ClaimAsk, skipLocked bool) []worker.Claimed {
	answers := make([]worker.Claimed, len(asks))
	for i, ask := range asks {
		asked := asking{who: who, ask: ask, skipLocked: skipLocked}
		if db.claims != nil {
			answers[i] = db.claims.claim(ctx, asked)
		} else {
			answers[i] = db.claim(ctx, asked)
		}
		failpoint.Hit("claim.committed")
	}
	return answers
}

// asking is one ask with who asks and whether a row that is locked is waited for.
type asking struct {
	who        worker.Claimant
	ask        worker.ClaimAsk
	skipLocked bool
}

// claim claims one task by itself.
func (db *DB) claim(ctx context.Context, a asking) worker.Claimed {
	waiting := ""
	if a.skipLocked {
		waiting = "SKIP LOCKED"
	}
	answer := db.claimOnce(ctx, a, "claim", waiting)
	if errors.Is(answer.Err, fault.ErrCommitUnknown) {
		return db.claimAgain(ctx, a, answer)
	}
	return answer
}

// claimAgain repeats a claim whose answer was lost. Whatever becomes of the repeat, the first may have happened; it may
// even hold the row still, so that the repeat waits for it.
func (db *DB) claimAgain(ctx context.Context, a asking, lost worker.Claimed) worker.Claimed {
	if again := db.claimOnce(ctx, a, "claim again", ""); again.Err == nil {
		return again
	}
	return lost
}

func (db *DB) claimOnce(ctx context.Context, a asking, name, waiting string) worker.Claimed {
	args := db.claimantArgs(a.who)
	args["task"], args["token"], args["restart"] = a.ask.TaskID, a.ask.Token, a.who.Restart
	within := unbound
	args["workspace"] = nil
	if a.ask.WorkspaceID != uuid.Nil {
		args["workspace"], within = a.ask.WorkspaceID, of(a.ask.WorkspaceID)
	}
	var lease *worker.Lease
	err := db.alone(ctx, within, name, fmt.Sprintf(claimSQL, waiting), args, func(rows pgx.Rows) error {
		lease = nil
		for rows.Next() {
			var err error
			if lease, err = db.scanLease(rows, a.who.Worker); err != nil {
				return err
			}
		}
		return nil
	})
	return worker.Claimed{Lease: lease, Err: err}
}

// claimantArgs are the arguments that all claims of one worker have in common.
func (db *DB) claimantArgs(who worker.Claimant) pgx.NamedArgs {
	return pgx.NamedArgs{
		"now": db.now(), "ttl": inSeconds(who.TTL), "worker": who.Worker, "kinds": kindNames(who.Kinds), "payload_format": who.Format,
		"max_attempts": who.MaxAttempts, "extractor": who.Extractor, "embedder": who.Embedder, "among": string(who.Among),
		"master_keys": db.sealer.masters(),
	}
}

func kindNames(kinds []task.Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

// scanLease reads the row's lease, behind what ahead reads.
func (db *DB) scanLease(rows pgx.Rows, name string, ahead ...any) (*worker.Lease, error) {
	l := worker.Lease{Worker: name}
	var spent, lane, stored, origin []byte
	var wrapped [][]byte
	err := rows.Scan(append(ahead, &l.TaskID, &l.Token, &l.WorkspaceID, &l.Kind, &l.Stage, &l.Generation, &l.Claim, &l.Crashes, &spent,
		&l.Scope.UserID, &l.Scope.AgentID, &l.Scope.RunID, &l.Scope.AppID, &lane, &l.Ordered, &stored, &l.Format,
		&l.Policy, &l.Cursor, &l.ItemKey, &l.ItemRev, &l.AcceptedAt, &l.ClaimedAt, &origin, &wrapped, &l.Troubled)...)
	if err != nil {
		return nil, fmt.Errorf("scan lease: %w", err)
	}
	if err := json.Unmarshal(spent, &l.Spent); err != nil {
		return nil, fmt.Errorf("read spent budgets: %w", err)
	}
	if len(lane) != len(l.Lane) {
		return nil, fmt.Errorf("task %s has no lane", l.TaskID)
	}
	l.Lane, l.Origin = memory.Lane(lane), task.OriginFrom(origin)
	l.Payload, l.Closed = db.sealer.open(atCommand(l.WorkspaceID, l.TaskID), stored, wrapped)
	return &l, nil
}

// heartbeatSQL touches no indexed column, so that it stays a HOT update. An expired lease that nobody took over
// is still its holder's: it may be extended.
const heartbeatSQL = `
WITH clock AS (
  SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at
), t AS (
  UPDATE tasks SET lease_until = clock.at + make_interval(secs => @ttl)
    FROM clock
   WHERE id = @task AND status = 'running' AND lease_token = @token
  RETURNING id
)
SELECT coalesce((SELECT extract(epoch FROM greatest(p.paused_until - clock.at, ` + stopLookSQL + `))::float8
                   FROM provider_pauses p
                  WHERE p.provider = @provider AND (p.paused_until > clock.at OR p.stopped_at IS NOT NULL)), 0)
  FROM t, clock`

// Heartbeat implements worker.Claims.
func (db *DB) Heartbeat(ctx context.Context, l worker.Lease, ttl time.Duration, provider string) (worker.Beat, error) {
	beat := worker.Beat{}
	held := false
	err := db.alone(ctx, of(l.WorkspaceID), "heartbeat", heartbeatSQL, pgx.NamedArgs{
		"now": db.now(), "task": l.TaskID, "token": l.Token, "ttl": inSeconds(ttl), "provider": provider,
	}, func(rows pgx.Rows) error {
		for rows.Next() {
			held = true
			var seconds float64
			if err := rows.Scan(&seconds); err != nil {
				return err
			}
			beat.PausedFor = time.Duration(seconds * float64(time.Second))
		}
		return nil
	})
	if err == nil && !held {
		return beat, fault.ErrLeaseLost
	}
	return beat, err
}

// unprojectedSQL reads live records, never the plan: a record that is gone or newer counts as projected.
const unprojectedSQL = `
SELECT m.id, m.version, m.text
  FROM task_results r
  JOIN memories m ON m.id = r.record_id AND m.workspace_id = r.workspace_id
 WHERE r.task_id = @task AND r.workspace_id = @workspace AND r.event IN ('ADD', 'UPDATE') AND m.deleted_at IS NULL
   AND NOT EXISTS (SELECT FROM memory_vectors v
                    WHERE v.memory_id = m.id AND v.model = @model AND v.version >= m.version)
 ORDER BY r.ordinal`

// Unprojected implements worker.Steps.
func (db *DB) Unprojected(ctx context.Context, l worker.Lease, vectorModel string) ([]worker.LiveRecord, error) {
	var live []worker.LiveRecord
	err := db.read(ctx, of(l.WorkspaceID), "unprojected", unprojectedSQL, pgx.NamedArgs{
		"task": l.TaskID, "workspace": l.WorkspaceID, "model": vectorModel,
	}, func(rows pgx.Rows) error {
		var err error
		live, err = pgx.CollectRows(rows, pgx.RowToStructByPos[worker.LiveRecord])
		return err
	})
	return live, err
}

// whereSQL reads the state of a task that a fenced write did not find as expected.
const whereSQL = `SELECT status, stage, coalesce(lease_token = @token, false) FROM all_tasks WHERE id = @task`

// moved tells what became of a step that touched nothing: it was done before under the same lease, or the lease
// is lost. Done means that the step's effects are there.
func (db *DB) moved(ctx context.Context, l worker.Lease) worker.Done {
	var status task.Status
	var stage task.Stage
	var mine bool
	err := db.read(ctx, of(l.WorkspaceID), "where is it", whereSQL, pgx.NamedArgs{"task": l.TaskID, "token": l.Token},
		func(rows pgx.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&status, &stage, &mine); err != nil {
					return err
				}
			}
			return nil
		})
	switch {
	case err != nil:
		return worker.Done{Err: err}
	case mine && status == task.Running && stage != l.Stage:
		return worker.Done{}
	default:
		return worker.Done{Err: fault.ErrLeaseLost, Ended: status.Terminal()}
	}
}
