package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func errorsIs(err, target error) bool { return errors.Is(err, target) }

func TestAccept(t *testing.T) {
	t.Parallel()
	t.Run("FiftyAtOnceAreOneCommandAndEveryOtherBodyIsRefused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		accepter := w.accepter(w.db)
		var mu sync.Mutex
		ids := map[uuid.UUID]int{}
		conflicts := map[string]int{}
		together(50, func(i int) {
			text := "I like coffee"
			if i%2 == 1 {
				text = "I like tea"
			}
			r, err := accepter.Accept(context.Background(), w.caller, key(t, "k"), say("u", text))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				ids[r.EventID]++
			case fault.Is(err, fault.IdempotencyConflict):
				conflicts[text]++
			default:
				t.Errorf("accept: %v", err)
			}
		})
		if len(ids) != 1 || len(conflicts) != 1 {
			t.Fatalf("events %v, conflicts %v", ids, conflicts)
		}
		for _, n := range ids {
			if n != 25 {
				t.Fatalf("%d of 25 got the receipt", n)
			}
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 1 {
			t.Fatalf("%d tasks", n)
		}
		wantBalance(t, w, 98, 2)
	})
	t.Run("TheSameKeyInAnotherWorkspaceIsAnotherCommand", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.accept("k", say("u", "a"))
		w.caller = w.workspace(100)
		if second := w.accept("k", say("u", "b")); second == first {
			t.Fatal("one event for two workspaces")
		}
	})
	t.Run("ARefusedHoldLeavesNothingBehindAndTheKeyIsFree", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1)
		_, err := w.accepter(w.db).Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		refusal, ok := errors.AsType[*fault.Error](err)
		if !ok || refusal.Code != fault.InsufficientCredits || refusal.Details["required"] != int64(2) || refusal.Details["available"] != int64(1) {
			t.Fatalf("refusal %v", err)
		}
		for _, table := range []string{"tasks", "task_runs", "idempotency_keys", "lanes"} {
			if n := one[int64](w, `SELECT count(*) FROM `+table); n != 0 {
				t.Fatalf("%d rows left in %s", n, table)
			}
		}
		wantBalance(t, w, 1, 0)
		w.exec(`UPDATE credit_accounts SET available = 10`)
		w.exec(`UPDATE credit_grants SET amount = 10`)
		w.accept("k", say("u", "another body is fine: the key was never used"))
		wantBalance(t, w, 8, 2)
	})
	t.Run("ConcurrentHoldsNeverOverdraw", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		accepter := w.accepter(w.db)
		together(20, func(i int) {
			_, err := accepter.Accept(context.Background(), w.caller, key(t, keyName(i)), say("u", keyName(i)))
			if err != nil && !fault.Is(err, fault.InsufficientCredits) {
				t.Errorf("accept: %v", err)
			}
		})
		wantBalance(t, w, 0, 10)
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 5 {
			t.Fatalf("%d tasks for 10 credits", n)
		}
	})
	t.Run("AReplayIsFreeAndComesBeforeEveryLimit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 2)
		first := w.accept("k", say("u", "a"))
		r, err := w.accepter(w.db).Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		if err != nil || r.EventID != first || !r.Replayed || r.Status != task.EventPending {
			t.Fatalf("replay %+v: %v", r, err)
		}
		l := w.mustClaim(first)
		wantDone(t, "complete", w.complete(l, "fact"))
		r, err = w.accepter(w.db).Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		if err != nil || r.EventID != first || r.Status != task.EventSucceeded {
			t.Fatalf("replay after success %+v: %v", r, err)
		}
		wantBalance(t, w, 0, 0)
	})
	t.Run("ASuspendedWorkspaceStillGetsItsReceipts", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.accept("k", say("u", "a"))
		w.caller.Workspace.Suspended = true
		if again := w.accept("k", say("u", "a")); again != first {
			t.Fatal("another receipt")
		}
		_, err := w.accepter(w.db).Accept(t.Context(), w.caller, key(t, "k2"), say("u", "a"))
		if !fault.Is(err, fault.InsufficientPermission) || one[int64](w, `SELECT count(*) FROM idempotency_keys`) != 1 {
			t.Fatalf("a new command: %v", err)
		}
	})
	t.Run("TakesTwoRoundTripsAfterTheOneThatBegins", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		proxy := testkit.CommitCutProxy(t, w.url)
		db, err := postgres.Open(t.Context(), postgres.Config{URL: proxy.URL(), MaxConns: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		accepter := w.accepter(db)
		trips := int64(0)
		for i := range 3 { // the first prepares the statements
			before := proxy.RoundTrips()
			if _, err := accepter.Accept(t.Context(), w.caller, key(t, keyName(i)), say("u", keyName(i))); err != nil {
				t.Fatal(err)
			}
			trips = proxy.RoundTrips() - before
		}
		if trips != 3 { // BEGIN, gate and key; lane, task and hold; COMMIT
			t.Errorf("%d round trips", trips)
		}
	})
	t.Run("OneLaneHasOneHeadInAcceptanceOrder", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		accepter := w.accepter(w.db)
		together(10, func(i int) {
			if _, err := accepter.Accept(context.Background(), w.caller, key(t, keyName(i)), say("u", keyName(i))); err != nil {
				t.Errorf("accept: %v", err)
			}
		})
		if n := one[int64](w, `SELECT count(*) FROM tasks WHERE head`); n != 1 {
			t.Fatalf("%d heads", n)
		}
		if !one[bool](w, `SELECT bool_and(ok) FROM (SELECT lane_seq = row_number() OVER (ORDER BY accepted_at) AS ok FROM tasks) x`) {
			t.Fatal("lane_seq and accepted_at disagree")
		}
		if !one[bool](w, `SELECT lane_seq = 1 FROM tasks WHERE head`) {
			t.Fatal("the head is not the first")
		}
	})
}

