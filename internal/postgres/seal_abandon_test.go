package postgres_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// lostWorld has one of each that needs the master key a, which its store has no more.
type lostWorld struct {
	*world
	waiting, behind, crashed, running, failed, committed uuid.UUID
	batch, begun, partly, unread, export                 uuid.UUID
	runner                                               worker.Lease
	hook                                                 endpoint.Endpoint
	importer, reader                                     access.Caller
}

// snapshotOf makes a snapshot of more than one part in a world of its own: ids of records are unique in a database.
func snapshotOf(t *testing.T) []byte {
	t.Helper()
	other := newWorld(t, 1000)
	other.furnish(command.SnapshotPartLines + 50)
	return other.export()
}

func newLostWorld(t *testing.T) *lostWorld {
	t.Helper()
	w := &lostWorld{world: newSealedWorld(t, 1000)}
	snapshot := snapshotOf(t)
	w.crashed = w.accept("crashed", say("crashed", "sealed"))
	w.mustClaim(w.crashed)
	w.advance(2 * time.Minute)

	w.waiting = w.accept("waiting", say("u", "sealed"))
	w.as(w.plain(), func() { w.behind = w.accept("behind", say("u", "plain")) })
	w.running = w.accept("running", say("runs", "sealed"))
	w.runner = w.mustClaim(w.running)
	w.failed = w.accept("failed", say("fails", "sealed"))
	wantDone(t, "fail", w.fail(w.mustClaim(w.failed), task.OutputInvalid))
	w.committed = w.accept("committed", say("committed", "sealed"))
	w.pause(w.mustClaim(w.committed), func(l worker.Lease) worker.Done { return w.commit(l, "a fact") })

	ids := w.remember(erasedScope, numbered(101)...) // more than a piece of a batch
	w.batch = w.world.batch("batch", false, retexted(ids, "new")...).EventID
	w.begun = w.world.batch("begun", false, retexted(ids, "newer")...).EventID
	w.pause(w.claimKind(w.begun, task.BatchUpdate), func(l worker.Lease) worker.Done { return w.piece(&l) })

	w.export = w.beginExport()
	w.toEnd(w.db.ExportJob(), w.claimMove(w.export))
	w.hook = w.world.hook(wanted(endpoint.Succeeded))

	first := w.caller
	w.importer = w.workspace(1000)
	w.caller = w.importer
	w.partly = w.mustImport(snapshot)
	w.pause(w.claimMove(w.partly), func(l worker.Lease) worker.Done {
		done, err := w.movePiece(w.db.ImportJob(), &l)
		if err != nil {
			t.Fatal(err)
		}
		return done
	})
	w.reader = w.workspace(1000)
	w.caller = w.reader
	w.unread = w.mustImport(snapshot)
	w.caller = first
	w.db = w.sealed("b")
	return w
}

// pause runs a step and leaves the rest of the task to another claim.
func (w *lostWorld) pause(l worker.Lease, step func(worker.Lease) worker.Done) {
	w.t.Helper()
	done := wantDone(w.t, "step", step(l))
	if done.Ended {
		w.t.Fatal("the step ended the task")
	}
	l.Stage = task.Committed
	wantDone(w.t, "later", w.later(l, task.InternalFailure, 0))
}

// abandon gives a master key up, page by page.
func (w *lostWorld) abandon(master string, limit int) (total postgres.Abandoned) {
	w.t.Helper()
	ctx := access.As(w.t.Context(), access.Actor{Name: "user:root", Origin: "cli"})
	after := uuid.Nil
	for _, step := range []func() (postgres.Abandoned, error){
		func() (postgres.Abandoned, error) { return w.db.AbandonTasks(ctx, master, after, limit) },
		func() (postgres.Abandoned, error) { return w.db.AbandonSecrets(ctx, master, limit) },
		func() (postgres.Abandoned, error) { return w.db.AbandonKeys(ctx, master, limit) },
	} {
		for more := true; more; {
			page, err := step()
			if err != nil || page.Stuck > 0 {
				w.t.Fatalf("abandon: %+v, %v", page, err)
			}
			total.Add(page)
			after, more = page.After, page.More
		}
	}
	return total
}

func (w *lostWorld) lost() postgres.Lost {
	w.t.Helper()
	lost, err := w.db.LostUnder(w.t.Context(), "a")
	if err != nil {
		w.t.Fatal(err)
	}
	return lost
}

// wantUnreadable tells that an event failed because of its key, and has no input.
func (w *lostWorld) wantUnreadable(what string, id uuid.UUID) {
	w.t.Helper()
	e := wantStatus(w.t, w.world, id, task.EventFailed)
	input := one[bool](w.world, `SELECT command IS NOT NULL OR EXISTS (SELECT FROM task_parts WHERE task_id = id) FROM all_tasks WHERE id = $1`, id)
	if e.ErrorCode != task.CodePayloadUnreadable || input {
		w.t.Errorf("%s: the event says %s, input is kept: %v", what, e.ErrorCode, input)
	}
}

