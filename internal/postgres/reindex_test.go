package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// renamed is the offline embedder under another model's name. It counts texts and answers before what is said.
type renamed struct {
	*offline.Embedder
	name   string
	texts  atomic.Int64
	before func(texts []string) error
}

func newRenamed(name string) *renamed { return &renamed{Embedder: offline.NewEmbedder(), name: name} }

func (e *renamed) Model() string { return e.name }

func (e *renamed) Embed(ctx context.Context, texts []string) (model.Embedding, error) {
	if e.before != nil {
		if err := e.before(texts); err != nil {
			return model.Embedding{}, err
		}
	}
	e.texts.Add(int64(len(texts)))
	return e.Embedder.Embed(ctx, texts)
}

// waits counts the pauses between tries and takes no time.
type waits struct{ all []time.Duration }

func (p *waits) wait(ctx context.Context, d time.Duration) error {
	p.all = append(p.all, d)
	return ctx.Err()
}

func (w *world) reindexer(embedder model.Embedder, p *waits) *repair.Reindexer {
	w.t.Helper()
	x, err := repair.NewReindexer(w.db, embedder, p.wait)
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

// stale counts live records whose terms or vector are missing, of other content or of another model.
func (w *world) stale(vectorModel string) int {
	w.t.Helper()
	return one[int](w, `
SELECT count(*) FROM memories m
 WHERE m.deleted_at IS NULL AND (
       NOT EXISTS (SELECT FROM memory_terms p WHERE p.memory_id = m.id AND p.content_key = m.content_key AND p.version = m.version)
    OR NOT EXISTS (SELECT FROM memory_vectors p WHERE p.memory_id = m.id AND p.content_key = m.content_key AND p.version = m.version
                      AND p.model = $1 AND NOT p.skipped))`, vectorModel)
}

func nothing(repair.Reindex) {}

func TestReindex(t *testing.T) {
	t.Parallel()
	t.Run("RebuildsLostTables", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea", "Ana plays chess", "gone")
		first := w.caller
		w.caller = w.workspace(10)
		w.remember(memory.Scope{UserID: "ana"}, "another Ana likes cake")
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, ids[2])
		w.exec(`TRUNCATE memory_terms, memory_vectors`)
		done, err := w.reindexer(offline.NewEmbedder(), &waits{}).Run(t.Context(), nothing)
		if err != nil || !done.Finished || done.Done != 3 || done.Total != 3 {
			t.Fatalf("%+v, %v", done, err)
		}
		if n := w.stale(offline.NewEmbedder().Model()); n != 0 {
			t.Fatalf("%d records are stale", n)
		}
		if n := one[int](w, `SELECT count(*) FROM memory_terms`); n != 3 {
			t.Fatalf("%d rows of terms", n)
		}
		w.caller = first
		for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic} {
			if found := w.search(mode, "ana", "likes tea"); len(found) == 0 || found[0].Text != "Ana likes tea" {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
		}
	})
	t.Run("ARecordThatChangesMeanwhileIsDoneAgain", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea", "Ana plays chess")
		next := newRenamed("next")
		next.before = func(texts []string) error {
			if len(texts) == 2 { // only of the first round
				w.change("", command.Change{ID: ids[0], Metadata: []byte(`{"a":1}`)})
			}
			return nil
		}
		if done, err := w.reindexer(next, &waits{}).Run(t.Context(), nothing); err != nil || !done.Finished || done.Done != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		if n := w.stale("next"); n != 0 || next.texts.Load() != 3 {
			t.Fatalf("%d records are stale after %d texts", n, next.texts.Load())
		}
	})
	t.Run("ARecordThatNeverRestsStopsIt", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea")
		next := newRenamed("next")
		next.before = func([]string) error {
			w.exec(`UPDATE memories SET version = version + 1 WHERE id = $1`, ids[0])
			return nil
		}
		if done, err := w.reindexer(next, &waits{}).Run(t.Context(), nothing); err == nil || done.Finished || done.Done != 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		next.before = nil
		if done, err := w.reindexer(next, &waits{}).Run(t.Context(), nothing); err != nil || !done.Finished || done.Done != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
	})
	t.Run("AnotherModelTakesOverWhileSearchesWork", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.corpus("ana", 600)
		next := newRenamed("next")
		during := 0
		done, err := w.reindexer(next, &waits{}).Run(t.Context(), func(r repair.Reindex) {
			if r.Finished || r.Done == 0 {
				return
			}
			during++
			for e, there := range map[model.Embedder]int64{offline.NewEmbedder(): 600 - r.Done, next: r.Done} {
				found, err := w.searcher(e).Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
					Text: "told us in the morning", Scope: memory.Scope{UserID: "ana"}, Limit: 100, Mode: recall.Semantic,
				})
				if err != nil || len(found) != int(min(100, there)) {
					t.Errorf("%s finds %d after %d, %v", e.Model(), len(found), r.Done, err)
				}
			}
			if found := w.search(recall.Lexical, "ana", "word3 word4 word5"); len(found) == 0 {
				t.Errorf("no words after %d", r.Done)
			}
		})
		if err != nil || !done.Finished || done.Done != 600 || during != 2 || w.stale("next") != 0 {
			t.Fatalf("%+v, %v, looked %d times, %d stale", done, err, during, w.stale("next"))
		}
		old, err := w.searcher(offline.NewEmbedder()).Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
			Text: "told us", Scope: memory.Scope{UserID: "ana"}, Limit: 10, Mode: recall.Semantic,
		})
		if err != nil || len(old) != 0 {
			t.Fatalf("vectors of another model were compared: %d, %v", len(old), err)
		}
	})
	t.Run("AKilledOneGoesOnWhereItWas", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.corpus("ana", 600)
		ctx, kill := context.WithCancel(t.Context())
		x := newRenamed("next")
		x.before = func([]string) error {
			if x.texts.Load() >= 320 { // in the midst of the second page
				kill()
			}
			return ctx.Err()
		}
		if _, err := w.reindexer(x, &waits{}).Run(ctx, nothing); err == nil {
			t.Fatal("it went on")
		}
		again := newRenamed("next")
		var first repair.Reindex
		done, err := w.reindexer(again, &waits{}).Run(t.Context(), func(r repair.Reindex) {
			if first.Model == "" {
				first = r
			}
		})
		if err != nil || !done.Finished || done.Done != 600 || first.Done != 256 || again.texts.Load() != 344 || w.stale("next") != 0 {
			t.Fatalf("%+v from %+v, %v, %d texts", done, first, err, again.texts.Load())
		}
		if done, err = w.reindexer(again, &waits{}).Run(t.Context(), nothing); err != nil || done.ID == first.ID || done.Done != 600 {
			t.Fatalf("a finished one was not begun anew: %+v, %v", done, err)
		}
	})
	t.Run("ConcurrentWritesKeepTheirOwnProjections", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 1000)
		name := offline.NewEmbedder().Model()
		w.corpus("ana", 600)
		x := newRenamed(name)
		writes := 0
		x.before = func([]string) error { // between a page's reading and its writing
			writes++
			w.exec(`WITH m AS (UPDATE memories SET version = version + 1, text = text || ' edited', content_key = sha256((id::text || version)::bytea)
				WHERE id IN (SELECT id FROM memories ORDER BY id OFFSET $1 LIMIT 3) RETURNING id, version, content_key),
				t AS (UPDATE memory_terms p SET version = m.version, content_key = m.content_key, terms = '{edited}', counts = '{1}' FROM m WHERE p.memory_id = m.id)
				UPDATE memory_vectors p SET version = m.version, content_key = m.content_key FROM m WHERE p.memory_id = m.id`, writes*40)
			w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = (SELECT id FROM memories ORDER BY id OFFSET $1 LIMIT 1)`, writes*40+5)
			w.exec(`DELETE FROM memory_terms p USING memories m WHERE m.id = p.memory_id AND m.deleted_at IS NOT NULL`)
			w.remember(memory.Scope{UserID: "ana"}, fmt.Sprintf("written meanwhile %d", writes))
			return nil
		}
		done, err := w.reindexer(x, &waits{}).Run(t.Context(), nothing)
		if err != nil || !done.Finished || writes < 9 {
			t.Fatalf("%+v, %v, %d writes", done, err, writes)
		}
		if n := w.stale(name); n != 0 {
			t.Fatalf("%d records are stale", n)
		}
		if n := one[int](w, `SELECT count(*) FROM memory_terms p JOIN memories m ON m.id = p.memory_id WHERE m.deleted_at IS NOT NULL`); n != 0 {
			t.Fatalf("%d ended records have terms again", n)
		}
	})
	t.Run("TwoAtOnceAreHarmless", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.corpus("ana", 600)
		var both sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			x := w.reindexer(newRenamed("next"), &waits{})
			both.Go(func() { _, errs[i] = x.Run(t.Context(), nothing) })
		}
		both.Wait()
		if err := errors.Join(errs...); err != nil || w.stale("next") != 0 {
			t.Fatalf("%v, %d stale", err, w.stale("next"))
		}
	})
	t.Run("RefusedTextsAreTriedAgainAndHoldNothingUp", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea", "unspeakable", "Ana plays chess")
		w.exec(`UPDATE memory_vectors SET vector = NULL, skipped = true`)
		x := newRenamed(offline.NewEmbedder().Model())
		x.before = func(texts []string) error {
			for _, text := range texts {
				if text == "unspeakable" {
					return model.NewError(task.ProjectionRejected, "refused", nil)
				}
			}
			return nil
		}
		p := &waits{}
		if done, err := w.reindexer(x, p).Run(t.Context(), nothing); err != nil || done.Done != 3 || len(p.all) != 0 {
			t.Fatalf("%+v, %v, waited %v", done, err, p.all)
		}
		if got := one[string](w, `SELECT string_agg(m.text, ',' ORDER BY m.text) FROM memories m JOIN memory_vectors v ON v.memory_id = m.id WHERE v.skipped`); got != "unspeakable" {
			t.Fatalf("skipped: %s", got)
		}
	})
	t.Run("AProviderThatFailsIsTriedABoundedNumberOfTimes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 0)
		w.corpus("ana", 300)
		x := newRenamed("next")
		failed := model.NewError(task.ProviderRateLimited, "slow down", nil)
		failed.RetryAfter = 20 * time.Second
		x.before = func([]string) error {
			if x.texts.Load() >= 256 {
				return failed
			}
			return nil
		}
		p := &waits{}
		done, err := w.reindexer(x, p).Run(t.Context(), nothing)
		if !errors.Is(err, failed) || done.Done != 256 || done.Finished || len(p.all) != 7 {
			t.Fatalf("%+v, %v, waited %v", done, err, p.all)
		}
		for _, d := range p.all {
			if d < 20*time.Second || d > 30*time.Second {
				t.Fatalf("waited %v", p.all)
			}
		}
		x.before, p.all = func([]string) error { return model.NewError(task.ProviderRejected, "key", nil) }, nil
		if _, err := w.reindexer(x, p).Run(t.Context(), nothing); err == nil || len(p.all) != 0 {
			t.Fatalf("%v, waited %v", err, p.all)
		}
	})
}
