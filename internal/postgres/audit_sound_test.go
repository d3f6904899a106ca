package postgres_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// soundWorld has a bit of everything: events of each kind in each state, and names for them, which the function e of its
// database knows.
type soundWorld struct{ *itemWorld }

func newSoundWorld(t *testing.T) soundWorld {
	t.Helper()
	w := soundWorld{newItemWorld(t, 1_000)}
	w.exec(`CREATE TABLE named (name text PRIMARY KEY, id uuid NOT NULL)`)
	w.exec(`CREATE FUNCTION e(text) RETURNS uuid STABLE LANGUAGE sql AS 'SELECT id FROM named WHERE name = $1'`)
	w.exec(`
CREATE FUNCTION archive(task uuid, keep boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE columns text;
BEGIN
  SELECT string_agg(column_name, ', ') INTO columns FROM information_schema.columns
   WHERE table_schema = 'public' AND table_name = 'tasks' AND is_generated = 'NEVER';
  EXECUTE format('INSERT INTO tasks_archive (%s) SELECT %s FROM tasks WHERE id = $1', columns, columns) USING task;
  IF NOT keep THEN DELETE FROM tasks WHERE id = task; END IF;
END $$`)
	w.name("nobody", uuid.New())
	w.lanes()
	w.changes()
	w.others()
	w.operated()
	w.name("workspace", w.caller.Workspace.ID)
	w.name("fence", w.fenceOf("u9"))
	return w
}

func (w soundWorld) name(name string, id uuid.UUID) {
	w.t.Helper()
	w.exec(`INSERT INTO named VALUES ($1, $2)`, name, id)
}

func (w soundWorld) add(name, user string) uuid.UUID {
	w.t.Helper()
	id := w.accept(name, say(user, "about "+name))
	w.name(name, id)
	return id
}

// lanes is about events that wait, run and end in their lanes.
func (w soundWorld) lanes() {
	w.t.Helper()
	stored := w.mustClaim(w.add("stored", "u1"))
	wantDone(w.t, "commit", w.commit(stored, "tea", "rain"))
	wantDone(w.t, "settle", w.settle(stored))
	replacing := w.mustClaim(w.add("replacing", "u1"))
	wantDone(w.t, "replace", w.replace(replacing, "coffee", w.target("tea")))
	wantDone(w.t, "settle", w.settle(replacing))
	wantDone(w.t, "fail", w.fail(w.mustClaim(w.add("failed", "u2")), task.OutputInvalid))
	retried := w.add("retried", "u2")
	wantDone(w.t, "later", w.later(w.mustClaim(retried), task.ProviderTimeout, 0))
	wantDone(w.t, "fail", w.fail(w.mustClaim(retried), task.OutputInvalid))
	generation := 1
	if _, err := w.retrier().Retry(w.t.Context(), w.caller, retried, &generation, nil); err != nil {
		w.t.Fatal(err)
	}
	wantDone(w.t, "complete", w.complete(w.mustClaim(retried), "retried fact"))
	w.mustClaim(w.add("running", "u3"))
	w.add("waiting", "u3")
	w.add("last", "u3")
	wantDone(w.t, "commit", w.commit(w.mustClaim(w.add("committed", "u4")), "planned", "planned too"))
	w.add("due", "u5")
	wantDone(w.t, "complete", w.complete(w.mustClaim(w.add("archived", "u6")), "old fact"))
	w.exec(`SELECT archive(e('archived'), false)`)
}

// changes is about what is written at once, in pieces, of items, and erased.
func (w soundWorld) changes() {
	w.t.Helper()
	written := w.store(memory.Scope{UserID: "u7"}, `{"a":1}`, "one", "two", "three")
	w.name("written", written.EventID)
	w.exec(`INSERT INTO memory_feedback (memory_id, workspace_id, feedback, at) VALUES ($1, $2, 'POSITIVE', now())`,
		written.ids()[0], w.caller.Workspace.ID)
	w.name("changed", w.change("changed", command.Change{ID: written.ids()[0], Content: ptr("uno")}).EventID)
	w.name("removed", w.change("removed", command.Change{ID: written.ids()[1], Delete: true}).EventID)
	batch := w.batch("batch", false, retexted(written.ids()[2:], "tres")...)
	w.name("batch", batch.EventID)
	w.pieces(w.claimKind(batch.EventID, task.BatchUpdate))
	w.keep(input("a", "first"), in("s", input("b", "second")))
	w.land("a", "item fact")
	w.keep(input("a", "edited"))
	w.land("a", "edited fact")
	w.name("landed", w.task("a"))
	w.name("queued", w.task("b"))
	erased := w.store(memory.Scope{UserID: "u8"}, "", "secret")
	w.name("erased", erased.EventID)
	done, err := w.eraser().Erase(w.t.Context(), w.caller, nil, memory.Scope{UserID: "u8"})
	if err != nil || !done.Finished {
		w.t.Fatalf("erase: %+v, %v", done, err)
	}
	w.name("erase", done.EventID)
}

