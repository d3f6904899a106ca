package postgres_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestClaim(t *testing.T) {
	t.Parallel()
	t.Run("ExpiredLeaseHasOneWinner", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		w.mustClaim(id)
		w.advance(2 * time.Minute)
		var winners atomic.Int32
		together(10, func(i int) {
			c := w.db.Claim(context.Background(), claimant(keyName(i)), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
			if c.Err != nil {
				t.Errorf("claim: %v", c.Err)
			}
			if c.Lease != nil {
				winners.Add(1)
			}
		})
		if winners.Load() != 1 {
			t.Fatalf("%d winners", winners.Load())
		}
		if n := one[int64](w, `SELECT count(*) FROM task_attempts WHERE ending = 'crashed' AND claim = 1`); n != 1 {
			t.Fatalf("the crash has %d attempt rows", n)
		}
	})
	t.Run("NothingOfALostLeaseIsWritten", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		old := w.mustClaim(id)
		w.advance(2 * time.Minute)
		now := w.mustClaim(id) // the same worker, another claim
		if now.Claim != 2 || now.Crashes != 2 {
			t.Fatalf("second claim %+v", now)
		}
		if _, err := w.db.Heartbeat(t.Context(), old, time.Minute, ""); !errors.Is(err, fault.ErrLeaseLost) {
			t.Fatalf("heartbeat: %v", err)
		}
		wantLost(t, "commit", w.commit(old, "from the dead"))
		wantLost(t, "complete", w.complete(old, "from the dead"))
		wantLost(t, "settle", w.settle(old))
		wantLost(t, "fail", w.fail(old, task.OutputInvalid))
		wantLost(t, "retry", w.later(old, task.OutputInvalid, 0))
		wantLost(t, "give back", w.later(old, "", 0))
		wantDone(t, "complete", w.complete(now, "alive"))
		wantLost(t, "settle after the end", w.settle(old))
		if got := one[string](w, `SELECT string_agg(text, ',') FROM memories`); got != "alive" {
			t.Fatalf("records %s", got)
		}
		wantBalance(t, w, 98, 0)
	})
	t.Run("AHolderOfACommittedTaskThatWasOvertakenProjectsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		old := w.mustClaim(id)
		wantDone(t, "commit", w.commit(old, "fact"))
		w.advance(2 * time.Minute)
		now := w.mustClaim(id)
		if now.Stage != task.Committed {
			t.Fatalf("stage %s", now.Stage)
		}
		wantLost(t, "settle", w.settle(old))
		if n := one[int64](w, `SELECT count(*) FROM memory_vectors`); n != 0 {
			t.Fatal("vectors of a lost lease")
		}
		wantLost(t, "fail after the canonical commit", w.fail(now, task.InternalFailure))
		wantDone(t, "settle", w.settle(now))
		wantBalance(t, w, 98, 0)
	})
	t.Run("AClaimWhoseAnswerWasLostCountsOnce", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		proxy := testkit.CommitCutProxy(t, w.url)
		far := w.open(proxy.URL())
		lost := proxy.LoseNextAnswer("SET status = 'running'")
		claimed := far.Claim(t.Context(), claimant("w"), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, false)[0]
		<-lost
		if claimed.Err != nil || claimed.Lease == nil || claimed.Lease.Claim != 1 {
			t.Fatalf("claim %+v", claimed)
		}
		if one[int64](w, `SELECT claims FROM tasks`) != 1 || one[int64](w, `SELECT crashes FROM tasks`) != 1 {
			t.Fatal("counted twice")
		}
		wantDone(t, "complete", w.complete(*claimed.Lease, "fact"))
	})
	t.Run("ALostClaimThatMayHoldTheRowStillIsWaitedFor", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		id := w.accept("k", say("u", "a"))
		tx, err := w.sql.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		if _, err := tx.Exec(t.Context(), `SELECT FROM tasks WHERE id = $1 FOR UPDATE`, id); err != nil {
			t.Fatal(err)
		}
		proxy := testkit.CommitCutProxy(t, w.url)
		far := w.open(proxy.URL())
		lost := proxy.LoseNextAnswer("SET status = 'running'")
		answer := make(chan worker.Claimed, 1)
		go func() {
			answer <- far.Claim(context.Background(), claimant("w"), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, true)[0]
		}()
		<-lost
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for one[int64](w, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT l.granted AND a.datname = current_database()`) == 0 {
			select {
			case c := <-answer:
				t.Fatalf("it did not wait: %+v", c)
			case <-tick.C:
			}
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c := <-answer; c.Err != nil || c.Lease == nil {
			t.Fatalf("claim %+v", c)
		}
	})
	t.Run("SkipsWhatIsNotToBeHad", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		first := w.accept("k1", say("u", "a"))
		second := w.accept("k2", say("u", "b"))
		if w.claim(second, "w") != nil {
			t.Fatal("claimed behind the head of its lane")
		}
		w.exec(`INSERT INTO provider_pauses (provider, paused_until, class, updated_at) VALUES ('stub', now() + interval '1 hour', 'x', now())`)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed for a paused provider")
		}
		w.exec(`DELETE FROM provider_pauses`)
		w.exec(`UPDATE workspaces SET suspended_at = now()`)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed for a suspended workspace")
		}
		w.exec(`UPDATE workspaces SET suspended_at = NULL`)
		w.exec(`UPDATE tasks SET payload_format = 99 WHERE id = $1`, first)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed a payload it cannot read")
		}
		w.exec(`UPDATE tasks SET payload_format = 1 WHERE id = $1`, first)
		w.exec(`UPDATE tasks SET run_after = now() + interval '1 hour' WHERE id = $1`, first)
		if w.claim(first, "w") != nil {
			t.Fatal("claimed before its time")
		}
		w.exec(`UPDATE tasks SET run_after = now() WHERE id = $1`, first)
		l := w.mustClaim(first)
		wantDone(t, "complete", w.complete(l, "a"))
		w.mustClaim(second)
	})
}
