package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// asked changes the policy of the world's workspace and answers the caller as the next request finds it.
func (w *world) asked(instructions *string, categories ...memory.Category) access.Caller {
	w.t.Helper()
	change := command.PolicyChange{Instructions: instructions}
	if categories != nil {
		change.Categories = &categories
	}
	policies, err := write.NewPolicies(w.db)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := policies.Change(w.t.Context(), w.caller, change); err != nil {
		w.t.Fatal(err)
	}
	kept, err := w.db.Policy(w.t.Context(), w.caller.Workspace.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	caller := w.caller
	caller.Workspace.Extraction = kept
	return caller
}

func TestExtractionPolicy(t *testing.T) {
	t.Parallel()
	french, short := "In French.", "Be short."

	t.Run("IsKeptWithTheTaskAsItWasThen", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.caller = w.asked(&french, memory.Category{Name: "work", Description: "Jobs."})
		first := w.accept("first", say("u", "one"))
		w.caller = w.asked(&short)
		second := w.accept("second", say("v", "two"))
		want := model.Policy{Instructions: french, Categories: []memory.Category{{Name: "work", Description: "Jobs."}}}
		if got := model.ReadPolicy(w.mustClaim(first).Policy); got.Instructions != french || !slices.Equal(got.Categories, want.Categories) {
			t.Errorf("the first task has %+v", got)
		}
		if got := model.ReadPolicy(w.mustClaim(second).Policy); got.Instructions != short || !slices.Equal(got.Categories, want.Categories) {
			t.Errorf("the second task has %+v", got)
		}
	})

	t.Run("IsKeptWithItemsToo", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.caller = w.asked(&french)
		w.keep(input("a", "one"))
		w.caller = w.asked(&short)
		if got := model.ReadPolicy(w.claimItem("a").Policy); got.Instructions != french {
			t.Errorf("the item's task has %+v", got)
		}
	})

	t.Run("TwoChangesOfDifferentMembersBothStay", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		together(8, func(i int) {
			if i%2 == 0 {
				w.asked(&french)
			} else {
				w.asked(nil, memory.Category{Name: "work"})
			}
		})
		got := command.ReadExtractionPolicy(w.asked(nil).Workspace.Extraction)
		if got.Instructions != french || !slices.Equal(got.Categories, []memory.Category{{Name: "work"}}) {
			t.Errorf("the policy is %+v", got)
		}
		none := ""
		got = command.ReadExtractionPolicy(w.asked(&none, []memory.Category{}...).Workspace.Extraction)
		if !got.Empty() {
			t.Errorf("the policy is %+v", got)
		}
	})

	t.Run("AnotherWorkspaceHasItsOwn", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		other := w.workspace(0)
		w.asked(&french)
		if kept, err := w.db.Policy(t.Context(), other.Workspace.ID); err != nil || string(kept) != "{}" {
			t.Errorf("the other workspace has %s, %v", kept, err)
		}
		if _, err := w.db.Policy(t.Context(), uuid.New()); !errors.Is(err, postgres.ErrNoWorkspace) {
			t.Errorf("an unknown workspace answers %v", err)
		}
	})

	t.Run("TheKeysOwnerHasItAtOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		made, err := w.db.CreateKey(t.Context(), w.caller.Workspace.ID, "k", access.Permissions(), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.asked(&french)
		caller, err := w.db.Authenticate(t.Context(), made)
		if err != nil || command.ReadExtractionPolicy(caller.Workspace.Extraction).Instructions != french {
			t.Errorf("the caller has %s, %v", caller.Workspace.Extraction, err)
		}
	})

	t.Run("ASuspendedWorkspaceChangesNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.caller.Workspace.Suspended = true
		policies, _ := write.NewPolicies(w.db)
		if _, err := policies.Change(t.Context(), w.caller, command.PolicyChange{Instructions: &french}); err == nil {
			t.Error("the policy was changed")
		}
	})
}

