package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestCreateKeyOnce(t *testing.T) {
	t.Parallel()
	ends := time.Date(2099, 1, 2, 3, 4, 5, 678_901_234, time.UTC)
	ask := operator.KeyAsk{
		Reference: "ticket 7", Name: "crm", Permissions: []access.Permission{access.MemoryRead, access.MemoryWrite}, ExpiresAt: &ends,
	}

	t.Run("ARepeatMakesNothingAndShowsNoSecret", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		before := len(w.acted())
		made, secret, err := w.db.CreateKeyOnce(t.Context(), w.caller.Workspace.ID, ask)
		if err != nil || secret == nil || made.ID != secret.ID() || made.Reference != ask.Reference || made.Name != "crm" {
			t.Fatalf("%+v, %v", made, err)
		}
		swapped := ask
		swapped.Permissions = []access.Permission{access.MemoryWrite, access.MemoryRead}
		again, none, err := w.db.CreateKeyOnce(t.Context(), w.caller.Workspace.ID, swapped)
		if err != nil || none != nil || again.ID != made.ID {
			t.Fatalf("%+v, %v, %v", again, none, err)
		}
		if caller, err := w.db.Authenticate(t.Context(), *secret); err != nil || len(caller.Permissions) != 2 {
			t.Errorf("%+v, %v", caller, err)
		}
		acts := w.acted()[before:]
		if len(acts) != 1 || acts[0].Act != operator.CreateKey || acts[0].Subject != made.ID {
			t.Fatalf("%+v", acts)
		}
		var details struct {
			Permissions []string
			ExpiresAt   string `json:"expires_at"`
		}
		if err := json.Unmarshal(acts[0].Details, &details); err != nil || len(details.Permissions) != 2 || details.ExpiresAt == "" ||
			strings.Contains(string(acts[0].Details), "crm") {
			t.Errorf("details %s, %v", acts[0].Details, err)
		}
	})

	t.Run("AReferenceThatMadeAnotherKeyIsAConflict", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		ws := w.caller.Workspace.ID
		if _, _, err := w.db.CreateKeyOnce(t.Context(), ws, ask); err != nil {
			t.Fatal(err)
		}
		later := ends.Add(time.Second)
		for name, other := range map[string]operator.KeyAsk{
			"another name":        {Reference: ask.Reference, Permissions: ask.Permissions, ExpiresAt: &ends},
			"another permission":  {Reference: ask.Reference, Name: "crm", Permissions: []access.Permission{access.Admin}, ExpiresAt: &ends},
			"a permission less":   {Reference: ask.Reference, Name: "crm", Permissions: ask.Permissions[:1], ExpiresAt: &ends},
			"no end":              {Reference: ask.Reference, Name: "crm", Permissions: ask.Permissions},
			"another end of life": {Reference: ask.Reference, Name: "crm", Permissions: ask.Permissions, ExpiresAt: &later},
		} {
			if _, secret, err := w.db.CreateKeyOnce(t.Context(), ws, other); !fault.Is(err, fault.IdempotencyConflict) || secret != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if keys, err := w.db.ListKeys(t.Context(), ws); err != nil || len(keys) != 1 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		if _, secret, err := w.db.CreateKeyOnce(t.Context(), w.workspace(0).Workspace.ID, ask); err != nil || secret == nil {
			t.Errorf("the same reference of another workspace: %v", err)
		}
	})

	t.Run("ManyAtOnceMakeOneKeyAndOneSecret", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		var mu sync.Mutex
		secrets, ids := 0, map[string]bool{}
		together(8, func(int) {
			made, secret, err := w.db.CreateKeyOnce(t.Context(), w.caller.Workspace.ID, ask)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if secret != nil {
				secrets++
			}
			ids[made.ID] = true
		})
		if secrets != 1 || len(ids) != 1 {
			t.Fatalf("%d secrets, keys %v", secrets, ids)
		}
	})

	t.Run("ALostAnswerToTheCommitStillShowsTheSecret", func(t *testing.T) {
		t.Parallel()
		for name, committed := range map[string]bool{"it was committed": true, "it was not": false} {
			w := newWorld(t, 1)
			proxy := testkit.CommitCutProxy(t, w.url)
			db := w.open(proxy.URL())
			lost := proxy.CutNextCommit(committed)
			made, secret, err := db.CreateKeyOnce(t.Context(), w.caller.Workspace.ID, ask)
			<-lost
			if err != nil || secret == nil || secret.ID() != made.ID {
				t.Fatalf("%s: %+v, %v", name, made, err)
			}
			if n := one[int64](w, `SELECT count(*) FROM operator_acts WHERE act = 'key.create'`); n != 1 {
				t.Errorf("%s: %d acts", name, n)
			}
			if n := one[int64](w, `SELECT count(*) FROM api_keys`); n != 1 {
				t.Errorf("%s: %d keys", name, n)
			}
		}
	})

	t.Run("WhatCannotBeIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		ws := w.caller.Workspace.ID
		for pointer, bad := range map[string]operator.KeyAsk{
			"/reference":   {Permissions: ask.Permissions},
			"/name":        {Reference: "r", Name: strings.Repeat("x", 101), Permissions: ask.Permissions},
			"/permissions": {Reference: "r"},
		} {
			if _, _, err := w.db.CreateKeyOnce(t.Context(), ws, bad); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%s: %v", pointer, err)
			}
		}
		if _, _, err := w.db.CreateKeyOnce(t.Context(), uuid.New(), ask); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("of no workspace: %v", err)
		}
		if _, _, err := w.db.DeleteWorkspace(context.WithoutCancel(t.Context()), ws.String()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.db.CreateKeyOnce(t.Context(), ws, ask); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("of a workspace that is being deleted: %v", err)
		}
	})
}

func TestWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	w.mustClaim(w.accept("running", say("a", "x")))
	w.accept("behind", say("a", "x"))
	w.accept("due", say("b", "x"))
	w.accept("later", say("c", "x"))
	w.exec(`UPDATE tasks SET run_after = now() + interval '1 hour' WHERE user_id = 'c'`)
	w.exec(`INSERT INTO provider_pauses (provider, paused_until, class, updated_at)
VALUES ('now', now() + interval '1 hour', 'rate_limited', now()), ('over', now() - interval '1 hour', 'rate_limited', now())`)
	work, err := w.db.Work(t.Context())
	if err != nil || len(work.Pauses) != 1 || work.Pauses[0].Provider != "now" || work.Pauses[0].Class != "rate_limited" {
		t.Fatalf("%+v, %v", work, err)
	}
	work.Pauses = nil
	if want := (operator.Work{Waiting: 3, Due: 1, Running: 1, Looked: 4}); work.Waiting != want.Waiting || work.Due != want.Due ||
		work.Running != want.Running || work.Looked != want.Looked || work.Deliveries != 0 || work.More {
		t.Fatalf("%+v", work)
	}
}