// healthy tells that a process with the other master key would start.
func (w *lostWorld) healthy() bool {
	w.t.Helper()
	keys, err := w.db.CheckKeys(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range keys {
		if k.Err() != nil {
			return false
		}
	}
	return true
}

func TestAbandon(t *testing.T) {
	t.Parallel()

	t.Run("EverythingElseGoesOn", func(t *testing.T) {
		t.Parallel()
		w := newLostWorld(t)
		if got := w.lost(); got.Waiting != 4 || got.Committed != 3 || got.Running != 1 || got.Inputs != 1 || got.Exports != 1 ||
			got.Webhooks != 1 || got.Workspaces != 3 || w.healthy() {
			t.Fatalf("lost are %+v", got)
		}
		first, err := w.db.AbandonTasks(t.Context(), "a", uuid.Nil, 2) // broken off behind the first page
		if err != nil || first.Events() != 2 || !first.More {
			t.Fatalf("the first page: %+v, %v", first, err)
		}
		total := w.abandon("a", 2)
		total.Add(first)
		if total.Failed != 4 || total.GoOn != 3 || total.Inputs != 1 || total.Exports != 1 || total.Webhooks != 1 {
			t.Errorf("done were %+v", total)
		}
		if left := w.lost(); left.Running != 1 || left.DataKeys != 1 || left.Waiting+left.Committed+left.Inputs+left.Exports+left.Webhooks != 0 {
			t.Errorf("left are %+v", left)
		}
		w.wantUnreadable("waiting", w.waiting)
		w.wantUnreadable("crashed", w.crashed)
		w.wantUnreadable("a batch", w.batch)
		wantStatus(t, w.world, w.running, task.EventRunning)

		wantOpen(t, w.mustClaim(w.behind), "plain") // the lane goes on
		again := 1
		_, err = w.retrier().Retry(t.Context(), w.caller, w.failed, &again, nil)
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.InputExpired {
			t.Errorf("a retry of the failed one: %v", err)
		}
		w.goesOn()

		w.advance(2 * time.Minute) // the runner is gone with its key
		if n := w.abandon("a", 10); n.Failed != 1 || n.DataKeys != 1 {
			t.Errorf("the second run did %+v", n)
		}
		w.wantUnreadable("running", w.running)
		if lost := w.lost(); lost != (postgres.Lost{}) || !w.healthy() {
			t.Errorf("left are %+v, a start is possible: %v", lost, w.healthy())
		}
		w.hooked()
		for _, caller := range []access.Caller{w.caller, w.importer, w.reader} {
			w.caller = caller
			w.books()
		}
		if n := one[int](w.world, `SELECT count(DISTINCT workspace_id) FROM operator_acts WHERE act = $1 AND subject = 'a' AND actor = 'user:root'`, operator.AbandonEncryption); n != 3 {
			t.Errorf("%d workspaces have a record of it", n)
		}
		w.sound()
	})

	t.Run("ARunningOneIsItsWorkers", func(t *testing.T) {
		t.Parallel()
		w := newLostWorld(t)
		w.abandon("a", 100)
		w.as(w.sealed("a"), func() { wantDone(t, "complete", w.complete(w.runner, "a fact")) })
		if n := w.abandon("a", 100); n.Events() != 0 || n.DataKeys != 1 || !w.healthy() {
			t.Errorf("the second run did %+v", n)
		}
		wantStatus(t, w.world, w.running, task.EventSucceeded)
		w.sound()
	})

	t.Run("OnlyOfAKeyThatIsLost", func(t *testing.T) {
		t.Parallel()
		w := newLostWorld(t)
		before := w.lost()
		both := w.sealed("b", "a")
		_, counted := both.LostUnder(t.Context(), "a")
		_, tasks := both.AbandonTasks(t.Context(), "a", uuid.Nil, 10)
		_, secrets := both.AbandonSecrets(t.Context(), "a", 10)
		_, keys := both.AbandonKeys(t.Context(), "a", 10)
		for _, err := range []error{counted, tasks, secrets, keys} {
			if !errors.Is(err, postgres.ErrMasterConfigured) {
				t.Errorf("with the key: %v", err)
			}
		}
		w.as(w.plain(), func() {
			if n := w.abandon("c", 10); n.Events()+n.Webhooks+n.DataKeys != 0 || w.lost() != before {
				t.Errorf("of a key that there is not: %+v", n)
			}
		})
		w.caller = w.workspace(1000)
		kept := w.accept("kept", say("u", "sealed under b"))
		w.world.hook(wanted(endpoint.Succeeded))
		w.abandon("a", 10)
		wantOpen(t, w.mustClaim(kept), "sealed under b")
		if n := one[int](w.world, `SELECT count(*) FROM webhooks WHERE active`); n != 1 {
			t.Errorf("%d webhooks are active", n)
		}
	})

	t.Run("AnExportBeginsAnew", func(t *testing.T) {
		t.Parallel()
		w := &lostWorld{world: newSealedWorld(t, 1000)}
		w.furnish(command.SnapshotPartLines + 50)
		id := w.beginExport()
		w.pause(w.claimMove(id), func(l worker.Lease) worker.Done {
			done, err := w.movePiece(w.db.ExportJob(), &l)
			if err != nil {
				t.Fatal(err)
			}
			return done
		})
		w.db = w.sealed("b")
		if n := w.abandon("a", 10); n.GoOn != 1 || !w.healthy() {
			t.Errorf("done were %+v", n)
		}
		w.toEnd(w.db.ExportJob(), w.claimMove(id))
		if n := bytes.Count(w.snapshot(id), []byte("fact number")); n < command.SnapshotPartLines+50 {
			t.Errorf("%d records", n)
		}
		w.sound()
	})

	t.Run("AnEraseGoesOn", func(t *testing.T) {
		t.Parallel()
		w := newLostWorld(t)
		erase := w.fence()
		l := w.claimErase(erase)
		var err error
		for range 1000 {
			var chunk worker.Chunk
			if chunk, err = w.db.EraseJob().Next(t.Context(), l); err != nil {
				break
			}
			done := w.db.EraseJob().Apply(t.Context(), l, chunk, "", nil, worker.Work{})
			if err = done.Err; err != nil || done.Ended {
				break
			}
			l.Cursor = done.Cursor
		}
		if !errors.Is(err, seal.ErrNoMaster) {
			t.Fatalf("the erase was not stopped: %v", err)
		}
		wantDone(t, "later", w.later(l, task.InternalFailure, 0))
		w.abandon("a", 10)
		w.endErase(erase)
		if left := w.memories(erasedScope, 10); len(left) != 0 {
			t.Errorf("%d memories are left", len(left))
		}
		w.books()
	})
}

// goesOn ends what was committed.
func (w *lostWorld) goesOn() {
	w.t.Helper()
	wantDone(w.t, "settle", w.settle(w.mustClaim(w.committed)))
	if got := w.memories(memory.Scope{UserID: "committed"}, 10); len(got) != 1 || got[0].Text != "a fact" {
		w.t.Errorf("the committed one has %d records", len(got))
	}
	l := w.claimKind(w.begun, task.BatchUpdate)
	if done := w.piece(&l); !done.Ended {
		w.t.Error("the batch goes on without its input")
	}
	if e := wantStatus(w.t, w.world, w.begun, task.EventSucceeded); e.Outcome != task.Partial || len(e.Results) != 100 {
		w.t.Errorf("the batch ended %s with %d results", e.Outcome, len(e.Results))
	}
	_, err := w.db.ExportParts(w.t.Context(), w.caller.Workspace.ID, w.export)
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.InputExpired {
		w.t.Errorf("the export answers %v", err)
	}
	first := w.caller
	w.caller = w.importer
	w.toEnd(w.db.ImportJob(), w.claimMove(w.partly))
	if e := wantStatus(w.t, w.world, w.partly, task.EventSucceeded); e.Outcome != task.Partial {
		w.t.Errorf("the import ended %s", e.Outcome)
	}
	w.caller = w.reader
	w.wantUnreadable("an import", w.unread)
	w.caller = first
}

// hooked gives the webhook a new secret and lets it go on.
func (w *lostWorld) hooked() {
	w.t.Helper()
	on := true
	shown, err := w.db.Endpoint(w.t.Context(), w.caller.Workspace.ID, w.hook.ID)
	if err != nil || shown.Active || shown.Reason != endpoint.SecretLost {
		w.t.Errorf("the webhook is %+v: %v", shown, err)
	}
	if _, err := w.endpoints().Change(w.t.Context(), w.caller, w.hook.ID, endpoint.Change{Active: &on}); !fault.Is(err, fault.InvalidRequest) {
		w.t.Errorf("enabled without a secret: %v", err)
	}
	test, err := w.db.TestDelivery(w.t.Context(), w.caller.Workspace.ID, w.hook.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	parcel, err := w.db.Parcel(w.t.Context(), w.carry(test.TaskID))
	if err != nil || parcel.Active || len(parcel.Secrets) != 0 {
		w.t.Errorf("without a secret: %+v, %v", parcel, err)
	}
	_, secret, err := w.endpoints().Rotate(w.t.Context(), w.caller, w.hook.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	changed, err := w.endpoints().Change(w.t.Context(), w.caller, w.hook.ID, endpoint.Change{Active: &on})
	if err != nil || !changed.Active {
		w.t.Fatalf("enabled: %+v, %v", changed, err)
	}
	if test, err = w.db.TestDelivery(w.t.Context(), w.caller.Workspace.ID, w.hook.ID); err != nil {
		w.t.Fatal(err)
	}
	parcel, err = w.db.Parcel(w.t.Context(), w.carry(test.TaskID))
	if err != nil || !parcel.Active || len(parcel.Secrets) != 1 || parcel.Secrets[0] != secret {
		w.t.Errorf("with a new secret: %v", err)
	}
	w.world.hook(wanted(endpoint.Failed)) // new ones can be made
}
