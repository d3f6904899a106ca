package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// The user of these tests is called like what he said: neither may be left anywhere.
const (
	erasedUser = "xylophone-4711"
	secret     = "xylophone-4711 was said"
)

var erasedScope = memory.Scope{UserID: erasedUser}

// leftoversSQL looks for a text in every column of every table.
const leftoversSQL = `
SELECT coalesce(string_agg(t.table_name, ', ' ORDER BY t.table_name), '')
  FROM information_schema.tables t
 WHERE t.table_schema = 'public' AND t.table_type = 'BASE TABLE'
   AND (xpath('/row/c/text()', query_to_xml(format(
         'SELECT count(*) AS c FROM %I x WHERE x::text LIKE %L OR x::text LIKE %L', t.table_name,
         '%' || $1 || '%', '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%'), false, true, '')))[1]::text <> '0'`

func wantNothingLeft(t testing.TB, w *world) {
	t.Helper()
	wantGone(t, w, erasedUser)
}

// wantGone checks that a text is nowhere and no erase open.
func wantGone(t testing.TB, w *world, text string) {
	t.Helper()
	if found := one[string](w, leftoversSQL, text); found != "" {
		t.Fatalf("the erased text is in %s", found)
	}
	if n := one[int64](w, `SELECT count(*) FROM erasures`); n != 0 {
		t.Fatalf("%d fences are left", n)
	}
	w.books()
}

