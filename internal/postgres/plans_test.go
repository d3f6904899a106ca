package postgres_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// explainSQL makes every session of the database tell the plans of its statements, as they ran, in the server's log.
var explainSQL = []string{
	`ALTER DATABASE holdfast SET session_preload_libraries = 'auto_explain'`,
	`ALTER DATABASE holdfast SET auto_explain.log_min_duration = 0`,
	`ALTER DATABASE holdfast SET auto_explain.log_analyze = on`,
	`ALTER DATABASE holdfast SET auto_explain.log_buffers = on`,
	`ALTER DATABASE holdfast SET auto_explain.log_timing = off`,
	`ALTER DATABASE holdfast SET auto_explain.log_format = 'json'`,
}

// ran is a statement that a session has run, with the pages it touched.
type ran struct {
	Text string `json:"Query Text"`
	Plan struct {
		Hit  int `json:"Shared Hit Blocks"`
		Read int `json:"Shared Read Blocks"`
	} `json:"Plan"`
}

func (r ran) pages() int { return r.Plan.Hit + r.Plan.Read }

// watchedWorld is a world on a server of its own that tells what its statements touch.
type watchedWorld struct {
	*world
	log string
}

func newWatchedWorld(t *testing.T) *watchedWorld {
	t.Helper()
	pg := testkit.PrivatePostgres(t, false)
	w := &watchedWorld{world: newWorldOn(t, pg.URL()), log: pg.LogPath()}
	for _, sql := range explainSQL {
		w.exec(sql)
	}
	w.sql.Reset()
	return w
}

