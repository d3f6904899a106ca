package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// masterKey is what a store says of one master key.
func (w *world) masterKey(db *postgres.DB, name string) postgres.MasterKey {
	w.t.Helper()
	keys, err := db.KeyStatus(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range keys {
		if k.Name == name {
			return k
		}
	}
	return postgres.MasterKey{}
}

func TestKeyStatus(t *testing.T) {
	t.Parallel()
	w := newSealedWorld(t, 1000)
	w.accept("k", say("u", "text"))
	if k := w.masterKey(w.db, "a"); !k.Active || !k.Configured || !k.Opens || k.DataKeys != 1 || k.Payloads != 1 || k.Oldest == nil || k.Err() != nil {
		t.Errorf("of its own key: %+v", k)
	}
	if k := w.masterKey(w.plain(), "a"); k.Configured || k.Err() == nil {
		t.Errorf("without keys: %+v", k)
	}
	if k := w.masterKey(w.sealed("b"), "a"); k.Configured || k.Err() == nil {
		t.Errorf("with another: %+v", k)
	}
	if k := w.masterKey(w.sealed("a/other"), "a"); k.Opens || k.Err() == nil {
		t.Errorf("with another of the name: %+v", k)
	}
	if k := w.masterKey(w.sealed("b", "a"), "b"); !k.Active || k.DataKeys != 0 || k.Err() != nil {
		t.Errorf("of one that nothing needs: %+v", k)
	}
}

func TestRotateKeys(t *testing.T) {
	t.Parallel()
	w := newSealedWorld(t, 1000)
	const n = 5
	ids := make([]uuid.UUID, n)
	for i := range ids {
		w.caller = w.workspace(1000)
		ids[i] = w.accept("k", say("u", "text"))
	}
	both := w.sealed("b", "a")
	page, err := both.RotateKeys(t.Context(), uuid.Nil, 2)
	if err != nil || page.Done != 2 || !page.More || page.Failed != 0 {
		t.Fatalf("the first page: %+v, %v", page, err)
	}
	// Broken off here. Everything goes on meanwhile, also for who knows both keys.
	w.as(both, func() { wantOpen(t, w.mustClaim(ids[0]), "text") })
	w.as(both, func() { wantOpen(t, w.mustClaim(ids[4]), "text") })
	done := 0
	for after, more := uuid.Nil, true; more; {
		page, err := both.RotateKeys(t.Context(), after, 2)
		if err != nil || page.Failed != 0 {
			t.Fatalf("a page: %+v, %v", page, err)
		}
		done, after, more = done+page.Done, page.After, page.More
	}
	if k := w.masterKey(both, "a"); done != n-2 || k.DataKeys != 0 || k.Payloads != 0 {
		t.Errorf("%d were left to be done, the old key has %+v", done, k)
	}
	w.as(w.sealed("b"), func() { wantOpen(t, w.mustClaim(ids[1]), "text") })
	w.as(w.sealed("a"), func() {
		if l := w.claim(ids[2], "x"); l != nil {
			t.Error("the old key still opens something")
		}
	})
	acts := one[int](w, `SELECT count(*) FROM operator_acts WHERE act = $1 AND subject = 'b' AND workspace_id IS NULL`, operator.RotateEncryption)
	if acts == 0 {
		t.Error("the log of acts has no rotation")
	}
	// A key that can't be opened stays, and stops nothing.
	w.caller = w.workspace(1000)
	w.as(w.sealed("lost"), func() { w.accept("k", say("u", "text")) })
	w.as(w.sealed("b"), func() {
		w.caller = w.workspace(1000)
		w.accept("k", say("u", "text"))
	})
	page, err = w.sealed("c", "b").RotateKeys(t.Context(), uuid.Nil, 100)
	if err != nil || page.Done != n+1 || page.Failed != 1 || !errors.Is(page.Reason, seal.ErrNoMaster) || page.More {
		t.Errorf("with a lost key: %+v, %v", page, err)
	}
	if _, err := w.plain().RotateKeys(t.Context(), uuid.Nil, 100); !errors.Is(err, postgres.ErrSealsNothing) {
		t.Errorf("without keys: %v", err)
	}
}

func TestRetireDataKeys(t *testing.T) {
	t.Parallel()
	retire := func(w *world) int {
		w.t.Helper()
		swept, err := w.db.RetireDataKeys(w.t.Context(), 10)
		if err != nil {
			w.t.Fatal(err)
		}
		return swept.Fixed
	}

	t.Run("AKeyGoesWithItsLastPayload", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		failed := w.accept("a", say("u", "kept for a retry"))
		wantDone(t, "fail", w.fail(w.mustClaim(failed), task.OutputInvalid))
		wantDone(t, "complete", w.complete(w.mustClaim(w.accept("b", say("u", "done"))), "done"))
		w.advance(0)
		if n := retire(w); n != 0 {
			t.Fatalf("%d keys of today were retired", n)
		}
		w.advance(26 * time.Hour)
		if n := retire(w); n != 0 {
			t.Fatal("the key of a payload that is still there was retired")
		}
		wantOpen(t, func() worker.Lease {
			first := 1
			if _, err := w.retrier().Retry(t.Context(), w.caller, failed, &first, nil); err != nil {
				t.Fatal(err)
			}
			return w.mustClaim(failed)
		}(), "kept for a retry")
		l := w.claim(failed, "again")
		if l != nil {
			t.Fatal("claimed twice")
		}
		w.advance(2 * time.Hour)
		wantDone(t, "complete", w.complete(w.mustClaim(failed), "kept"))
		if n := retire(w); n != 1 {
			t.Errorf("%d keys were retired after the last payload", n)
		}
	})

	t.Run("AKeyStaysForItsDay", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		evening := time.Date(2026, 3, 4, 23, 30, 0, 0, time.UTC)
		w.clock.Store(&evening)
		wantDone(t, "complete", w.complete(w.mustClaim(w.accept("a", say("u", "done"))), "done"))
		for _, step := range []struct {
			after time.Duration
			gone  int
		}{{0, 0}, {45 * time.Minute, 0}, {time.Hour, 1}} { // to 23:30, 00:15 and 01:15
			w.advance(step.after)
			if n := retire(w); n != step.gone {
				t.Errorf("%d keys were retired at %s", n, w.clock.Load())
			}
		}
	})

	t.Run("EachDayHasItsKey", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		w.accept("a", say("u", "one"))
		w.advance(24 * time.Hour)
		w.as(w.sealed("a"), func() { w.accept("b", say("u", "two")) })
		if n := one[int](w, `SELECT count(DISTINCT data_key) FROM tasks`); n != 2 {
			t.Errorf("%d keys over two days", n)
		}
	})

	t.Run("WithTheWorkspace", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		w.hook(wanted(endpoint.Succeeded))
		w.lives()
		w.remember(memory.Scope{UserID: "u"}, "text")
		if n := one[int](w, `SELECT count(*) FROM data_keys`); n != 2 {
			t.Fatalf("%d keys", n)
		}
		w.endErase(w.deletion())
		if n := one[int](w, `SELECT count(*) FROM data_keys`); n != 0 {
			t.Errorf("%d keys are left of a deleted workspace", n)
		}
	})
}

