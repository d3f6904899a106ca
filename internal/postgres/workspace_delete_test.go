package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// everythingOf fills the world's workspace with one of everything that can hold the erased text.
func (w *world) everythingOf() {
	w.t.Helper()
	ws := w.caller.Workspace.ID
	policy := `{"instructions":"` + secret + `","categories":[{"name":"c","description":"` + secret + `"}]}`
	w.exec(`UPDATE workspaces SET extraction = $2::text::json WHERE id = $1`, ws, policy)
	w.caller.Workspace.Extraction = []byte(policy)
	w.accept("policy", say("somebody", secret))
	w.erase("before") // of this user's: it leaves shells with the policy
	w.lives()
	records := w.remember(memory.Scope{UserID: erasedUser, AgentID: secret}, secret+" one", secret+" two")
	verdict := command.Negative
	if _, err := w.db.GiveFeedback(w.t.Context(), ws, command.Feedback{Memory: records[0], Verdict: &verdict, Reason: ptr(secret)}); err != nil {
		w.t.Fatal(err)
	}
	change := wanted(endpoint.Succeeded, endpoint.Failed)
	*change.URL, change.Name = "https://hooks.example.com/"+erasedUser, ptr(secret)
	hook := w.hook(change)
	if _, err := w.db.TestDelivery(w.t.Context(), ws, hook.ID); err != nil {
		w.t.Fatal(err)
	}
	items, err := write.NewItems(w.db, w.hints, w.hints, offline.NewEmbedder(), credit.DefaultPrices(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	kept, err := command.NewItems(erasedUser, "", []command.ItemInput{input(secret, secret)})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := items.Keep(w.t.Context(), w.caller, erasedUser, kept); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.db.CreateKey(w.t.Context(), ws, secret, access.Permissions(), nil); err != nil {
		w.t.Fatal(err)
	}
	w.exec(`INSERT INTO task_parts (task_id, part, workspace_id, body)
SELECT id, 0, workspace_id, convert_to($2, 'UTF8') FROM tasks WHERE workspace_id = $1 AND NOT erased LIMIT 1`, ws, secret)
}

// deletion begins to delete the world's workspace.
func (w *world) deletion() uuid.UUID {
	w.t.Helper()
	found, hint, err := w.db.DeleteWorkspace(w.t.Context(), w.caller.Workspace.ID.String())
	if err != nil || found.Deletion == nil || hint == nil || hint.TaskID != *found.Deletion || found.Status() != "deleting" {
		w.t.Fatalf("delete: %+v, %+v, %v", found, hint, err)
	}
	return *found.Deletion
}

// rowsOf counts the rows of a workspace in every table that has any.
const rowsOfSQL = `
SELECT coalesce(string_agg(t.table_name || ' ' || n, ', ' ORDER BY t.table_name), '')
  FROM information_schema.columns t
 CROSS JOIN LATERAL (SELECT (xpath('/row/c/text()', query_to_xml(format(
         'SELECT count(*) AS c FROM %I x WHERE workspace_id = %L', t.table_name, $1::text), false, true, '')))[1]::text AS n) c
 WHERE t.table_schema = 'public' AND t.column_name = 'workspace_id' AND n <> '0'
   AND t.table_name NOT IN ('all_tasks', 'credit_entries')`

func TestDeleteWorkspace(t *testing.T) {
	t.Parallel()

	t.Run("LeavesNoTextAndTheBooks", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		other := &world{t: t, url: w.url, db: w.db, sql: w.sql, hints: w.hints, clock: w.clock}
		other.caller = other.workspace(1000)
		other.remember(memory.Scope{UserID: "neighbour"}, "neighbourly one", "neighbourly two")
		other.accept("theirs", say("neighbour", "neighbourly"))
		theirs := one[string](w, rowsOfSQL, other.caller.Workspace.ID.String())
		w.everythingOf()
		open := w.fenceOf("another") // an erase that nobody has begun to work on
		deletion := w.deletion()
		w.endErase(deletion)
		wantNothingLeft(t, w)
		if got := one[string](w, rowsOfSQL, other.caller.Workspace.ID.String()); got != theirs {
			t.Errorf("of the other workspace there is %s, there was %s", got, theirs)
		}
		if got := w.status(open); got != "succeeded/projected" {
			t.Errorf("the other erase is %s", got)
		}
		left := one[string](w, rowsOfSQL, w.caller.Workspace.ID.String())
		for _, gone := range []string{"api_keys", "webhooks", "webhook_deliveries", "memories", "memory_terms", "memory_vectors", "items", "memory_exports", "task_parts", "erasures", "memory_feedback"} {
			if strings.Contains(left, gone+" ") {
				t.Errorf("%s is left: %s", gone, left)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM all_tasks WHERE workspace_id = $1 AND completed_at IS NULL`, w.caller.Workspace.ID); n != 0 {
			t.Errorf("%d events are open", n)
		}
		found, err := w.db.Workspace(t.Context(), w.caller.Workspace.ID.String())
		if err != nil || found.Status() != "deleted" || found.Held != 0 {
			t.Errorf("%+v, %v", found, err)
		}
	})

	t.Run("TheNameIsFreeAfterwardsAndTheKeysAreUnknownAtOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		made, err := w.db.CreateWorkspace(t.Context(), "acme", true)
		if err != nil {
			t.Fatal(err)
		}
		key, err := w.db.CreateKey(t.Context(), made.ID, "", access.Permissions(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.db.SuspendWorkspace(t.Context(), "acme", true); err != nil { // is deleted all the same
			t.Fatal(err)
		}
		first, hint, err := w.db.DeleteWorkspace(t.Context(), "acme")
		if err != nil || hint == nil {
			t.Fatal(err)
		}
		if _, err := w.db.Authenticate(t.Context(), key); !fault.Is(err, fault.InvalidAPIKey) {
			t.Fatalf("its key: %v", err)
		}
		if _, err := w.db.CreateWorkspace(t.Context(), "acme", true); !errors.Is(err, postgres.ErrWorkspaceExists) {
			t.Errorf("the name before the end: %v", err)
		}
		if _, err := w.db.SuspendWorkspace(t.Context(), "acme", false); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("resumed: %v", err)
		}
		again, hint, err := w.db.DeleteWorkspace(t.Context(), "acme")
		if err != nil || hint != nil || *again.Deletion != *first.Deletion {
			t.Fatalf("again: %+v, %v", again, err)
		}
		w.endErase(*first.Deletion)
		if _, err := w.db.Workspace(t.Context(), "acme"); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("by its name: %v", err)
		}
		if again, _, err := w.db.DeleteWorkspace(t.Context(), first.ID.String()); err != nil || again.Status() != "deleted" {
			t.Errorf("after the end: %+v, %v", again, err)
		}
		if _, err := w.db.CreateWorkspace(t.Context(), "acme", true); err != nil {
			t.Errorf("the name: %v", err)
		}
		page, err := w.db.Acts(t.Context(), operator.ActQuery{Workspace: first.ID, Act: operator.DeleteWorkspace, Limit: 10})
		if err != nil || len(page.Acts) != 1 || !strings.Contains(string(page.Acts[0].Details), "acme") {
			t.Errorf("recorded %+v, %v", page, err)
		}
	})

	t.Run("WhoWasLetInBeforeBeginsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		failed := w.accept("failed", say("u", "x"))
		if _, err := w.db.Cancel(t.Context(), w.caller.Workspace.ID, failed); err != nil {
			t.Fatal(err)
		}
		w.deletion()
		before := one[string](w, rowsOfSQL, w.caller.Workspace.ID.String())
		items, err := write.NewItems(w.db, w.hints, w.hints, offline.NewEmbedder(), credit.DefaultPrices(), nil)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := command.NewItems("u", "", []command.ItemInput{input("i", secret)})
		if err != nil {
			t.Fatal(err)
		}
		writer, name := w.writer(offline.NewEmbedder()), key(t, "k")
		for what, try := range map[string]func() error{
			"accept": func() error {
				_, err := w.accepter(w.db).Accept(t.Context(), w.caller, name, say("u", secret))
				return err
			},
			"write": func() error {
				_, err := writer.Write(t.Context(), w.caller, nil, command.Add{Scope: memory.Scope{UserID: "u"}, Messages: []command.Message{{Role: "user", Content: secret}}})
				return err
			},
			"write with a key": func() error {
				_, err := writer.Write(t.Context(), w.caller, &name, command.Add{Scope: memory.Scope{UserID: "u"}, Messages: []command.Message{{Role: "user", Content: secret}}})
				return err
			},
			"items": func() error { _, err := items.Keep(t.Context(), w.caller, "u", kept); return err },
			"erase": func() error { _, err := w.eraser().Erase(t.Context(), w.caller, nil, erasedScope); return err },
			"webhook": func() error {
				_, _, err := w.endpoints().Create(t.Context(), w.caller, wanted(endpoint.Failed))
				return err
			},
			"retry": func() error {
				_, _, err := w.db.Retry(t.Context(), write.RetryAsk{TaskID: failed, WorkspaceID: w.caller.Workspace.ID, Metered: true, Prices: credit.DefaultPrices()})
				return err
			},
			"policy": func() error {
				_, err := w.db.ChangePolicy(t.Context(), w.caller.Workspace.ID, []byte(`{"instructions":"`+secret+`"}`))
				return err
			},
			"export of memories": func() error {
				return w.db.DefineMemoryExport(t.Context(), w.caller.Workspace.ID, uuid.New(), memory.Filter{})
			},
			"key": func() error {
				_, err := w.db.CreateKey(t.Context(), w.caller.Workspace.ID, "", access.Permissions(), nil)
				return err
			},
			"grant": func() error { _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "late", 1); return err },
		} {
			if err := try(); err == nil || errors.Is(err, postgres.ErrNoWorkspace) != (what == "policy" || what == "key" || what == "grant") {
				t.Errorf("%s: %v", what, err)
			} else if what != "retry" && !errors.Is(err, postgres.ErrNoWorkspace) && !fault.Is(err, fault.InvalidAPIKey) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := one[string](w, rowsOfSQL, w.caller.Workspace.ID.String()); after != before {
			t.Errorf("there is %s, there was %s", after, before)
		}
	})

	t.Run("ResumesAfterACrashAtEachPiece", func(t *testing.T) {
		t.Parallel()
		for crash := 0; ; crash++ {
			w := newWorld(t, 1000)
			w.everythingOf()
			w.fenceOf("another")
			deletion := w.deletion()
			l := w.claimErase(deletion)
			ended := false
			for n := 0; n < crash && !ended; n++ {
				ended = w.erasePiece(&l).Ended
			}
			if ended {
				if crash < 6 {
					t.Errorf("the deletion took %d pieces only", crash)
				}
				return
			}
			w.advance(2 * time.Minute)
			if _, err := w.db.Rescue(t.Context(), 5, 100); err != nil {
				t.Fatal(err)
			}
			if _, err := w.db.EraseJob().Next(t.Context(), l); !errors.Is(err, fault.ErrLeaseLost) {
				t.Errorf("the dead eraser reads on: %v", err)
			}
			w.endErase(deletion)
			w.clock.Store(nil)
			wantNothingLeft(t, w)
		}
	})

	t.Run("ManyRecords", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10_000)
		for n := range 3 {
			texts := make([]string, 400)
			for i := range texts {
				texts[i] = fmt.Sprintf("%s %d", secret, 400*n+i)
			}
			w.remember(memory.Scope{UserID: erasedUser}, texts...)
		}
		w.endErase(w.deletion())
		var counts struct{ Deleted int }
		raw := one[string](w, `SELECT counts::text FROM tasks WHERE kind = 'scope_erase'`)
		if err := json.Unmarshal([]byte(raw), &counts); err != nil || counts.Deleted != 1200 {
			t.Errorf("counted %s", raw)
		}
		wantNothingLeft(t, w)
	})
}
