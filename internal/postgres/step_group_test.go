package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// steppedRowsSQL is everything that the steps of tasks leave of a workspace, by the keys of the commands. Left out are ids
// and times.
const steppedRowsSQL = `
SELECT concat_ws(' ', 'task', encode(t.key_hash, 'escape'), t.status, t.stage, t.outcome, t.head, t.crashes, t.claims, t.hint_seq,
                 t.command IS NULL, t.lease_token IS NULL, t.lease_until IS NULL, t.error_class, t.error_code,
                 t.committed_at IS NULL, t.completed_at IS NULL, t.updated_at > t.accepted_at)
  FROM tasks t WHERE t.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'plan', encode(t.key_hash, 'escape'), p.generation, p.body IS NULL, p.data_key IS NULL)
  FROM plans p JOIN tasks t ON t.id = p.task_id WHERE p.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'record', encode(t.key_hash, 'escape'), m.text, m.version, m.user_id, m.agent_id, encode(m.lane, 'hex'),
                 encode(m.content_key, 'hex'), m.metadata, m.type, m.role, m.categories, m.event_date, m.expires_at,
                 m.accepted_at = t.accepted_at, m.said_at = t.accepted_at, m.valid_from = t.accepted_at, m.deleted_at IS NULL)
  FROM memories m JOIN tasks t ON t.id = m.task_id WHERE m.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'history', encode(t.key_hash, 'escape'), h.ordinal, h.event, h.version, h.old_text, h.new_text, m.text)
  FROM memory_history h JOIN tasks t ON t.id = h.task_id LEFT JOIN memories m ON m.id = h.memory_id WHERE h.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'terms', m.text, p.version, p.content_key = m.content_key, p.terms, p.counts, p.length)
  FROM memory_terms p JOIN memories m ON m.id = p.memory_id WHERE p.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'vector', m.text, v.version, v.content_key = m.content_key, v.model, v.vector, v.skipped)
  FROM memory_vectors v JOIN memories m ON m.id = v.memory_id WHERE v.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'result', encode(t.key_hash, 'escape'), r.ordinal, r.event, r.error_code, m.text)
  FROM task_results r JOIN tasks t ON t.id = r.task_id LEFT JOIN memories m ON m.id = r.record_id WHERE r.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'attempt', encode(t.key_hash, 'escape'), a.claim, a.generation, a.worker, a.ending, a.class, a.delay_ms,
                 a.model_ms, a.provider_calls, a.tokens_in, a.tokens_out, a.claimed_at <= a.ended_at)
  FROM task_attempts a JOIN tasks t ON t.id = a.task_id WHERE a.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'run', encode(t.key_hash, 'escape'), r.generation, r.amount, r.outcome, c.outcome, c.amount, c.settled, c.released)
  FROM task_runs r JOIN tasks t ON t.id = r.task_id LEFT JOIN credit_closings c ON c.task_id = r.task_id AND c.generation = r.generation WHERE r.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'account', a.available, a.held) FROM credit_accounts a WHERE a.workspace_id = $1`

