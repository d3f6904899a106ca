package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// lifeAttempts and lifeRuns bound what a page draws: the newest ones. A projection may be tried without end.
	lifeAttempts = 100
	lifeRuns     = 50
)

const lifeSQL = `
SELECT clock.at, t.kind, t.stage, t.accepted_at, t.hint_at, t.hint_seq, t.claims, t.lease_until IS NOT NULL,
       coalesce(t.worker_incarnation, ''), t.claimed_at, t.lease_until, t.lane_seq IS NOT NULL,
       t.head OR t.lane_seq IS NULL OR t.stage <> 'accepted', p.created_at, coalesce(p.generation, 0), t.committed_at, t.completed_at,
       (SELECT count(*) FROM task_attempts a WHERE a.task_id = t.id AND a.workspace_id = @workspace),
       attempts.listed, runs.listed
  FROM (SELECT coalesce(@now::timestamptz, clock_timestamp()) AS at) clock
 CROSS JOIN all_tasks t
  LEFT JOIN plans p ON p.task_id = t.id AND p.workspace_id = @workspace
 CROSS JOIN LATERAL (
       SELECT coalesce(json_agg(a ORDER BY a.claim), '[]') AS listed
         FROM (SELECT a.claim, a.generation, a.worker, a.claimed_at, a.ended_at, a.ending, coalesce(a.class, '') AS class, a.delay_ms,
                      a.model_ms, a.provider_calls, a.tokens_in, a.tokens_out
                 FROM task_attempts a
                WHERE a.task_id = t.id AND a.workspace_id = @workspace
                ORDER BY a.claim DESC LIMIT @attempts) a) attempts
 CROSS JOIN LATERAL (
       SELECT coalesce(json_agg(r ORDER BY r.generation), '[]') AS listed
         FROM (SELECT r.generation, r.amount, r.opened_at, c.closed_at, coalesce(c.settled, 0) AS settled,
                      coalesce(c.released, 0) AS released
                 FROM task_runs r
                 LEFT JOIN credit_closings c ON c.task_id = r.task_id AND c.generation = r.generation AND c.workspace_id = @workspace
                WHERE r.task_id = t.id AND r.workspace_id = @workspace
                ORDER BY r.generation DESC LIMIT @runs) r) runs
 WHERE t.id = @id AND t.workspace_id = @workspace
 LIMIT 1`

// lifeAttempt and lifeRun are rows that come in one column.
type lifeAttempt struct {
	Claim      int       `json:"claim"`
	Generation int       `json:"generation"`
	Worker     string    `json:"worker"`
	ClaimedAt  time.Time `json:"claimed_at"`
	EndedAt    time.Time `json:"ended_at"`
	Ending     string    `json:"ending"`
	Class      string    `json:"class"`
	DelayMS    int64     `json:"delay_ms"`
	ModelMS    int64     `json:"model_ms"`
	Calls      int       `json:"provider_calls"`
	TokensIn   int       `json:"tokens_in"`
	TokensOut  int       `json:"tokens_out"`
}

type lifeRun struct {
	Generation int        `json:"generation"`
	Amount     int64      `json:"amount"`
	OpenedAt   time.Time  `json:"opened_at"`
	ClosedAt   *time.Time `json:"closed_at"`
	Settled    int64      `json:"settled"`
	Released   int64      `json:"released"`
}

// Life implements recall.LifeStore.
func (db *DB) Life(ctx context.Context, workspace, id uuid.UUID) (recall.Life, error) {
	var life recall.Life
	found := false
	args := pgx.NamedArgs{"id": id, "workspace": workspace, "now": db.now(), "attempts": lifeAttempts, "runs": lifeRuns}
	err := db.read(ctx, of(workspace), "read life of event", lifeSQL, args, func(rows pgx.Rows) error {
		for rows.Next() {
			found = true
			var err error
			if life, err = scanLife(rows); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		err = fault.New(fault.EventNotFound)
	}
	return life, err
}

func scanLife(rows pgx.Rows) (recall.Life, error) {
	var l recall.Life
	var claims, attempts int
	var leased bool
	var worker string
	var claimedAt, leaseUntil *time.Time
	var ended []lifeAttempt
	var runs []lifeRun
	err := rows.Scan(&l.Now, &l.Kind, &l.Stage, &l.AcceptedAt, &l.HintAt, &l.Hints, &claims, &leased, &worker, &claimedAt, &leaseUntil,
		&l.Ordered, &l.InTurn, &l.PlanAt, &l.PlanOf, &l.CommittedAt, &l.CompletedAt, &attempts, &ended, &runs)
	if err != nil {
		return recall.Life{}, err
	}
	l.Now, l.AcceptedAt, l.HintAt = l.Now.UTC(), l.AcceptedAt.UTC(), l.HintAt.UTC()
	inUTC(l.PlanAt, l.CommittedAt, l.CompletedAt, claimedAt, leaseUntil)
	if leased && claimedAt != nil && leaseUntil != nil {
		l.Lease = &recall.LifeLease{
			Claim: claims, Worker: worker, ClaimedAt: *claimedAt, Until: *leaseUntil, Expired: !leaseUntil.After(l.Now),
		}
	}
	l.Omitted = attempts - len(ended)
	for _, a := range ended {
		l.Attempts = append(l.Attempts, recall.Attempt{
			Claim: a.Claim, Generation: a.Generation, Worker: a.Worker, ClaimedAt: a.ClaimedAt.UTC(), EndedAt: a.EndedAt.UTC(),
			Ending: a.Ending, Class: task.Class(a.Class), Delay: time.Duration(a.DelayMS) * time.Millisecond,
			Model: time.Duration(a.ModelMS) * time.Millisecond, ProviderCalls: a.Calls, TokensIn: a.TokensIn, TokensOut: a.TokensOut,
		})
	}
	for _, r := range runs {
		inUTC(r.ClosedAt)
		l.Runs = append(l.Runs, recall.LifeRun{
			Generation: r.Generation, Amount: r.Amount, OpenedAt: r.OpenedAt.UTC(), ClosedAt: r.ClosedAt, Settled: r.Settled, Released: r.Released,
		})
	}
	return l, nil
}
