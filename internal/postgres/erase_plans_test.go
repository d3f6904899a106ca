package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestErasePlans holds that the pieces of an erase read indexes, however large the tables are, and that the order of
// a scan needs no sort of a whole workspace: 20 workspaces with 1,500 tasks, 1,500 archived ones, 1,500 records, 150
// tombstones and 1,500 items each.
func TestErasePlans(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	for _, statement := range []string{
		`CREATE TABLE filled AS SELECT gen_random_uuid() AS id, md5((n % 20)::text)::uuid AS ws, n, 'u' || (n / 20 % 50) AS u,
		        clock_timestamp() - n * interval '1 second' AS at FROM generate_series(1, 30000) n`,
		`INSERT INTO lanes (workspace_id, lane, next_seq, last_accepted_at)
		 SELECT DISTINCT ON (ws, u) ws, sha256(u::bytea), 2, at FROM filled`,
		`INSERT INTO tasks (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority, payload_format,
		                    outcome, accepted_at, updated_at, completed_at)
		 SELECT id, ws, 'memory_add', 'succeeded', 'projected', at, at, u, sha256(u::bytea), 'bulk', 1, 'STORED', at, at, at FROM filled`,
		`INSERT INTO tasks_archive (id, workspace_id, kind, status, stage, run_after, hint_at, user_id, lane, priority,
		                            payload_format, outcome, accepted_at, updated_at, completed_at)
		 SELECT gen_random_uuid(), ws, 'memory_add', 'succeeded', 'projected', at, at, u, sha256(u::bytea), 'bulk', 1, 'STORED', at, at, at FROM filled`,
		`INSERT INTO memories (id, workspace_id, task_id, user_id, lane, text, content_key, accepted_at, said_at, valid_from,
		                       deleted_at, created_at, updated_at)
		 SELECT id, ws, id, u, sha256(u::bytea), 'x', sha256('x'), at, at, at, CASE WHEN n % 11 = 0 THEN at END, at, at FROM filled`,
		`INSERT INTO memory_history (id, workspace_id, memory_id, task_id, ordinal, event, version, new_text, at)
		 SELECT id, ws, id, id, 0, 'ADD', 1, 'x', at FROM filled`,
		`INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, content_hash, text, at, task_id, created_at, updated_at)
		 SELECT ws, sha256(id::text::bytea), u, 'i', 'e', 1, sha256('x'), 'x', at, id, at, at FROM filled`,
		`ANALYZE`,
	} {
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	var ws uuid.UUID
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT ws FROM filled LIMIT 1`).Scan(&ws))
	args := pgx.NamedArgs{
		"now": nil, "workspace": ws, "kind": "memory_add", "erased_at": time.Now(), "at": time.Now(), "after": uuid.Max,
		"window": eraseWindow, "limit": eraseRecordLimit, "ids": []uuid.UUID{ws}, "task": ws, "key": []byte{}, "account": "u1",
		"keys": [][]byte{ws[:]}, "lanes": [][]byte{make([]byte, 32)}, "kinds": []string{"memory_add"}, "agent_id": "", "run_id": "",
		"app_id": "", "lane": make([]byte, 32), "key_hash": []byte("x"), "generations": []int32{1}, "outcomes": []string{"failed"},
	}
	scope := inScope(memory.Scope{UserID: "u1"}, args)
	for name, c := range map[string]struct {
		sql     string
		indexes []string
	}{
		"begin":           {insertEraseSQL, []string{"tasks_listed", "tasks_archive_listed"}},
		"tasks":           {fmt.Sprintf(taskWindowSQL, "tasks", "NOT m.erased"+scope), []string{"tasks_listed"}},
		"archive":         {fmt.Sprintf(taskWindowSQL, "tasks_archive", "NOT m.erased"+scope), []string{"tasks_archive_listed"}},
		"next kind":       {fmt.Sprintf(nextKindSQL, "tasks"), []string{"tasks_listed"}},
		"batches":         {batchesToEraseSQL, []string{"tasks_listed"}},
		"current records": {currentRecords(memory.Scope{UserID: "u1"}, scope), []string{"memories_user"}},
		"ended records":   {fmt.Sprintf(endedRecordsSQL, scope), []string{"memories_ended"}},
		"items":           {fmt.Sprintf(itemsToEraseSQL, " AND i.account = @account"), []string{"items_"}},
		"copies":          {copiesToEraseSQL, nil},
		"lock covered":    {lockCoveredSQL, []string{"tasks_pkey"}},
		"end covered":     {eraseTasksSQL, []string{"tasks_pkey"}},
		"next heads":      {nextHeadsSQL, []string{"tasks_waiting", "tasks_head"}},
		"close runs":      {closeRunsSQL, []string{"task_runs"}},
		"archived":        {eraseArchivedSQL, []string{"tasks_archive_pkey"}},
		"records":         {eraseRecordsSQL, []string{"memories_pkey"}},
		"history":         {eraseHistorySQL, []string{"memory_history_memory"}},
		"projections":     {dropProjectionsSQL, nil},
		"erase items":     {eraseItemsSQL, []string{"items_pkey", "tasks_pkey", "tasks_archive_pkey"}},
	} {
		plan := explain(t, pool, c.sql, args)
		for _, index := range c.indexes {
			require.Contains(t, plan, index, "%s\n%s", name, plan)
		}
		for _, table := range []string{"tasks", "tasks_archive", "memories", "memory_history", "items"} {
			require.NotContains(t, plan+"\n", "Seq Scan on "+table+" ", "%s\n%s", name, plan)
		}
	}
}
