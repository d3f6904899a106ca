package postgres_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// TestClaimGroup claims the same mixes in groups and one by one.
func TestClaimGroup(t *testing.T) {
	t.Parallel()
	t.Run("AMixIsClaimedAsOneByOne", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		now := w.frozen()
		spaces := make([]uuid.UUID, 4)
		for i := range spaces {
			spaces[i] = w.workspace(0).Workspace.ID
		}
		w.exec(`UPDATE workspaces SET suspended_at = now() WHERE id = $1`, spaces[1])
		w.exec(`UPDATE workspaces SET paused_at = now() WHERE id = $1`, spaces[2])
		w.exec(`INSERT INTO erasures (task_id, workspace_id, erased_at) VALUES ($1, $2, $3)`, uuid.New(), spaces[3], now)
		foreign := uuid.New()
		w.exec(`INSERT INTO data_keys (id, workspace_id, master_key, wrapped, created_at)
			VALUES ($1, $2, 'elsewhere', sha256('a') || substring(sha256('b') FROM 1 FOR 28), $3)`, foreign, spaces[0], now)
		shared := 0
		property.Check(t, func(r *rapid.T) {
			cases := rapid.SliceOfN(rapid.SampledFrom(claimCases), 2, 10).Draw(r, "cases")
			pause := rapid.SampledFrom([]string{"", "", "extractor", "embedder", "over"}).Draw(r, "pause")
			w.pauseFor(pause, now)
			skipLocked := rapid.Bool().Draw(r, "skip locked") || slices.Contains(cases, "held")
			who := make([]worker.Claimant, len(cases))
			for i := range who {
				who[i] = among(worker.Steady)
				who[i].Kinds = append(who[i].Kinds, task.Webhook)
				who[i].Restart = rapid.SampledFrom([]float64{0, 0.2, 0.9}).Draw(r, "restart")
			}
			together, apart := newClaimMix(w, cases, spaces, foreign, now), newClaimMix(w, cases, spaces, foreign, now)
			free := w.holding(append(together.held(), apart.held()...))
			defer free()
			a, grouped := w.db.ClaimGroup(t.Context(), who, together.asks, skipLocked)
			shared += grouped
			for i, ask := range apart.asks {
				b := w.db.ClaimAlone(t.Context(), who[i], ask, skipLocked)
				if x, y := together.said(w, i, a[i]), apart.said(w, i, b); x != y {
					r.Fatalf("item %d, %s, restart %v:\nin a group %s\nalone      %s", i, cases[i], who[i].Restart, x, y)
				}
			}
		})
		if shared < 100 {
			t.Errorf("groups answered %d asks", shared)
		}
	})
	t.Run("ALostAnswerIsAskedForAgainByEach", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(5)
		w.exec(`UPDATE tasks SET run_after = run_after + interval '1 day' WHERE id = $1`, ids[3])
		proxy := testkit.CommitCutProxy(t, w.url)
		far := w.open(proxy.URL())
		lost := proxy.LoseNextAnswer("SET status = 'running'")
		answers, _ := far.ClaimGroup(t.Context(), steady(4), asksFor(ids[:4]), false)
		<-lost
		for i, c := range answers {
			if c.Err != nil || (c.Lease != nil) != (i < 3) || c.Lease != nil && (c.Lease.Claim != 1 || c.Lease.TaskID != ids[i]) {
				t.Errorf("ask %d: %+v", i, c)
			}
		}
		lost = proxy.LoseNextAnswer("SET status = 'running'")
		lone := far.Claim(t.Context(), among(worker.Steady), asksFor(ids[4:]), true)[0]
		<-lost
		if lone.Err != nil || lone.Lease == nil {
			t.Errorf("without company: %+v", lone)
		}
		if n := one[int64](w, `SELECT sum(claims) FROM tasks`); n != 4 || one[int64](w, `SELECT sum(crashes) FROM tasks`) != 4 {
			t.Errorf("%d claims were counted", n)
		}
	})
	t.Run("WhoWaitsForARowWaitsAlone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(8)
		free := w.holding(ids[:1])
		defer free()
		if !w.db.ClaimLone(t.Context(), among(worker.Steady), asksFor(ids)[0]) {
			t.Error("an ask without company waited for a row in the place of a group")
		}
		if _, grouped := w.db.ClaimGroup(t.Context(), steady(2), asksFor([]uuid.UUID{ids[0], w.due(1)[0]}), true); grouped != 2 {
			t.Errorf("a group answered %d of 2", grouped)
		}
		var all sync.WaitGroup
		answers := make([]worker.Claimed, len(ids))
		held := make(chan struct{})
		go func() {
			defer close(held)
			got, _ := w.db.ClaimGroup(context.Background(), steady(2), asksFor(ids[:2]), false)
			copy(answers, got)
		}()
		for i := 2; i < len(ids); i++ {
			all.Go(func() { answers[i] = w.db.Claim(t.Context(), among(worker.Steady), asksFor(ids[i:i+1]), false)[0] })
		}
		all.Wait()
		w.untilWaiting(1, held)
		free()
		<-held
		for i, c := range answers {
			if c.Err != nil || c.Lease == nil || c.Lease.TaskID != ids[i] {
				t.Errorf("ask %d: %+v", i, c)
			}
		}
	})
	t.Run("OneTaskAtOnceIsOneLease", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(3)
		w.exec(`UPDATE tasks SET status = 'running', claims = 1, crashes = 1, lease_token = gen_random_uuid(), lease_until = run_after,
			worker_incarnation = 'before', claimed_at = run_after WHERE id = $1`, ids[0])
		leases := make([]*worker.Lease, 48)
		together(len(leases), func(i int) {
			c := w.db.Claim(t.Context(), among(worker.Steady), asksFor(ids[i%2:i%2+1]), false)[0]
			if c.Err != nil {
				t.Error(c.Err)
			}
			leases[i] = c.Lease
		})
		leases = slices.DeleteFunc(leases, func(l *worker.Lease) bool { return l == nil })
		require.Len(t, leases, 2)
		require.NotEqual(t, leases[0].TaskID, leases[1].TaskID)
		// The queue lets no two of them into one group. If it did, there would be one lease all the same.
		twice := append(asksFor(ids[2:]), asksFor(ids[2:])...)
		answers, _ := w.db.ClaimGroup(t.Context(), steady(2), twice, true)
		require.True(t, (answers[0].Lease == nil) != (answers[1].Lease == nil), "%v", answers)
		require.Equal(t, int64(4), one[int64](w, `SELECT sum(claims) FROM tasks`))
		require.Equal(t, int64(1), one[int64](w, `SELECT count(*) FROM task_attempts`))
	})
	t.Run("WhoLeavesBeforeItIsTakenClaimsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(postgres.ClaimApart + 1)
		done, free := w.stuck(ids[1:])
		defer free()
		limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if c := w.db.Claim(limited, among(worker.Steady), asksFor(ids[:1]), false)[0]; c.Err == nil || c.Lease != nil {
			t.Errorf("%+v", c)
		}
		free()
		<-done
		if got := one[string](w, `SELECT status || claims FROM tasks WHERE id = $1`, ids[0]); got != "pending0" {
			t.Errorf("the task is %s", got)
		}
	})
	t.Run("WhoWaitsForAGroupTooLongClaimsAlone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(postgres.ClaimApart + 1)
		done, free := w.stuck(ids[1:])
		defer free()
		var c worker.Claimed
		late := make(chan struct{})
		go func() {
			defer close(late)
			// It may be taken by a group after all, whose time is over then.
			for c.Lease == nil && (c.Err == nil || fault.Is(c.Err, fault.UnavailableNow)) && t.Context().Err() == nil {
				c = w.db.Claim(context.Background(), among(worker.Steady), asksFor(ids[:1]), false)[0]
			}
		}()
		w.untilWaiting(postgres.ClaimApart+1, late)
		free()
		<-done
		<-late
		if c.Err != nil || c.Lease == nil {
			t.Errorf("%+v", c)
		}
	})
	t.Run("AnAskThatFailsFailsAlone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(3)
		w.exec(`ALTER TABLE tasks ADD CONSTRAINT never CHECK (status <> 'running' OR id <> '` + ids[1].String() + `')`)
		answers, grouped := w.db.ClaimGroup(t.Context(), steady(3), asksFor(ids), false)
		for i, c := range answers {
			if bad := i == 1; bad != (c.Err != nil) || bad != (c.Lease == nil) {
				t.Errorf("ask %d: %+v", i, c)
			}
		}
		require.Zero(t, grouped)
	})
	t.Run("OnlyThoseWhoAskAlikeShareAStatement", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(3)
		who := steady(3)
		who[1].Worker = "another"
		answers, grouped := w.db.ClaimGroup(t.Context(), who, asksFor(ids), false)
		require.Equal(t, 2, grouped)
		for i, c := range answers {
			require.NoError(t, c.Err)
			require.Equal(t, who[i].Worker, c.Lease.Worker)
			require.Equal(t, who[i].Worker, one[string](w, `SELECT worker_incarnation FROM tasks WHERE id = $1`, ids[i]))
		}
		own := map[string]bool{"Live": true, "Restart": true} // an ask's own
		fields := reflect.TypeFor[worker.Claimant]()
		for i := range fields.NumField() {
			a, b := among(worker.Steady), among(worker.Steady)
			switch f := reflect.ValueOf(&b).Elem().Field(i); f.Kind() {
			case reflect.String:
				f.SetString("other")
			case reflect.Int, reflect.Int64:
				f.SetInt(f.Int() + 1)
			case reflect.Float64:
				f.SetFloat(0.5)
			case reflect.Slice:
				f.Set(f.Slice(0, 1))
			case reflect.Map:
				f.Set(reflect.MakeMap(f.Type()))
			default:
				t.Fatalf("a field of kind %s", f.Kind())
			}
			require.Equal(t, own[fields.Field(i).Name], postgres.Alike(a, b), fields.Field(i).Name)
		}
	})
	t.Run("ItsSettingsEndWithIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ids := w.due(2)
		db, err := postgres.Open(t.Context(), postgres.Config{URL: w.url, MaxConns: 1})
		require.NoError(t, err)
		t.Cleanup(db.Close)
		_, grouped := db.ClaimGroup(t.Context(), steady(2), asksFor(ids), false)
		require.Equal(t, 2, grouped)
		require.NoError(t, db.InTx(t.Context(), w.caller.Workspace.ID, func(ctx context.Context, tx *postgres.Tx) error {
			for name, want := range map[string]string{"plan_cache_mode": "auto", "enable_seqscan": "on", "enable_hashjoin": "on"} {
				got, err := postgres.Setting(ctx, tx, name)
				if err != nil || got != want {
					t.Errorf("%s is %s, %v", name, got, err)
				}
			}
			return nil
		}))
	})
}
