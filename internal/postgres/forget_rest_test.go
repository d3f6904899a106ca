package postgres_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/testkit"
	"github.com/holdfast-memory/holdfast/internal/write"
)

func (w *itemWorld) forget(what write.Forget) write.Forgotten {
	w.t.Helper()
	done, err := w.items.Forget(w.t.Context(), w.caller, "u", what)
	if err != nil || done.Queue == nil {
		w.t.Fatalf("forget: %+v, %v", done, err)
	}
	return done
}

func TestForgetRest(t *testing.T) {
	t.Parallel()

	t.Run("BatchesAndSnapshotsFromBeforeHoldNothing", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 1000)
		w.keep(input("a", canaryWord), input("b", "stays"))
		w.land("a", canaryWord)
		w.land("b", "stays")
		gone := one[uuid.UUID](w.world, `SELECT id FROM memories WHERE text = $1`, canaryWord)
		kept := one[uuid.UUID](w.world, `SELECT id FROM memories WHERE text = 'stays'`)
		batch := w.batch("b", false, command.Change{ID: gone, Content: ptr("new " + canaryWord)}, command.Change{ID: kept, Content: ptr("changed")})
		w.export()
		w.exec(`UPDATE tasks SET kind = 'import' WHERE kind = 'export'`) // as one whose parts are still there
		running := w.claimMove(w.beginExport())
		if _, err := w.movePiece(w.db.ExportJob(), &running); err != nil {
			t.Fatal(err)
		}
		if at := w.traces(); sealing(t).Ring == nil && (!strings.Contains(at, "task_parts") || !strings.Contains(at, "tasks")) {
			t.Fatalf("the canary is only in %s", at)
		}
		if done := w.forget(write.Forget{IDs: []string{"a"}}); done.Events != 1 {
			t.Fatalf("%+v", done)
		}
		if at := w.traces(); at != "" {
			t.Fatalf("the canary is in %s", at)
		}
		w.toEnd(w.db.ExportJob(), running)
		if at := w.traces(); at != "" {
			t.Fatalf("the canary is back in %s", at)
		}
		w.pieces(w.claimKind(batch.EventID, "memory_batch_update"))
		w.wantLive("changed")
	})

	t.Run("WithoutAnItemSnapshotsStay", func(t *testing.T) {
		t.Parallel()
		w := newItemWorld(t, 100)
		w.remember(memory.Scope{UserID: "u"}, "kept")
		w.export()
		if done := w.forget(write.Forget{IDs: []string{"unknown"}}); done.Events != 0 {
			t.Fatalf("%+v", done)
		}
		if n := one[int](w.world, `SELECT count(*) FROM task_parts`); n == 0 {
			t.Fatal("the export is gone")
		}
	})

	t.Run("AnEraseCutsWhatIsSaidOfRecordsThatAreGone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "other"}, "gone", "stays")
		w.batch("b", false, command.Change{ID: ids[0], Content: ptr(secret)}, command.Change{ID: ids[1], Content: ptr("changed")})
		w.exec(`DELETE FROM memories WHERE id = $1`, ids[0])
		w.erase("e")
		wantNothingLeft(t, w)
		if n := one[int](w, `SELECT payload_format FROM tasks WHERE kind = 'memory_batch_update'`); n != command.Format {
			t.Errorf("format %d", n)
		}
	})

	t.Run("AnAnswerThatIsLostKeepsItsCounts", func(t *testing.T) {
		t.Parallel()
		for _, before := range []bool{false, true} { // whether the lost COMMIT happened
			w := newItemWorld(t, 10_000)
			var inputs []command.ItemInput
			for i := range 150 {
				inputs = append(inputs, input(strconv.Itoa(i), "text"))
			}
			w.keep(inputs...)
			proxy := testkit.CommitCutProxy(t, w.url)
			db := w.open(proxy.URL())
			proxy.CutNextCommit(before)
			items, err := write.NewItems(db, w.hints, w.hints, offline.NewEmbedder(), credit.DefaultPrices(), nil)
			if err != nil {
				t.Fatal(err)
			}
			done, err := items.Forget(t.Context(), w.caller, "u", write.Forget{All: true})
			if err != nil || done.Events != 150 || done.Queue == nil || *done.Queue != 150 {
				t.Errorf("%v: %+v, %v", before, done, err)
			}
		}
	})
}

func TestBatchThatIsCutToNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 100)
	ids := w.remember(memory.Scope{UserID: "ada"}, "one")
	w.exec(`DELETE FROM memory_vectors`)
	l := w.claimKind(w.batch("b", false, command.Change{ID: ids[0], Metadata: []byte(`{"a":1}`)}).EventID, "memory_batch_update")
	chunk, vectors := w.next(l)
	w.exec(`UPDATE memories SET version = version + 1`)
	proxy := testkit.CommitCutProxy(t, w.url)
	direct := w.db
	w.db = w.open(proxy.URL())
	proxy.CutNextCommit(true)
	if done := w.apply(l, chunk, vectors); !errors.Is(done.Err, fault.ErrCommitUnknown) {
		t.Fatalf("apply: %v", done.Err)
	}
	w.db = direct
	if done := wantDone(t, "repeat", w.apply(l, chunk, vectors)); done.Cursor != 0 || done.Ended {
		t.Fatalf("%+v", done)
	}
	l.Stage = "committed"
	if n := w.pieces(l); n != 1 {
		t.Errorf("%d pieces", n)
	}
}
