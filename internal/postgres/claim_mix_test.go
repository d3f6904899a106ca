package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// claimCases are the states that a task can be in when it is claimed.
var claimCases = []string{
	"due", "due", "due", "head", "behind", "leased", "expired", "crashed", "expired again", "exhausted", "early", "cancelled", "committed",
	"kind", "format", "suspended", "paused", "erased", "sealed", "mine", "mine expired", "delivery", "missing", "held",
}

// claimCasesSQL makes a task of each case $2, of the workspaces $4 and at $5 by the clock. $3 are the tokens of those that have
// been claimed already.
const claimCasesSQL = `
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, lane, lane_seq, head, priority, command, payload_format,
                   accepted_at, updated_at, crashes, claims, starts, lease_token, lease_until, worker_incarnation, claimed_at, started_at,
                   completed_at, committed_at)
SELECT i.id, ($4::uuid[])[CASE i.c WHEN 'suspended' THEN 2 WHEN 'paused' THEN 3 WHEN 'erased' THEN 4 ELSE 1 END],
       CASE i.c WHEN 'kind' THEN 'memory_update' WHEN 'delivery' THEN 'webhook_delivery' ELSE 'memory_infer' END,
       CASE WHEN i.running THEN 'running' WHEN i.c = 'cancelled' THEN 'failed' ELSE 'pending' END,
       CASE i.c WHEN 'committed' THEN 'committed' ELSE 'accepted' END,
       CASE i.c WHEN 'early' THEN $5::timestamptz + interval '1 second' ELSE $5 END, $5, sha256(i.id::text::bytea),
       CASE i.c WHEN 'head' THEN 1 WHEN 'behind' THEN 2 END, i.c = 'head', 'interactive',
       CASE i.c WHEN 'cancelled' THEN NULL WHEN 'sealed' THEN '\x00484601'::bytea || uuid_send($6::uuid) || sha256('x') ELSE 'x' END,
       CASE i.c WHEN 'format' THEN 99 ELSE 1 END, $5, $5 - interval '1 hour',
       CASE i.c WHEN 'expired' THEN 1 WHEN 'crashed' THEN 2 WHEN 'expired again' THEN 2 WHEN 'exhausted' THEN 5 ELSE i.running::int END,
       i.running::int, i.running::int, CASE WHEN i.running THEN i.token END,
       CASE WHEN i.c IN ('leased', 'mine') THEN $5 + interval '1 second' WHEN i.running THEN $5 END,
       CASE WHEN i.running THEN 'before' END, CASE WHEN i.running THEN $5 - interval '1 hour' END, CASE WHEN i.running THEN $5 - interval '1 hour' END,
       CASE i.c WHEN 'cancelled' THEN $5 END, CASE i.c WHEN 'committed' THEN $5 END
  FROM (SELECT *, c IN ('leased', 'expired', 'expired again', 'mine', 'mine expired') AS running
          FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS u (id, c, token)) i
 WHERE i.c <> 'missing'`

// leftByClaimSQL is everything that a claim leaves of a task, the attempts of crashed leases with it.
const leftByClaimSQL = `
SELECT concat_ws(' ', t.status, t.stage, t.claims, t.starts, t.crashes, t.run_after, t.lease_until, t.worker_incarnation, t.claimed_at,
                 t.started_at, t.updated_at, t.hint_seq, t.head, coalesce(t.lease_token = $2::uuid, false),
                 (SELECT string_agg(concat_ws(' ', a.claim, a.generation, a.worker, a.claimed_at, a.ended_at, a.ending, a.class), ';')
                    FROM task_attempts a WHERE a.task_id = t.id))
  FROM tasks t WHERE t.id = $1`

// claimMix are tasks of some cases, with what is asked of them.
type claimMix struct {
	cases []string
	asks  []worker.ClaimAsk
}

func newClaimMix(w *world, cases []string, spaces []uuid.UUID, foreign uuid.UUID, now time.Time) *claimMix {
	w.t.Helper()
	m := &claimMix{cases: cases}
	ids, tokens := make([]uuid.UUID, len(cases)), make([]uuid.UUID, len(cases))
	for i, c := range cases {
		ids[i], tokens[i] = uuid.New(), uuid.New()
		m.asks = append(m.asks, worker.ClaimAsk{TaskID: ids[i], Token: uuid.New()})
		if strings.HasPrefix(c, "mine") {
			tokens[i] = m.asks[i].Token
		}
	}
	w.exec(claimCasesSQL, ids, cases, tokens, spaces, now, foreign)
	return m
}

