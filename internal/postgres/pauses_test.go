package postgres_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// TestPausedByHand holds what an operator's pauses stop, what they leave alone, and that they have no end of their own.
func TestPausedByHand(t *testing.T) {
	t.Parallel()

	t.Run("AWorkspaceIsAcceptedForAndNotClaimed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		other := w.caller
		w.caller = w.workspace(100)
		runs := w.mustClaim(w.accept("runs", say("u", "a")))
		name := w.caller.Workspace.ID.String()
		paused, err := w.db.PauseWorkspace(t.Context(), name, true)
		if err != nil || paused.Status() != "paused" || paused.PausedAt == nil || paused.SuspendedAt != nil {
			t.Fatalf("%+v: %v", paused, err)
		}
		again, err := w.db.PauseWorkspace(t.Context(), name, true)
		if err != nil || !again.PausedAt.Equal(*paused.PausedAt) {
			t.Fatalf("a second pause: %+v: %v", again, err)
		}
		waits := w.accept("waits", say("v", "b"))
		mine := w.caller
		w.caller = other
		goesOn := w.accept("goes-on", say("u", "c"))
		w.caller = mine
		w.mustClaimNot(waits)
		w.advance(time.Minute - time.Second) // no lease has ended
		if due := w.dueAmong(worker.Anyone, 10); !slices.Equal(due, []uuid.UUID{goesOn}) {
			t.Fatalf("due are %v, not what the other workspace has", due)
		}
		wantDone(t, "what runs ends", w.complete(runs, "a"))
		w.caller = other
		wantDone(t, "the other", w.complete(w.mustClaim(goesOn), "c"))
		w.caller = mine
		w.advance(time.Hour)
		if facts := w.facts(); facts.OldestDue != 0 {
			t.Fatalf("work of a paused workspace is not late, but %s", facts.OldestDue)
		}
		resumed, err := w.db.PauseWorkspace(t.Context(), name, false)
		if err != nil || resumed.Status() != "active" {
			t.Fatalf("%+v: %v", resumed, err)
		}
		if facts := w.facts(); facts.OldestDue == 0 {
			t.Fatal("what waited is due")
		}
		w.mustClaim(waits)
		w.sound()
	})

	t.Run("AProviderIsLeftAloneUntilAnOperatorLetsItGoOn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		running := w.mustClaim(w.accept("running", say("v", "b")))
		for _, reason := range []string{"", "maintenance"} {
			if err := w.db.PauseProvider(t.Context(), "stub", reason); err != nil {
				t.Fatal(err)
			}
		}
		beat, err := w.db.Heartbeat(t.Context(), running, time.Minute, "stub")
		if err != nil || beat.PausedFor != 15*time.Second {
			t.Fatalf("who is about to call is told to come again: %+v: %v", beat, err)
		}
		w.mustClaimNot(id)
		w.advance(30 * 24 * time.Hour)
		w.mustClaimNot(id)
		if due := w.dueAmong(worker.Anyone, 10); len(due) > 0 {
			t.Fatalf("due are %v", due)
		}
		if err := w.db.Pause(t.Context(), "stub", task.ProviderRateLimited, time.Second); err != nil { // what workers find changes nothing of it
			t.Fatal(err)
		}
		work, err := w.db.Work(t.Context())
		if err != nil || len(work.Pauses) != 1 || work.Pauses[0].StoppedAt == nil || work.Pauses[0].Reason != "maintenance" || work.Pauses[0].Until == nil {
			t.Fatalf("%+v: %v", work.Pauses, err)
		}
		w.advance(time.Minute)
		if !w.facts().PausedProvider {
			t.Fatal("health doesn't tell of it")
		}
		w.mustClaimNot(id)
		if err := w.db.ResumeProvider(t.Context(), "stub"); err != nil {
			t.Fatal(err)
		}
		w.mustClaim(id)
		if w.facts().PausedProvider {
			t.Fatal("health still tells of it")
		}
		if err := w.db.ResumeProvider(t.Context(), "stub"); err != nil { // nothing to do, and no act
			t.Fatal(err)
		}
		var acts []string
		log, err := w.db.Acts(t.Context(), operator.ActQuery{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range log.Acts {
			if strings.HasPrefix(a.Act, "provider.") {
				acts = append(acts, a.Act+" "+a.Subject)
			}
		}
		slices.Sort(acts)
		if !slices.Equal(acts, []string{operator.PauseProvider + " stub", operator.PauseProvider + " stub", operator.ResumeProvider + " stub"}) {
			t.Fatalf("recorded are %v", acts)
		}
	})

	t.Run("WhatIsNoNameIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for _, c := range [][2]string{{"", ""}, {" stub", ""}, {"st\nub", ""}, {"stub", strings.Repeat("x", 201)}, {strings.Repeat("x", 501), ""}} {
			if err := w.db.PauseProvider(t.Context(), c[0], c[1]); err == nil {
				t.Errorf("%q is taken", c)
			}
		}
	})
}
