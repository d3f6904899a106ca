package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *world) changer(embedder model.Embedder) *write.Changer {
	w.t.Helper()
	c, err := write.NewChanger(w.db, w.hints, embedder, credit.DefaultPrices())
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestSuspendedWorkspace is answered for what it had asked before, and begins nothing new.
func TestSuspendedWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	wantDone(t, "complete", w.complete(w.mustClaim(w.accept("add", say("u", "a"))), "fact"))
	failed := w.accept("failing", say("v", "a"))
	wantDone(t, "fail", w.fail(w.mustClaim(failed), task.OutputInvalid))
	record := one[uuid.UUID](w, `SELECT id FROM memories`)
	text, generation := "changed", 1
	calls := map[string]func(k string) error{
		"verbatim add": func(k string) error {
			name := key(t, k)
			_, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, &name, verbatim("u", "b"))
			return err
		},
		"change": func(k string) error {
			name := key(t, k)
			_, err := w.changer(offline.NewEmbedder()).Change(t.Context(), w.caller, &name, command.Change{ID: record, Content: &text})
			return err
		},
		"export": func(k string) error {
			name := key(t, k)
			_, err := w.mover().Export(t.Context(), w.caller, &name)
			return err
		},
		"retry": func(k string) error {
			name := key(t, k)
			_, err := w.retrier().Retry(t.Context(), w.caller, failed, nil, &name)
			return err
		},
		"erase": func(k string) error {
			name := key(t, k)
			_, err := w.eraser().Erase(t.Context(), w.caller, &name, memory.Scope{UserID: "nobody"})
			return err
		},
	}
	for name, call := range calls {
		if err := call("first-" + name[:3]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	w.caller.Workspace.Suspended = true
	before := one[int64](w, `SELECT count(*) FROM idempotency_keys`)
	for name, call := range calls {
		if err := call("first-" + name[:3]); err != nil {
			t.Errorf("%s: the replay was refused: %v", name, err)
		}
		if err := call("second-" + name[:3]); !fault.Is(err, fault.InsufficientPermission) {
			t.Errorf("%s: begun while suspended: %v", name, err)
		}
	}
	if _, err := w.retrier().Retry(t.Context(), w.caller, failed, &generation, nil); !fault.Is(err, fault.InsufficientPermission) {
		t.Errorf("retry by generation: %v", err)
	}
	if _, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, nil, verbatim("u", "c")); !fault.Is(err, fault.InsufficientPermission) {
		t.Errorf("add without a key: %v", err)
	}
	if after := one[int64](w, `SELECT count(*) FROM idempotency_keys`); after != before {
		t.Errorf("%d keys left by refusals", after-before)
	}
}

// change applies a change that must succeed, with the local embedder.
func (w *world) change(k string, c command.Change) write.Changed {
	w.t.Helper()
	changed, err := w.try(k, c)
	if err != nil {
		w.t.Fatalf("change: %v", err)
	}
	return changed
}

func (w *world) try(k string, c command.Change) (write.Changed, error) {
	w.t.Helper()
	var given *command.Key
	if k != "" {
		parsed := key(w.t, k)
		given = &parsed
	}
	return w.changer(offline.NewEmbedder()).Change(w.t.Context(), w.caller, given, c)
}

func (w *world) record(id uuid.UUID) (memory.Record, error) {
	w.t.Helper()
	return w.db.Memory(w.t.Context(), w.caller.Workspace.ID, id)
}

func (w *world) history(id uuid.UUID) []memory.HistoryEntry {
	w.t.Helper()
	h, err := w.db.History(w.t.Context(), w.caller.Workspace.ID, recall.HistoryQuery{Memory: id, Limit: 1000})
	if err != nil {
		w.t.Fatalf("history: %v", err)
	}
	return h.Entries
}

// found searches a user's records and answers their texts.
func (w *world) found(mode recall.SearchMode, text string) []string {
	w.t.Helper()
	return textsOf(w.search(mode, "ada", text))
}

func ptr[T any](v T) *T { return &v }

// outOfStep tells how many of the workspace's records lack terms or a vector of their version, or keep one after their end.
func (w *world) outOfStep() int64 {
	w.t.Helper()
	return one[int64](w, `
SELECT count(*) FROM memories m
  LEFT JOIN memory_terms t ON t.memory_id = m.id
  LEFT JOIN memory_vectors v ON v.memory_id = m.id
 WHERE m.workspace_id = $1 AND CASE WHEN m.deleted_at IS NULL
       THEN t.version IS DISTINCT FROM m.version OR v.version IS DISTINCT FROM m.version
       ELSE t.memory_id IS NOT NULL OR v.memory_id IS NOT NULL END`, w.caller.Workspace.ID)
}