// step runs what the store is asked and answers the statements that it came to.
func (w *watchedWorld) step(run func()) []ran {
	w.t.Helper()
	before, err := os.Stat(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	run() // a statement is answered after its plan was written
	log, err := os.ReadFile(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []ran
	for _, entry := range strings.Split(string(log[before.Size():]), "  plan:\n")[1:] {
		var r ran
		if err := json.NewDecoder(strings.NewReader(entry)).Decode(&r); err != nil {
			w.t.Fatalf("read plan: %v\n%s", err, entry)
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		w.t.Fatal("no plan was told")
	}
	return all
}

// pagesOf is what statements touched together.
func pagesOf(all []ran) int {
	sum := 0
	for _, r := range all {
		sum += r.pages()
	}
	return sum
}

// crowd makes a workspace with so many waiting tasks, a thousand with as many together, and twice as many archived tasks.
func (w *watchedWorld) crowd(waiting int) {
	w.t.Helper()
	w.exec(`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, n, CASE WHEN n <= $2 THEN $1 ELSE md5((n % 1000)::text)::uuid END AS ws,
       clock_timestamp() - interval '1 hour' + n * interval '1 millisecond' AS at FROM generate_series(1, $2 * 2) n`, w.caller.Workspace.ID, waiting)
	w.exec(`INSERT INTO workspaces (id, name, fingerprint_key) SELECT DISTINCT ws, ws::text, sha256('x') FROM filled WHERE ws <> $1`, w.caller.Workspace.ID)
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, lane_seq, head, priority, command, payload_format,
                   accepted_at, updated_at)
SELECT id, ws, 'memory_infer', 'pending', 'accepted', at, at, 'u', sha256((n / 10)::text::bytea), n, n % 10 = 0, 'interactive', 'x', 1, at, at FROM filled`)
	w.exec(`INSERT INTO task_runs (task_id, generation, workspace_id, amount, opened_at) SELECT id, 1, ws, 0, at FROM filled`)
	w.exec(`
INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format, outcome,
                           accepted_at, updated_at, completed_at)
SELECT gen_random_uuid(), ws, 'memory_infer', 'succeeded', 'projected', at, at, 'u', sha256('x'), 'bulk', 1, 'STORED', at, at, at FROM filled`)
}

// TestStepsAreBounded holds what each step of a task's life touches, all its statements together, as the roles of the
// processes run them: beside 100,000 waiting tasks in the same workspace, 100,000 in a thousand others and 200,000 archived
// ones, before the planner knows anything of the tables and afterwards. An index that is written counts with its three pages.
func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWatchedWorld(t)
	w.caller = w.workspace(1_000_000)
	w.crowd(100_000)
	for _, known := range []bool{false, true} {
		if known {
			w.exec(`ANALYZE`)
		}
		for _, roles := range []struct {
			name      string
			api, work string
		}{
			{"owner", w.url, w.url},
			{"roles", testkit.As(t, localdev.APILogin, w.url), testkit.As(t, localdev.WorkerLogin, w.url)},
		} {
			w.bounded(fmt.Sprintf("%s, statistics %v", roles.name, known), roles.api, roles.work)
		}
	}
}

// bounded lets tasks live and looks at what each step touched.
func (w *watchedWorld) bounded(name, apiURL, workURL string) {
	t := w.t
	t.Helper()
	open := func(url string) *postgres.DB {
		db, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 2, GroupCommit: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		return db
	}
	api, work := open(apiURL), open(workURL)
	const group = 8
	items := func(what string, n int) []write.Acceptance {
		all := make([]write.Acceptance, n)
		for i := range all {
			all[i] = acceptance(w.caller.Workspace.ID, fmt.Sprint(name, what, i), fmt.Sprint(name, what, "user", i), credit.Amount(2))
		}
		return all
	}
	check := func(what string, n, most int, run func()) {
		t.Helper()
		all := w.step(run)
		pages := pagesOf(all) / n
		t.Logf("%s: %s: %d pages for each of %d, %d statements", name, what, pages, n, len(all))
		if pages > most {
			for _, r := range all {
				t.Logf("%d pages: %.300s", r.pages(), r.Text)
			}
			t.Errorf("%s: %s touches %d pages, %d are allowed", name, what, pages, most)
		}
	}
	var ids []uuid.UUID
	took := func(answers []write.Accepted) {
		for _, a := range answers {
			if a.Refused != nil {
				t.Fatal(a.Refused)
			}
			ids = append(ids, a.TaskID)
		}
	}
	took(api.Accept(t.Context(), items("warm", 1))) // the first of a connection reads catalogs
	check("accept", 1, 60, func() { took(api.Accept(t.Context(), items("one", 1))) })
	check("accept in a group", group, 60, func() {
		answers, grouped := api.AcceptGroup(t.Context(), items("some", group))
		if grouped != group {
			t.Fatalf("%d of the group were accepted in it", grouped)
		}
		took(answers)
	})
	const page = 20
	for _, status := range []task.EventStatus{"", task.EventPending} {
		list := func() {
			query := recall.EventQuery{Kinds: []task.Kind{task.Infer, task.Add}, Status: status, Limit: page}
			if found, err := api.EventReader(maxAttempts).Events(t.Context(), w.caller.Workspace.ID, query); err != nil || len(found.Events) != page {
				t.Fatalf("%d events: %v", len(found.Events), err)
			}
		}
		check("list of "+string(status), page, 40, list)
	}
	who := claimant("w")
	// A free slot looks at twenty workspaces: of each at its place in the index, its first row, and what may forbid it.
	check("due", 20, 20, func() {
		if due, _, err := work.Due(t.Context(), who, 1); err != nil || len(due) != 1 {
			t.Fatalf("due: %d tasks, %v", len(due), err)
		}
	})
	leases := make([]worker.Lease, len(ids))
	claim := func(i int) {
		c := work.Claim(t.Context(), who, []worker.ClaimAsk{{TaskID: ids[i], WorkspaceID: w.caller.Workspace.ID, Token: uuid.New()}}, false)[0]
		if c.Err != nil || c.Lease == nil {
			t.Fatalf("claim: %+v", c)
		}
		leases[i] = *c.Lease
	}
	claim(0)
	check("claim", 1, 45, func() { claim(1) })
	for i := 2; i < len(ids); i++ {
		claim(i)
	}
	beat := func(i int) {
		if _, err := work.Heartbeat(t.Context(), leases[i], time.Minute, "stub"); err != nil {
			t.Fatal(err)
		}
	}
	beat(0)
	check("heartbeat", 1, 15, func() { beat(1) })
	embedding, err := offline.NewEmbedder().Embed(t.Context(), []string{"likes tea"})
	if err != nil {
		t.Fatal(err)
	}
	end := func(i int, complete bool) {
		c := worker.Commit{Lease: leases[i], Plan: planOf("likes tea"), Complete: complete, VectorModel: offline.NewEmbedder().Model()}
		if complete {
			c.Vectors = embedding.Vectors
		}
		wantDone(t, "commit", work.Commit(t.Context(), []worker.Commit{c})[0])
	}
	end(0, true)
	check("complete", 1, 110, func() { end(1, true) })
	check("commit", 1, 70, func() { end(2, false) })
	leases[2].Stage = task.Committed
	check("settle", 1, 75, func() {
		wantDone(t, "settle", work.Settle(t.Context(), []worker.Settle{{Lease: leases[2], VectorModel: "m"}})[0])
	})
	check("fail", 1, 75, func() {
		wantDone(t, "fail", work.Fail(t.Context(), []worker.Fail{{Lease: leases[3], Class: task.OutputInvalid, Code: task.CodeOf(task.OutputInvalid)}})[0])
	})
	check("give back", 1, 40, func() {
		wantDone(t, "later", work.Later(t.Context(), []worker.Later{{Lease: leases[4], Class: task.ProviderTimeout, Code: task.CodeOf(task.ProviderTimeout), Delay: time.Hour}})[0])
	})
	check("complete together", len(ids)-5, 110, func() {
		together(len(ids)-5, func(n int) { end(n+5, true) })
	})
}