func TestCategories(t *testing.T) {
	t.Parallel()
	strange := []string{"home, sweet", `a"b\c`, "NULL", "日本", "{}", "'"}

	// filed stores one record under categories.
	filed := func(w *world, text string, categories ...string) uuid.UUID {
		w.t.Helper()
		l := w.mustClaim(w.accept(strings.ReplaceAll(text, " ", "-"), say("ana", text)))
		plan := planOf(text)
		plan.Records[0].Categories = categories
		wantDone(w.t, "commit", w.db.Commit(w.t.Context(), []worker.Commit{{Lease: l, Plan: plan}})[0])
		return plan.Records[0].ID
	}

	t.Run("ComeBackAsTheyWerePlanned", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := filed(w, "one", strange...)
		record, err := w.db.Memory(t.Context(), w.caller.Workspace.ID, id)
		if err != nil || !slices.Equal(record.Categories, strange) {
			t.Errorf("the record has %q, %v", record.Categories, err)
		}
		if listed := w.memories(memory.Scope{UserID: "ana"}, 10); !slices.Equal(listed[0].Categories, strange) {
			t.Errorf("the list has %q", listed[0].Categories)
		}
		text := "one, changed"
		w.change("", command.Change{ID: id, Content: &text})
		if record, _ = w.db.Memory(t.Context(), w.caller.Workspace.ID, id); !slices.Equal(record.Categories, strange) || record.Text != text {
			t.Errorf("after a change the record has %q", record.Categories)
		}
	})

	t.Run("AreInAFrozenPlan", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		filed(w, "one", strange...)
		var plan memory.Plan
		if err := json.Unmarshal(one[[]byte](w, `SELECT body FROM plans`), &plan); err != nil || !slices.Equal(plan.Records[0].Categories, strange) {
			t.Errorf("the plan has %+v, %v", plan, err)
		}
	})

	t.Run("CanBeFilteredBy", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		filed(w, "one tea", "food", "work")
		filed(w, "two tea", "food")
		filed(w, "three tea", strange...)
		filed(w, "four tea")
		for _, c := range []struct{ filter, want string }{
			{`{"categories":"food"}`, "one two"},
			{`{"categories":{"contains":"work"}}`, "one"},
			{`{"categories":{"in":["work","NULL"]}}`, "one three"},
			{`{"categories":{"ne":"food"}}`, "four three"},
			{`{"categories":null}`, "four"},
			{`{"categories":{"ne":null}}`, "one three two"},
			{`{"AND":[{"categories":"food"},{"NOT":{"categories":"work"}}]}`, "two"},
			{`{"categories":"FOOD"}`, ""},
			{`{"categories":"fo"}`, ""},
			{`{"categories":"a\"b\\c"}`, "three"},
		} {
			if got := w.filtered(c.filter); got != c.want {
				t.Errorf("%s finds %q, want %q", c.filter, got, c.want)
			}
		}
	})

	t.Run("GoWithTheirRecord", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		l := w.mustClaim(w.accept("k", say(erasedUser, secret)))
		plan := planOf(secret)
		plan.Records[0].Categories = []string{"about " + erasedUser}
		wantDone(t, "commit", w.db.Commit(t.Context(), []worker.Commit{{Lease: l, Plan: plan}})[0])
		l.Stage = task.Committed
		w.erase("e")
		wantNothingLeft(t, w)
	})
}

