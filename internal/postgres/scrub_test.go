package postgres_test

import "testing"

// TestScrub holds that success leaves neither the command nor the body of its plan, whose two steps are apart here.
func TestScrub(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	l := w.mustClaim(w.accept("k", say("u", "a")))
	wantDone(t, "commit", w.commit(l, "fact"))
	if n := one[int64](w, `SELECT count(*) FROM plans WHERE body IS NOT NULL`); n != 1 {
		t.Fatalf("%d plans before the projection", n)
	}
	wantDone(t, "settle", w.settle(l))
	if n := one[int64](w, `SELECT (SELECT count(*) FROM plans WHERE body IS NOT NULL) + (SELECT count(*) FROM tasks WHERE command IS NOT NULL)`); n != 0 {
		t.Errorf("%d inputs are left", n)
	}
}
