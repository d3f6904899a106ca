package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// hints collects what would be published.
type hints struct {
	mu  sync.Mutex
	all []task.Hint
}

func (h *hints) Publish(_ context.Context, hint task.Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, hint)
}

func (h *hints) Notify(context.Context, uuid.UUID, uuid.UUID) {}

// world is one database with one workspace and the use cases on it. Its clock can be set forward.
type world struct {
	t      testing.TB
	url    string
	db     *postgres.DB
	sql    *pgxpool.Pool
	caller access.Caller
	hints  *hints
	clock  *atomic.Pointer[time.Time]
}

func newWorld(t testing.TB, credits int64) *world {
	t.Helper()
	w := newWorldOn(t, testkit.NewDatabase(t))
	w.db = w.open(w.url)
	w.caller = w.workspace(credits)
	return w
}

// newWorldOn is a world without store and caller.
func newWorldOn(t testing.TB, url string) *world {
	t.Helper()
	w := &world{t: t, url: url, hints: &hints{}, clock: &atomic.Pointer[time.Time]{}}
	w.sql = testkit.Pool(t, w.url)
	return w
}

// open connects a store that shares the world's clock.
func (w *world) open(url string) *postgres.DB {
	w.t.Helper()
	db, err := postgres.Open(w.t.Context(), postgres.Config{URL: url, Now: w.clock.Load, GroupCommit: true, Sealing: sealing(w.t)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(db.Close)
	return db
}

// openSingle is open for a store that commits each step by itself, and so waits for a lock in one transaction.
func (w *world) openSingle(url string) *postgres.DB {
	w.t.Helper()
	db, err := postgres.Open(w.t.Context(), postgres.Config{URL: url, Now: w.clock.Load, Sealing: sealing(w.t)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(db.Close)
	return db
}

func (w *world) workspace(credits int64) access.Caller {
	w.t.Helper()
	id := uuid.Must(uuid.NewV7())
	secret := make([]byte, 32)
	copy(secret, id[:])
	w.exec(`INSERT INTO workspaces (id, name, fingerprint_key) VALUES ($1, $2, $3)`, id, id.String(), secret)
	w.exec(`INSERT INTO credit_accounts (workspace_id, available) VALUES ($1, $2)`, id, credits)
	if credits > 0 {
		w.exec(`INSERT INTO credit_grants (id, workspace_id, reference, amount) VALUES ($1, $2, 'start', $3)`,
			uuid.Must(uuid.NewV7()), id, credits)
	}
	w.exec(`
INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject, details)
SELECT gen_random_uuid(), clock_timestamp(), 'system', 'process', '', $1::uuid, x.act, x.subject, jsonb_build_object('amount', $2::bigint)
  FROM (VALUES ('workspace.create', $1::uuid::text), ('credits.grant', 'start')) AS x (act, subject)
 WHERE $2::bigint > 0 OR x.act = 'workspace.create'`, id, credits)
	return access.Caller{
		Workspace:   access.Workspace{ID: id, Metered: true, FingerprintKey: secret},
		Permissions: access.Permissions(),
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.sql.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

// one reads a single value.
func one[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	var v T
	if err := w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&v); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// advance sets the world's clock to d from the database's now, or from where it was set before.
func (w *world) advance(d time.Duration) {
	now := one[time.Time](w, `SELECT clock_timestamp()`)
	if set := w.clock.Load(); set != nil {
		now = *set
	}
	now = now.Add(d)
	w.clock.Store(&now)
}

func key(t testing.TB, text string) command.Key {
	t.Helper()
	k, err := command.ParseKey([]string{text})
	if err != nil || k == nil {
		t.Fatalf("key %q: %v", text, err)
	}
	return *k
}

func say(user, text string) command.Add {
	return command.Add{
		Scope: memory.Scope{UserID: user}, Infer: true, Ordered: true,
		Messages: []command.Message{{Role: "user", Content: text}},
	}
}

func (w *world) accepter(db *postgres.DB) *write.Accepter {
	w.t.Helper()
	a, err := write.NewAccepter(db, w.hints, credit.DefaultPrices(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// accept accepts an inferred add that must be taken.
func (w *world) accept(k string, add command.Add) uuid.UUID {
	w.t.Helper()
	r, err := w.accepter(w.db).Accept(w.t.Context(), w.caller, key(w.t, k), add)
	if err != nil {
		w.t.Fatalf("accept %s: %v", k, err)
	}
	return r.EventID
}

func (w *world) writer(embedder model.Embedder) *write.Writer {
	w.t.Helper()
	writer, err := write.NewWriter(w.db, w.hints, embedder, credit.DefaultPrices())
	if err != nil {
		w.t.Fatal(err)
	}
	return writer
}

func (w *world) retrier() *write.Retrier {
	w.t.Helper()
	r, err := write.NewRetrier(w.db, w.hints, credit.DefaultPrices())
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) canceller() *write.Canceller {
	w.t.Helper()
	c, err := write.NewCanceller(w.db, w.hints, w.hints)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func claimant(name string) worker.Claimant {
	return worker.Claimant{
		Worker: name, TTL: time.Minute, Kinds: []task.Kind{task.Infer, task.Add}, Format: command.Format, MaxAttempts: 5,
		Extractor: "stub", Embedder: "stub-embedder",
	}
}

// claim tries to claim; nil when the task is not to be had.
func (w *world) claim(id uuid.UUID, name string) *worker.Lease {
	w.t.Helper()
	c := w.db.Claim(w.t.Context(), claimant(name), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	if c.Err != nil {
		w.t.Fatalf("claim: %v", c.Err)
	}
	return c.Lease
}

func (w *world) mustClaim(id uuid.UUID) worker.Lease {
	w.t.Helper()
	l := w.claim(id, "worker")
	if l == nil {
		w.t.Fatalf("task %s could not be claimed", id)
	}
	return *l
}

func planOf(texts ...string) memory.Plan {
	plan := memory.Plan{Records: []memory.Planned{}}
	for _, text := range texts {
		plan.Records = append(plan.Records, memory.Planned{ID: uuid.Must(uuid.NewV7()), Text: text})
	}
	return plan
}

func (w *world) commit(l worker.Lease, texts ...string) worker.Done {
	w.t.Helper()
	return w.db.Commit(w.t.Context(), []worker.Commit{{Lease: l, Plan: planOf(texts...)}})[0]
}

// complete commits and ends the task in one transaction, as with a local embedder.
func (w *world) complete(l worker.Lease, texts ...string) worker.Done {
	w.t.Helper()
	embedding, err := offline.NewEmbedder().Embed(w.t.Context(), texts)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.db.Commit(w.t.Context(), []worker.Commit{{
		Lease: l, Plan: planOf(texts...), Complete: true, VectorModel: offline.NewEmbedder().Model(),
		Vectors: embedding.Vectors,
	}})[0]
}

// settle projects and ends a committed task.
func (w *world) settle(l worker.Lease) worker.Done {
	w.t.Helper()
	l.Stage = task.Committed
	live, err := w.db.Unprojected(w.t.Context(), l, "m")
	if err != nil {
		w.t.Fatal(err)
	}
	projected := make([]worker.Projection, len(live))
	for i, r := range live {
		projected[i] = worker.Projection{RecordID: r.ID, Version: r.Version, Vector: model.Vector{1}}
	}
	return w.db.Settle(w.t.Context(), []worker.Settle{{Lease: l, VectorModel: "m", Projected: projected}})[0]
}

func (w *world) fail(l worker.Lease, class task.Class) worker.Done {
	w.t.Helper()
	return w.db.Fail(w.t.Context(), []worker.Fail{{Lease: l, Class: class, Code: task.CodeOf(class)}})[0]
}

func (w *world) later(l worker.Lease, class task.Class, delay time.Duration) worker.Done {
	w.t.Helper()
	return w.db.Later(w.t.Context(), []worker.Later{{Lease: l, Class: class, Code: task.CodeOf(class), Delay: delay}})[0]
}

func (w *world) status(id uuid.UUID) string {
	w.t.Helper()
	return one[string](w, `SELECT status || '/' || stage FROM all_tasks WHERE id = $1`, id)
}

func (w *world) balance() (available, held int64) {
	w.t.Helper()
	row := w.sql.QueryRow(w.t.Context(), `SELECT available, held FROM credit_accounts WHERE workspace_id = $1`,
		w.caller.Workspace.ID)
	if err := row.Scan(&available, &held); err != nil {
		w.t.Fatal(err)
	}
	return available, held
}

// books checks that balances, runs and closings agree, over all workspaces.
func (w *world) books() {
	w.t.Helper()
	drift := one[int64](w, `
SELECT count(*) FROM credit_accounts a
 WHERE a.available + a.held <> (SELECT coalesce(sum(amount), 0) FROM credit_grants g WHERE g.workspace_id = a.workspace_id)
                             - (SELECT coalesce(sum(settled), 0) FROM credit_closings c WHERE c.workspace_id = a.workspace_id)
    OR a.held <> (SELECT coalesce(sum(amount), 0) FROM task_runs r WHERE r.workspace_id = a.workspace_id AND r.outcome IS NULL)`)
	open := one[int64](w, `
SELECT count(*) FROM all_tasks t
 WHERE (t.completed_at IS NULL) <> EXISTS (SELECT FROM task_runs r WHERE r.task_id = t.id AND r.outcome IS NULL)`)
	if drift != 0 || open != 0 {
		w.t.Fatalf("books: %d accounts drifted, %d tasks disagree with their runs", drift, open)
	}
}

func wantBalance(t testing.TB, w *world, available, held int64) {
	t.Helper()
	if a, h := w.balance(); a != available || h != held {
		t.Fatalf("balance %d available, %d held; want %d and %d", a, h, available, held)
	}
	w.books()
}

func wantLost(t testing.TB, what string, done worker.Done) {
	t.Helper()
	if done.Err == nil || !errorsIs(done.Err, fault.ErrLeaseLost) {
		t.Fatalf("%s under a lost lease: %v", what, done.Err)
	}
}

func wantDone(t testing.TB, what string, done worker.Done) worker.Done {
	t.Helper()
	if done.Err != nil {
		t.Fatalf("%s: %v", what, done.Err)
	}
	return done
}

// together runs n functions at once and waits for all.
func together(n int, run func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	wg.Wait()
}

func keyName(i int) string { return fmt.Sprintf("key-%d", i) }
