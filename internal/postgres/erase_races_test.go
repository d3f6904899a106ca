package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/repair"
)

// eraseRacer is a racer that also erases, one user after another.
func (r *racer) erase() error {
	scope := memory.Scope{UserID: fmt.Sprintf("u%d", r.random.IntN(5))}
	_, err := r.w.eraser().Erase(r.w.t.Context(), r.w.caller, nil, scope)
	return err
}

// TestEraseRaces sets erases against accept, write, claim, commit, settle, fail, retry, cancel, rescue and the
// retention on five lanes.
func TestEraseRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 50_000)
	length := 15 * time.Second
	if testing.Short() {
		length = 3 * time.Second
	}
	end := time.Now().Add(length)
	together(9, func(i int) {
		if i == 8 {
			w.soundUntil(end)
			return
		}
		r := &racer{w: w, random: rand.New(rand.NewPCG(uint64(i), 11)), name: fmt.Sprintf("racer%d", i)} // #nosec G404
		for n := 0; time.Now().Before(end); n++ {
			err := error(nil)
			switch {
			case i == 0 && n%4 == 0:
				err = r.erase()
			case n%5 == 1:
				user := fmt.Sprintf("u%d", r.random.IntN(5))
				_, err = w.writer(offline.NewEmbedder()).Write(t.Context(), w.caller, nil, command.Add{
					Scope:    memory.Scope{UserID: user},
					Messages: []command.Message{{Role: "user", Content: fmt.Sprintf("%s %s %d", user, r.name, n)}},
				})
			default:
				err = r.step(n)
			}
			if !allowed(err) {
				t.Errorf("%s, step %d: %v", r.name, n, err)
				return
			}
		}
	})
	if _, err := w.db.ExpireInput(t.Context(), time.Hour, repair.Cursor{}, 20); err != nil {
		t.Fatal(err)
	}
	quiet(w)
	w.books()
	w.sound()
	for i := range 5 {
		erased, err := w.eraser().Erase(t.Context(), w.caller, nil, memory.Scope{UserID: fmt.Sprintf("u%d", i)})
		if err != nil || !erased.Finished {
			t.Fatalf("the last erase: %+v, %v", erased, err)
		}
	}
	w.books()
	w.sound()
	for what, sql := range map[string]string{
		"deadlocks":                    `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
		"records":                      `SELECT count(*) FROM memories`,
		"terms":                        `SELECT count(*) FROM memory_terms`,
		"vectors":                      `SELECT count(*) FROM memory_vectors`,
		"history with text":            `SELECT count(*) FROM memory_history WHERE old_text IS NOT NULL OR new_text IS NOT NULL`,
		"input":                        `SELECT count(*) FROM all_tasks WHERE command IS NOT NULL`,
		"plan bodies":                  `SELECT count(*) FROM plans WHERE body IS NOT NULL`,
		"scopes":                       `SELECT count(*) FROM all_tasks WHERE user_id IS NOT NULL OR NOT erased`,
		"heads":                        `SELECT count(*) FROM tasks WHERE head`,
		"unfinished tasks":             `SELECT count(*) FROM tasks WHERE completed_at IS NULL`,
		"claims without their attempt": `SELECT count(*) FROM all_tasks t WHERE t.claims <> (SELECT count(*) FROM task_attempts a WHERE a.task_id = t.id)`,
		"commits out of order": `SELECT count(*) FROM (SELECT lane_seq < lag(lane_seq) OVER (PARTITION BY lane ORDER BY committed_at) AS wrong
			FROM all_tasks WHERE committed_at IS NOT NULL AND kind = 'memory_infer') x WHERE wrong`,
	} {
		if n := one[int64](w, sql); n != 0 {
			t.Errorf("%s: %d", what, n)
		}
	}
	if strings.Contains(one[string](w, `SELECT string_agg(DISTINCT outcome, ',') FROM tasks WHERE kind = 'scope_erase'`), "STORED") {
		return
	}
	t.Error("no erase found anything")
}
