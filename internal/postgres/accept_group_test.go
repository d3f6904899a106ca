package postgres_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/testkit/property"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// acceptance is a command under a key of its own.
func acceptance(workspace uuid.UUID, key, user string, price credit.Amount) write.Acceptance {
	item := write.Acceptance{
		TaskID: uuid.Must(uuid.NewV7()), WorkspaceID: workspace, Kind: task.Infer, Scope: memory.Scope{UserID: user},
		Ordered: true, Payload: []byte(`{"messages":[]}`), Format: 1, Policy: []byte(`{}`), Price: price, Priority: task.Interactive,
	}
	copy(item.Claim.KeyHash[:], key)
	copy(item.Claim.Fingerprint[:], "print of "+key)
	item.Claim.FingerprintVersion = 1
	copy(item.Origin.Trace[:], key)
	item.Origin.Span[0] = 1
	return item
}

// acceptedRowsSQL is everything that acceptances leave of a workspace, by the keys of the commands. Left out are ids, times
// and the gaps that refused items leave in a lane's numbers.
const acceptedRowsSQL = `
SELECT concat_ws(' ', 'key', encode(k.key_hash, 'escape'), encode(k.fingerprint, 'escape'), k.retry, t.id IS NOT NULL)
  FROM idempotency_keys k LEFT JOIN tasks t ON t.id = k.task_id AND t.key_hash = k.key_hash WHERE k.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'task', encode(t.key_hash, 'escape'), t.kind, t.status, t.stage, t.user_id, t.head, t.ready, t.priority,
                 t.generation, t.hint_seq, t.accepted_at = t.updated_at, encode(t.command, 'escape'),
                 t.payload_format, t.policy, coalesce(encode(t.trace, 'hex'), 'no trace'), t.lane_seq IS NULL,
                 CASE WHEN t.lane_seq IS NOT NULL THEN rank() OVER (PARTITION BY t.lane, t.lane_seq IS NULL ORDER BY t.lane_seq) END,
                 rank() OVER (PARTITION BY t.lane ORDER BY t.accepted_at))
  FROM tasks t WHERE t.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'run', encode(t.key_hash, 'escape'), r.generation, r.amount, r.outcome, r.opened_at = t.accepted_at)
  FROM task_runs r LEFT JOIN tasks t ON t.id = r.task_id WHERE r.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'account', a.available, a.held) FROM credit_accounts a WHERE a.workspace_id = $1
UNION ALL
SELECT concat_ws(' ', 'lane', encode(l.lane, 'hex'),
                 l.next_seq > (SELECT coalesce(max(t.lane_seq), 0) FROM tasks t WHERE t.workspace_id = $1 AND t.lane = l.lane),
                 l.last_accepted_at >= (SELECT max(t.accepted_at) FROM tasks t WHERE t.workspace_id = $1 AND t.lane = l.lane))
  FROM lanes l WHERE l.workspace_id = $1 AND EXISTS (SELECT FROM tasks t WHERE t.workspace_id = $1 AND t.lane = l.lane)`

