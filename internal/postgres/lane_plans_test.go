package postgres_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// buffers is how many pages a plan has touched in all.
func buffers(t *testing.T, plan string) int {
	t.Helper()
	found := regexp.MustCompile(`shared hit=(\d+)(?: read=(\d+))?`).FindStringSubmatch(plan)
	if found == nil {
		t.Fatalf("a plan without buffers:\n%s", plan)
	}
	hit, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	if found[2] != "" {
		if read, err = strconv.Atoi(found[2]); err != nil {
			t.Fatal(err)
		}
	}
	return hit + read
}

// TestLongLane has a hundred thousand tasks waiting in one lane: claiming its head and passing it on cost the same as in
// a short one.
func TestLongLane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	head := w.accept("k", say("u", "a"))
	w.exec(`
INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, lane_seq, priority, command, payload_format,
                   accepted_at, updated_at)
SELECT gen_random_uuid(), t.workspace_id, t.kind, 'pending', 'accepted', t.run_after, t.hint_at, t.user_id, t.lane, n + 1, t.priority,
       t.command, 1, t.accepted_at, t.updated_at
  FROM tasks t, generate_series(1, 100000) n`)
	w.exec(`ANALYZE tasks`)
	claim := w.plan(postgres.ClaimSQL(), claimArgs(head))
	if n := buffers(t, claim); n > 60 {
		t.Errorf("the claim touches %d pages:\n%s", n, claim)
	}
	if one[string](w, `SELECT status FROM tasks WHERE id = $1`, head) != "running" {
		t.Fatal("the plan claimed nothing")
	}
	w.exec(`UPDATE tasks SET head = false, stage = 'committed' WHERE id = $1`, head)
	lane := say("u", "a").Scope.Lane()
	next := w.plan(postgres.NextHeadSQL, pgx.NamedArgs{
		"workspace": w.caller.Workspace.ID, "lane": lane[:], "now": (*time.Time)(nil),
	})
	if n := buffers(t, next); n > 60 {
		t.Errorf("passing the lane on touches %d pages:\n%s", n, next)
	}
	if one[int64](w, `SELECT lane_seq FROM tasks WHERE head`) != 2 {
		t.Fatal("the plan passed the lane on to nobody, or to the wrong one")
	}
}
