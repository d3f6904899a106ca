package repair_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// post collects hints and notices.
type post struct {
	mu      sync.Mutex
	hints   []task.Hint
	notices []uuid.UUID
}

func (p *post) Publish(_ context.Context, hint task.Hint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hints = append(p.hints, hint)
}

func (p *post) Notify(_ context.Context, _, event uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notices = append(p.notices, event)
}

// taken returns the tasks that were hinted since it was called before.
func (p *post) taken() []uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := []uuid.UUID{}
	for _, hint := range p.hints {
		ids = append(ids, hint.TaskID)
	}
	p.hints = nil
	return ids
}

func (p *post) noticed() []uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]uuid.UUID{}, p.notices...)
}

// world is a database with one workspace that has 1,000 credits. Its clock can be set forward.
type world struct {
	t     testing.TB
	url   string
	db    *postgres.DB
	sql   *pgxpool.Pool
	main  access.Caller
	post  *post
	clock *atomic.Pointer[time.Time]
	n     atomic.Int64
}

func setup(t testing.TB) *world {
	t.Helper()
	return setupOn(t, testkit.NewDatabase(t))
}

// setupAlone is setup on a server of its own: transactions of other tests hold back nothing there.
func setupAlone(t testing.TB) *world {
	t.Helper()
	return setupOn(t, testkit.PrivatePostgres(t, false).URL())
}

func setupOn(t testing.TB, url string) *world {
	t.Helper()
	w := &world{t: t, url: url, sql: testkit.Pool(t, url), post: &post{}, clock: &atomic.Pointer[time.Time]{}}
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url, Now: w.clock.Load})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	w.db = db
	w.main = w.workspace()
	return w
}

func (w *world) workspace() access.Caller {
	w.t.Helper()
	ws, err := w.db.CreateWorkspace(w.t.Context(), fmt.Sprintf("ws-%d", w.n.Add(1)), true)
	require.NoError(w.t, err)
	granted, err := w.db.Grant(w.t.Context(), ws.ID, "start", 1000)
	require.NoError(w.t, err)
	require.True(w.t, granted)
	return access.Caller{
		Workspace:   access.Workspace{ID: ws.ID, Metered: true, FingerprintKey: make([]byte, 32)},
		Permissions: access.Permissions(),
	}
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.sql.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// one reads a single value.
func one[T any](w *world, sql string, args ...any) T {
	w.t.Helper()
	var v T
	require.NoError(w.t, w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&v), sql)
	return v
}

// advance sets the clock d forward, from the database's now or from where it was set before.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
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
	require.NoError(t, err)
	require.NotNil(t, k)
	return *k
}

// accept accepts an inferred add of the user under a key of its own.
func (w *world) accept(caller access.Caller, user string) uuid.UUID {
	w.t.Helper()
	accepter, err := write.NewAccepter(w.db, &post{}, credit.DefaultPrices(), nil)
	require.NoError(w.t, err)
	receipt, err := accepter.Accept(w.t.Context(), caller, key(w.t, fmt.Sprintf("key-%d", w.n.Add(1))), command.Add{
		Scope: memory.Scope{UserID: user}, Infer: true, Ordered: true,
		Messages: []command.Message{{Role: "user", Content: "I like tea"}},
	})
	require.NoError(w.t, err)
	return receipt.EventID
}

// accepted accepts n tasks, each in a lane of its own.
func (w *world) accepted(n int) []uuid.UUID {
	w.t.Helper()
	ids := make([]uuid.UUID, n)
	for i := range ids {
		ids[i] = w.accept(w.main, fmt.Sprintf("user-%d", i))
	}
	return ids
}

func claimant() worker.Claimant {
	return worker.Claimant{
		Worker: "worker", TTL: time.Minute, Kinds: []task.Kind{task.Infer, task.Add}, Format: command.Format,
		MaxAttempts: 5, Extractor: "stub", Embedder: "stub-embedder",
	}
}