func (w *world) leftBy(workspace uuid.UUID) []string {
	w.t.Helper()
	rows, err := w.sql.Query(w.t.Context(), acceptedRowsSQL, workspace)
	require.NoError(w.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(w.t, err)
	slices.Sort(all)
	return all
}

// saidOf is an answer without ids.
func saidOf(a write.Accepted) string {
	if f, ok := errors.AsType[*fault.Error](a.Refused); ok {
		return fmt.Sprint("refused ", f.Code) // what was available is told as of a moment later
	}
	return fmt.Sprint(a.Status, " replayed ", a.Replayed, " hinted ", a.Hint != nil, " ", a.Refused)
}

// TestAcceptGroup runs the same mixes in groups and one by one, in two workspaces that can't tell each other apart.
func TestAcceptGroup(t *testing.T) {
	t.Parallel()
	t.Run("AMixLeavesWhatSinglesLeave", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		shared := 0
		property.Check(t, func(r *rapid.T) {
			credits := rapid.Int64Range(0, 12).Draw(r, "credits")
			limit := rapid.SampledFrom([]int{0, 0, 3}).Draw(r, "limit")
			grouped, single := w.workspace(credits), w.workspace(credits)
			for _, c := range []access.Caller{grouped, single} {
				if limit > 0 {
					w.exec(`UPDATE workspaces SET max_pending = $2 WHERE id = $1`, c.Workspace.ID, limit)
				}
			}
			for range rapid.IntRange(1, 3).Draw(r, "groups") {
				keys := rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 1, 8, rapid.ID[int]).Draw(r, "keys")
				var together, apart []write.Acceptance
				for _, k := range keys {
					item := acceptance(grouped.Workspace.ID, fmt.Sprint("k", k), fmt.Sprint("u", rapid.IntRange(0, 2).Draw(r, "user")),
						credit.Amount(rapid.Int64Range(0, 4).Draw(r, "price")))
					item.Ordered = rapid.Bool().Draw(r, "ordered")
					if rapid.IntRange(0, 5).Draw(r, "other") == 0 {
						copy(item.Claim.Fingerprint[:], "another command")
					}
					together = append(together, item)
					item.WorkspaceID = single.Workspace.ID
					item.TaskID = uuid.Must(uuid.NewV7())
					apart = append(apart, item)
				}
				a, n := w.db.AcceptGroup(t.Context(), together)
				shared += n
				b := make([]write.Accepted, len(apart))
				for i, item := range apart {
					b[i] = w.db.Accept(t.Context(), []write.Acceptance{item})[0]
				}
				for i := range a {
					if x, y := saidOf(a[i]), saidOf(b[i]); x != y {
						r.Fatalf("item %d: in a group %s, alone %s", i, x, y)
					}
				}
				x, y := w.leftBy(grouped.Workspace.ID), w.leftBy(single.Workspace.ID)
				if !slices.Equal(x, y) {
					r.Fatalf("in groups:\n%s\nalone:\n%s", strings.Join(x, "\n"), strings.Join(y, "\n"))
				}
			}
		})
		if shared < 10 { // a slow machine lets many fall out
			t.Errorf("groups answered %d items", shared)
		}
	})
	t.Run("ALostCommitIsTheAnswerOfEachAndTheRepeatFindsIt", func(t *testing.T) {
		t.Parallel()
		for _, happened := range []bool{false, true} {
			w := newWorld(t, 100)
			proxy := testkit.CommitCutProxy(t, w.url)
			db := w.open(proxy.URL())
			items := w.acceptances(3)
			proxy.CutNextCommit(happened)
			answers, grouped := db.AcceptGroup(t.Context(), items)
			for i, a := range answers {
				if !errors.Is(a.Refused, fault.ErrCommitUnknown) || grouped != 3 {
					t.Fatalf("item %d of %d in the group: %s", i, grouped, saidOf(a))
				}
			}
			again, _ := db.AcceptGroup(t.Context(), items)
			for i, a := range again {
				if a.Refused != nil || a.TaskID != items[i].TaskID || a.Replayed != happened {
					t.Errorf("item %d repeated, happened %v: %s", i, happened, saidOf(a))
				}
			}
			if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 3 {
				t.Errorf("%d tasks", n)
			}
			wantBalance(t, w, 94, 6)
		}
	})
	t.Run("NobodyWaitsForAKeyThatIsHeld", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		items := w.acceptances(3)
		hold, err := w.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
		_, err = hold.Exec(t.Context(), `INSERT INTO idempotency_keys (workspace_id, key_hash, fingerprint, fingerprint_version, task_id)
VALUES ($1, $2, $2, 1, $3)`, items[1].WorkspaceID, items[1].Claim.KeyHash[:], uuid.New())
		require.NoError(t, err)
		var all sync.WaitGroup
		answers := make([]write.Accepted, len(items))
		for i, item := range items {
			all.Go(func() { answers[i] = w.db.Accept(t.Context(), []write.Acceptance{item})[0] })
		}
		all.Wait()
		for i, a := range answers {
			if held := i == 1; held != fault.Is(a.Refused, fault.IdempotencyInProgress) || !held && a.Refused != nil {
				t.Errorf("item %d: %s", i, saidOf(a))
			}
		}
	})
	t.Run("OneKeyAtOnceIsOneTask", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		first := w.acceptances(1)[0]
		var all sync.WaitGroup
		answers := make([]write.Accepted, 64)
		for i := range answers {
			item := first
			if i%2 == 1 {
				item = w.acceptances(1)[0]
			} else {
				item.TaskID = uuid.Must(uuid.NewV7())
			}
			all.Go(func() { answers[i] = w.db.Accept(t.Context(), []write.Acceptance{item})[0] })
		}
		all.Wait()
		of := map[uuid.UUID]bool{}
		for i, a := range answers {
			if a.Refused != nil {
				t.Fatalf("item %d: %s", i, saidOf(a))
			}
			of[a.TaskID] = true
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks`); n != 33 || len(of) != 33 {
			t.Errorf("%d tasks, %d receipts", n, len(of))
		}
		wantBalance(t, w, 1000-66, 66)
	})
	t.Run("LanesGiveNumbersAndTimesInTheOrderOfArrival", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		w.frozen()
		var want []string
		for range 3 {
			items := w.acceptances(5)
			for i := range items {
				items[i].Scope.UserID = "one"
				want = append(want, items[i].TaskID.String())
			}
			if _, grouped := w.db.AcceptGroup(t.Context(), items); grouped != 5 {
				t.Fatalf("%d of 5 in the group", grouped)
			}
		}
		for _, order := range []string{"lane_seq", "accepted_at"} {
			if got := one[[]string](w, `SELECT array_agg(id::text ORDER BY `+order+`) FROM tasks`); !slices.Equal(got, want) {
				t.Errorf("by %s %v, not %v", order, got, want)
			}
		}
		if n := one[int64](w, `SELECT count(DISTINCT accepted_at) FROM tasks WHERE head OR lane_seq > 1`); n != 15 {
			t.Errorf("%d times", n)
		}
	})
	t.Run("WhatComesAfterAnErasureIsDatedBehindIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		w.exec(`INSERT INTO erasures (task_id, workspace_id, erased_at) VALUES ($1, $2, clock_timestamp() + interval '1 hour')`,
			uuid.New(), w.caller.Workspace.ID)
		items := w.acceptances(4)
		for i := range items {
			items[i].Scope.UserID = "one"
		}
		if _, grouped := w.db.AcceptGroup(t.Context(), items); grouped != 4 {
			t.Fatalf("%d of 4 in the group", grouped)
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks t JOIN erasures e USING (workspace_id) WHERE t.accepted_at > e.erased_at`); n != 4 {
			t.Errorf("%d are later", n)
		}
	})
	t.Run("WhoHasAGateAloneIsWaitedFor", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		other := w.workspace(100)
		hold, err := w.sql.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
		id := w.caller.Workspace.ID
		_, err = hold.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, int64(binary.BigEndian.Uint64(id[8:]))) // #nosec G115 -- any 64 bits
		require.NoError(t, err)
		items := append(w.acceptances(1), acceptance(other.Workspace.ID, "k", "u", 1))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		answers, grouped := w.db.AcceptGroup(ctx, items)
		if grouped != 0 || !fault.Is(answers[0].Refused, fault.UnavailableNow) {
			t.Errorf("%d in the group, %s", grouped, saidOf(answers[0]))
		}
		if n := one[int64](w, `SELECT count(*) FROM tasks WHERE workspace_id = $1`, id); n != 0 {
			t.Errorf("%d tasks were accepted beside who has the gate alone", n)
		}
	})
	t.Run("TheBeltHoldsWorkspacesOfTheGroupOnly", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		other, third := w.workspace(100), w.workspace(100)
		db := w.open(testkit.As(t, localdev.APILogin, w.url))
		items := append(w.acceptances(1), acceptance(other.Workspace.ID, "k", "u", 1))
		if answers, grouped := db.AcceptGroup(t.Context(), items); grouped != 2 {
			t.Fatalf("%v", answers)
		}
		seen, err := db.SeenInGroup(t.Context(), []uuid.UUID{w.caller.Workspace.ID, other.Workspace.ID})
		require.NoError(t, err)
		require.ElementsMatch(t, []uuid.UUID{w.caller.Workspace.ID, other.Workspace.ID}, seen)
		require.NotContains(t, seen, third.Workspace.ID)
	})
}

// acceptances are so many commands of the world's workspace, each of its own user and for 2 credits.
func (w *world) acceptances(n int) []write.Acceptance {
	items := make([]write.Acceptance, n)
	for i := range items {
		id := uuid.NewString()
		items[i] = acceptance(w.caller.Workspace.ID, id[:30], id, 2)
	}
	return items
}
