package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/testkit/canary"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

func TestSealed(t *testing.T) {
	t.Parallel()

	t.Run("PayloadAndPlanAreStoredSealed", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		id := w.accept("k", say("u", "I like tea"))
		wantSealed(t, "the command", w.storedOf(id), "tea")
		l := w.mustClaim(id)
		wantOpen(t, l, "I like tea")
		wantDone(t, "commit", w.commit(l, "the user likes tea"))
		wantSealed(t, "the plan", one[[]byte](w, `SELECT body FROM plans WHERE task_id = $1`, id), "tea")
		wantDone(t, "settle", w.settle(l))
		if n := one[int](w, `SELECT count(*) FROM data_keys WHERE day = (clock_timestamp() AT TIME ZONE 'UTC')::date AND master_key = 'a'`); n != 1 {
			t.Errorf("%d keys of the day", n)
		}
		if n := one[int](w, `SELECT count(*) FROM tasks t JOIN plans p ON p.task_id = t.id WHERE t.data_key IS NOT NULL OR p.data_key IS NOT NULL`); n != 0 {
			t.Error("an ended task still refers to its data key")
		}
		w.books()
	})

	t.Run("WhoLacksTheKeyLeavesTheTaskWaiting", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		id := w.accept("k", say("u", "sealed"))
		for what, db := range map[string]*postgres.DB{"no keys": w.plain(), "another master key": w.sealed("b")} {
			w.as(db, func() {
				if ids, _, err := db.Due(t.Context(), claimant("x"), 10); err != nil || len(ids) != 0 {
					t.Errorf("%s: due are %v: %v", what, ids, err)
				}
				if l := w.claim(id, "x"); l != nil {
					t.Fatalf("%s: the task was claimed", what)
				}
			})
		}
		wantStatus(t, w, id, task.EventPending)
		if ids, _, err := w.db.Due(t.Context(), claimant("x"), 10); err != nil || !slices.Contains(ids, id) {
			t.Errorf("with the key: due are %v: %v", ids, err)
		}
		wantOpen(t, w.mustClaim(id), "sealed")
	})

	t.Run("OnAndOffMix", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		on, off, none := w.sealed("a"), w.with(postgres.Sealing{Ring: ringOf(t, "a"), OpenOnly: true}), w.plain()
		var before, during, after uuid.UUID
		w.as(none, func() { before = w.accept("before", say("u1", "said before")) })
		w.as(on, func() { during = w.accept("during", say("u2", "said during")) })
		w.as(off, func() { after = w.accept("after", say("u3", "said after")) })
		if !bytes.Contains(w.storedOf(before), []byte("said")) || !bytes.Contains(w.storedOf(after), []byte("said")) {
			t.Error("something was sealed while encryption was off")
		}
		wantSealed(t, "the command", w.storedOf(during), "said")
		w.as(on, func() { wantOpen(t, w.mustClaim(before), "said before") })
		w.as(off, func() { wantOpen(t, w.mustClaim(during), "said during") })
		w.as(none, func() { wantOpen(t, w.mustClaim(after), "said after") })
	})

	t.Run("WhatWasChangedOrMovedIsClosed", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		changed, moved, other := w.accept("a", say("u1", "one")), w.accept("b", say("u2", "two")), w.accept("c", say("u3", "three"))
		w.exec(`UPDATE tasks SET command = set_byte(command, octet_length(command) - 1, get_byte(command, octet_length(command) - 1) # 1) WHERE id = $1`, changed)
		w.exec(`UPDATE tasks SET command = (SELECT command FROM tasks WHERE id = $2) WHERE id = $1`, moved, other)
		for what, id := range map[string]uuid.UUID{"changed": changed, "moved": moved} {
			l := w.mustClaim(id)
			if !errors.Is(l.Closed, seal.ErrUnreadable) || errors.Is(l.Closed, seal.ErrNoKey) || l.Payload != nil {
				t.Errorf("%s: %q, %v", what, l.Payload, l.Closed)
			}
			wantDone(t, "fail", w.fail(l, task.PayloadUnreadable))
			if e := wantStatus(t, w, id, task.EventFailed); e.ErrorCode != task.CodePayloadUnreadable {
				t.Errorf("%s: the event says %s", what, e.ErrorCode)
			}
		}
		wantOpen(t, w.mustClaim(other), "three")
		w.books()
	})

	t.Run("AnotherKeyOfTheSameNameOpensNothing", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		id := w.accept("k", say("u", "one"))
		wrong := w.sealed("a/other")
		w.as(wrong, func() {
			if l := w.mustClaim(id); !errors.Is(l.Closed, seal.ErrNoKey) {
				t.Errorf("opened %q: %v", l.Payload, l.Closed)
			}
		})
	})

	t.Run("TheFirstOfADayIsMadeOnce", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		const n = 8
		stores := make([]*postgres.DB, n)
		for i := range stores {
			stores[i] = w.sealed("a")
		}
		ids := make([]uuid.UUID, n)
		together(n, func(i int) {
			r, err := w.accepter(stores[i]).Accept(t.Context(), w.caller, key(t, keyName(i)), say("u"+keyName(i), "text"))
			if err != nil {
				t.Errorf("accept: %v", err)
			}
			ids[i] = r.EventID
		})
		for _, id := range ids {
			wantOpen(t, w.mustClaim(id), "text")
		}
		if keys := one[int](w, `SELECT count(*) FROM data_keys`); keys != 1 {
			t.Errorf("%d data keys", keys)
		}
	})

	t.Run("AKeyThatWasRetiredMeanwhileSealsNothing", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		wantDone(t, "complete", w.complete(w.mustClaim(w.accept("a", say("u", "one"))), "one"))
		was := one[uuid.UUID](w, `SELECT id FROM data_keys`)
		w.exec(`DELETE FROM data_keys`)
		id := w.accept("b", say("u", "two"))
		wantOpen(t, w.mustClaim(id), "two")
		if now := one[uuid.UUID](w, `SELECT data_key FROM tasks WHERE id = $1`, id); now == was {
			t.Error("it is sealed with the key that is gone")
		}
		w.books()
	})
}

