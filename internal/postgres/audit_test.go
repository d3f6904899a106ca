package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/audit"
)

// breach breaks one thing of a sound world and says what an audit then finds: the first of finds names about, an event,
// a memory or a workspace, or nothing for what belongs to none of them.
type breach struct {
	name  string
	sql   string
	about string
	count int64 // of the first of finds, 1 if it isn't said
	finds []string
}

func TestAudit(t *testing.T) {
	t.Parallel()
	sound := newSoundWorld(t)
	sound.sound()
	sound.template()

	t.Run("WhatConstraintsForbidIsNotNeededToBeSound", func(t *testing.T) {
		t.Parallel()
		sound.copied(t).sound()
	})

	for name, breaches := range map[string][]breach{
		"Tasks": taskBreaches(), "Records": recordBreaches(), "Money": moneyBreaches(), "Privacy": privacyBreaches(), "Edges": edgeBreaches(),
		"Acts": actBreaches(),
	} {
		t.Run("FindsEachBreachAndNothingElse/"+name, func(t *testing.T) {
			t.Parallel()
			w := sound.copied(t)
			for _, b := range breaches {
				w.breached(b)
				w.exec(`SELECT mend()`)
			}
			w.sound()
		})
	}

	t.Run("EveryWayOfBeingWrongIsTested", func(t *testing.T) {
		t.Parallel()
		tested := map[string]bool{}
		for _, b := range slices.Concat(taskBreaches(), recordBreaches(), moneyBreaches(), privacyBreaches(), edgeBreaches(), actBreaches()) {
			tested[b.finds[0]] = true
		}
		for _, way := range waysToBeWrong(t) {
			if !tested[way] {
				t.Errorf("no breach shows %q", way)
			}
		}
	})
}

// breached breaks the world and checks what an audit finds.
func (w *world) breached(b breach) {
	w.t.Helper()
	about := uuid.Nil
	if b.about != "" {
		about = one[uuid.UUID](w, `SELECT `+b.about)
	}
	w.exec(b.sql)
	report, err := w.audited(audit.Options{})
	if err != nil {
		w.t.Errorf("%s: %v", b.name, err)
	}
	var found []string
	named := false
	for _, f := range report.Findings() {
		way := f.Check + ": " + f.Detail
		found = append(found, way)
		rows := slices.Concat(f.Events, f.Memories, f.Workspaces)
		named = named || way == b.finds[0] && f.Count == max(b.count, 1) &&
			(slices.Contains(rows, about) || b.about == "" && len(rows) == 0)
	}
	want := slices.Sorted(slices.Values(b.finds))
	if slices.Sort(found); !slices.Equal(found, want) {
		w.t.Errorf("%s: found:\n%s\nwant:\n%s", b.name, describe(report), strings.Join(want, "\n"))
	}
	if !named {
		w.t.Errorf("%s: %s is not named, or not alone:\n%s", b.name, about, describe(report))
	}
}

// TestAuditSnapshot is about what an audit sees and how long it takes.
func TestAuditSnapshot(t *testing.T) {
	t.Parallel()

	t.Run("EveryCheckSeesTheSame", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.accept("k", say("u", "a"))
		err := w.db.InSnapshot(t.Context(), func(ctx context.Context, s audit.Snapshot) error {
			if _, err := w.sql.Exec(ctx, `DELETE FROM idempotency_keys`); err != nil {
				return err
			}
			found, err := s.Find(ctx, audit.Keys, audit.DefaultOptions().Question)
			if err == nil && len(found) > 0 {
				t.Errorf("found what came later: %+v", found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if report, err := w.audited(audit.Options{}); err != nil || report.Clean() {
			t.Fatalf("the next one finds nothing: %v", err)
		}
	})

	t.Run("ACheckThatTakesTooLongIsGivenUpAlone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.accept("k", say("u", "a"))
		w.exec(`DELETE FROM idempotency_keys`)
		tx := w.begin()
		if _, err := tx.Exec(t.Context(), `LOCK TABLE items IN ACCESS EXCLUSIVE MODE`); err != nil {
			t.Fatal(err)
		}
		auditor, err := audit.New(w.db, audit.Options{Question: audit.Question{Bound: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		report, err := auditor.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range report.Checks {
			waits := result.Check.Name == audit.Items || result.Check.Name == audit.Tenancy
			if (result.Err != nil) != waits || waits && !strings.Contains(result.Err.Error(), "longer than a check may") {
				t.Errorf("check %s: %v", result.Check.Name, result.Err)
			}
		}
		if found := report.Findings(); len(found) != 1 || found[0].Check != audit.Keys || report.Complete() || report.Clean() {
			t.Errorf("found %s", describe(report))
		}
	})

	t.Run("LooksAtOneWorkspaceOnly", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		w.accept("k", say("u", "a"))
		w.exec(`DELETE FROM idempotency_keys`)
		for id, clean := range map[uuid.UUID]bool{w.caller.Workspace.ID: false, w.workspace(0).Workspace.ID: true} {
			report, err := w.audited(audit.Options{Question: audit.Question{Workspace: &id}})
			if err != nil || report.Clean() != clean {
				t.Errorf("clean: %v, want %v: %v", report.Clean(), clean, err)
			}
		}
	})

	t.Run("CountsAllAndNamesTheFirst", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		for i := range 5 {
			w.accept(keyName(i), say(keyName(i), "a"))
		}
		w.exec(`DELETE FROM idempotency_keys`)
		report, err := w.audited(audit.Options{Question: audit.Question{Events: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if found := report.Findings(); len(found) != 1 || found[0].Count != 5 || len(found[0].Events) != 2 {
			t.Fatalf("%+v", found)
		}
	})

	t.Run("AClientThatGoesAwayCostsNoConnection", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		gone, cancel := context.WithCancel(t.Context())
		err := w.db.InSnapshot(gone, func(ctx context.Context, s audit.Snapshot) error {
			cancel()
			_, err := s.Find(ctx, audit.Keys, audit.DefaultOptions().Question)
			return err
		})
		if err == nil {
			t.Error("a check ran for nobody")
		}
		w.sound()
	})
}