func wantUnknown(t testing.TB, err error) {
	t.Helper()
	if !fault.Is(err, fault.MemoryNotFound) {
		t.Errorf("the answer is %v", err)
	}
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	positive, negative, reason := command.Positive, command.Negative, "because of "+erasedUser
	give := func(w *world, caller access.Caller, f command.Feedback) error {
		feedbacks, err := write.NewFeedbacks(w.db)
		if err != nil {
			w.t.Fatal(err)
		}
		at, err := feedbacks.Give(w.t.Context(), caller, f)
		if err == nil && (at == nil) != (f.Verdict == nil) {
			w.t.Errorf("given at %v", at)
		}
		return err
	}
	kept := func(w *world) string {
		return one[string](w, `SELECT coalesce(string_agg(feedback || ':' || coalesce(reason, '-'), ' ' ORDER BY memory_id), '') FROM memory_feedback`)
	}

	t.Run("TheLastWordCountsAndCanBeTakenBack", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(memory.Scope{UserID: "u"}, "one")[0]
		for _, f := range []command.Feedback{{Memory: id, Verdict: &positive, Reason: &reason}, {Memory: id, Verdict: &negative}} {
			if err := give(w, w.caller, f); err != nil {
				t.Fatal(err)
			}
		}
		if got := kept(w); got != "NEGATIVE:-" {
			t.Errorf("kept %q", got)
		}
		for range 2 {
			if err := give(w, w.caller, command.Feedback{Memory: id}); err != nil || kept(w) != "" {
				t.Errorf("taken back: %v, kept %q", err, kept(w))
			}
		}
	})

	t.Run("IsForLiveRecordsOfTheWorkspace", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		ids := w.remember(erasedScope, "ended", "expired", "fenced")
		w.change("", command.Change{ID: ids[0], Delete: true})
		w.exec(`UPDATE memories SET expires_at = '2020-01-01' WHERE id = $1`, ids[1])
		wantUnknown(t, give(w, w.workspace(0), command.Feedback{Memory: ids[2], Verdict: &positive}))
		for _, id := range []uuid.UUID{ids[0], ids[1], uuid.New()} {
			wantUnknown(t, give(w, w.caller, command.Feedback{Memory: id, Verdict: &positive}))
		}
		if got := kept(w); got != "" {
			t.Errorf("kept %q", got)
		}
		if err := give(w, w.caller, command.Feedback{Memory: ids[2], Verdict: &positive}); err != nil {
			t.Error(err)
		}
		w.fence()
		wantUnknown(t, give(w, w.caller, command.Feedback{Memory: ids[2], Verdict: &positive}))
	})

	t.Run("IsGoneAfterAnErase", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(erasedScope, secret)[0]
		if err := give(w, w.caller, command.Feedback{Memory: id, Verdict: &positive, Reason: &reason}); err != nil {
			t.Fatal(err)
		}
		w.erase("e")
		wantNothingLeft(t, w)
		if got := kept(w); got != "" {
			t.Errorf("kept %q", got)
		}
	})

	t.Run("WhoEndsTheRecordWaitsForIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.remember(memory.Scope{UserID: "u"}, "one")[0]
		// An open row under the same key stops the feedback after it has seen the record live.
		tx, err := w.sql.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		if _, err := tx.Exec(t.Context(), `INSERT INTO memory_feedback (memory_id, workspace_id, feedback, at) VALUES ($1, $2, 'NEGATIVE', now())`,
			id, w.caller.Workspace.ID); err != nil {
			t.Fatal(err)
		}
		given, ended := make(chan error, 1), make(chan struct{})
		go func() { given <- give(w, w.caller, command.Feedback{Memory: id, Verdict: &positive}) }()
		w.waiting(1, "transactionid")
		go func() {
			defer close(ended)
			w.change("", command.Change{ID: id, Delete: true})
		}()
		over := func() bool {
			select {
			case <-ended:
				return true
			default:
				return one[int64](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) >= 2
			}
		}
		for !over() { // both end: the store bounds how long a lock is waited for
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-given; err != nil {
			t.Error(err)
		}
		<-ended
		if got := kept(w); got != "" {
			t.Errorf("the feedback outlived its record: %q", got)
		}
	})
}