// TestSealedMoves runs what rewrites or reads payloads beside the claim.
func TestSealedMoves(t *testing.T) {
	t.Parallel()

	t.Run("RetryAndCancel", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		id := w.accept("a", say("u", "said once"))
		wantDone(t, "fail", w.fail(w.mustClaim(id), task.OutputInvalid))
		first := 1
		if _, err := w.retrier().Retry(t.Context(), w.caller, id, &first, nil); err != nil {
			t.Fatal(err)
		}
		l := w.mustClaim(id)
		wantOpen(t, l, "said once")
		wantDone(t, "complete", w.complete(l, "said"))
		gone := w.accept("b", say("u", "cancelled"))
		if err := w.canceller().Cancel(t.Context(), w.caller, gone); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, w, gone, task.EventFailed)
		w.books()
	})

	t.Run("AnEraseCutsSealedBatches", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		mine, others := w.remember(erasedScope, secret), w.remember(memory.Scope{UserID: "another"}, "kept")
		id := w.batch("batch", false,
			command.Change{ID: mine[0], Content: ptr(secret + " anew")}, command.Change{ID: others[0], Content: ptr("kept anew")}).EventID
		was := w.storedOf(id)
		w.as(w.plain(), func() { // who lacks the key leaves the batch and the erase to others
			l := w.claimErase(w.fence())
			chunk, err := w.db.EraseJob().Next(t.Context(), l)
			for err == nil {
				done := w.db.EraseJob().Apply(t.Context(), l, chunk, "", nil, worker.Work{})
				if done.Err != nil {
					err = done.Err
					break
				}
				l.Cursor = done.Cursor
				chunk, err = w.db.EraseJob().Next(t.Context(), l)
			}
			if !errors.Is(err, seal.ErrNoMaster) || !bytes.Equal(w.storedOf(id), was) {
				t.Fatalf("without the key the batch was cut: %v", err)
			}
			wantDone(t, "later", w.later(l, task.InternalFailure, 0))
		})
		w.endErase(one[uuid.UUID](w, `SELECT task_id FROM erasures`))
		stored := w.storedOf(id)
		wantSealed(t, "the batch", stored, "kept")
		if bytes.Equal(stored, was) {
			t.Fatal("the batch was not cut")
		}
		l := w.claimKind(id, task.BatchUpdate)
		wantOpen(t, l, "kept anew")
		if bytes.Contains(l.Payload, []byte(secret)) {
			t.Errorf("the batch still says %s", l.Payload)
		}
		w.pieces(l)
		wantGone(t, w, secret)
	})

	t.Run("ExportAndImport", func(t *testing.T) {
		t.Parallel()
		w := newSealedWorld(t, 1000)
		w.furnish(30)
		id := w.beginExport()
		wantSealed(t, "the export", w.storedOf(id), `{"scope"`)
		l := w.claimMove(id)
		w.toEnd(w.db.ExportJob(), l)
		wantSealed(t, "its part", one[[]byte](w, `SELECT body FROM task_parts WHERE task_id = $1 AND part = 0`, id), "fact number")
		snapshot := w.snapshot(id)
		if !bytes.Contains(snapshot, []byte("fact number 29")) {
			t.Fatalf("the snapshot is %.100q", snapshot)
		}
		if _, _, err := w.plain().ExportPart(t.Context(), w.caller.Workspace.ID, id, 0); !errors.Is(err, seal.ErrUnreadable) {
			t.Errorf("read without the key: %v", err)
		}
		w.caller = w.workspace(1000)
		for _, table := range []string{"memories", "memory_terms", "memory_vectors", "memory_history", "memory_feedback"} {
			w.exec(`DELETE FROM ` + table) // ids of records are unique in a database
		}
		taken := w.mustImport(snapshot)
		wantSealed(t, "the import's part", one[[]byte](w, `SELECT body FROM task_parts WHERE task_id = $1 AND part = 0`, taken), "fact number")
		w.toEnd(w.db.ImportJob(), w.claimMove(taken))
		if n := one[int](w, `SELECT count(*) FROM memories WHERE text LIKE 'fact number %'`); n != 30 {
			t.Errorf("%d records", n)
		}
		if n := one[int](w, `SELECT count(*) FROM task_parts WHERE task_id = $1`, taken); n != 0 {
			t.Errorf("%d parts are left", n)
		}
	})
}