func (w *world) steppedBy(workspace uuid.UUID) []string {
	w.t.Helper()
	rows, err := w.sql.Query(w.t.Context(), steppedRowsSQL, workspace)
	require.NoError(w.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	slices.Sort(all)
	return all
}

// doneOf is the answer of a step without ids.
func doneOf(d worker.Done) string {
	return fmt.Sprint("ended ", d.Ended, " cancelled ", d.Cancelled, " head ", d.Head != nil, " ", d.Err)
}

// twins are one workspace twice: what the first gets in groups the second gets one by one.
type twins struct {
	*world
	r               *rapid.T
	grouped, single access.Caller
	serial          int
	occupied        map[string]bool // users in whose lane a task has the head, so that no other can be claimed in its order
}

// step is one task in both workspaces.
type step struct{ grouped, single worker.Commit }

func (w *twins) leased(caller access.Caller, k, user string, ordered bool, price credit.Amount) worker.Lease {
	item := acceptance(caller.Workspace.ID, k, user, price)
	item.Ordered = ordered
	if a := w.db.Accept(w.t.Context(), []write.Acceptance{item})[0]; a.Refused != nil {
		w.r.Fatalf("accept: %v", a.Refused)
	}
	c := w.db.Claim(w.t.Context(), claimant("worker"), []worker.ClaimAsk{{TaskID: item.TaskID, Token: uuid.New()}}, false)[0]
	if c.Err != nil || c.Lease == nil {
		w.r.Fatalf("claim: %+v", c)
	}
	return *c.Lease
}

// step draws a task with a plan, and what has happened to it since it was claimed.
func (w *twins) step(user string) step {
	w.serial++
	k := fmt.Sprintf("k%03d", w.serial)
	price := credit.Amount(rapid.Int64Range(0, 3).Draw(w.r, "price"))
	ordered := rapid.Bool().Draw(w.r, "ordered") && !w.occupied[user]
	s := step{worker.Commit{Lease: w.leased(w.grouped, k, user, ordered, price)}, worker.Commit{Lease: w.leased(w.single, k, user, ordered, price)}}
	if ordered && rapid.Bool().Draw(w.r, "another waits") {
		w.occupied[user] = true
		for _, caller := range []access.Caller{w.grouped, w.single} {
			item := acceptance(caller.Workspace.ID, k+" behind", user, 1)
			if a := w.db.Accept(w.t.Context(), []write.Acceptance{item})[0]; a.Refused != nil {
				w.r.Fatalf("accept: %v", a.Refused)
			}
		}
	}
	complete := rapid.Bool().Draw(w.r, "complete")
	texts := rapid.SliceOfN(rapid.SampledFrom([]string{"tea at five", "a red door", "Ünïcode, 'quoted' \\ \"more\""}), 0, 4).Draw(w.r, "texts")
	verbatim := rapid.Bool().Draw(w.r, "verbatim")
	said := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, c := range []*worker.Commit{&s.grouped, &s.single} {
		c.Plan = planOf(texts...)
		c.Complete, c.VectorModel = complete, "m"
		c.Work = worker.Work{ModelTime: time.Second, Usage: model.Usage{Calls: 2, TokensIn: 30, TokensOut: 4}}
		for i := range c.Plan.Records {
			record := &c.Plan.Records[i]
			record.Verbatim = verbatim
			if i%2 == 0 {
				record.Metadata, record.Role, record.EventDate, record.Categories = []byte(`{"b":1, "a":2}`), "user", &said, []string{"x", `"y"`}
			}
			vector := model.Vector{float32(i), 1}
			if i == 3 {
				vector = nil
			}
			c.Vectors = append(c.Vectors, vector)
		}
	}
	switch rapid.SampledFrom([]string{"", "", "", "", "lost", "ended"}).Draw(w.r, "trouble") {
	case "lost":
		w.occupied[user] = w.occupied[user] || ordered
		w.exec(`UPDATE tasks SET lease_token = gen_random_uuid() WHERE id = ANY($1)`, s.ids())
	case "ended":
		for _, c := range []worker.Commit{s.grouped, s.single} {
			w.fail(c.Lease, task.InputRejected)
		}
	}
	return s
}

func (s step) ids() []uuid.UUID { return []uuid.UUID{s.grouped.Lease.TaskID, s.single.Lease.TaskID} }

// same holds that both have got the same answers and have the same rows.
func (w *twins) same(what string, a, b []worker.Done) {
	for i := range a {
		if x, y := doneOf(a[i]), doneOf(b[i]); x != y {
			w.r.Fatalf("%s %d: in a group %s, alone %s", what, i, x, y)
		}
	}
	x, y := w.steppedBy(w.grouped.Workspace.ID), w.steppedBy(w.single.Workspace.ID)
	if !slices.Equal(x, y) {
		w.r.Fatalf("%s in groups:\n%s\nalone:\n%s", what, strings.Join(x, "\n"), strings.Join(y, "\n"))
	}
}

// round commits tasks of different lanes in a group and one by one, and then settles those that are to be projected.
func (w *twins) round() (shared int) {
	users := rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 1, 6, rapid.ID[int]).Draw(w.r, "users")
	var together, apart []worker.Commit
	for _, u := range users {
		s := w.step(fmt.Sprint("u", u))
		together, apart = append(together, s.grouped), append(apart, s.single)
	}
	if rapid.IntRange(0, 7).Draw(w.r, "erase") == 0 {
		w.exec(`INSERT INTO erasures (task_id, workspace_id, erased_at) SELECT gen_random_uuid(), id, clock_timestamp() FROM workspaces`)
		defer w.exec(`DELETE FROM erasures`)
	}
	a, shared := w.db.CommitGroup(w.t.Context(), together)
	b := make([]worker.Done, len(apart))
	for i, item := range apart {
		b[i] = w.db.Commit(w.t.Context(), []worker.Commit{item})[0]
	}
	w.same("commit", a, b)

	var settles, alone []worker.Settle
	for i, d := range a {
		if d.Err == nil && !d.Ended {
			settles, alone = append(settles, w.settlement(together[i])), append(alone, w.settlement(apart[i]))
		}
	}
	if len(settles) == 0 {
		return shared
	}
	if rapid.IntRange(0, 3).Draw(w.r, "edited") == 0 { // between reading and writing
		w.exec(`UPDATE memories SET version = version + 1, text = text || '!', content_key = sha256(convert_to(text, 'UTF8')) WHERE text = 'a red door'`)
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE text LIKE 'tea%'`)
	}
	if rapid.IntRange(0, 3).Draw(w.r, "lost") == 0 {
		w.exec(`UPDATE tasks SET lease_token = gen_random_uuid() WHERE id = ANY($1)`, []uuid.UUID{settles[0].Lease.TaskID, alone[0].Lease.TaskID})
	}
	a, n := w.db.SettleGroup(w.t.Context(), settles)
	b = make([]worker.Done, len(alone))
	for i, item := range alone {
		b[i] = w.db.Settle(w.t.Context(), []worker.Settle{item})[0]
	}
	w.same("settle", a, b)
	return shared + n
}

func (w *world) settlement(c worker.Commit) worker.Settle {
	w.t.Helper()
	l := c.Lease
	l.Stage = task.Committed
	live, err := w.db.Unprojected(w.t.Context(), l, "m")
	require.NoError(w.t, err)
	s := worker.Settle{Lease: l, Work: c.Work, VectorModel: "m"}
	for i, r := range live {
		p := worker.Projection{RecordID: r.ID, Version: r.Version, Vector: model.Vector{1, float32(i)}}
		if i%2 == 1 {
			key := memory.KeyOf(r.Text)
			p.Key, p.Vector = &key, nil
		}
		s.Projected = append(s.Projected, p)
	}
	return s
}

// leases are n claimed tasks, each of its own user and with 2 credits on hold.
func (w *world) leases(n int) []worker.Lease {
	w.t.Helper()
	leases := make([]worker.Lease, n)
	for i, item := range w.acceptances(n) {
		require.NoError(w.t, w.db.Accept(w.t.Context(), []write.Acceptance{item})[0].Refused)
		leases[i] = w.mustClaim(item.TaskID)
	}
	return leases
}

// commits are commits of leases; every second one ends its task.
func commits(leases []worker.Lease) []worker.Commit {
	items := make([]worker.Commit, len(leases))
	for i, l := range leases {
		items[i] = worker.Commit{Lease: l, Plan: planOf("a fact of " + l.Scope.UserID), Complete: i%2 == 1, VectorModel: "m", Vectors: []model.Vector{{1}}}
	}
	return items
}

// TestStepGroup runs the same mixes of commits and settlements in groups and one by one.
func TestStepGroup(t *testing.T) {
	t.Parallel()
	t.Run("AMixLeavesWhatSinglesLeave", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		shared := 0
		property.Check(t, func(r *rapid.T) {
			both := &twins{world: w, r: r, grouped: w.workspace(1000), single: w.workspace(1000), occupied: map[string]bool{}}
			for range rapid.IntRange(1, 3).Draw(r, "rounds") {
				shared += both.round()
			}
		})
		if shared < 10 { // a slow machine lets many fall out
			t.Errorf("groups answered %d items", shared)
		}
		w.books()
	})
	t.Run("ALostCommitIsTheAnswerOfEachAndTheRepeatFindsIt", func(t *testing.T) {
		t.Parallel()
		for _, happened := range []bool{false, true} {
			w := newWorld(t, 100)
			proxy := testkit.CommitCutProxy(t, w.url)
			db := w.open(proxy.URL())
			items := commits(w.leases(4))
			proxy.CutNextCommit(happened)
			unknown(t, 4)(db.CommitGroup(t.Context(), items))
			for i, item := range items {
				if done := db.Commit(t.Context(), []worker.Commit{item})[0]; done.Err != nil && (!happened || !item.Complete || !done.Ended) {
					t.Errorf("item %d repeated, happened %v: %s", i, happened, doneOf(done))
				}
			}
			settles := []worker.Settle{w.settlement(items[0]), w.settlement(items[2])}
			proxy.CutNextCommit(happened)
			unknown(t, 2)(db.SettleGroup(t.Context(), settles))
			for i, item := range settles {
				if done := db.Settle(t.Context(), []worker.Settle{item})[0]; !done.Ended || done.Err != nil && !happened {
					t.Errorf("settlement %d repeated, happened %v: %s", i, happened, doneOf(done))
				}
			}
			if n := one[int64](w, `SELECT count(*) FROM tasks t JOIN memories m ON m.task_id = t.id JOIN memory_vectors v ON v.memory_id = m.id
 WHERE t.status = 'succeeded'`); n != 4 {
				t.Errorf("%d tasks have succeeded with a record and a vector", n)
			}
			wantBalance(t, w, 92, 0)
		}
	})
	t.Run("NobodyWaitsForALaneThatIsHeld", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		items := commits(w.leases(4))
		hold, err := w.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
		_, err = hold.Exec(t.Context(), `SELECT FROM lanes WHERE lane = $1 FOR UPDATE`, items[1].Lease.Lane[:])
		require.NoError(t, err)
		answers := make([]worker.Done, len(items))
		together(len(items), func(i int) { answers[i] = w.db.Commit(t.Context(), items[i:i+1])[0] })
		for i, a := range answers {
			if held := i == 1; held != (a.Err != nil) {
				t.Errorf("item %d: %s", i, doneOf(a))
			}
		}
	})
	t.Run("ACrowdIsWrittenOnceAndSettledOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		items := commits(w.leases(48))
		answers := make([]worker.Done, 2*len(items))
		together(len(answers), func(i int) { // each step comes twice, as after an answer that was lost
			answers[i] = w.db.Commit(t.Context(), items[i/2:i/2+1])[0]
		})
		for i := range items {
			a, b := answers[2*i], answers[2*i+1]
			if ok := a.Err == nil && (b.Err == nil || b.Ended) || b.Err == nil && (a.Err == nil || a.Ended); !ok {
				t.Errorf("item %d: %s and %s", i, doneOf(a), doneOf(b))
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != 48 {
			t.Errorf("%d records", n)
		}
		wantBalance(t, w, 1000-96, 48)
	})
	t.Run("ACrowdOfOneLaneRepeatsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		items := make([]worker.Commit, 16)
		for i, item := range w.acceptances(len(items)) {
			item.Scope.UserID, item.Ordered = "one", false
			require.NoError(t, w.db.Accept(t.Context(), []write.Acceptance{item})[0].Refused)
			items[i] = worker.Commit{Lease: w.mustClaim(item.TaskID), Plan: planOf(fmt.Sprint("said twice, by ", i/2))}
		}
		together(len(items), func(i int) {
			if done := w.db.Commit(t.Context(), items[i:i+1])[0]; done.Err != nil {
				t.Errorf("item %d: %s", i, doneOf(done))
			}
		})
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != 8 {
			t.Errorf("%d records", n)
		}
	})
	t.Run("AClosingThatIsMissingRollsAllBack", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		items := commits(w.leases(4))
		w.exec(`UPDATE task_runs SET generation = 7 WHERE task_id = $1`, items[3].Lease.TaskID)
		answers, grouped := w.db.CommitGroup(t.Context(), items)
		if grouped != 0 || answers[3].Err == nil || answers[3].Ended {
			t.Errorf("%d in the group, %s", grouped, doneOf(answers[3]))
		}
		for i, a := range answers[:3] {
			wantDone(t, keyName(i), a)
		}
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != 3 {
			t.Errorf("%d records", n)
		}
	})
	t.Run("TheBeltHoldsWorkersOfManyWorkspaces", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		items := commits(w.leases(2))
		w.caller = w.workspace(100)
		items = append(items, commits(w.leases(2))...)
		db := w.open(testkit.As(t, localdev.WorkerLogin, w.url))
		answers, grouped := db.CommitGroup(t.Context(), items)
		for i, a := range answers {
			wantDone(t, keyName(i), a)
		}
		if grouped != 4 {
			t.Errorf("%d in the group", grouped)
		}
		if _, grouped = db.SettleGroup(t.Context(), []worker.Settle{w.settlement(items[0]), w.settlement(items[2])}); grouped != 2 {
			t.Errorf("%d settled in the group", grouped)
		}
		w.books()
	})
}

// unknown holds that n items were answered by the group, each with a COMMIT whose answer was lost.
func unknown(t *testing.T, n int) func(answers []worker.Done, grouped int) {
	return func(answers []worker.Done, grouped int) {
		t.Helper()
		for i, a := range answers {
			if !errors.Is(a.Err, fault.ErrCommitUnknown) || grouped != n {
				t.Fatalf("item %d of %d in the group: %s", i, grouped, doneOf(a))
			}
		}
	}
}