func TestMemoryExports(t *testing.T) {
	t.Parallel()
	filterOf := func(t *testing.T, text string) memory.Filter {
		t.Helper()
		filter, err := memory.ParseFilter([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return *filter
	}
	define := func(w *world, text string) uuid.UUID {
		w.t.Helper()
		exports, err := write.NewMemoryExports(w.db)
		if err != nil {
			w.t.Fatal(err)
		}
		id, err := exports.Define(w.t.Context(), w.caller, filterOf(t, text))
		if err != nil {
			w.t.Fatal(err)
		}
		return id
	}
	reader := func(w *world) *recall.MemoryExports {
		w.t.Helper()
		exports, err := recall.NewMemoryExports(w.db)
		if err != nil {
			w.t.Fatal(err)
		}
		return exports
	}
	texts := func(e recall.Exported) string {
		found := []string{}
		for _, r := range e.Records {
			found = append(found, r.Text)
		}
		return fmt.Sprint(found, e.Truncated)
	}

	t.Run("ReadWhatMatchesNow", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "one", "two")
		id := define(w, `{"AND":[{"user_id":"ana"},{"created_at":{"gte":"2020-01-01T00:00:00Z"}}]}`)
		w.remember(memory.Scope{UserID: "bob"}, "three")
		w.remember(memory.Scope{UserID: "ana"}, "four")
		got, found, err := reader(w).Get(t.Context(), w.caller.Workspace.ID, id)
		if err != nil || !found || texts(got) != "[four two one] false" && texts(got) != "[four one two] false" {
			t.Errorf("read %s, %v, %v", texts(got), found, err)
		}
		got, found, err = reader(w).Latest(t.Context(), w.caller.Workspace.ID, filterOf(t, `{"AND":[{"user_id":"ana"},{"created_at":{"gte":"2020-01-01T00:00:00Z"}}]}`))
		if err != nil || !found || len(got.Records) != 3 {
			t.Errorf("the latest is %s, %v, %v", texts(got), found, err)
		}
		if _, found, _ = reader(w).Latest(t.Context(), w.caller.Workspace.ID, filterOf(t, `{"user_id":"bob"}`)); found {
			t.Error("there is one of a filter that none was made with")
		}
		if _, found, _ = reader(w).Get(t.Context(), w.workspace(0).Workspace.ID, id); found {
			t.Error("another workspace reads it")
		}
		if _, found, _ = reader(w).Get(t.Context(), w.caller.Workspace.ID, uuid.New()); found {
			t.Error("an unknown one is found")
		}
	})

	t.Run("PagesLeaveNothingOut", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2000)
		many := make([]string, 400)
		for i := range many {
			many[i] = fmt.Sprintf("record %d", i)
		}
		for range 3 {
			w.remember(memory.Scope{UserID: "ana"}, many...)
			for i := range many {
				many[i] += "'"
			}
		}
		got, _, err := reader(w).Get(t.Context(), w.caller.Workspace.ID, define(w, `{"user_id":"ana"}`))
		if err != nil || len(got.Records) != 1200 || got.Truncated {
			t.Errorf("%d records, %v, %v", len(got.Records), got.Truncated, err)
		}
	})

	t.Run("ALargeOneSaysThatItIsCut", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "one")
		w.exec(`INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, accepted_at, said_at, valid_from, created_at, updated_at)
SELECT gen_random_uuid(), workspace_id, task_id, user_id, lane, repeat('x', 200000), content_key, accepted_at, said_at, valid_from, created_at, updated_at
  FROM memories, generate_series(1, 100)`)
		got, _, err := reader(w).Get(t.Context(), w.caller.Workspace.ID, define(w, `{"user_id":"ana"}`))
		if err != nil || !got.Truncated || len(got.Records) < 80 || len(got.Records) > 85 {
			t.Errorf("%d records, %v, %v", len(got.Records), got.Truncated, err)
		}
	})

	t.Run("AnEraseRemovesThem", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(erasedScope, secret)
		id := define(w, `{"user_id":"`+erasedUser+`"}`)
		w.erase("e")
		wantNothingLeft(t, w)
		if _, found, err := reader(w).Get(t.Context(), w.caller.Workspace.ID, id); found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	})

	t.Run("OldOnesGo", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		first := define(w, `{"user_id":"0"}`)
		w.advance(8 * 24 * 60 * 60 * 1e9)
		if _, found, _ := reader(w).Get(t.Context(), w.caller.Workspace.ID, first); found {
			t.Error("one of last week is still there")
		}
		for i := range 105 {
			define(w, fmt.Sprintf(`{"user_id":"%d"}`, i))
		}
		if n := one[int64](w, `SELECT count(*) FROM memory_exports`); n != 100 {
			t.Errorf("%d definitions are kept", n)
		}
	})
}