// TestWhatLooksSealedIsNoInput sends as a snapshot what would be taken for sealed when it is read: stored as it is, it would
// name a data key of the sender's choice.
func TestWhatLooksSealedIsNoInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1000)
	key := uuid.New()
	body := append(append([]byte("\x00HF\x01"), key[:]...), bytes.Repeat([]byte("x"), 100)...)
	for what, db := range map[string]*postgres.DB{"off": w.plain(), "on": w.sealed("a")} {
		w.as(db, func() {
			_, err := w.mover().Import(t.Context(), w.caller, nil, bytes.NewReader(body))
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.InvalidBody {
				t.Errorf("with encryption %s: %v", what, err)
			}
		})
	}
	if n := one[int](w, `SELECT count(*) FROM tasks`); n != 0 {
		t.Errorf("%d tasks", n)
	}
}

// TestSealedOnDisk looks where PostgreSQL keeps what is gone from the tables: data files and write-ahead log.
func TestSealedOnDisk(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		sealing postgres.Sealing
		found   bool
	}{"Plain": {postgres.Sealing{}, true}, "Sealed": {postgres.Sealing{Ring: ringOf(t, "a")}, false}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, dir := privateWorld(t, c.sealing)
			word := canary.New()
			id := w.accept("k", say("u", word))
			w.exec(`CHECKPOINT`)
			inTables := onDisk(t, filepath.Join(dir, "base"), word)
			l := w.mustClaim(id)
			wantOpen(t, l, word)
			wantDone(t, "commit", w.commit(l, "something else"))
			wantDone(t, "settle", w.settle(l))
			if left := one[string](w, leftoversSQL, word); left != "" {
				t.Errorf("the payload is in %s", left)
			}
			w.exec(`CHECKPOINT`)
			inTables = inTables || onDisk(t, filepath.Join(dir, "base"), word)
			if inLog := onDisk(t, filepath.Join(dir, "pg_wal"), word); inLog != c.found || inTables != c.found {
				t.Errorf("in the write-ahead log: %v, in the data files: %v; want %v", inLog, inTables, c.found)
			}
		})
	}
}

// onDisk tells whether any file below dir has the word.
func onDisk(t *testing.T, dir, word string) bool {
	t.Helper()
	found, read := false, 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the server removes files as it likes
			return nil
		}
		read += len(content)
		found = found || bytes.Contains(content, []byte(word))
		return err
	})
	if err != nil || read == 0 {
		t.Fatalf("%d bytes below %s: %v", read, dir, err)
	}
	return found
}

// BenchmarkAcceptSealed is the acceptance of 4 KB with encryption against without, turn by turn, so that a busy machine
// slows both. It reports the ratio of their times.
func BenchmarkAcceptSealed(b *testing.B) {
	w := newWorld(b, 1_000_000_000)
	stores := []*postgres.DB{w.plain(), w.sealed("a")}
	add := say("u", strings.Repeat("four", 1024))
	var took [2]time.Duration
	accept := func(i, n int) {
		add.Scope.UserID = fmt.Sprint(i, n%100)
		began := time.Now()
		if _, err := w.accepter(stores[i]).Accept(b.Context(), w.caller, key(b, fmt.Sprintf("key_%d_%d", i, n)), add); err != nil {
			b.Fatal(err)
		}
		took[i] += time.Since(began)
	}
	for n := range 20 { // connections and keys are there before it counts
		accept(n%2, -n-1)
	}
	took = [2]time.Duration{}
	n := 0
	for b.Loop() {
		accept(n%2, n)
		accept(1-n%2, n)
		n++
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "sealed/plain")
}