// TestCommitAnswerLost cuts the answer to a COMMIT at the wire.
func TestCommitAnswerLost(t *testing.T) {
	t.Parallel()
	t.Run("TheRepeatFindsItsOwnReceipt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		proxy := testkit.CommitCutProxy(t, w.url)
		accepter := w.accepter(w.open(proxy.URL()))
		tag := proxy.CutNextCommit(true)
		r, err := accepter.Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		if err != nil || r.Replayed {
			t.Fatalf("receipt %+v: %v", r, err)
		}
		if got := <-tag; got != "COMMIT" {
			t.Fatalf("the server answered %q", got)
		}
		if again := w.accept("k", say("u", "a")); again != r.EventID {
			t.Fatal("the key has another event")
		}
		wantBalance(t, w, 98, 2)
	})
	t.Run("AcceptsOnceWhenItHadNotCommitted", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		proxy := testkit.CommitCutProxy(t, w.url)
		accepter := w.accepter(w.open(proxy.URL()))
		proxy.CutNextCommit(false)
		r, err := accepter.Accept(t.Context(), w.caller, key(t, "k"), say("u", "a"))
		if err != nil {
			t.Fatal(err)
		}
		if again := w.accept("k", say("u", "a")); again != r.EventID {
			t.Fatal("the key has another event")
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 1 {
			t.Fatalf("%d tasks", n)
		}
		wantBalance(t, w, 98, 2)
	})
	t.Run("ARepeatThatFailsLeavesItOpenAndTheKeyResolvesIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		proxy := testkit.CommitCutProxy(t, w.url)
		accepter := w.accepter(w.open(proxy.URL()))
		tag := proxy.CutNextCommit(true)
		go func() {
			<-tag
			proxy.Blackhole(true)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r, err := accepter.Accept(ctx, w.caller, key(t, "k"), say("u", "a"))
		if err == nil { // the repeat won the race against the black hole
			if again := w.accept("k", say("u", "a")); again != r.EventID {
				t.Fatal("the key has another event")
			}
		} else if !fault.Is(err, fault.AcceptanceUnknown) {
			t.Fatalf("refused with %v", err)
		}
		w.accept("k", say("u", "a"))
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 1 {
			t.Fatalf("%d tasks", n)
		}
		wantBalance(t, w, 98, 2)
	})
	t.Run("AVerbatimAddWithoutAKeyFindsItself", func(t *testing.T) {
		t.Parallel()
		for _, committed := range []bool{true, false} {
			w := newWorld(t, 100)
			proxy := testkit.CommitCutProxy(t, w.url)
			w.db = w.open(proxy.URL())
			proxy.CutNextCommit(committed)
			stored, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, nil, verbatim("u", "a", "b"))
			if err != nil || len(stored.Results) != 2 || stored.Replayed {
				t.Fatalf("committed %v: %+v, %v", committed, stored, err)
			}
			for _, r := range stored.Results {
				if r.Change != memory.Added || r.Text == nil {
					t.Errorf("committed %v: result %+v", committed, r)
				}
			}
			wantBalance(t, w, 99, 0)
		}
	})
	t.Run("ARetryAndACancelFindThemselves", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		proxy := testkit.CommitCutProxy(t, w.url)
		w.db = w.open(proxy.URL())
		proxy.CutNextCommit(true)
		generation := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
			t.Fatal(err)
		}
		wantBalance(t, w, 98, 2)
		proxy.CutNextCommit(true)
		if err := w.canceller().Cancel(t.Context(), w.caller, id); err != nil {
			t.Fatal(err)
		}
		wantBalance(t, w, 100, 0)
	})
	t.Run("ACommittedPlanIsNotTurnedIntoRepeats", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		l := w.mustClaim(w.accept("k", say("u", "a")))
		proxy := testkit.CommitCutProxy(t, w.url)
		direct := w.db
		w.db = w.open(proxy.URL())
		proxy.CutNextCommit(true)
		if done := w.commit(l, "likes coffee"); !errors.Is(done.Err, fault.ErrCommitUnknown) {
			t.Fatalf("commit: %v", done.Err)
		}
		w.db = direct
		done := wantDone(t, "repeated commit", w.commit(l, "likes coffee"))
		if done.Ended {
			t.Fatal("ended without its vectors")
		}
		wantDone(t, "settle", w.settle(l))
		if got := one[string](w, `SELECT string_agg(event, ',') FROM task_results`); got != "ADD" {
			t.Fatalf("results %s", got)
		}
		wantBalance(t, w, 98, 0)
	})
	t.Run("AClaimIsCountedOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		first := w.mustClaim(id)
		if w.claim(id, "other") != nil {
			t.Fatal("claimed twice")
		}
		if first.Claim != 1 || one[int64](w, `SELECT claims FROM tasks`) != 1 {
			t.Fatal("counted more than once")
		}
	})
}

