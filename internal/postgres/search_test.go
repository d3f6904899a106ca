package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// down is the offline embedder while its provider can't be reached.
type down struct {
	*offline.Embedder
	deadline time.Duration
}

func (d *down) Embed(ctx context.Context, _ []string) (model.Embedding, error) {
	if at, ok := ctx.Deadline(); ok {
		d.deadline = time.Until(at)
	}
	return model.Embedding{}, model.NewError(task.ProviderUnavailable, "down", nil)
}

func (w *world) search(mode recall.SearchMode, user, text string) []memory.Record {
	w.t.Helper()
	found, err := w.searcher(offline.NewEmbedder()).Search(w.t.Context(), w.caller.Workspace.ID,
		recall.SearchQuery{Text: text, Scope: memory.Scope{UserID: user}, Limit: 10, Mode: mode})
	if err != nil {
		w.t.Fatalf("search %q: %v", text, err)
	}
	return found
}

func (w *world) searcher(embedder model.Embedder) *recall.Searcher {
	w.t.Helper()
	s, err := recall.NewSearcher(w.db, embedder)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func TestSearch(t *testing.T) {
	t.Parallel()
	t.Run("FindsWordsOfAnyScript", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		scope := memory.Scope{UserID: "ana"}
		w.remember(scope, "我喜欢喝咖啡", "أحب شرب القهوة", "ฉันชอบดื่มกาแฟ", "Party time 🎉🎉", "The dog is called Rex", "东京塔很高")
		for question, want := range map[string]string{
			"咖啡": "我喜欢喝咖啡", "قهوة": "أحب شرب القهوة", "กาแฟ": "ฉันชอบดื่มกาแฟ", "🎉": "Party time 🎉🎉",
			"What is my dog called?": "The dog is called Rex", "REX": "The dog is called Rex",
		} {
			found := w.search(recall.Lexical, "ana", question)
			if len(found) != 1 || found[0].Text != want {
				t.Errorf("%q finds %q", question, textsOf(found))
			}
			if hybrid := w.search(recall.Hybrid, "ana", question); len(hybrid) == 0 || hybrid[0].Text != want {
				t.Errorf("%q finds %q first", question, textsOf(hybrid))
			}
		}
	})
	t.Run("TheBestComesFirstWithScoresFromZeroToOne", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "Ana drinks green tea every morning", "Ana paints her door green",
			"Ana plays chess on Sundays", "Ana drinks coffee at work")
		for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid, ""} {
			found := w.search(mode, "ana", "drinks green tea")
			if len(found) == 0 || found[0].Text != "Ana drinks green tea every morning" {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
			for i, record := range found {
				if record.Score <= 0 || record.Score > 1 || i > 0 && record.Score > found[i-1].Score {
					t.Errorf("%s: place %d has the score %v", mode, i, record.Score)
				}
			}
		}
	})
	t.Run("LimitAndMinScoreCut", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "tea", "tea and cake", "tea and cake and jam and honey", "chess")
		ask := recall.SearchQuery{Text: "tea", Scope: memory.Scope{UserID: "ana"}, Limit: 2, Mode: recall.Lexical}
		s := w.searcher(offline.NewEmbedder())
		found, err := s.Search(t.Context(), w.caller.Workspace.ID, ask)
		if err != nil || len(found) != 2 || found[0].Text != "tea" {
			t.Fatalf("%q, %v", textsOf(found), err)
		}
		ask.Limit, ask.MinScore = 10, found[1].Score
		if found, err = s.Search(t.Context(), w.caller.Workspace.ID, ask); err != nil || len(found) != 2 {
			t.Fatalf("%q, %v", textsOf(found), err)
		}
		for _, limit := range []int{0, -1, 101} {
			ask.Limit = limit
			if _, err := s.Search(t.Context(), w.caller.Workspace.ID, ask); !fault.Is(err, fault.InvalidRequest) {
				t.Errorf("limit %d: %v", limit, err)
			}
		}
		ask.Limit, ask.Mode = 1, "psychic"
		if _, err := s.Search(t.Context(), w.caller.Workspace.ID, ask); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("unknown mode: %v", err)
		}
	})
	t.Run("StaysInItsScopeAndWorkspace", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana", RunID: "r1"}, "Ana likes tea")
		w.remember(memory.Scope{UserID: "bob"}, "Bob likes tea")
		ours := w.caller
		w.caller = w.workspace(10)
		w.remember(memory.Scope{UserID: "ana"}, "another Ana likes tea")
		w.caller = ours
		for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid} {
			if got := textsOf(w.search(mode, "ana", "likes tea")); !slices.Equal(got, []string{"Ana likes tea"}) {
				t.Errorf("%s finds %q", mode, got)
			}
			if got := w.search(mode, "eve", "likes tea"); len(got) != 0 {
				t.Errorf("%s finds %q", mode, textsOf(got))
			}
		}
	})
	t.Run("WhatIsNotLiveIsNotFound", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "tea deleted", "tea expired", "tea superseded", "tea of another version", "tea kept")
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, ids[0])
		w.exec(`UPDATE memories SET expires_at = clock_timestamp() WHERE id = $1`, ids[1])
		w.exec(`UPDATE memories SET valid_to = clock_timestamp() WHERE id = $1`, ids[2])
		w.exec(`UPDATE memories SET version = 2, text = 'cake' WHERE id = $1`, ids[3])
		for _, mode := range []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid} {
			got := textsOf(w.search(mode, "ana", "tea"))
			slices.Sort(got)
			if !slices.Equal(got, []string{"tea kept", "tea superseded"}) {
				t.Errorf("%s finds %q", mode, got)
			}
			latest, err := w.searcher(offline.NewEmbedder()).Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
				Text: "tea", Scope: memory.Scope{UserID: "ana"}, Limit: 10, Mode: mode, LatestOnly: true,
			})
			if err != nil || !slices.Equal(textsOf(latest), []string{"tea kept"}) {
				t.Errorf("%s finds of the latest %q, %v", mode, textsOf(latest), err)
			}
		}
	})
	t.Run("ARecordThatGoesMeanwhileIsNotAnswered", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "tea first", "tea second", "tea third")
		store := &meanwhile{SearchStore: w.db, then: func() {
			w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, ids[0])
			w.exec(`UPDATE memories SET user_id = 'bob' WHERE id = $1`, ids[1])
		}}
		s, err := recall.NewSearcher(store, offline.NewEmbedder())
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
			Text: "tea", Scope: memory.Scope{UserID: "ana"}, Limit: 10, Mode: recall.Lexical,
		})
		if err != nil || !slices.Equal(textsOf(found), []string{"tea third"}) {
			t.Fatalf("%q, %v", textsOf(found), err)
		}
	})
	t.Run("VectorsOfAnotherModelAreNotCompared", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea")
		w.exec(`UPDATE memory_vectors SET model = 'an older one'`)
		if got := w.search(recall.Semantic, "ana", "Ana likes tea"); len(got) != 0 {
			t.Fatalf("%q", textsOf(got))
		}
		if got := w.search(recall.Hybrid, "ana", "Ana likes tea"); len(got) != 1 {
			t.Fatalf("%q", textsOf(got))
		}
	})
	t.Run("WithoutAnEmbedderItGoesOnByWords", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea")
		broken := &down{Embedder: offline.NewEmbedder()}
		s := w.searcher(broken)
		ask := recall.SearchQuery{Text: "tea", Scope: memory.Scope{UserID: "ana"}, Limit: 10, Mode: recall.Hybrid}
		found, err := s.Search(t.Context(), w.caller.Workspace.ID, ask)
		if err != nil || len(found) != 1 || found[0].Score <= 0 {
			t.Fatalf("%q, %v", textsOf(found), err)
		}
		if broken.deadline <= 0 || broken.deadline > 5*time.Second {
			t.Fatalf("the embedder may take %s", broken.deadline)
		}
		ask.Mode = recall.Semantic
		if _, err := s.Search(t.Context(), w.caller.Workspace.ID, ask); !fault.Is(err, fault.UnavailableNow) {
			t.Fatalf("semantic: %v", err)
		}
	})
	t.Run("AQuestionWithoutWordsFindsNothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea")
		if got := w.search(recall.Lexical, "ana", " ?!… "); len(got) != 0 {
			t.Fatalf("%q", textsOf(got))
		}
	})
}