func TestChange(t *testing.T) {
	t.Parallel()
	scope := memory.Scope{UserID: "ada", AppID: "app"}

	t.Run("TextAloneKeepsTheMetadata", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		raw := `{"b":1.50,"a":{"z":[1,2]},"user_id":"bob"}`
		id := w.store(scope, raw, "likes tea").ids()[0]
		before, _ := w.record(id)
		changed := w.change("", command.Change{ID: id, Content: ptr("likes green tea")})
		if changed.Version != 2 || changed.Result.Change != memory.Updated || *changed.Result.Text != "likes green tea" || changed.Replayed {
			t.Fatalf("answer %+v", changed)
		}
		r, err := w.record(id)
		if err != nil || r.Text != "likes green tea" || string(r.Metadata) != raw || r.Version != 2 || r.Scope != scope {
			t.Fatalf("record %+v, %v", r, err)
		}
		if !r.CreatedAt.Equal(before.CreatedAt) || !r.UpdatedAt.After(before.UpdatedAt) {
			t.Errorf("created %s then %s, updated %s then %s", before.CreatedAt, r.CreatedAt, before.UpdatedAt, r.UpdatedAt)
		}
		for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic} {
			if got := w.found(mode, "green"); len(got) != 1 || got[0] != "likes green tea" {
				t.Errorf("%s search finds %q", mode, got)
			}
		}
		if said := one[bool](w, `SELECT m.said_at = l.last_accepted_at AND m.accepted_at < m.said_at FROM memories m JOIN lanes l USING (workspace_id, lane) WHERE m.id = $1`, id); !said {
			t.Error("the new text was not said when it was accepted")
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		wantBalance(t, w, 9, 0)
	})

	t.Run("MetadataNeverTouchesScopeOrText", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "likes tea")[0]
		raw := `{"user_id":"bob","agent_id":"x","n":12345678901.10}`
		changed := w.change("", command.Change{ID: id, Metadata: []byte(raw)})
		r, err := w.record(id)
		if err != nil || string(r.Metadata) != raw || r.Scope != scope || r.Text != "likes tea" || r.Version != 2 || *changed.Result.Text != "likes tea" {
			t.Fatalf("record %+v, %v, answer %+v", r, err, changed)
		}
		if bob := w.memories(memory.Scope{UserID: "bob"}, 10); len(bob) != 0 {
			t.Fatalf("bob has %+v", bob)
		}
		if got := w.found(recall.Semantic, "tea"); len(got) != 1 {
			t.Errorf("after a change of metadata semantic search finds %q", got)
		}
		if got := w.status(changed.EventID); got != "succeeded/projected" {
			t.Errorf("the change waits for a vector that is there: %s", got)
		}
		w.change("", command.Change{ID: id, Metadata: []byte(`{}`)})
		if r, _ = w.record(id); string(r.Metadata) != "{}" {
			t.Errorf("metadata %s", r.Metadata)
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
	})

	t.Run("ExpiryIsSetAndCleared", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "likes tea")[0]
		soon := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
		w.change("", command.Change{ID: id, ExpiresAt: &soon})
		if r, err := w.record(id); err != nil || r.ExpiresAt == nil || !r.ExpiresAt.Equal(soon) {
			t.Fatalf("record %+v, %v", r, err)
		}
		w.change("", command.Change{ID: id, NeverExpires: true})
		if r, err := w.record(id); err != nil || r.ExpiresAt != nil {
			t.Fatalf("record %+v, %v", r, err)
		}
		w.change("", command.Change{ID: id, ExpiresAt: &soon})
		w.advance(2 * time.Hour)
		if _, err := w.record(id); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("an expired record: %v", err)
		}
		if _, err := w.try("", command.Change{ID: id, Content: ptr("x")}); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("a change of an expired record: %v", err)
		}
		if h := w.history(id); len(h) != 4 {
			t.Errorf("history %+v", h)
		}
	})

	t.Run("WhenItWasSaidIsSetAndStays", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "likes tea")[0]
		said := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)
		w.change("", command.Change{ID: id, EventDate: &said})
		if r, err := w.record(id); err != nil || r.EventDate == nil || !r.EventDate.Equal(said) || r.Text != "likes tea" {
			t.Fatalf("record %+v, %v", r, err)
		}
		w.change("", command.Change{ID: id, Content: ptr("likes coffee")})
		if r, err := w.record(id); err != nil || r.EventDate == nil || !r.EventDate.Equal(said) {
			t.Fatalf("record %+v, %v", r, err)
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
	})

	t.Run("DeleteIsATombstone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		added := w.store(scope, "", "likes tea")
		id := added.ids()[0]
		changed := w.change("k", command.Change{ID: id, Delete: true})
		if changed.Result.Change != memory.Deleted || changed.Result.Text != nil || changed.Version != 2 {
			t.Fatalf("answer %+v", changed)
		}
		if _, err := w.record(id); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("read: %v", err)
		}
		if all := w.memories(scope, 10); len(all) != 0 {
			t.Errorf("list: %+v", all)
		}
		for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid} {
			if got := w.found(mode, "tea"); len(got) != 0 {
				t.Errorf("%s search finds %q", mode, got)
			}
		}
		for _, event := range []uuid.UUID{added.EventID, changed.EventID} {
			if e := w.event(event); len(e.Results) != 1 || e.Results[0].RecordID != id || e.Results[0].Text != nil {
				t.Errorf("event %+v", e)
			}
		}
		h := w.history(id)
		if len(h) != 2 || h[1].Event != memory.Deleted || *h[1].OldText != "likes tea" || h[1].NewText != nil {
			t.Errorf("history %+v", h)
		}
		if _, err := w.try("", command.Change{ID: id, Delete: true}); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("a second delete: %v", err)
		}
		if again := w.change("k", command.Change{ID: id, Delete: true}); !again.Replayed || again.EventID != changed.EventID || again.Version != 2 {
			t.Errorf("the same delete again: %+v", again)
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		wantBalance(t, w, 9, 0)
	})

	t.Run("OtherWorkspacesRecordsAreUnknown", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "likes tea")[0]
		mine := w.caller
		w.caller = w.workspace(10)
		for _, c := range []command.Change{{ID: id, Content: ptr("x")}, {ID: id, Delete: true}, {ID: uuid.New(), Delete: true}} {
			if _, err := w.try("k", c); !fault.Is(err, fault.MemoryNotFound) {
				t.Errorf("change %+v: %v", c, err)
			}
		}
		if _, err := w.db.History(t.Context(), w.caller.Workspace.ID, recall.HistoryQuery{Memory: id, Limit: 10}); !fault.Is(err, fault.MemoryNotFound) {
			t.Errorf("history: %v", err)
		}
		if n := one[int64](w, `SELECT count(*) FROM idempotency_keys WHERE workspace_id = $1`, w.caller.Workspace.ID); n != 0 {
			t.Errorf("refusals consumed %d keys", n)
		}
		w.caller = mine
		if r, err := w.record(id); err != nil || r.Version != 1 {
			t.Errorf("record %+v, %v", r, err)
		}
	})

	t.Run("TwoWorkspacesMayUseOneKey", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		first := w.change("k", command.Change{ID: w.remember(scope, "a")[0], Content: ptr("b")})
		w.caller = w.workspace(10)
		second := w.change("k", command.Change{ID: w.remember(scope, "a")[0], Content: ptr("b")})
		if second.Replayed || second.EventID == first.EventID {
			t.Fatalf("%+v and %+v", first, second)
		}
	})
}

