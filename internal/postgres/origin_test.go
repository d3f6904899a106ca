package postgres_test

import (
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// TestOrigin holds that a task keeps where in a trace its command came from, for every claim, and in the archive.
func TestOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	origin := task.ParseOrigin("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

	traced, err := w.accepter(w.db).Accept(task.WithOrigin(t.Context(), origin), w.caller, key(t, "traced"), say("ana", "I like tea"))
	if err != nil {
		t.Fatal(err)
	}
	plain := w.accept("plain", say("bob", "I like tea"))
	for range 2 { // the second claim follows a give-back, as after any attempt
		lease := w.mustClaim(traced.EventID)
		if lease.Origin != origin {
			t.Fatalf("the claim comes from %q", lease.Origin.Parent())
		}
		if lease.Claim == 1 {
			wantDone(t, "give back", w.db.Later(t.Context(), []worker.Later{{Lease: lease}})[0])
			continue
		}
		wantDone(t, "complete", w.complete(lease, "likes tea"))
	}
	lease := w.mustClaim(plain)
	if !lease.Origin.IsZero() {
		t.Fatalf("a command without a trace comes from %q", lease.Origin.Parent())
	}
	wantDone(t, "complete", w.complete(lease, "likes tea"))

	w.exec(`UPDATE tasks SET completed_at = completed_at - interval '1 day'`)
	if swept, err := w.db.ArchiveEnded(t.Context(), time.Minute, repair.Cursor{}, 10); err != nil || swept.Fixed != 2 {
		t.Fatalf("archive: %+v %v", swept, err)
	}
	if got := task.OriginFrom(one[[]byte](w, `SELECT trace FROM tasks_archive WHERE id = $1`, traced.EventID)); got != origin {
		t.Fatalf("the archive says %q", got.Parent())
	}
}