// held are the tasks whose rows somebody is to hold.
func (m *claimMix) held() (ids []uuid.UUID) {
	for i, c := range m.cases {
		if c == "held" {
			ids = append(ids, m.asks[i].TaskID)
		}
	}
	return ids
}

// said is what ask i was answered, and what is left of its task, without ids.
func (m *claimMix) said(w *world, i int, c worker.Claimed) string {
	w.t.Helper()
	left, err := collect[string](w, leftByClaimSQL, m.asks[i].TaskID, m.asks[i].Token)
	require.NoError(w.t, err)
	if c.Lease != nil {
		lease := *c.Lease
		require.Equal(w.t, m.asks[i], worker.ClaimAsk{TaskID: lease.TaskID, Token: lease.Token})
		lease.TaskID, lease.Token, lease.Lane = uuid.UUID{}, uuid.UUID{}, [32]byte{}
		return fmt.Sprintf("%+v %s", lease, left)
	}
	return fmt.Sprint(c.Err, left)
}

// pauseFor pauses one of the providers, or lets the pause of the extractor have been over for ten of thirty seconds in which
// work comes back.
func (w *world) pauseFor(what string, now time.Time) {
	w.t.Helper()
	w.exec(`DELETE FROM provider_pauses`)
	pause := func(provider string, until time.Time) {
		w.exec(`INSERT INTO provider_pauses (provider, paused_until, class, in_a_row, updated_at) VALUES ($1, $2::timestamptz, 'x', 3, $2 - interval '1 hour')`,
			provider, until)
	}
	switch what {
	case "extractor":
		pause("stub", now.Add(time.Minute))
	case "embedder":
		pause("stub-embedder", now.Add(time.Minute))
	case "over":
		pause("stub", now.Add(-10*time.Second))
	}
}

// due makes n due tasks, of another workspace each time.
func (w *world) due(n int) []uuid.UUID {
	w.t.Helper()
	space := w.workspace(0).Workspace.ID
	w.backlog(space, n, 0)
	ids, err := collect[uuid.UUID](w, `SELECT id FROM tasks WHERE workspace_id = $1 ORDER BY run_after`, space)
	require.NoError(w.t, err)
	require.Len(w.t, ids, n)
	return ids
}

// holding locks the rows until free is called.
func (w *world) holding(ids []uuid.UUID) (free func()) {
	w.t.Helper()
	tx, err := w.sql.Begin(w.t.Context())
	require.NoError(w.t, err)
	_, err = tx.Exec(w.t.Context(), `SELECT FROM tasks WHERE id = ANY($1) FOR UPDATE`, ids)
	require.NoError(w.t, err)
	return func() { _ = tx.Rollback(context.WithoutCancel(w.t.Context())) }
}

// stuck lets as many tasks be claimed as may be under way at once, again and again, while nobody gets at the table. It
// returns when all wait; done is closed when they are had, some time after free.
func (w *world) stuck(ids []uuid.UUID) (done chan struct{}, free func()) {
	w.t.Helper()
	require.Len(w.t, ids, postgres.ClaimApart)
	tx, err := w.sql.Begin(w.t.Context())
	require.NoError(w.t, err)
	_, err = tx.Exec(w.t.Context(), `LOCK TABLE tasks IN EXCLUSIVE MODE`)
	require.NoError(w.t, err)
	done = make(chan struct{})
	go func() {
		defer close(done)
		together(len(ids), func(i int) {
			for w.t.Context().Err() == nil && w.db.Claim(context.Background(), among(worker.Steady), asksFor(ids[i:i+1]), false)[0].Lease == nil {
				continue // the time of its group was over
			}
		})
	}()
	w.untilWaiting(len(ids), done)
	return done, func() { _ = tx.Rollback(context.WithoutCancel(w.t.Context())) }
}

// untilWaiting returns when so many sessions wait for a lock. It is an error if what is to wait has ended before.
func (w *world) untilWaiting(n int, ended <-chan struct{}) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for one[int](w, `SELECT count(DISTINCT pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE NOT l.granted AND a.datname = current_database()`) < n {
		select {
		case <-ended:
			w.t.Error("it did not wait")
			return
		case <-tick.C:
		}
	}
}

// steady are n claimants who ask alike.
func steady(n int) []worker.Claimant {
	return slices.Repeat([]worker.Claimant{among(worker.Steady)}, n)
}

func asksFor(ids []uuid.UUID) []worker.ClaimAsk {
	asks := make([]worker.ClaimAsk, len(ids))
	for i, id := range ids {
		asks[i] = worker.ClaimAsk{TaskID: id, Token: uuid.New()}
	}
	return asks
}
