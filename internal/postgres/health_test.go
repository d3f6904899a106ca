package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func (w *world) facts() recall.Facts {
	w.t.Helper()
	facts, err := w.db.Facts(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return facts
}

func TestFacts(t *testing.T) {
	t.Parallel()
	t.Run("NothingToDoIsHealthy", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "complete", w.complete(w.mustClaim(id), "likes tea"))
		if facts := w.facts(); facts != (recall.Facts{}) {
			t.Fatalf("%+v", facts)
		}
	})
	t.Run("TheOldestDueOfAllWorkspacesCounts", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		w.frozen()
		callers := []func(){}
		ours := w.caller
		for range 5 {
			other := w.workspace(100)
			callers = append(callers, func() { w.caller = other })
		}
		callers[3]()
		w.accept("oldest", say("ana", "I like tea"))
		w.advance(time.Minute)
		for i, use := range callers {
			use()
			w.accept(keyName(i), say("bob", "I like tea"))
		}
		w.caller = ours
		w.advance(time.Minute)
		if got := w.facts().OldestDue; got != 2*time.Minute {
			t.Fatalf("the oldest is due for %s", got)
		}
		w.exec(`UPDATE workspaces SET suspended_at = clock_timestamp() WHERE id = (SELECT workspace_id FROM tasks ORDER BY accepted_at LIMIT 1)`)
		if got := w.facts().OldestDue; got != time.Minute {
			t.Fatalf("without the suspended workspace the oldest is due for %s", got)
		}
	})
	t.Run("WhatIsNotDueYetDoesNotCount", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.frozen()
		id := w.accept("k", say("ana", "I like tea"))
		wantDone(t, "later", w.later(w.mustClaim(id), task.ProviderTimeout, time.Hour))
		if got := w.facts().OldestDue; got != 0 {
			t.Fatalf("due for %s", got)
		}
		w.advance(time.Hour + time.Second)
		if got := w.facts().OldestDue; got != time.Second {
			t.Fatalf("due for %s", got)
		}
	})
	t.Run("ExpiredLeasesCount", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.frozen()
		w.mustClaim(w.accept("a", say("ana", "I like tea")))
		w.advance(time.Minute)
		w.mustClaim(w.accept("b", say("bob", "I like tea")))
		if got := w.facts().ExpiredLeases; got != 1 {
			t.Fatalf("%d leases", got)
		}
	})
	t.Run("OurFailuresCountForTenMinutes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen()
		for i, class := range []task.Class{task.OutputInvalid, task.ExtractionRejected, task.InputRejected, task.Crash, task.Cancelled, task.ProviderRejected} {
			id := w.accept(keyName(i), say(keyName(i), "I like tea"))
			wantDone(t, "fail", w.fail(w.mustClaim(id), class))
		}
		if got := w.facts().RecentFailures; got != 3 {
			t.Fatalf("%d failures", got)
		}
		w.advance(10 * time.Minute)
		if got := w.facts().RecentFailures; got != 0 {
			t.Fatalf("%d failures after ten minutes", got)
		}
	})
	t.Run("SkippedVectorsAndPausesCount", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.frozen()
		id := w.remember(memory.Scope{UserID: "ana"}, "x")[0]
		w.exec(`UPDATE memory_vectors SET skipped = true, vector = NULL WHERE memory_id = $1`, id)
		if err := w.db.Pause(t.Context(), "stub", task.ProviderRejected, time.Minute); err != nil {
			t.Fatal(err)
		}
		if facts := w.facts(); facts.SkippedVectors != 1 || !facts.PausedProvider {
			t.Fatalf("%+v", facts)
		}
		w.advance(time.Minute)
		if w.facts().PausedProvider {
			t.Fatal("the pause is over")
		}
	})
	t.Run("DueTasksAndThoseInHandAreCounted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.frozen()
		w.accept("due", say("ana", "I like tea"))
		w.accept("behind-it-in-its-lane", say("ana", "I like tea"))
		w.mustClaim(w.accept("in-hand", say("bob", "I like tea")))
		later := w.mustClaim(w.accept("later", say("eve", "I like tea")))
		wantDone(t, "later", w.later(later, task.ProviderTimeout, time.Hour))
		if facts := w.facts(); facts.Due != 1 || facts.Leased != 1 {
			t.Fatalf("%+v", facts)
		}
	})
	t.Run("CostTheSameOverLargeTables", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, priority, payload_format, command, outcome,
                   accepted_at, updated_at, completed_at)
SELECT gen_random_uuid(), ('00000000-0000-7000-8000-' || lpad((n % 20)::text, 12, '0'))::uuid, 'memory_infer',
       CASE n % 2 WHEN 0 THEN 'pending' ELSE 'succeeded' END, CASE n % 2 WHEN 0 THEN 'accepted' ELSE 'projected' END, at, at, 'bulk', 1,
       CASE n % 2 WHEN 0 THEN 'x'::bytea END, CASE n % 2 WHEN 1 THEN 'STORED' END, at, at, CASE n % 2 WHEN 1 THEN at END
  FROM generate_series(1, 60000) n, LATERAL (SELECT timestamptz '2026-01-01' + n * interval '1 microsecond' AS at) x`)
		w.exec(`ANALYZE tasks`)
		plan := w.plan(postgres.FactsSQL, pgx.NamedArgs{
			"now": time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "count": 1000, "rows": 10000, "window": 600.0,
			"theirs": []string{"cancelled"},
		})
		if !strings.Contains(plan, "tasks_due") || !strings.Contains(plan, "tasks_ended") || strings.Contains(plan, "Seq Scan on tasks") ||
			strings.Contains(plan, "rows=30000") {
			t.Fatalf("%s", plan)
		}
		if got := w.facts().OldestDue; got <= 0 {
			t.Fatalf("due for %s", got)
		}
	})
}

func TestHealthVerdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	w.frozen()
	health, err := recall.NewHealth(w.db, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if v, err := health.Check(t.Context()); err != nil || v.Degraded() {
		t.Fatalf("%+v, %v", v, err)
	}
	w.accept("k"+uuid.NewString(), say("ana", "I like tea"))
	w.advance(2 * time.Minute)
	v, err := health.Check(t.Context())
	if err != nil || !v.Degraded() || len(v.Reasons) != 1 || v.Reasons[0] != recall.DueTooLong {
		t.Fatalf("%+v, %v", v, err)
	}
}