func verbatim(user string, texts ...string) command.Add {
	add := command.Add{Scope: memory.Scope{UserID: user}, Ordered: true}
	for _, text := range texts {
		add.Messages = append(add.Messages, command.Message{Role: "user", Content: text})
	}
	return add
}

func TestWriteNow(t *testing.T) {
	t.Parallel()
	t.Run("StoresEveryMessageAndChargesOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		k := key(t, "k")
		first, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, &k, verbatim("u", "system", "b"))
		if err != nil || len(first.Results) != 2 || first.Replayed {
			t.Fatalf("write %+v: %v", first, err)
		}
		again, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, &k, verbatim("u", "system", "b"))
		if err != nil || !again.Replayed || again.EventID != first.EventID || len(again.Results) != 2 {
			t.Fatalf("replay %+v: %v", again, err)
		}
		for i := range first.Results {
			a, b := first.Results[i], again.Results[i]
			if a.RecordID != b.RecordID || a.Change != b.Change || b.Text == nil || *a.Text != *b.Text {
				t.Fatalf("result %d: %+v, replayed %+v", i, a, b)
			}
		}
		if w.status(first.EventID) != "succeeded/projected" || one[int64](w, `SELECT count(*) FROM memory_vectors`) != 2 {
			t.Fatal("not born succeeded with its vectors")
		}
		wantBalance(t, w, 99, 0)
	})
	t.Run("OneKeyIsOneCommandOverAllKindsOfWrite", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		k := key(t, "k")
		w.accept("k", say("u", "a"))
		add := say("u", "a")
		add.Infer = false
		if _, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, &k, add); !fault.Is(err, fault.IdempotencyConflict) {
			t.Fatalf("the key was taken twice: %v", err)
		}
	})
	t.Run("WithoutAKeyExactRepeatsAreNone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		writer := w.writer(offline.NewEmbedder())
		together(10, func(int) {
			if _, err := writer.Write(context.Background(), w.caller, nil, verbatim("u", "same")); err != nil {
				t.Errorf("write: %v", err)
			}
		})
		if n := one[int64](w, `SELECT count(*) FROM memories`); n != 1 {
			t.Fatalf("%d records of one text", n)
		}
		twins, err := writer.Write(t.Context(), w.caller, nil, verbatim("v", "twin", "twin"))
		if err != nil || twins.Results[0].Change != memory.Added || twins.Results[1].Change != memory.Added {
			t.Fatalf("two equal messages of one call: %+v, %v", twins, err)
		}
		third, err := writer.Write(t.Context(), w.caller, nil, verbatim("u", "SAME"))
		if err != nil || third.Results[0].Change != memory.Added {
			t.Fatalf("other bytes: %+v, %v", third, err)
		}
		w.books()
	})
	t.Run("ARemoteEmbedderMakesACommittedTaskThatSettlesLater", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		k := key(t, "k")
		stored, err := w.writer(remote{offline.NewEmbedder()}).Write(t.Context(), w.caller, &k, verbatim("u", "a"))
		if err != nil {
			t.Fatal(err)
		}
		wantBalance(t, w, 99, 1)
		l := w.mustClaim(stored.EventID)
		if l.Stage != task.Committed {
			t.Fatalf("stage %s", l.Stage)
		}
		wantDone(t, "settle", w.settle(l))
		wantBalance(t, w, 99, 0)
	})
	t.Run("ARefusalLeavesNothingBehind", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		k := key(t, "k")
		_, err := w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, &k, verbatim("u", "a"))
		if !fault.Is(err, fault.InsufficientCredits) {
			t.Fatalf("refused with %v", err)
		}
		for _, table := range []string{"tasks", "task_runs", "idempotency_keys", "memories", "memory_history", "memory_terms", "lanes"} {
			if n := one[int64](w, `SELECT count(*) FROM `+table); n != 0 {
				t.Fatalf("%d rows left in %s", n, table)
			}
		}
	})
}

// remote is a real embedder that says it is far away.
type remote struct{ *offline.Embedder }

func (remote) Local() bool { return false }