func (w *world) eraser() *write.Eraser {
	w.t.Helper()
	inline, err := worker.NewInline(w.db, w.db, task.Erase, w.db.EraseJob(), w.hints, w.hints, time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	eraser, err := write.NewEraser(w.db, inline, w.hints)
	if err != nil {
		w.t.Fatal(err)
	}
	return eraser
}

// erase erases the test's user and must finish.
func (w *world) erase(k string) write.Erased {
	w.t.Helper()
	name := key(w.t, k)
	erased, err := w.eraser().Erase(w.t.Context(), w.caller, &name, erasedScope)
	if err != nil || !erased.Finished {
		w.t.Fatalf("erase: %+v, %v", erased, err)
	}
	return erased
}

// fence begins an erase of the test's user and leaves it there.
func (w *world) fence() uuid.UUID {
	w.t.Helper()
	return w.fenceOf(erasedUser)
}

func (w *world) fenceOf(user string) uuid.UUID {
	w.t.Helper()
	return w.fenceScope(memory.Scope{UserID: user})
}

func (w *world) fenceScope(scope memory.Scope) uuid.UUID {
	w.t.Helper()
	erasing := write.Erasing{TaskID: uuid.Must(uuid.NewV7()), WorkspaceID: w.caller.Workspace.ID, Scope: scope}
	copy(erasing.Claim.KeyHash[:], erasing.TaskID[:])
	copy(erasing.Claim.Fingerprint[:], erasing.TaskID[:])
	if _, _, err := w.db.BeginErase(w.t.Context(), erasing); err != nil {
		w.t.Fatal(err)
	}
	return erasing.TaskID
}

func eraseClaimant() worker.Claimant {
	who := claimant("eraser")
	who.Kinds = []task.Kind{task.Erase}
	return who
}

func (w *world) claimErase(id uuid.UUID) worker.Lease {
	w.t.Helper()
	c := w.db.Claim(w.t.Context(), eraseClaimant(), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	if c.Err != nil || c.Lease == nil {
		w.t.Fatalf("claim erase: %+v", c)
	}
	return *c.Lease
}

// erasePiece runs the erase's next piece and moves the lease.
func (w *world) erasePiece(l *worker.Lease) worker.Done {
	w.t.Helper()
	job := w.db.EraseJob()
	chunk, err := job.Next(w.t.Context(), *l)
	if err != nil {
		w.t.Fatalf("read piece: %v", err)
	}
	done := wantDone(w.t, "piece", job.Apply(w.t.Context(), *l, chunk, "", nil, worker.Work{}))
	l.Cursor = done.Cursor
	return done
}

// endErase runs an erase that is begun to its end.
func (w *world) endErase(id uuid.UUID) {
	w.t.Helper()
	l := w.claimErase(id)
	for range 1000 {
		if w.erasePiece(&l).Ended {
			return
		}
	}
	w.t.Fatal("the erase doesn't end")
}

// lives is what the erased user has at the moment of an erase: one command in each state.
type lives struct {
	queued, running, committed, succeeded, failed, retried, cancelled, archived uuid.UUID
	runner, projector                                                           worker.Lease
}

func (w *world) lives() lives {
	w.t.Helper()
	var l lives
	said := func(k string, scope memory.Scope) uuid.UUID {
		add := say(scope.UserID, secret+" "+k)
		add.Scope, add.Metadata = scope, []byte(`{"note":"`+secret+`"}`)
		return w.accept(k, add)
	}
	in := func(run string) memory.Scope { return memory.Scope{UserID: erasedUser, RunID: run} }
	l.archived = said("archived", in("a"))
	wantDone(w.t, "complete", w.complete(w.mustClaim(l.archived), secret+" archived"))
	if err := w.move(l.archived, "tasks", "tasks_archive"); err != nil {
		w.t.Fatal(err)
	}
	l.succeeded = said("succeeded", in("b"))
	wantDone(w.t, "complete", w.complete(w.mustClaim(l.succeeded), secret+" one", secret+" two"))
	l.failed = said("failed", in("c"))
	wantDone(w.t, "fail", w.fail(w.mustClaim(l.failed), task.OutputInvalid))
	l.retried = said("retried", in("d"))
	wantDone(w.t, "fail", w.fail(w.mustClaim(l.retried), task.OutputInvalid))
	first := 1
	if _, err := w.retrier().Retry(w.t.Context(), w.caller, l.retried, &first, nil); err != nil {
		w.t.Fatal(err)
	}
	l.cancelled = said("cancelled", in("e"))
	if err := w.canceller().Cancel(w.t.Context(), w.caller, l.cancelled); err != nil {
		w.t.Fatal(err)
	}
	l.committed = said("committed", in("f"))
	l.projector = w.mustClaim(l.committed)
	wantDone(w.t, "commit", w.commit(l.projector, secret+" committed"))
	l.running = said("running", in("g"))
	l.runner = w.mustClaim(l.running)
	l.queued = said("queued", in("g"))
	ids := w.store(in("h"), `{"a":"`+secret+`"}`, secret+" kept", secret+" changed", secret+" ended").ids()
	text := secret + " anew"
	w.change("", command.Change{ID: ids[1], Content: &text})
	w.change("", command.Change{ID: ids[2], Delete: true})
	return l
}

// others is a digest of everything that belongs to another user.
func (w *world) others() string {
	w.t.Helper()
	return one[string](w, `
SELECT md5(string_agg(x, '|' ORDER BY x)) FROM (
  SELECT m::text AS x FROM memories m WHERE user_id = 'other'
  UNION ALL SELECT t::text FROM all_tasks t WHERE user_id = 'other'
  UNION ALL SELECT h::text FROM memory_history h JOIN memories m ON m.id = h.memory_id WHERE m.user_id = 'other'
  UNION ALL SELECT v::text FROM memory_vectors v JOIN memories m ON m.id = v.memory_id WHERE m.user_id = 'other'
  UNION ALL SELECT v::text FROM memory_terms v JOIN memories m ON m.id = v.memory_id WHERE m.user_id = 'other') x`)
}

func TestErase(t *testing.T) {
	t.Parallel()

	t.Run("NothingIsLeftOfAnyState", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		other := w.accept("other", say("other", "hello"))
		wantDone(t, "complete", w.complete(w.mustClaim(other), "other's own"))
		w.accept("other-2", say("other", "again"))
		l := w.lives()
		before := w.others()
		erased := w.erase("e")
		// Records: archived 1, succeeded 2, committed 1, verbatim 3 of which one had ended.
		if erased.Deleted != 6 || erased.Cancelled != 3 {
			t.Errorf("erased %+v, want 6 records and 3 commands", erased)
		}
		wantNothingLeft(t, w)
		if w.others() != before {
			t.Error("another user's rows changed")
		}
		for id, want := range map[uuid.UUID]string{
			l.archived: "succeeded/projected", l.succeeded: "succeeded/projected", l.committed: "succeeded/projected",
			l.failed: "failed/accepted", l.retried: "failed/accepted", l.cancelled: "failed/accepted",
			l.running: "failed/accepted", l.queued: "failed/accepted", erased.EventID: "succeeded/projected",
		} {
			if got := w.status(id); got != want {
				t.Errorf("a task is %s, want %s", got, want)
			}
			if e := w.event(id); !e.Erased || e.Scope != nil {
				t.Errorf("the event shows %+v", e)
			}
		}
		wantLost(t, "commit", w.commit(l.runner, "late"))
		wantLost(t, "settle", w.settle(l.projector))
		// Paid are other, archived, succeeded and committed with 2 each and verbatim with 1; other-2 is held.
		wantBalance(t, w, 89, 2)
		if n := one[int64](w, `SELECT count(*) FROM all_tasks t WHERE t.claims <> (SELECT count(*) FROM task_attempts a WHERE a.task_id = t.id)`); n != 0 {
			t.Errorf("%d tasks have claims without an attempt", n)
		}
		if history := one[int64](w, `SELECT count(*) FROM memory_history WHERE new_text IS NULL AND old_text IS NULL`); history != 9 {
			t.Errorf("%d history rows without text, want 9", history)
		}
	})

	t.Run("ReplayAnswersTheFirstResultAndDeletesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		first := w.erase("e")
		kept := w.remember(erasedScope, secret+" later")
		again := w.erase("e")
		if !again.Replayed || again.EventID != first.EventID || again.Deleted != 1 || first.Replayed {
			t.Errorf("first %+v, again %+v", first, again)
		}
		if live := w.memories(erasedScope, 10); len(live) != 1 || live[0].ID != kept[0] {
			t.Errorf("left %+v", live)
		}
		name := key(t, "e")
		_, err := w.eraser().Erase(t.Context(), w.caller, &name, memory.Scope{UserID: "other"})
		if !fault.Is(err, fault.IdempotencyConflict) {
			t.Errorf("another scope under the same key: %v", err)
		}
		if second := w.erase("e2"); second.Deleted != 1 {
			t.Errorf("another key %+v", second)
		}
		wantNothingLeft(t, w)
	})

	t.Run("WithoutAScopeNothingIsErased", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		if _, err := w.eraser().Erase(t.Context(), w.caller, nil, memory.Scope{}); !fault.Is(err, fault.ScopeRequired) {
			t.Errorf("erased without a scope: %v", err)
		}
		if len(w.memories(erasedScope, 10)) != 1 {
			t.Error("a record is gone")
		}
	})

	t.Run("AScopeCoversOnlyWhatMatchesAllItsValues", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		both := memory.Scope{UserID: "u", RunID: "r"}
		w.remember(both, "both")
		w.remember(memory.Scope{UserID: "u"}, "user alone")
		w.remember(memory.Scope{RunID: "r"}, "run alone")
		w.remember(memory.Scope{UserID: "u", RunID: "r", AppID: "a"}, "more")
		erased, err := w.eraser().Erase(t.Context(), w.caller, nil, both)
		if err != nil || erased.Deleted != 2 {
			t.Fatalf("erased %+v, %v", erased, err)
		}
		if left := one[string](w, `SELECT string_agg(text, ',' ORDER BY text) FROM memories`); left != "run alone,user alone" {
			t.Errorf("left %s", left)
		}
		if n := one[int64](w, `SELECT count(*) FROM memories WHERE workspace_id <> $1`, w.caller.Workspace.ID); n != 0 {
			t.Error("another workspace")
		}
	})

	t.Run("AnotherWorkspaceIsNotTouched", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, "mine")
		caller := w.caller
		w.caller = w.workspace(100)
		w.remember(erasedScope, "theirs")
		w.caller = caller
		w.erase("e")
		if left := one[string](w, `SELECT string_agg(text, ',') FROM memories`); left != "theirs" {
			t.Errorf("left %q", left)
		}
	})
}