func (w *world) claim(id uuid.UUID) *worker.Lease {
	w.t.Helper()
	c := w.db.Claim(w.t.Context(), claimant(), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	require.NoError(w.t, c.Err)
	return c.Lease
}

func (w *world) mustClaim(id uuid.UUID) worker.Lease {
	w.t.Helper()
	lease := w.claim(id)
	require.NotNil(w.t, lease, "task %s can't be claimed", id)
	return *lease
}

// complete commits and ends a task in one transaction, as with a local embedder.
func (w *world) complete(l worker.Lease) {
	w.t.Helper()
	texts := []string{"likes tea " + l.TaskID.String()}
	embedding, err := offline.NewEmbedder().Embed(w.t.Context(), texts)
	require.NoError(w.t, err)
	plan := memory.Plan{Records: []memory.Planned{{ID: uuid.Must(uuid.NewV7()), Text: texts[0]}}}
	done := w.db.Commit(w.t.Context(), []worker.Commit{{
		Lease: l, Plan: plan, Complete: true, VectorModel: "m", Vectors: embedding.Vectors,
	}})[0]
	require.NoError(w.t, done.Err)
	require.True(w.t, done.Ended)
}

// succeed accepts a task and runs it to its end.
func (w *world) succeed(user string) uuid.UUID {
	w.t.Helper()
	id := w.accept(w.main, user)
	w.complete(w.mustClaim(id))
	return id
}

// fail accepts a task and lets its run fail.
func (w *world) fail(user string) uuid.UUID {
	w.t.Helper()
	id := w.accept(w.main, user)
	class := task.ExtractionRejected
	done := w.db.Fail(w.t.Context(), []worker.Fail{{Lease: w.mustClaim(id), Class: class, Code: task.CodeOf(class)}})[0]
	require.NoError(w.t, done.Err)
	return id
}

// retry opens a new generation of a failed task under a key of its own.
func (w *world) retry(id uuid.UUID) error {
	retrier, err := write.NewRetrier(w.db, w.post, credit.DefaultPrices())
	require.NoError(w.t, err)
	k := key(w.t, fmt.Sprintf("retry-%d", w.n.Add(1)))
	_, err = retrier.Retry(w.t.Context(), w.main, id, nil, &k)
	return err
}

func (w *world) status(id uuid.UUID) string {
	w.t.Helper()
	return one[string](w, `SELECT status || '/' || stage FROM all_tasks WHERE id = $1`, id)
}

func (w *world) deps() repair.Deps {
	return repair.Deps{Leases: w.db, Hints: w.db, Retention: w.db, Books: w.db, Publisher: w.post, Notifier: w.post}
}

// repairer makes a repairer of its own on the world's database.
func (w *world) repairer(change func(*repair.Deps, *repair.Config)) *repair.Repairer {
	w.t.Helper()
	deps, cfg := w.deps(), repair.DefaultConfig()
	if change != nil {
		change(&deps, &cfg)
	}
	r, err := repair.New(deps, cfg)
	require.NoError(w.t, err)
	return r
}

// once runs every pass; nothing may fail and the books must agree.
func (w *world) once() map[string]repair.Result {
	w.t.Helper()
	report, err := w.repairer(nil).Once(w.t.Context())
	require.NoError(w.t, err)
	require.False(w.t, report.Drift, "%+v", report.Findings)
	return byPass(report)
}

func byPass(report repair.Report) map[string]repair.Result {
	results := map[string]repair.Result{}
	for _, r := range report.Results {
		results[r.Pass] = r
	}
	return results
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

// commitOnly makes the canonical commit and leaves the projection to be done.
func (w *world) commitOnly(l worker.Lease) {
	w.t.Helper()
	plan := memory.Plan{Records: []memory.Planned{{ID: uuid.Must(uuid.NewV7()), Text: "likes tea"}}}
	require.NoError(w.t, w.db.Commit(w.t.Context(), []worker.Commit{{Lease: l, Plan: plan}})[0].Err)
}
