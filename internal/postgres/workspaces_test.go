package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

func TestWorkspace(t *testing.T) {
	t.Parallel()
	t.Run("IsMadeWithAnAccountAndASecretOfItsOwn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		at := w.frozen()
		a, err := w.db.CreateWorkspace(t.Context(), "acme", true)
		if err != nil || a.Name != "acme" || !a.Metered || a.SuspendedAt != nil || !a.CreatedAt.Equal(at) || a.Available != 0 {
			t.Fatalf("%+v, %v", a, err)
		}
		b, err := w.db.CreateWorkspace(t.Context(), "other", false)
		if err != nil || b.Metered {
			t.Fatalf("%+v, %v", b, err)
		}
		if n := one[int](w, `SELECT count(DISTINCT fingerprint_key) FROM workspaces WHERE id IN ($1, $2)`, a.ID, b.ID); n != 2 {
			t.Fatal("the secrets are not two")
		}
		if n := one[int](w, `SELECT count(*) FROM credit_accounts WHERE workspace_id IN ($1, $2)`, a.ID, b.ID); n != 2 {
			t.Fatalf("%d accounts", n)
		}
	})
	t.Run("ANameIsTakenOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		errs := make([]error, 8)
		together(len(errs), func(i int) { _, errs[i] = w.db.CreateWorkspace(t.Context(), "acme", true) })
		made := 0
		for _, err := range errs {
			switch {
			case err == nil:
				made++
			case !errors.Is(err, postgres.ErrWorkspaceExists):
				t.Error(err)
			}
		}
		if accounts := one[int](w, `SELECT count(*) FROM credit_accounts`); made != 1 || accounts != 2 {
			t.Fatalf("%d made, %d accounts", made, accounts)
		}
	})
	t.Run("WhatIsNoNameIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		for _, name := range []string{"", " ", " x", "x\n", "a\x00b", strings.Repeat("é", 101), "\xff"} {
			if _, err := w.db.CreateWorkspace(t.Context(), name, true); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%q: %v", name, err)
			}
		}
		if _, err := w.db.CreateWorkspace(t.Context(), strings.Repeat("é", 100), true); err != nil {
			t.Error(err)
		}
	})
	t.Run("IsFoundByIDAndByName", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		made, err := w.db.CreateWorkspace(t.Context(), "acme", true)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"acme", made.ID.String(), "ws_" + made.ID.String()} {
			if found, err := w.db.Workspace(t.Context(), text); err != nil || found.ID != made.ID {
				t.Errorf("%q: %+v, %v", text, found, err)
			}
		}
		for _, text := range []string{"", "Acme", uuid.NewString()} {
			if _, err := w.db.Workspace(t.Context(), text); !errors.Is(err, postgres.ErrNoWorkspace) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if _, err := w.db.WorkspaceByName(t.Context(), made.ID.String()); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("an id as a name: %v", err)
		}
		all, err := w.db.ListWorkspaces(t.Context())
		if err != nil || len(all) != 2 || all[1].ID != made.ID {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("IsSuspendedAndResumed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		at := w.frozen()
		if _, err := w.db.CreateWorkspace(t.Context(), "acme", true); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time changes nothing
			suspended, err := w.db.SuspendWorkspace(t.Context(), "acme", true)
			if err != nil || suspended.SuspendedAt == nil || !suspended.SuspendedAt.Equal(at) {
				t.Fatalf("%+v, %v", suspended, err)
			}
			w.advance(time.Hour)
		}
		if resumed, err := w.db.SuspendWorkspace(t.Context(), "acme", false); err != nil || resumed.SuspendedAt != nil {
			t.Fatalf("%+v, %v", resumed, err)
		}
		if _, err := w.db.SuspendWorkspace(t.Context(), "nobody", true); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Fatal(err)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	all := access.Permissions()
	t.Run("AKeyStandsForItsWorkspace", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		made, err := w.db.CreateWorkspace(t.Context(), "acme", true)
		if err != nil {
			t.Fatal(err)
		}
		key := w.createKey(made.ID, []access.Permission{access.MemoryRead, access.CreditsRead}, nil)
		caller, err := w.db.Authenticate(t.Context(), key)
		secret := one[[]byte](w, `SELECT fingerprint_key FROM workspaces WHERE id = $1`, made.ID)
		if err != nil || caller.KeyID != key.ID() || caller.Workspace.ID != made.ID || !caller.Workspace.Metered ||
			caller.Workspace.Suspended || !slices.Equal(caller.Workspace.FingerprintKey, secret) {
			t.Fatalf("%+v, %v", caller, err)
		}
		if caller.Require(access.MemoryRead) != nil || caller.Require(access.MemoryWrite) == nil {
			t.Fatalf("permissions %v", caller.Permissions)
		}
		if _, err := w.db.SuspendWorkspace(t.Context(), "acme", true); err != nil {
			t.Fatal(err)
		}
		if caller, err = w.db.Authenticate(t.Context(), key); err != nil || caller.Writable() == nil {
			t.Fatalf("a suspended workspace's key: %+v, %v", caller, err)
		}
	})
	t.Run("OnlyTheHashIsKept", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		key := w.createKey(w.caller.Workspace.ID, all, nil)
		secret := strings.TrimPrefix(key.Reveal(), "hfk_"+key.ID()+"_")[:43]
		if n := one[int](w, `SELECT count(*) FROM api_keys k WHERE position($1 IN k::text) > 0 OR position(encode($1::bytea, 'hex') IN k::text) > 0`, secret); n != 0 {
			t.Fatal("the secret is stored")
		}
	})
	t.Run("AWrongSecretIsAnUnknownKey", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ours := w.createKey(w.caller.Workspace.ID, all, nil)
		stranger, err := access.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		w.exec(`UPDATE api_keys SET secret_hash = sha256('another') WHERE id = $1`, ours.ID())
		_, wrong := w.db.Authenticate(t.Context(), ours)
		_, unknown := w.db.Authenticate(t.Context(), stranger)
		if !fault.Is(wrong, fault.InvalidAPIKey) || !fault.Is(unknown, fault.InvalidAPIKey) || wrong.Error() != unknown.Error() {
			t.Fatalf("wrong %v, unknown %v", wrong, unknown)
		}
	})
	t.Run("ARevokedKeyEndsAtOnceAndForGood", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		key := w.createKey(w.caller.Workspace.ID, all, nil)
		if owner, err := w.db.WorkspaceOfKey(t.Context(), key.ID()); err != nil || owner != w.caller.Workspace.ID {
			t.Fatalf("the key is of %s, %v", owner, err)
		}
		if _, err := w.db.WorkspaceOfKey(t.Context(), "nosuchkey123"); !errors.Is(err, postgres.ErrNoKey) {
			t.Fatal(err)
		}
		if err := w.db.RevokeKey(t.Context(), uuid.New(), key.ID()); !errors.Is(err, postgres.ErrNoKey) {
			t.Fatalf("another workspace revokes it: %v", err)
		}
		if _, err := w.db.Authenticate(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.db.RevokeKey(t.Context(), w.caller.Workspace.ID, key.ID()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.db.Authenticate(t.Context(), key); !fault.Is(err, fault.InvalidAPIKey) {
			t.Fatal(err)
		}
	})
	t.Run("AKeyExpiresByTheDatabasesClock", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		end := w.frozen().Add(time.Hour)
		key := w.createKey(w.caller.Workspace.ID, all, &end)
		w.advance(time.Hour - time.Microsecond)
		if _, err := w.db.Authenticate(t.Context(), key); err != nil {
			t.Fatalf("a moment before: %v", err)
		}
		w.advance(time.Microsecond)
		if _, err := w.db.Authenticate(t.Context(), key); !fault.Is(err, fault.APIKeyExpired) {
			t.Fatalf("at its end: %v", err)
		}
		w.exec(`UPDATE api_keys SET secret_hash = sha256('another')`)
		if _, err := w.db.Authenticate(t.Context(), key); !fault.Is(err, fault.InvalidAPIKey) {
			t.Fatalf("who doesn't know the secret learns that the key exists: %v", err)
		}
	})
	t.Run("TheListShowsTheWorkspacesOwn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.frozen()
		first := w.createKey(w.caller.Workspace.ID, all, nil)
		w.advance(time.Second)
		second := w.createKey(w.caller.Workspace.ID, []access.Permission{access.MemoryRead}, nil)
		w.createKey(w.workspace(0).Workspace.ID, all, nil)
		if err := w.db.RevokeKey(t.Context(), w.caller.Workspace.ID, first.ID()); err != nil {
			t.Fatal(err)
		}
		keys, err := w.db.ListKeys(t.Context(), w.caller.Workspace.ID)
		if err != nil || len(keys) != 2 || keys[0].ID != first.ID() || keys[0].RevokedAt == nil || keys[1].ID != second.ID() ||
			keys[1].RevokedAt != nil || keys[0].Name != "test" || !slices.Equal(keys[1].Permissions, []access.Permission{access.MemoryRead}) {
			t.Fatalf("%+v, %v", keys, err)
		}
	})
	t.Run("WhatIsNoKeyIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		for _, c := range []struct {
			name        string
			permissions []access.Permission
		}{{"x", nil}, {"x", []access.Permission{"memory:all"}}, {"\n", all}, {strings.Repeat("x", 101), all}} {
			if _, err := w.db.CreateKey(t.Context(), w.caller.Workspace.ID, c.name, c.permissions, nil); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%q %v: %v", c.name, c.permissions, err)
			}
		}
		if _, err := w.db.CreateKey(t.Context(), uuid.New(), "x", all, nil); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("unknown workspace: %v", err)
		}
		if n := one[int](w, `SELECT count(*) FROM api_keys`); n != 0 {
			t.Errorf("%d keys", n)
		}
	})
}

func (w *world) createKey(workspace uuid.UUID, permissions []access.Permission, expires *time.Time) access.Key {
	w.t.Helper()
	key, err := w.db.CreateKey(w.t.Context(), workspace, "test", permissions, expires)
	if err != nil {
		w.t.Fatal(err)
	}
	return key
}
