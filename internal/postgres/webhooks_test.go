package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// anyURL lets every URL be one: whether it may be called is tested where that is decided.
type anyURL struct{}

func (anyURL) Check(string) error { return nil }

func (w *world) endpoints() *write.Endpoints {
	w.t.Helper()
	e, err := write.NewEndpoints(w.db, w.db, anyURL{})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func wanted(types ...endpoint.Type) endpoint.Change {
	url := "https://hooks.example.com/x"
	return endpoint.Change{URL: &url, Types: &types}
}

// hook makes a webhook of the world's workspace.
func (w *world) hook(change endpoint.Change) endpoint.Endpoint {
	w.t.Helper()
	made, _, err := w.endpoints().Create(w.t.Context(), w.caller, change)
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// dispatched dispatches until n deliveries have been made: other tests' transactions hold the feed back for moments.
func (w *world) dispatched(n int) {
	w.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	made := 0
	for deadline := time.Now().Add(feedPatience); made < n && time.Now().Before(deadline); <-tick.C {
		m, _, err := w.db.Dispatch(w.t.Context())
		if err != nil {
			w.t.Fatalf("dispatch: %v", err)
		}
		made += m
	}
	if made != n {
		w.t.Fatalf("%d deliveries made, want %d", made, n)
	}
}

// passed dispatches until the webhook's place is behind everything that has ended.
func (w *world) passed(id uuid.UUID) (made int) {
	w.t.Helper()
	last := one[string](w, `SELECT max(xid::text::bigint)::text FROM credit_closings WHERE workspace_id = $1`, w.caller.Workspace.ID)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(feedPatience); time.Now().Before(deadline); <-tick.C {
		m, _, err := w.db.Dispatch(w.t.Context())
		if err != nil {
			w.t.Fatalf("dispatch: %v", err)
		}
		made += m
		if one[bool](w, `SELECT (feed_xid::text::bigint, 1) > ($2::text::bigint, 0) FROM webhooks WHERE id = $1`, id, last) {
			return made
		}
	}
	w.t.Fatal("the webhook's place doesn't move")
	return 0
}

func (w *world) deliveries(id uuid.UUID) []endpoint.Delivery {
	w.t.Helper()
	page, err := w.db.Deliveries(w.t.Context(), w.caller.Workspace.ID, id, nil, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Deliveries
}

func courier(name string) worker.Claimant {
	who := claimant(name)
	who.Kinds, who.Extractor, who.Embedder = []task.Kind{task.Webhook}, "", ""
	return who
}

func (w *world) carry(id uuid.UUID) worker.Lease {
	w.t.Helper()
	c := w.db.Claim(w.t.Context(), courier("courier"), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	if c.Err != nil || c.Lease == nil {
		w.t.Fatalf("claim delivery: %+v", c)
	}
	return *c.Lease
}

// succeed runs one add to its end and answers its event.
func (w *world) succeed(k string) uuid.UUID {
	w.t.Helper()
	id := w.accept(k, say("u", k))
	wantDone(w.t, "complete", w.complete(w.mustClaim(id), "fact of "+k))
	return id
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	t.Run("AWorkspaceHasTwentyAndNoMore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		var made, refused atomic.Int32
		together(30, func(int) {
			_, _, err := w.endpoints().Create(context.Background(), w.caller, wanted(endpoint.Succeeded))
			switch {
			case err == nil:
				made.Add(1)
			case fault.Is(err, fault.TooManyWebhooks):
				refused.Add(1)
			default:
				t.Errorf("create: %v", err)
			}
		})
		all, err := w.db.Endpoints(t.Context(), w.caller.Workspace.ID)
		if err != nil || made.Load() != 20 || refused.Load() != 10 || len(all) != 20 {
			t.Fatalf("%d made, %d refused, %d there: %v", made.Load(), refused.Load(), len(all), err)
		}
		if err := w.endpoints().Delete(t.Context(), w.caller, all[0].ID); err != nil {
			t.Fatal(err)
		}
		w.hook(wanted(endpoint.Failed)) // there is room again
	})
	t.Run("AnotherWorkspaceKnowsNothingOfThem", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		e := w.hook(wanted(endpoint.Succeeded))
		stranger := w.workspace(0)
		name := "mine"
		_, read := w.db.Endpoint(t.Context(), stranger.Workspace.ID, e.ID)
		_, changed := w.endpoints().Change(t.Context(), stranger, e.ID, endpoint.Change{Name: &name})
		_, _, rotated := w.endpoints().Rotate(t.Context(), stranger, e.ID)
		_, tested := w.endpoints().Test(t.Context(), stranger, e.ID)
		_, replayed := w.endpoints().Replay(t.Context(), stranger, e.ID, endpoint.Selection{}, nil)
		deleted := w.endpoints().Delete(t.Context(), stranger, e.ID)
		for what, err := range map[string]error{"read": read, "change": changed, "rotate": rotated, "test": tested, "replay": replayed, "delete": deleted} {
			if !fault.Is(err, fault.WebhookNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if all, err := w.db.Endpoints(t.Context(), stranger.Workspace.ID); err != nil || len(all) != 0 {
			t.Errorf("listed %v %v", all, err)
		}
		if page, err := w.db.Deliveries(t.Context(), stranger.Workspace.ID, e.ID, nil, 10); err != nil || len(page.Deliveries) != 0 {
			t.Errorf("deliveries %v %v", page, err)
		}
		if one[int64](w, `SELECT count(*) FROM webhooks WHERE deleted_at IS NULL AND name = ''`) != 1 {
			t.Error("it was changed")
		}
	})
	t.Run("ChangesKeepWhatIsNotGiven", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		e := w.hook(wanted(endpoint.Succeeded, endpoint.Failed))
		off, name := false, "office"
		got, err := w.endpoints().Change(t.Context(), w.caller, e.ID, endpoint.Change{Active: &off, Name: &name})
		if err != nil || got.Active || got.Reason != endpoint.ByCaller || got.Name != "office" || got.URL != e.URL || len(got.Types) != 2 {
			t.Fatalf("%+v %v", got, err)
		}
		on, kinds := true, []task.Kind{task.Infer}
		got, err = w.endpoints().Change(t.Context(), w.caller, e.ID, endpoint.Change{Active: &on, Kinds: &kinds})
		if err != nil || !got.Active || got.Reason != "" || len(got.Kinds) != 1 || got.Name != "office" {
			t.Fatalf("%+v %v", got, err)
		}
	})
	t.Run("WrongMembersAreRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		for _, types := range [][]endpoint.Type{{}, {"event.retrying"}, {endpoint.Failed, endpoint.Failed}, {endpoint.Test}} {
			if _, _, err := w.endpoints().Create(t.Context(), w.caller, wanted(types...)); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("%v: %v", types, err)
			}
		}
		kinds := []task.Kind{task.Webhook}
		change := wanted(endpoint.Failed)
		change.Kinds = &kinds
		if _, _, err := w.endpoints().Create(t.Context(), w.caller, change); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%v: %v", kinds, err)
		}
		suspended := access.Caller{Workspace: w.caller.Workspace}
		suspended.Workspace.Suspended = true
		if _, _, err := w.endpoints().Create(t.Context(), suspended, wanted(endpoint.Failed)); !fault.Is(err, fault.InsufficientPermission) {
			t.Errorf("suspended: %v", err)
		}
	})
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	t.Run("EveryEndIsToldOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded, endpoint.Failed))
		want := map[string]string{}
		for i := range 20 {
			id := w.accept(keyName(i), say("u", keyName(i)))
			if i%4 == 0 {
				wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
				want["evt_"+id.String()] = "event.failed FAILED OUTPUT_INVALID 1"
				continue
			}
			wantDone(t, "complete", w.complete(w.mustClaim(id), "fact "+keyName(i)))
			want["evt_"+id.String()] = "event.succeeded SUCCEEDED STORED 1"
		}
		other := w.open(w.url)
		var made atomic.Int64
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(feedPatience); made.Load() < 20 && time.Now().Before(deadline); <-tick.C {
			together(8, func(i int) {
				db := w.db
				if i%2 == 0 {
					db = other
				}
				n, _, err := db.Dispatch(context.Background())
				if err != nil {
					t.Errorf("dispatch: %v", err)
				}
				made.Add(int64(n))
			})
		}
		got := w.deliveries(e.ID)
		if made.Load() != 20 || len(got) != 20 || one[int64](w, `SELECT count(*) FROM tasks WHERE kind = 'webhook_delivery'`) != 20 {
			t.Fatalf("%d made, %d there", made.Load(), len(got))
		}
		for _, d := range got {
			var body struct {
				Type      string
				Timestamp time.Time
				Data      map[string]any
			}
			text := one[[]byte](w, `SELECT body FROM webhook_deliveries WHERE id = $1`, d.Message)
			if err := json.Unmarshal(text, &body); err != nil {
				t.Fatal(err)
			}
			what := body.Data["outcome"]
			if what == nil {
				what = body.Data["error_code"]
			}
			words := fmt.Sprint(body.Type, " ", body.Data["status"], " ", what, " ", body.Data["generation"])
			about := body.Data["event_id"].(string)
			if want[about] != words || body.Timestamp.IsZero() || body.Data["event_type"] != "memory_infer" || d.Status != task.EventPending {
				t.Errorf("%s: %s, want %q", text, d.Status, want[about])
			}
			delete(want, about)
		}
		if len(want) != 0 {
			t.Errorf("not told: %v", want)
		}
		w.books()
	})
	t.Run("OnlyWhatIsWantedIsTold", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		failures := w.hook(wanted(endpoint.Failed))
		adds := wanted(endpoint.Succeeded)
		kinds := []task.Kind{task.Add}
		adds.Kinds = &kinds
		verbatim := w.hook(adds)
		w.succeed("a")
		wantDone(t, "fail", w.fail(w.mustClaim(w.accept("b", say("u", "b"))), task.OutputInvalid))
		w.store(say("u", "").Scope, "", "as it is")
		w.dispatched(2)
		if f, v := w.deliveries(failures.ID), w.deliveries(verbatim.ID); len(f) != 1 || f[0].Type != endpoint.Failed || len(v) != 1 || v[0].Type != endpoint.Succeeded {
			t.Fatalf("%+v %+v", f, v)
		}
	})
	t.Run("ItsOwnDeliveriesAreNotTold", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		lease := w.carry(w.deliveries(e.ID)[0].TaskID)
		parcel, err := w.db.Parcel(t.Context(), lease)
		if err != nil || parcel == nil {
			t.Fatal(parcel, err)
		}
		wantDone(t, "delivered", w.db.Delivered(t.Context(), lease, *parcel, endpoint.Receipt{Status: 204}, worker.Work{}))
		if made := w.passed(e.ID); made != 0 {
			t.Fatalf("%d more deliveries", made)
		}
		d := w.deliveries(e.ID)[0]
		if d.Status != task.EventSucceeded || d.Attempts != 1 || *d.LastStatus != 204 || d.LastError != "" || d.CompletedAt == nil {
			t.Fatalf("%+v", d)
		}
		w.books()
	})
	t.Run("EnabledAgainItIsToldWhatEndedMeanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		off, on := false, true
		if _, err := w.endpoints().Change(t.Context(), w.caller, e.ID, endpoint.Change{Active: &off}); err != nil {
			t.Fatal(err)
		}
		w.succeed("a")
		if n, _, err := w.db.Dispatch(t.Context()); err != nil || n != 0 {
			t.Fatal(n, err)
		}
		if _, err := w.endpoints().Change(t.Context(), w.caller, e.ID, endpoint.Change{Active: &on}); err != nil {
			t.Fatal(err)
		}
		w.dispatched(1)
	})
	t.Run("ASuspendedWorkspaceIsLeftAlone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		e := w.hook(wanted(endpoint.Succeeded))
		w.succeed("a")
		w.dispatched(1)
		w.exec(`UPDATE workspaces SET suspended_at = now() WHERE id = $1`, w.caller.Workspace.ID)
		ids, _, err := w.db.DueDeliveries(t.Context(), courier("c"), 10, 4)
		if err != nil || len(ids) != 0 {
			t.Fatal(ids, err)
		}
		id := w.deliveries(e.ID)[0].TaskID
		if c := w.db.Claim(t.Context(), courier("c"), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]; c.Err != nil || c.Lease != nil {
			t.Fatalf("%+v", c)
		}
	})
	t.Run("APlaceOfAnotherDatabaseBeginsAnew", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		w.hook(wanted(endpoint.Succeeded))
		w.exec(`UPDATE webhooks SET feed_xid = '9000000000000'::xid8, feed_claim = 3`)
		if n, _, err := w.db.Dispatch(t.Context()); err != nil || n != 0 {
			t.Fatal(n, err)
		}
		w.succeed("a")
		w.dispatched(1)
	})
}