func TestSealedSecrets(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*world, endpoint.Endpoint, uuid.UUID) {
		t.Helper()
		w := newSealedWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		sent, err := w.db.TestDelivery(t.Context(), w.caller.Workspace.ID, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		return w, e, sent.TaskID
	}
	secrets := func(w *world, l worker.Lease) []endpoint.Secret {
		w.t.Helper()
		parcel, err := w.db.Parcel(w.t.Context(), l)
		if err != nil || parcel == nil {
			w.t.Fatalf("parcel: %v", err)
		}
		return parcel.Secrets
	}

	t.Run("AreSealedWithTheLastingKey", func(t *testing.T) {
		t.Parallel()
		w, e, delivery := setup(t)
		wantSealed(t, "the secret", one[[]byte](w, `SELECT secret FROM webhooks WHERE id = $1`, e.ID), "whsec")
		if n := one[int](w, `SELECT count(*) FROM webhooks w JOIN data_keys k ON k.id = w.data_key WHERE k.day IS NULL`); n != 1 {
			t.Error("it is not the lasting key")
		}
		first := secrets(w, w.carry(delivery))
		if len(first) != 1 {
			t.Fatalf("%d secrets", len(first))
		}
	})

	t.Run("ARotationThatIsRepeatedKeepsTheOneBefore", func(t *testing.T) {
		t.Parallel()
		w, e, delivery := setup(t)
		fresh, err := endpoint.NewSecret()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // as after a COMMIT whose answer got lost, here even by another process
			if _, err := w.sealed("a").RotateSecret(t.Context(), w.caller.Workspace.ID, e.ID, fresh); err != nil {
				t.Fatal(err)
			}
		}
		if got := secrets(w, w.carry(delivery)); len(got) != 2 || got[0] != fresh || got[1] == fresh {
			t.Errorf("%d secrets, the present one is the fresh one: %v", len(got), len(got) > 0 && got[0] == fresh)
		}
	})

	t.Run("WhoLacksTheKeyLeavesTheDelivery", func(t *testing.T) {
		t.Parallel()
		w, _, delivery := setup(t)
		w.as(w.plain(), func() {
			if ids, _, err := w.db.DueDeliveries(t.Context(), courier("c"), 10, 4); err != nil || len(ids) != 0 {
				t.Errorf("due are %v: %v", ids, err)
			}
			c := w.db.Claim(t.Context(), courier("c"), []worker.ClaimAsk{{TaskID: delivery, Token: uuid.New()}}, false)[0]
			if c.Err != nil || c.Lease != nil {
				t.Errorf("claimed: %+v", c)
			}
		})
		if len(secrets(w, w.carry(delivery))) != 1 {
			t.Error("with the key it is not delivered")
		}
	})

	t.Run("AMovedSecretIsClosed", func(t *testing.T) {
		t.Parallel()
		w, e, delivery := setup(t)
		other := w.hook(wanted(endpoint.Failed))
		w.exec(`UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = $2) WHERE id = $1`, e.ID, other.ID)
		if _, err := w.db.Parcel(context.WithoutCancel(t.Context()), w.carry(delivery)); !errors.Is(err, seal.ErrUnreadable) {
			t.Errorf("opened: %v", err)
		}
	})
}