func TestVersion(t *testing.T) {
	t.Parallel()
	scope := memory.Scope{UserID: "ada"}

	t.Run("RepeatIsAReplayAndNoConflict", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "one")[0]
		to := func(text string, version int) command.Change {
			return command.Change{ID: id, Content: ptr(text), Version: &version}
		}
		first := w.change("k", to("two", 1))
		again := w.change("k", to("two", 1))
		if !again.Replayed || again.EventID != first.EventID || again.Version != 2 || *again.Result.Text != "two" {
			t.Fatalf("replay %+v of %+v", again, first)
		}
		for name, c := range map[string]struct {
			key    string
			change command.Change
			code   fault.Code
		}{
			"OldVersion":          {"other", to("three", 1), fault.VersionConflict},
			"VersionToCome":       {"other", to("three", 3), fault.VersionConflict},
			"WithoutKey":          {"", to("three", 1), fault.VersionConflict},
			"SameKeyOtherText":    {"k", to("three", 1), fault.IdempotencyConflict},
			"SameKeyOtherVersion": {"k", to("two", 2), fault.IdempotencyConflict},
			"SameKeyEnd":          {"k", command.Change{ID: id, Delete: true}, fault.IdempotencyConflict},
		} {
			if _, err := w.try(c.key, c.change); !fault.Is(err, c.code) {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.change("later", to("three", 2))
		// The first result stays the first result, whatever became of the record.
		if again = w.change("k", to("two", 1)); !again.Replayed || *again.Result.Text != "two" || again.Version != 2 {
			t.Errorf("replay after another change: %+v", again)
		}
		w.change("", command.Change{ID: id, Delete: true})
		if again = w.change("k", to("two", 1)); !again.Replayed || *again.Result.Text != "two" {
			t.Errorf("replay after the end: %+v", again)
		}
		w.exec(`UPDATE memory_history SET old_text = NULL, new_text = NULL WHERE memory_id = $1`, id)
		if again = w.change("k", to("two", 1)); !again.Replayed || again.Result.Text != nil {
			t.Errorf("replay after an erase of the text: %+v", again)
		}
	})

	t.Run("OneOfManyWithTheSameExpectationWins", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "one")[0]
		var mu sync.Mutex
		won, refused := 0, 0
		together(16, func(i int) {
			_, err := w.try(keyName(i), command.Change{ID: id, Content: ptr(strings.Repeat("x", i+1)), Version: ptr(1)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case fault.Is(err, fault.VersionConflict):
				refused++
			default:
				t.Errorf("writer %d: %v", i, err)
			}
		})
		if won != 1 || refused != 15 {
			t.Fatalf("%d won and %d were refused", won, refused)
		}
		if h := w.history(id); len(h) != 2 || h[1].Version != 2 {
			t.Fatalf("history %+v", h)
		}
	})

	t.Run("OneKeyAtOnceIsOneChange", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(scope, "one")[0]
		events := make([]uuid.UUID, 12)
		together(len(events), func(i int) {
			changed, err := w.try("k", command.Change{ID: id, Content: ptr("two")})
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
			events[i] = changed.EventID
		})
		for _, e := range events {
			if e != events[0] {
				t.Fatalf("events %v", events)
			}
		}
		if h := w.history(id); len(h) != 2 {
			t.Fatalf("history %+v", h)
		}
	})
}

