package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// walk makes moves and holds each against the table of package task.
type walk struct {
	*world
	made map[task.Step]bool
}

func (w *walk) state(id uuid.UUID) (s task.State) {
	w.t.Helper()
	row := w.sql.QueryRow(w.t.Context(), `SELECT status, stage FROM all_tasks WHERE id = $1`, id)
	if err := row.Scan(&s.Status, &s.Stage); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// move does something to a task that the table must permit.
func (w *walk) move(move task.Move, id uuid.UUID, do func()) {
	w.t.Helper()
	from := w.state(id)
	do()
	to := w.state(id)
	if !task.Permits(move, from, to) {
		w.t.Errorf("%s led from %s to %s", move, from, to)
	}
	w.made[task.Step{Move: move, From: from, To: to}] = true
}

func (w *walk) take(id uuid.UUID) (l worker.Lease) {
	w.t.Helper()
	w.move(task.Claim, id, func() { l = w.mustClaim(id) })
	return l
}

func (w *walk) fresh(name string) uuid.UUID { return w.accept(name, say(name, "a")) }

// expire lets every lease expire.
func (w *walk) expire() { w.advance(2 * time.Minute) }

// TestMoves makes every move of a task's life through the store and holds it against the table, and the table against
// what was made.
func TestMoves(t *testing.T) {
	t.Parallel()
	w := &walk{newWorld(t, 1000), map[task.Step]bool{}}
	giveUp := func(move task.Move, class task.Class, l worker.Lease) {
		t.Helper()
		w.move(move, l.TaskID, func() { wantDone(t, string(move), w.later(l, class, 0)) })
	}
	rescue := func(move task.Move, id uuid.UUID) {
		t.Helper()
		w.expire()
		w.move(move, id, func() {
			if _, err := w.db.Rescue(t.Context(), maxAttempts, 100); err != nil {
				t.Fatal(err)
			}
		})
	}
	beat := func(l worker.Lease) {
		t.Helper()
		w.move(task.Heartbeat, l.TaskID, func() {
			if _, err := w.db.Heartbeat(t.Context(), l, time.Minute, "stub"); err != nil {
				t.Fatal(err)
			}
		})
	}

	id := w.fresh("long")
	for range 2 { // before the canonical commit, and after it
		beat(w.take(id))
		w.expire()
		giveUp(task.Retry, task.ProviderTimeout, w.take(id))
		giveUp(task.GiveBack, "", w.take(id))
		w.take(id)
		rescue(task.Rescue, id)
		if w.state(id).Stage == task.Accepted {
			l := w.take(id)
			w.move(task.Commit, id, func() { wantDone(t, "commit", w.commit(l, "fact")) })
			l.Stage = task.Committed
			giveUp(task.Retry, task.ProjectionFailed, l)
		}
	}
	l := w.take(id)
	w.move(task.Settle, id, func() { wantDone(t, "settle", w.settle(l)) })

	id = w.fresh("short")
	l = w.take(id)
	w.move(task.Settle, id, func() { wantDone(t, "complete", w.complete(l, "other fact")) })

	id = w.fresh("failing")
	l = w.take(id)
	w.move(task.Fail, id, func() { wantDone(t, "fail", w.fail(l, task.OutputInvalid)) })
	generation := 1
	w.move(task.ManualRetry, id, func() {
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &generation, nil); err != nil {
			t.Fatal(err)
		}
	})
	cancel := func(id uuid.UUID) {
		t.Helper()
		w.move(task.Cancel, id, func() {
			if err := w.canceller().Cancel(t.Context(), w.caller, id); err != nil {
				t.Fatal(err)
			}
		})
	}
	cancel(id)
	id = w.fresh("cancelled")
	w.take(id)
	cancel(id)

	id = w.fresh("crashing")
	w.take(id)
	w.exec(`UPDATE tasks SET crashes = $2 WHERE id = $1`, id, maxAttempts)
	rescue(task.Exhaust, id)
	id = w.fresh("exhausted")
	w.exec(`UPDATE tasks SET crashes = $2 WHERE id = $1`, id, maxAttempts)
	w.move(task.Exhaust, id, func() {
		if moved, err := w.db.Exhaust(t.Context(), id, maxAttempts); err != nil || moved == nil {
			t.Fatalf("exhaust: %+v, %v", moved, err)
		}
	})

	for _, step := range task.Moves() {
		if !w.made[step] {
			t.Errorf("nothing makes the move %s from %s to %s", step.Move, step.From, step.To)
		}
	}
	w.books()
}

// watchMoves makes the database note every change of a task's state, whoever makes it; the returned function reports
// those that are not in the table.
func watchMoves(w *world) (report func()) {
	w.t.Helper()
	w.exec(`CREATE TABLE seen_moves (old text, new text)`)
	w.exec(`CREATE FUNCTION see_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	  INSERT INTO seen_moves VALUES (OLD.status || '/' || OLD.stage, NEW.status || '/' || NEW.stage);
	  RETURN NULL;
	END $$`)
	w.exec(`CREATE TRIGGER see_move AFTER UPDATE ON tasks FOR EACH ROW
	  WHEN ((OLD.status, OLD.stage) IS DISTINCT FROM (NEW.status, NEW.stage)) EXECUTE FUNCTION see_move()`)
	return func() {
		w.t.Helper()
		permitted := map[string]bool{}
		for _, step := range task.Moves() {
			permitted[fmt.Sprintf("%s to %s", step.From, step.To)] = true
		}
		seen := one[[]string](w, `SELECT array_agg(DISTINCT old || ' to ' || new) FROM seen_moves`)
		for _, move := range seen {
			if !permitted[move] {
				w.t.Errorf("a task went from %s", move)
			}
		}
		if len(seen) < 5 {
			w.t.Errorf("only %v were seen", seen)
		}
	}
}
