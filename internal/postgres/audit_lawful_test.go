package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/audit"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// TestAuditOfLawfulStates is about states that look wrong and are on the way to something, or what is left of it.
func TestAuditOfLawfulStates(t *testing.T) {
	t.Parallel()

	t.Run("AnEraseBetweenTasksAndRecords", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say(erasedUser, "a"))
		wantDone(t, "commit", w.commit(w.mustClaim(id), "secret"))
		l := w.claimErase(w.fence())
		for w.status(id) != "succeeded/projected" {
			w.erasePiece(&l)
		}
		if n := one[int](w, `SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM memory_vectors v WHERE v.memory_id = m.id)`); n != 1 {
			t.Fatalf("%d memories wait for the erase", n)
		}
		w.sound()
		for !w.erasePiece(&l).Ended {
			w.sound()
		}
		w.sound()
	})

	t.Run("WhatComesBackAfterAnErase", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(erasedScope, "one", "two")
		w.change("c", command.Change{ID: ids[0], Content: ptr("uno")})
		snapshot := w.export()
		w.erase("e")
		w.sound()
		w.toEnd(w.db.ImportJob(), w.claimMove(w.mustImport(snapshot)))
		if n := one[int](w, `SELECT count(*) FROM task_results r WHERE NOT EXISTS (SELECT FROM memory_history h WHERE h.task_id = r.task_id)`); n == 0 {
			t.Fatal("the results of before still have their history")
		}
		w.sound()
		w.change("d", command.Change{ID: ids[1], Delete: true})
		w.sound()
	})

	t.Run("ABatchThatWasStopped", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1_000)
		ids := w.remember(memory.Scope{UserID: "u"}, numbered(250)...)
		l := w.claimKind(w.batch("b", false, retexted(ids, "new")...).EventID, task.BatchUpdate)
		w.piece(&l)
		w.sound()
		chunk, vectors := w.next(l)
		if err := w.canceller().Cancel(t.Context(), w.caller, l.TaskID); err != nil {
			t.Fatal(err)
		}
		if done := wantDone(t, "apply", w.apply(l, chunk, vectors)); !done.Ended {
			t.Fatal("it goes on")
		}
		if n, cursor := one[int64](w, `SELECT count(*) FROM task_results WHERE task_id = $1`, l.TaskID), one[int64](w, `SELECT cursor FROM tasks WHERE id = $1`, l.TaskID); n != 100 || cursor != 200 {
			t.Fatalf("%d results, cursor %d", n, cursor)
		}
		w.sound()
	})

	t.Run("WhatRetentionLeaves", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		wantDone(t, "complete", w.complete(w.mustClaim(w.accept("k", say("u", "a"))), "kept"))
		wantDone(t, "fail", w.fail(w.mustClaim(w.accept("f", say("u", "b"))), task.OutputInvalid))
		w.advance(time.Hour)
		for _, step := range []func() (repair.Swept, error){
			func() (repair.Swept, error) { return w.db.ExpireInput(t.Context(), time.Minute, repair.Cursor{}, 10) },
			func() (repair.Swept, error) { return w.db.ArchiveEnded(t.Context(), time.Minute, repair.Cursor{}, 10) },
			func() (repair.Swept, error) {
				return w.db.RetireArchived(t.Context(), time.Minute, repair.Cursor{}, 10)
			},
		} {
			if swept, err := step(); err != nil || swept.Fixed == 0 {
				t.Fatalf("%+v, %v", swept, err)
			}
			w.sound()
		}
		if n := one[int](w, `SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM all_tasks)`); n != 1 {
			t.Fatalf("%d memories without their event", n)
		}
	})

	t.Run("WorkThatMayWait", func(t *testing.T) {
		t.Parallel()
		for name, c := range map[string]struct {
			sql   string
			stuck bool
		}{
			"nobody": {`SELECT 1`, true},
			"a suspended workspace": {`
WITH w AS (UPDATE workspaces SET suspended_at = now() RETURNING id)
INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject)
SELECT gen_random_uuid(), now(), 'system', 'process', '', id, 'workspace.suspend', id::text FROM w`, false},
			"a paused provider": {`INSERT INTO provider_pauses (provider, paused_until, class, updated_at)
VALUES ('p', now() + interval '2 hours', 'provider_unavailable', now())`, false},
			"a backlog": {`UPDATE tasks SET claimed_at = now() + interval '55 minutes' WHERE lease_token IS NOT NULL`, false},
			"an erase":  {`SELECT 2`, true},
		} {
			w := newWorld(t, 100)
			w.mustClaim(w.accept("r", say("v", "a")))
			w.accept("k", say("u", "a"))
			if name == "an erase" {
				w.fenceOf("u") // excuses the command, not itself
			}
			w.exec(c.sql)
			w.exec(`UPDATE tasks SET lease_until = now() + interval '2 hours' WHERE lease_token IS NOT NULL`)
			w.advance(time.Hour)
			report, err := w.audited(audit.Options{})
			if found := report.Findings(); err != nil || (len(found) == 1 && found[0].Check == audit.Stuck && found[0].Count == 1) != c.stuck || len(found) > 1 {
				t.Errorf("%s: %v, found %s", name, err, describe(report))
			}
		}
	})
}
