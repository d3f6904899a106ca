package postgres_test

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// TestEraseLooksBehindManyOthers has more rows that the scope doesn't cover than one look reads.
func TestEraseLooksBehindManyOthers(t *testing.T) {
	t.Parallel()
	w := newItemWorld(t, 1000)
	w.keep(input("landed", secret))
	w.land("landed", secret)
	w.remember(memory.Scope{UserID: erasedUser, AppID: "y"}, secret)
	w.exec(`INSERT INTO memories (id, workspace_id, task_id, user_id, app_id, lane, text, content_key, accepted_at, said_at,
                      valid_from, created_at, updated_at)
 SELECT gen_random_uuid(), $1, gen_random_uuid(), $2, 'x', sha256('x'), 'x', sha256('x'), at, at, at, at, at
   FROM (SELECT clock_timestamp() + n * interval '1 millisecond' AS at FROM generate_series(1, 5200) n) s`,
		w.caller.Workspace.ID, erasedUser)
	w.exec(`INSERT INTO items (workspace_id, item_key, account, item_id, event_id, revision, content_hash, text, at, task_id, created_at, updated_at)
 SELECT $1, sha256(n::text::bytea), 'v', 'i', 'e', 1, sha256('x'), 'x', clock_timestamp(), gen_random_uuid(), clock_timestamp(), clock_timestamp()
   FROM generate_series(1, 5200) n`, w.caller.Workspace.ID)
	w.exec(`UPDATE items SET item_key = decode(repeat('ff', 32), 'hex') WHERE account = 'u'`)
	erased, err := w.eraser().Erase(t.Context(), w.caller, ptr(key(t, "e")), memory.Scope{UserID: erasedUser, AppID: "y"})
	if err != nil || !erased.Finished || erased.Deleted != 1 {
		t.Errorf("%+v, %v", erased, err)
	}
	if n := one[int](w.world, `SELECT count(*) FROM memories WHERE app_id = 'y'`); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if n := one[int](w.world, `SELECT count(*) FROM memories WHERE app_id = 'x'`); n != 5200 {
		t.Errorf("%d others are left", n)
	}
	w.endErase(w.fenceItems())
	if n := one[int](w.world, `SELECT count(*) FROM items WHERE account = 'u'`); n != 0 {
		t.Errorf("%d items are left", n)
	}
	if n := one[int](w.world, `SELECT count(*) FROM items WHERE account = 'v'`); n != 5200 {
		t.Errorf("%d other items are left", n)
	}
}

func TestEraseTakesTheTimeOfAnItem(t *testing.T) {
	t.Parallel()
	w := newItemWorld(t, 100)
	old, fresh := "2019-05-06T07:08:09Z", "2021-01-02T03:04:05Z"
	said := func(id, at string) (i command.ItemInput) {
		i = input(id, secret)
		i.At = &at
		return i
	}
	w.keep(said("timed", old), said("untimed", old))
	w.land("timed", secret)
	w.land("untimed", secret)
	l := w.claimErase(w.fenceItems())
	w.keep(said("timed", fresh), input("untimed", "kept"))
	for !w.erasePiece(&l).Ended {
	}
	if n := one[int](w.world, `SELECT count(*) FROM items WHERE at < '2020-01-01' OR at_text LIKE '2019%'`); n != 0 {
		t.Errorf("%d items tell when they were said before", n)
	}
	if n := one[int](w.world, `SELECT count(*) FROM items WHERE at = $1::timestamptz`, fresh); n != 1 {
		t.Errorf("%d items have their new time", n)
	}
}