// TestRemoteChange is about changes whose vectors come later, from a worker.
func TestRemoteChange(t *testing.T) {
	t.Parallel()
	scope := memory.Scope{UserID: "ada"}
	setup := func(t *testing.T) (*world, uuid.UUID, uuid.UUID) {
		t.Helper()
		w := newWorld(t, 10)
		add := command.Add{Scope: scope, Messages: []command.Message{{Role: "user", Content: "one"}}}
		stored, err := w.writer(remote{offline.NewEmbedder()}).Write(t.Context(), w.caller, nil, add)
		if err != nil {
			t.Fatal(err)
		}
		return w, stored.EventID, stored.Results[0].RecordID
	}
	change := func(t *testing.T, w *world, c command.Change) write.Changed {
		t.Helper()
		changed, err := w.changer(remote{offline.NewEmbedder()}).Change(t.Context(), w.caller, nil, c)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}

	t.Run("ProjectsAfterTheChange", func(t *testing.T) {
		t.Parallel()
		w, added, id := setup(t)
		wantDone(t, "settle", w.settle(w.claimKind(added, task.Add)))
		changed := change(t, w, command.Change{ID: id, Content: ptr("two")})
		if got := w.status(changed.EventID); got != "pending/committed" {
			t.Fatalf("the change is %s", got)
		}
		if r, err := w.record(id); err != nil || r.Text != "two" {
			t.Fatalf("record %+v, %v", r, err)
		}
		wantDone(t, "settle", w.settle(w.claimKind(changed.EventID, task.Update)))
		if e := w.event(changed.EventID); e.Outcome != task.Stored || len(e.Results) != 1 || e.Results[0].Change != memory.Updated {
			t.Errorf("event %+v", e)
		}
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		wantBalance(t, w, 9, 0)
	})

	t.Run("RacingProjectionsNeverLeaveAnOldVector", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct {
			name   string
			change command.Change
		}{{"Text", command.Change{Content: ptr("two")}}, {"Metadata", command.Change{Metadata: []byte(`{"a":1}`)}}} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				w, added, id := setup(t)
				c.change.ID = id
				l := w.claimKind(added, task.Add)
				live, err := w.db.Unprojected(t.Context(), l, "m")
				if err != nil || len(live) != 1 || live[0].Version != 1 {
					t.Fatalf("unprojected %+v, %v", live, err)
				}
				changed := change(t, w, c.change) // between the worker's read and its write
				done := w.db.Settle(t.Context(), []worker.Settle{{
					Lease: l, VectorModel: "m", Projected: []worker.Projection{{RecordID: id, Version: 1, Vector: model.Vector{1}}},
				}})[0]
				wantDone(t, "settle of the add", done)
				if n := one[int64](w, `SELECT count(*) FROM memory_vectors v JOIN memories m ON m.id = v.memory_id AND m.version = v.version`); n != 0 {
					t.Fatal("the old text's vector has the new version")
				}
				wantDone(t, "settle of the change", w.settle(w.claimKind(changed.EventID, task.Update)))
				if n := w.outOfStep(); n != 0 {
					t.Errorf("%d records are out of step", n)
				}
				wantBalance(t, w, 9, 0)
			})
		}
	})

	t.Run("AnEndLeavesNothingToProject", func(t *testing.T) {
		t.Parallel()
		w, added, id := setup(t)
		l := w.claimKind(added, task.Add)
		if got := w.status(change(t, w, command.Change{ID: id, Delete: true}).EventID); got != "succeeded/projected" {
			t.Fatalf("the end is %s", got)
		}
		done := w.db.Settle(t.Context(), []worker.Settle{{
			Lease: l, VectorModel: "m", Projected: []worker.Projection{{RecordID: id, Version: 1, Vector: model.Vector{1}}},
		}})[0]
		wantDone(t, "settle of the add", done)
		if n := w.outOfStep(); n != 0 {
			t.Errorf("%d records are out of step", n)
		}
		wantBalance(t, w, 9, 0)
	})
}

