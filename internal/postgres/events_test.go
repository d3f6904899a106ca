package postgres_test

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestEventStatus(t *testing.T) {
	t.Parallel()
	t.Run("FollowsTheTaskToSuccess", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		at := w.frozen()
		id := w.accept("k", say("ana", "I like tea"))
		e := wantStatus(t, w, id, task.EventPending)
		if e.Attempts != 0 || e.MaxAttempts != maxAttempts || e.Generation != 1 || e.Kind != task.Infer || e.Results == nil ||
			e.StartedAt != nil || !e.AcceptedAt.Equal(at) || *e.Scope != (memory.Scope{UserID: "ana"}) || e.Usage.Reserved != 2 {
			t.Fatalf("%+v", e)
		}
		lease := w.mustClaim(id)
		if e = wantStatus(t, w, id, task.EventRunning); e.Attempts != 1 || e.StartedAt == nil {
			t.Fatalf("%+v", e)
		}
		wantDone(t, "commit", w.commit(lease, "likes tea"))
		if e = wantStatus(t, w, id, task.EventRunning); len(e.Results) != 0 || e.CommittedAt == nil || e.Outcome != "" {
			t.Fatalf("%+v", e)
		}
		wantDone(t, "settle", w.settle(lease))
		e = wantStatus(t, w, id, task.EventSucceeded)
		if e.Outcome != task.Stored || len(e.Results) != 1 || e.Results[0].Change != memory.Added || *e.Results[0].Text != "likes tea" ||
			e.CompletedAt == nil || e.ErrorCode != "" || e.Usage.Settled != 2 || e.Usage.Released != 0 {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("AnExpiredLeaseIsRetrying", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.frozen()
		id := w.accept("k", say("ana", "I like tea"))
		w.mustClaim(id)
		w.advance(time.Minute) // to the very end of the lease
		wantStatus(t, w, id, task.EventRetrying)
		w.mustClaim(id)
		if e := wantStatus(t, w, id, task.EventRunning); e.Attempts != 2 {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("AClaimThatIsGivenBackIsPending", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "give back", w.later(w.mustClaim(id), "", 0))
		if e := wantStatus(t, w, id, task.EventPending); e.Attempts != 1 {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("ARecordedFailureIsRetryingUntilItsTime", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		at := w.frozen()
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "retry", w.later(w.mustClaim(id), task.ProviderTimeout, time.Hour))
		e := wantStatus(t, w, id, task.EventRetrying)
		if e.ErrorCode != task.CodeProviderTimeout || e.ErrorClass != task.ProviderTimeout || e.NextAttemptAt == nil ||
			!e.NextAttemptAt.Equal(at.Add(time.Hour)) {
			t.Fatalf("%+v", e)
		}
		w.advance(2 * time.Hour)
		if e := w.event(id); e.NextAttemptAt != nil {
			t.Fatalf("the next attempt is in the past: %v", e.NextAttemptAt)
		}
	})
	t.Run("AFailureTellsWhetherItsInputIsStillThere", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		e := wantStatus(t, w, id, task.EventFailed)
		if e.InputGone || e.ErrorCode != task.CodeOutputInvalid || e.Usage.Released != 2 || e.Usage.Settled != 0 || len(e.Results) != 0 {
			t.Fatalf("%+v", e)
		}
		w.exec(`UPDATE tasks SET command = NULL WHERE id = $1`, id)
		if e := w.event(id); !e.InputGone {
			t.Fatal("the input is gone and the event doesn't say so")
		}
	})
}

func TestEvent(t *testing.T) {
	t.Parallel()
	t.Run("AnotherWorkspacesIsUnknown", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		other := w.workspace(0).Workspace.ID
		id := w.accept("k", say("ana", "I like tea"))
		reader := w.db.EventReader(maxAttempts)
		_, theirs := reader.Event(t.Context(), other, id)
		_, nobodys := reader.Event(t.Context(), other, uuid.New())
		if !fault.Is(theirs, fault.EventNotFound) || theirs.Error() != nobodys.Error() {
			t.Fatalf("another workspace's: %v, nobody's: %v", theirs, nobodys)
		}
		if page, err := reader.Events(t.Context(), other, recall.EventQuery{Kinds: []task.Kind{task.Infer}, Limit: 10}); err != nil || len(page.Events) != 0 {
			t.Fatalf("%d events of another workspace, %v", len(page.Events), err)
		}
	})
	t.Run("ResultsLoseTheTextOfWhatIsDeletedOrExpired", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea and cake and jam"))
		wantDone(t, "complete", w.complete(w.mustClaim(id), "likes tea", "likes cake", "likes jam"))
		before := w.event(id)
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, before.Results[0].RecordID)
		w.exec(`UPDATE memories SET expires_at = clock_timestamp() WHERE id = $1`, before.Results[1].RecordID)
		after := w.event(id)
		if len(after.Results) != 3 || after.Results[0].Text != nil || after.Results[1].Text != nil || *after.Results[2].Text != "likes jam" ||
			after.Results[0].RecordID != before.Results[0].RecordID || after.Results[0].Change != memory.Added {
			t.Fatalf("%+v", after.Results)
		}
	})
	t.Run("AnErasedOneNamesNobody", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		w.exec(`UPDATE tasks SET erased = true WHERE id = $1`, id)
		if e := w.event(id); e.Scope != nil || !e.Erased {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("UsageIsThatOfTheCurrentGeneration", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		w.exec(`UPDATE task_attempts SET provider_calls = 2, tokens_in = 30, tokens_out = 4 WHERE task_id = $1`, id)
		if u := w.event(id).Usage; u != (recall.Usage{Reserved: 2, Released: 2, ProviderCalls: 2, TokensIn: 30, TokensOut: 4}) {
			t.Fatalf("%+v", u)
		}
		first := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &first, nil); err != nil {
			t.Fatal(err)
		}
		e := wantStatus(t, w, id, task.EventPending)
		if e.Generation != 2 || e.Usage != (recall.Usage{Reserved: 2}) || e.ErrorCode != "" {
			t.Fatalf("%+v", e)
		}
	})
	t.Run("IsTheSameOnceArchived", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "complete", w.complete(w.mustClaim(id), "likes tea"))
		before := wantStatus(t, w, id, task.EventSucceeded)
		if err := w.move(id, "tasks", "tasks_archive"); err != nil {
			t.Fatal(err)
		}
		after := wantStatus(t, w, id, task.EventSucceeded)
		if after.AcceptedAt != before.AcceptedAt || len(after.Results) != 1 || *after.Results[0].Text != "likes tea" || after.Usage != before.Usage {
			t.Fatalf("before %+v\nafter %+v", before, after)
		}
	})
	t.Run("IsNeverMissingWhileItMoves", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "complete", w.complete(w.mustClaim(id), "likes tea"))
		moved := make(chan error, 1)
		go func() {
			var err error
			for n := 0; n < 100 && err == nil; n++ {
				err = errors.Join(w.move(id, "tasks", "tasks_archive"), w.move(id, "tasks_archive", "tasks"))
			}
			moved <- err
		}()
		for {
			select {
			case err := <-moved:
				if err != nil {
					t.Fatal(err)
				}
				return
			default:
				wantStatus(t, w, id, task.EventSucceeded)
			}
		}
	})
}

func TestEventByKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	reader := w.db.EventReader(maxAttempts)
	id := w.accept("first", say("ana", "I like tea"))
	wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
	again := key(t, "again")
	if _, err := w.retrier().Retry(t.Context(), w.caller, id, nil, &again); err != nil {
		t.Fatal(err)
	}
	t.Run("FollowsTheKeyAndTheRetrysKey", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"first", "again"} {
			e, found, err := reader.EventByKey(t.Context(), w.caller.Workspace.ID, key(t, name).Hash())
			if err != nil || !found || e.ID != id || e.Generation != 2 {
				t.Errorf("%s: %+v, %v, %v", name, e, found, err)
			}
		}
	})
	t.Run("KnowsNoOtherKeyAndNoOtherWorkspaces", func(t *testing.T) {
		t.Parallel()
		if _, found, err := reader.EventByKey(t.Context(), w.caller.Workspace.ID, sha256.Sum256([]byte("x"))); found || err != nil {
			t.Errorf("an unknown key: %v, %v", found, err)
		}
		if _, found, err := reader.EventByKey(t.Context(), uuid.New(), key(t, "first").Hash()); found || err != nil {
			t.Errorf("another workspace's key: %v, %v", found, err)
		}
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("AreListedOnceNewestFirstWhileOthersArrive", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		w.frozen()
		var want []uuid.UUID
		for i := range 23 {
			// Another user each: lanes order nothing between them, so that many share one time.
			want = append(want, w.accept(keyName(i), say(keyName(i), "I like tea")))
			if i%5 == 4 {
				w.advance(time.Second)
			}
		}
		var got []uuid.UUID
		query := recall.EventQuery{Kinds: []task.Kind{task.Infer}, Limit: 4}
		reader := w.db.EventReader(maxAttempts)
		for i := range 100 {
			page, err := reader.Events(t.Context(), w.caller.Workspace.ID, query)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Events {
				got = append(got, e.ID)
			}
			if page.Next == nil {
				break
			}
			query.After = page.Next
			w.advance(time.Second)
			w.accept("later-"+keyName(i), say("later", "I like cake"))
		}
		if len(got) != len(want) {
			t.Fatalf("%d events, want %d", len(got), len(want))
		}
		for _, id := range want {
			if !slices.Contains(got, id) {
				t.Fatalf("%s is missing", id)
			}
		}
		for i := 1; i < len(got); i++ {
			if a, b := w.event(got[i-1]), w.event(got[i]); a.AcceptedAt.Before(b.AcceptedAt) {
				t.Fatalf("place %d is older than place %d", i-1, i)
			}
		}
	})
	t.Run("SeveralKindsAreOneList", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen()
		for i := range 6 {
			w.accept(keyName(i), say("ana", "I like tea"))
			w.advance(time.Second)
			w.remember(memory.Scope{UserID: "ana"}, "words "+keyName(i))
			w.advance(time.Second)
		}
		both := w.events(recall.EventQuery{Kinds: []task.Kind{task.Infer, task.Add}, Limit: 5})
		if len(both) != 12 {
			t.Fatalf("%d events", len(both))
		}
		for i := 1; i < len(both); i++ {
			if !both[i].AcceptedAt.Before(both[i-1].AcceptedAt) || both[i].Kind == both[i-1].Kind {
				t.Fatalf("place %d: %s at %s after %s at %s", i, both[i].Kind, both[i].AcceptedAt, both[i-1].Kind, both[i-1].AcceptedAt)
			}
		}
		if infer := w.events(recall.EventQuery{Kinds: []task.Kind{task.Infer}, Limit: 5}); len(infer) != 6 {
			t.Fatalf("%d inferred adds", len(infer))
		}
	})
	t.Run("AFilterIsAppliedBeforeTheLimit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		first := w.accept("first", say("ana", "I like tea"))
		wantDone(t, "fail", w.fail(w.mustClaim(first), task.OutputInvalid))
		for i := range 20 {
			w.accept(keyName(i), say("bob", "I like cake"))
		}
		failed := w.events(recall.EventQuery{Kinds: []task.Kind{task.Infer}, Status: task.EventFailed, Limit: 1})
		if len(failed) != 1 || failed[0].ID != first {
			t.Fatalf("%+v", failed)
		}
	})
	t.Run("APageReadsAPagesWorthOfRows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, outcome, accepted_at,
                   updated_at, completed_at)
