package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// among is a claimant who asks for some.
func among(some worker.Among) worker.Claimant {
	who := claimant("w")
	who.Among = some
	return who
}

func (w *world) dueAmong(some worker.Among, limit int) []uuid.UUID {
	w.t.Helper()
	ids, _, err := w.db.Due(w.t.Context(), among(some), limit)
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

func (w *world) claimAmong(some worker.Among, id uuid.UUID) *worker.Lease {
	w.t.Helper()
	c := w.db.Claim(w.t.Context(), among(some), []worker.ClaimAsk{{TaskID: id, Token: uuid.New()}}, true)[0]
	if c.Err != nil {
		w.t.Fatal(c.Err)
	}
	return c.Lease
}

func TestAmong(t *testing.T) {
	t.Parallel()

	t.Run("EachFindsAndClaimsItsOwn", func(t *testing.T) {
		t.Parallel()
		for some, wanted := range map[worker.Among]func(crashes int) bool{
			worker.Anyone:  func(int) bool { return true },
			worker.Steady:  func(crashes int) bool { return crashes < worker.CrashedFrom },
			worker.Crashed: func(crashes int) bool { return crashes >= worker.CrashedFrom },
		} {
			w := newWorld(t, 0)
			ws := w.workspace(0).Workspace.ID
			w.backlog(ws, 5, 0)
			w.exec(`UPDATE tasks SET crashes = n.crashes FROM (SELECT id, row_number() OVER (ORDER BY run_after) - 1 AS crashes FROM tasks) n WHERE n.id = tasks.id`)
			due := w.dueAmong(some, 10)
			ids, err := collect[uuid.UUID](w, `SELECT id FROM tasks ORDER BY crashes`)
			if err != nil {
				t.Fatal(err)
			}
			for crashes, id := range ids {
				if slices.Contains(due, id) != wanted(crashes) {
					t.Errorf("%q finds a task of %d crashes: %t", some, crashes, !wanted(crashes))
				}
				if lease := w.claimAmong(some, id); (lease != nil) != wanted(crashes) {
					t.Errorf("%q claims a task of %d crashes: %t", some, crashes, lease != nil)
				}
			}
		}
	})

	t.Run("CommittedTasksThatCrashedOftenAreStillToBeHad", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 10)
		id := w.accept("k", say("u", "a"))
		wantDone(t, "commit", w.commit(w.mustClaim(id), "likes tea"))
		w.exec(`UPDATE tasks SET status = 'pending', lease_token = NULL, lease_until = NULL, crashes = 40`)
		if got := w.dueAmong(worker.Steady, 10); len(got) != 0 {
			t.Errorf("the steady ones are %v", got)
		}
		if got := w.dueAmong(worker.Crashed, 10); !slices.Equal(got, []uuid.UUID{id}) || w.claimAmong(worker.Crashed, id) == nil {
			t.Errorf("those that crashed are %v", got)
		}
	})

	t.Run("ThousandThatCrashedHideNobody", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		ws := w.workspace(0).Workspace.ID
		w.backlog(ws, 1000, 0)
		w.exec(`UPDATE tasks SET crashes = 2`)
		w.backlog(ws, 1, 0)
		w.exec(`UPDATE tasks SET run_after = clock_timestamp() WHERE crashes = 0`)
		if got := w.dueAmong(worker.Steady, 10); len(got) != 1 {
			t.Errorf("%d of 1 were found behind a thousand that crashed", len(got))
		}
	})

	t.Run("WorkspacesTakeTurns", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		crowd, calm := w.neighbours()
		w.backlog(crowd, 100, 0)
		w.backlog(calm, 1, 0)
		w.exec(`UPDATE tasks SET crashes = 2`)
		seen := map[uuid.UUID]bool{}
		for range 2 {
			id := w.dueAmong(worker.Crashed, 1)[0]
			seen[one[uuid.UUID](w, `SELECT workspace_id FROM tasks WHERE id = $1`, id)] = true
			if w.claimAmong(worker.Crashed, id) == nil {
				t.Fatal("a due task could not be claimed")
			}
		}
		if !seen[calm] {
			t.Error("a hundred of one workspace came before one of another")
		}
	})

	t.Run("WorkspacesTakeTurnsInALookForMany", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		low, high := w.neighbours()
		w.backlog(low, 50, 0)
		w.backlog(high, 50, 0)
		w.exec(`UPDATE tasks SET crashes = 2`)
		served := map[uuid.UUID]int{}
		for range 10 {
			lease := w.claimAmong(worker.Crashed, w.dueAmong(worker.Crashed, 16)[0]) // as a worker does
			served[lease.WorkspaceID]++
		}
		if served[low] != 5 || served[high] != 5 {
			t.Errorf("of ten turns %d and %d", served[low], served[high])
		}
	})

	t.Run("ProcessThatBeginsFavoursNobody", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		low, high := w.neighbours()
		w.backlog(low, 2, 0)
		w.backlog(high, 2, 0)
		w.exec(`UPDATE tasks SET crashes = 2`)
		first := map[uuid.UUID]int{}
		for range 24 { // by chance they are all the same once in eight million times
			db, err := postgres.Open(t.Context(), postgres.Config{URL: w.url})
			if err != nil {
				t.Fatal(err)
			}
			ids, _, err := db.Due(t.Context(), among(worker.Crashed), 16)
			db.Close()
			if err != nil || len(ids) != 4 {
				t.Fatalf("%d of 4 are due: %v", len(ids), err)
			}
			first[one[uuid.UUID](w, `SELECT workspace_id FROM tasks WHERE id = $1`, ids[0])]++
		}
		if first[low] == 0 || first[high] == 0 {
			t.Errorf("of 24 first turns %d and %d", first[low], first[high])
		}
	})

	t.Run("TheirTurnIsNoTurnOfTheOthers", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		low, high := w.neighbours()
		w.backlog(low, 50, 0)
		w.exec(`UPDATE tasks SET crashes = 2`)
		w.backlog(low, 50, 0)
		w.backlog(high, 50, 0)
		served := map[uuid.UUID]int{}
		for range 10 {
			w.dueAmong(worker.Crashed, 1) // of the low one
			id := w.dueAmong(worker.Steady, 1)[0]
			served[one[uuid.UUID](w, `SELECT workspace_id FROM tasks WHERE id = $1`, id)]++
		}
		if served[low] != 5 || served[high] != 5 {
			t.Errorf("of ten turns %d and %d", served[low], served[high])
		}
	})
}

// TestAmongPlans holds what a look for the few that crashed costs beside many that did not, and the other way round.
func TestAmongPlans(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	ws := w.workspace(0).Workspace.ID
	w.backlog(ws, 20_000, 0)
	w.exec(`UPDATE tasks SET crashes = 2 WHERE id IN (SELECT id FROM tasks ORDER BY run_after DESC LIMIT 3)`)
	w.exec(`VACUUM ANALYZE tasks`)
	plan := w.plan(postgres.DueSQL(worker.Crashed), dueArgs(uuid.UUID{}, 20))
	if n := buffers(t, plan); n > 60 || !strings.Contains(plan, "tasks_crashed") || strings.Contains(plan, "Seq Scan on tasks") {
		t.Errorf("a look for three among 20,000 touches %d pages:\n%s", n, plan)
	}
}
