package postgres_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// acted lists the acts of a world's workspace, oldest first, as act, subject and details.
func (w *world) acted() []operator.Act {
	w.t.Helper()
	page, err := w.db.Acts(w.t.Context(), operator.ActQuery{Workspace: w.caller.Workspace.ID, Limit: 1000})
	if err != nil || page.Next != nil {
		w.t.Fatalf("acts: %+v, %v", page, err)
	}
	acts := make([]operator.Act, 0, len(page.Acts))
	for i := range page.Acts {
		acts = append(acts, page.Acts[len(page.Acts)-1-i])
	}
	return acts
}

func actNames(acts []operator.Act) string {
	names := make([]string, len(acts))
	for i, a := range acts {
		names[i] = a.Act
	}
	return strings.Join(names, " ")
}

func TestActs(t *testing.T) {
	t.Parallel()

	t.Run("SayWhoWhenAndFromWhere", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		before := len(w.acted())
		at := w.frozen()
		ctx := access.As(t.Context(), access.Actor{Name: "operator:ann", Origin: "192.0.2.7", RequestID: "r-1"})
		key, err := w.db.CreateKey(ctx, w.caller.Workspace.ID, secret, []access.Permission{access.MemoryRead}, nil)
		if err != nil {
			t.Fatal(err)
		}
		acts := w.acted()
		if len(acts) != before+1 {
			t.Fatalf("%d acts were %d", len(acts), before)
		}
		var made *operator.Act
		for i := range acts {
			if acts[i].Subject == key.ID() {
				made = &acts[i]
			}
		}
		if made == nil || made.Act != operator.CreateKey || made.Actor != "operator:ann" || made.Origin != "192.0.2.7" ||
			made.RequestID != "r-1" || !made.At.Equal(at) || made.Workspace != w.caller.Workspace.ID {
			t.Fatalf("%+v", made)
		}
		var details struct{ Permissions []string }
		if err := json.Unmarshal(made.Details, &details); err != nil || len(details.Permissions) != 1 {
			t.Errorf("details %s, %v", made.Details, err)
		}
		if strings.Contains(string(made.Details), key.Reveal()[17:60]) || strings.Contains(string(made.Details), secret) {
			t.Errorf("details %s", made.Details)
		}
	})

	t.Run("EachActHasItsRecord", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ws := w.caller.Workspace.ID
		before := len(w.acted())
		key, err := w.db.CreateKey(t.Context(), ws, "k", access.Permissions(), nil)
		ten := 10
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(err)
		must(w.db.LimitKey(t.Context(), ws, key.ID(), 7))
		must(w.db.RevokeKey(t.Context(), ws, key.ID()))
		_, err = w.db.LimitWorkspace(t.Context(), ws.String(), postgres.Limits{RateLimit: &ten})
		must(err)
		_, err = w.db.SuspendWorkspace(t.Context(), ws.String(), true)
		must(err)
		_, err = w.db.SuspendWorkspace(t.Context(), ws.String(), false)
		must(err)
		_, err = w.db.Grant(t.Context(), ws, "invoice 7", 5)
		must(err)
		_, err = w.db.Grant(t.Context(), ws, "invoice 7", 5) // nothing is done
		must(err)
		id := w.accept("cancelled", say("u", "x"))
		_, err = w.db.Cancel(t.Context(), ws, id)
		must(err)
		_, err = w.db.Cancel(t.Context(), ws, id) // nothing is done
		must(err)
		_, _, err = w.db.Retry(t.Context(), write.RetryAsk{TaskID: id, WorkspaceID: ws, Metered: true})
		must(err)
		w.erase("e")
		got := actNames(w.acted()[before:])
		if want := "key.create key.limit key.revoke workspace.limit workspace.suspend workspace.resume credits.grant " +
			"event.cancel event.retry scope.erase"; got != want {
			t.Fatalf("recorded %s\n    want %s", got, want)
		}
		w.accept("everyday", say("u", "y"))
		if again := actNames(w.acted()[before:]); again != got {
			t.Errorf("an everyday write is recorded: %s", again)
		}
	})

	t.Run("AForgetIsAnEraseWithoutTheItemsNames", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.keep(input("named after "+secret, "first"), input("b", "second"))
		event := w.task("b")
		before := len(w.acted())
		for range 2 { // the second finds nothing
			if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{IDs: []string{"named after " + secret}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.items.Forget(t.Context(), w.caller, "u", write.Forget{All: true}); err != nil {
			t.Fatal(err)
		}
		acts := w.acted()[before:]
		if got := actNames(acts); got != "items.forget items.forget" {
			t.Fatalf("recorded %s", got)
		}
		for _, a := range acts {
			if strings.Contains(a.Subject+string(a.Details), secret) || string(a.Details) != `{"items": 1, "cancelled": 1}` {
				t.Errorf("%s %s", a.Subject, a.Details)
			}
		}
		if acts[1].Subject != "evt_"+event.String() {
			t.Errorf("forgotten was %s, recorded %s", event, acts[1].Subject)
		}
	})

	t.Run("EachPieceOfAForgetHasItsRecord", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		for i := range 3 {
			w.keep(input(keyName(i), "text"))
		}
		before := len(w.acted())
		ctx := access.As(t.Context(), access.Actor{Name: "key:k", Origin: "192.0.2.7"})
		for {
			forgot, err := w.db.ForgetItems(ctx, write.ForgetAsk{WorkspaceID: w.caller.Workspace.ID, Account: "u", Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			if !forgot.More {
				break
			}
		}
		acts := w.acted()[before:]
		if actNames(acts) != "items.forget items.forget" || acts[0].Actor != "key:k" || acts[0].Subject == acts[1].Subject {
			t.Fatalf("%+v", acts)
		}
	})

	t.Run("FeedbackIsAnEverydayWrite", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.remember(memory.Scope{UserID: "u"}, "tea")[0]
		before := len(w.acted())
		positive := command.Positive
		if _, err := w.db.GiveFeedback(t.Context(), w.caller.Workspace.ID, command.Feedback{Memory: id, Verdict: &positive}); err != nil {
			t.Fatal(err)
		}
		if got := actNames(w.acted()[before:]); got != "" {
			t.Fatalf("recorded %s", got)
		}
	})

	t.Run("WhatIsRolledBackIsNoAct", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, int64(credit.DefaultPrices().Of(task.Infer, true)))
		before := len(w.acted())
		if err := w.db.RevokeKey(t.Context(), w.caller.Workspace.ID, "AAAAAAAAAAAA"); err == nil {
			t.Fatal("an unknown key was revoked")
		}
		id := w.accept("one", say("u", "x"))
		if _, err := w.db.Cancel(t.Context(), w.caller.Workspace.ID, id); err != nil {
			t.Fatal(err)
		}
		w.accept("two", say("v", "x")) // holds all credits
		if _, _, err := w.db.Retry(t.Context(), write.RetryAsk{
			TaskID: id, WorkspaceID: w.caller.Workspace.ID, Metered: true, Prices: credit.DefaultPrices(),
		}); err == nil {
			t.Fatal("retried without a credit")
		}
		if got := actNames(w.acted()[before:]); got != "event.cancel" {
			t.Fatalf("recorded %s", got)
		}
	})

	t.Run("ARepeatOnTheSameOccasionIsOneAct", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		before := len(w.acted())
		ctx := access.As(t.Context(), access.Actor{Name: "user:ann", Origin: "cli"})
		for range 3 {
			if _, err := w.db.SuspendWorkspace(ctx, w.caller.Workspace.ID.String(), true); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.db.SuspendWorkspace(access.As(t.Context(), access.Actor{Name: "user:ann", Origin: "cli"}), w.caller.Workspace.ID.String(), true); err != nil {
			t.Fatal(err)
		}
		if n := len(w.acted()) - before; n != 2 {
			t.Fatalf("%d acts", n)
		}
	})

	t.Run("CannotBeChangedOrRemovedEarly", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, "one", 1); err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{`UPDATE operator_acts SET actor = 'nobody'`, `DELETE FROM operator_acts`} {
			if _, err := w.sql.Exec(t.Context(), sql); err == nil {
				t.Errorf("%s went through", sql)
			}
		}
	})

	t.Run("RetentionRemovesOldOnesInBatches", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		fresh := len(w.acted())
		w.exec(`INSERT INTO operator_acts (id, at, actor, origin, request_id, workspace_id, act, subject)
SELECT gen_random_uuid(), now() - n * interval '100 days', 'x', 'y', '', $1, 'key.create', n::text FROM generate_series(1, 9) n`, w.caller.Workspace.ID)
		const kept = 400 * 24 * time.Hour
		first, err := w.db.ForgetActs(t.Context(), kept, 3)
		if err != nil || first.Fixed != 3 || !first.More {
			t.Fatalf("%+v, %v", first, err)
		}
		if second, err := w.db.ForgetActs(t.Context(), kept, 10); err != nil || second.More || second.Fixed < 2 {
			t.Fatalf("%+v, %v", second, err)
		}
		if n := len(w.acted()); n != fresh+3 && n != fresh+4 { // the fourth is at the edge
			t.Fatalf("%d acts are left of %d", n, fresh+9)
		}
	})

	t.Run("PagesAreWholeAndInOrder", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		w.frozen() // all at one moment
		for i := range 25 {
			if _, err := w.db.Grant(t.Context(), w.caller.Workspace.ID, keyName(i), 1); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[uuid.UUID]bool{}
		query := operator.ActQuery{Workspace: w.caller.Workspace.ID, Act: operator.Grant, Limit: 4}
		for pages := 0; ; pages++ {
			page, err := w.db.Acts(t.Context(), query)
			if err != nil || pages > 10 {
				t.Fatal(pages, err)
			}
			for _, a := range page.Acts {
				seen[a.ID] = true
			}
			if query.After = page.Next; page.Next == nil {
				break
			}
		}
		if n := int(one[int64](w, `SELECT count(*) FROM operator_acts WHERE act = 'credits.grant'`)); len(seen) != n || n < 25 {
			t.Fatalf("saw %d of %d", len(seen), n)
		}
	})
}