SELECT gen_random_uuid(), CASE n % 2 WHEN 0 THEN $1 ELSE gen_random_uuid() END, CASE n % 3 WHEN 0 THEN 'memory_add' ELSE 'memory_infer' END,
       'succeeded', 'projected', at, at, 'bulk', 1, 'STORED', at, at, at
  FROM generate_series(1, 20000) n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 second' AS at) x`, w.caller.Workspace.ID)
		w.exec(`ANALYZE tasks`)
		middle := one[time.Time](w, `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY accepted_at) FROM tasks`)
		args := pgx.NamedArgs{
			"workspace": w.caller.Workspace.ID, "kinds": []string{"memory_infer", "memory_add"}, "status": "", "limit": 51,
			"now": nil, "after_at": middle, "after_id": uuid.Max,
		}
		for status, index := range map[task.EventStatus]string{
			task.EventPending: "tasks_open", task.EventRunning: "tasks_open", task.EventRetrying: "tasks_open", task.EventFailed: "tasks_failed",
		} {
			args["status"] = string(status)
			plan := w.plan(postgres.EventsSQL(status), args)
			if !strings.Contains(plan, index) || strings.Contains(plan, "tasks_listed") || strings.Contains(plan, "tasks_archive_listed") {
				t.Errorf("the list of %s events walks what has succeeded:\n%s", status, plan)
			}
		}
		args["status"] = ""
		plan := w.plan(postgres.EventsSQL(""), args)
		if !strings.Contains(plan, "tasks_listed") || strings.Contains(plan, "Seq Scan on tasks\n") || strings.Contains(plan, "Rows Removed by Filter") {
			t.Fatalf("the list doesn't walk its index:\n%s", plan)
		}
	})
}