// meanwhile is the real store with something that happens between the projections and the canonical records.
type meanwhile struct {
	recall.SearchStore
	then func()
}

func (m *meanwhile) LiveRecords(ctx context.Context, workspace uuid.UUID, within recall.Searched, ids []uuid.UUID) ([]memory.Record, error) {
	m.then()
	return m.SearchStore.LiveRecords(ctx, workspace, within, ids)
}

func TestSearchBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0)
	w.fill(3000) // 300 records of each user
	within := recall.Searched{Scope: memory.Scope{UserID: "user-4"}, Limit: 100}
	corpus, err := w.db.Terms(t.Context(), w.caller.Workspace.ID, within, []string{"2994", "4", "fact"})
	if err != nil || corpus.Records != 100 || corpus.Length != 300 || len(corpus.Hits) != 100 {
		t.Fatalf("%d records, length %d, %d hits, %v", corpus.Records, corpus.Length, len(corpus.Hits), err)
	}
	newest := corpus.Hits[0]
	if text := one[string](w, `SELECT text FROM memories WHERE id = $1`, newest.ID); text != "fact number 2994" || !slices.Equal(newest.Counts, []int{1, 0, 1}) {
		t.Fatalf("%q, %v", text, newest.Counts)
	}
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, err := w.db.Terms(ctx, w.caller.Workspace.ID, within, []string{"fact"}); !fault.Is(err, fault.UnavailableNow) {
		t.Fatalf("a cancelled search: %v", err)
	}
}