// claimKind claims a task of a kind that must be there to be had.
func (w *world) claimKind(id uuid.UUID, kind task.Kind) worker.Lease {
	w.t.Helper()
	who := claimant("worker")
	who.Kinds = []task.Kind{kind}
	c := w.db.Claim(w.t.Context(), who, []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
	if c.Err != nil || c.Lease == nil {
		w.t.Fatalf("task %s could not be claimed: %v", id, c.Err)
	}
	return *c.Lease
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	scope := memory.Scope{UserID: "ada"}
	at := w.frozen().Add(time.Hour)
	add := command.Add{Scope: scope, ExpiresAt: &at, Messages: []command.Message{{Role: "user", Content: "one"}}}
	stored, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, nil, add)
	if err != nil {
		t.Fatal(err)
	}
	inferred := say("ada", "two")
	inferred.ExpiresAt = &at
	l := w.mustClaim(w.accept("k", inferred))
	again, err := command.Decode(l.Format, l.Payload)
	if err != nil || again.ExpiresAt == nil || !again.ExpiresAt.Equal(at) {
		t.Fatalf("payload %+v, %v", again, err)
	}
	plan := planOf("two")
	plan.Records[0].ExpiresAt = again.ExpiresAt
	wantDone(t, "commit", w.db.Commit(t.Context(), []worker.Commit{{
		Lease: l, Plan: plan, Complete: true, Vectors: []model.Vector{{1}}, VectorModel: offline.NewEmbedder().Model(),
	}})[0])
	all := w.memories(scope, 10)
	if len(all) != 2 || all[0].ExpiresAt == nil || !all[0].ExpiresAt.Equal(at) || !all[1].ExpiresAt.Equal(at) {
		t.Fatalf("records %+v", all)
	}
	w.advance(time.Hour)
	if all = w.memories(scope, 10); len(all) != 0 {
		t.Errorf("expired records are listed: %+v", all)
	}
	if got := w.found(recall.Lexical, "one"); len(got) != 0 {
		t.Errorf("an expired record is found: %q", got)
	}
	if e := w.event(stored.EventID); len(e.Results) != 1 || e.Results[0].Text != nil {
		t.Errorf("event %+v", e)
	}
	if page, err := w.db.Entities(t.Context(), w.caller.Workspace.ID, recall.EntityQuery{Limit: 10}); err != nil || len(page.Entities) != 0 {
		t.Errorf("entities %+v, %v", page, err)
	}
}