// others is about webhooks, snapshots, books and another workspace.
func (w soundWorld) others() {
	w.t.Helper()
	w.overtaken()
	hook := w.hook(wanted(endpoint.Succeeded))
	w.name("told", w.succeed("told"))
	w.dispatched(1)
	delivery := w.deliveries(hook.ID)[0].TaskID
	w.name("delivery", delivery)
	export := w.beginExport()
	w.name("export", export)
	w.toEnd(w.db.ExportJob(), w.claimMove(export))
	snapshot := w.snapshot(export)
	w.exec(`
INSERT INTO credit_checkpoints (workspace_id, horizon, granted, settled, checked_at)
SELECT $1, pg_snapshot_xmin(pg_current_snapshot()),
       (SELECT coalesce(sum(amount), 0) FROM credit_grants WHERE workspace_id = $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())),
       (SELECT coalesce(sum(settled), 0) FROM credit_closings WHERE workspace_id = $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())), now()`,
		w.caller.Workspace.ID)
	ours := w.caller
	w.caller = w.workspace(100)
	w.name("other workspace", w.caller.Workspace.ID)
	foreign := w.mustClaim(w.add("foreign", "u1"))
	wantDone(w.t, "complete", w.complete(foreign, "foreign fact"))
	w.caller = w.workspace(100)
	// A memory of another database, in a workspace of its own: ids are unique.
	moved := strings.NewReplacer(renamed7(snapshot)...).Replace(string(snapshot))
	imported := w.mustImport([]byte(moved))
	w.name("import", imported)
	w.toEnd(w.db.ImportJob(), w.claimMove(imported))
	w.caller = ours
}

// operated is about what operators do.
func (w soundWorld) operated() {
	w.t.Helper()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, ours := w.t.Context(), w.caller.Workspace.ID
	_, err := w.db.CreateKey(ctx, ours, "kept", access.Permissions(), nil)
	must(err)
	ended, err := w.db.CreateKey(ctx, ours, "ended", access.Permissions(), nil)
	must(err)
	must(w.db.RevokeKey(ctx, ours, ended.ID()))
	_, err = w.db.CreateOperator(ctx, "ann")
	must(err)
	bob, err := w.db.CreateOperator(ctx, "bob")
	must(err)
	must(w.db.RevokeOperator(ctx, bob.ID()))
	_, err = w.db.SuspendWorkspace(ctx, ours.String(), true)
	must(err)
	_, err = w.db.SuspendWorkspace(ctx, ours.String(), false)
	must(err)
	suspended, deleted := w.workspace(0).Workspace.ID, w.workspace(0).Workspace.ID
	_, err = w.db.SuspendWorkspace(ctx, suspended.String(), true)
	must(err)
	_, err = w.db.CreateKey(ctx, deleted, "gone", access.Permissions(), nil)
	must(err)
	_, _, err = w.db.DeleteWorkspace(ctx, deleted.String())
	must(err)
	w.name("suspended workspace", suspended)
	w.name("deleted workspace", deleted)
	_, err = w.db.Cancel(ctx, ours, w.add("cancelled", "u10"))
	must(err)
}

// overtaken waits until the feed has come past everything that has ended: other tests' transactions hold it back for
// moments, and a webhook begins where it is.
func (w soundWorld) overtaken() {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(feedPatience); time.Now().Before(deadline); <-tick.C {
		if one[bool](w.world, `SELECT max(xid) < pg_snapshot_xmin(pg_current_snapshot()) FROM credit_closings`) {
			return
		}
	}
	w.t.Fatal("the feed is held back")
}

// renamed7 gives every memory of a snapshot another id that sorts the same.
func renamed7(snapshot []byte) []string {
	var pairs []string
	for _, raw := range command.SnapshotLines(snapshot) {
		line, err := command.DecodeSnapshotLine(raw)
		if err == nil && line.Memory != nil {
			id := line.Memory.ID.String()
			pairs = append(pairs, id, "f"+id[1:])
		}
	}
	return pairs
}

// template drops what forbids the database to be wrong, keeps its rows, to which mend brings it back, and closes the world,
// so that copies of it can be broken.
func (w soundWorld) template() {
	w.t.Helper()
	w.exec(`
DO $$
DECLARE c record;
BEGIN
  FOR c IN SELECT conrelid::regclass AS tab, conname FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u') ORDER BY contype DESC, conname LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I CASCADE', c.tab, c.conname);
  END LOOP;
  DROP INDEX tasks_head, task_runs_open;
  CREATE SCHEMA kept;
  FOR c IN SELECT relname AS tab FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
    EXECUTE format('CREATE TABLE kept.%1$I AS TABLE public.%1$I', c.tab);
    EXECUTE format('ALTER TABLE public.%I DISABLE TRIGGER USER', c.tab);
  END LOOP;
END $$`)
	w.exec(`
CREATE FUNCTION mend() RETURNS void LANGUAGE plpgsql AS $$
DECLARE c record;
BEGIN
  FOR c IN SELECT table_name AS tab, string_agg(quote_ident(column_name), ', ') AS columns FROM information_schema.columns
            WHERE table_schema = 'public' AND is_generated = 'NEVER'
              AND table_name IN (SELECT relname FROM pg_class WHERE relnamespace = 'kept'::regnamespace)
            GROUP BY table_name LOOP
    EXECUTE format('DELETE FROM public.%I', c.tab);
    EXECUTE format('INSERT INTO public.%1$I (%2$s) SELECT %2$s FROM kept.%1$I', c.tab, c.columns);
  END LOOP;
END $$`)
	w.db.Close()
	w.sql.Close()
}

// copied is a world over a copy of the template's database.
func (w soundWorld) copied(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	template := databaseOf(t, w.url)
	name := template + "_" + strings.ReplaceAll(uuid.NewString()[:8], "-", "")
	admin := strings.Replace(w.url, "/"+template, "/postgres", 1)
	administer(ctx, t, admin, "CREATE DATABASE "+name+" TEMPLATE "+template)
	t.Cleanup(func() {
		administer(context.WithoutCancel(t.Context()), t, admin, "DROP DATABASE "+name+" WITH (FORCE)")
	})
	c := &world{t: t, url: strings.Replace(w.url, "/"+template, "/"+name, 1), hints: &hints{}, clock: w.clock, caller: w.caller}
	c.sql = testkit.Pool(t, c.url)
	c.db = c.open(c.url)
	return c
}

func administer(ctx context.Context, t *testing.T, admin, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func databaseOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}
