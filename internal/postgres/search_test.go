package postgres_test

import (
	"context"
	"fmt"
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
		w.exec(`UPDATE memories SET version = 2, text = 'cake', content_key = sha256('cake') WHERE id = $1`, ids[3])
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
			expired, err := w.searcher(offline.NewEmbedder()).Search(t.Context(), w.caller.Workspace.ID, recall.SearchQuery{
				Text: "tea", Scope: memory.Scope{UserID: "ana"}, Limit: 10, Mode: mode, LatestOnly: true, Expired: true,
			})
			shown := textsOf(expired)
			slices.Sort(shown)
			if err != nil || !slices.Equal(shown, []string{"tea expired", "tea kept"}) {
				t.Errorf("%s finds with the expired %q, %v", mode, shown, err)
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

func TestSearchProjections(t *testing.T) {
	t.Parallel()
	modes := []recall.SearchMode{recall.Lexical, recall.Semantic, recall.Hybrid}
	ask := func(w *world, s *recall.Searcher, mode recall.SearchMode, text string, change ...func(*recall.SearchQuery)) []memory.Record {
		w.t.Helper()
		query := recall.SearchQuery{Text: text, Scope: memory.Scope{UserID: "ana"}, Limit: 10, Mode: mode, LatestOnly: true}
		for _, f := range change {
			f(&query)
		}
		found, err := s.Search(w.t.Context(), w.caller.Workspace.ID, query)
		if err != nil {
			w.t.Fatalf("%s %q: %v", mode, text, err)
		}
		return found
	}
	t.Run("CorruptedRowsNeitherLeakNorResurrect", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		mine := w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea", "Ana hates cake")
		gone := w.remember(memory.Scope{UserID: "ana"}, "Ana buried a secret treasure")
		bobs := w.remember(memory.Scope{UserID: "bob"}, "Bob buried a secret treasure")
		ours := w.caller
		w.caller = w.workspace(10)
		theirs := w.remember(memory.Scope{UserID: "ana"}, "Another Ana buried a secret treasure")
		w.caller = ours
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, gone[0])
		// Rows of others claim to be ours, and ours claim to have what others have.
		w.exec(`UPDATE memory_terms SET workspace_id = $1`, w.caller.Workspace.ID)
		w.exec(`UPDATE memory_vectors SET workspace_id = $1`, w.caller.Workspace.ID)
		for table, columns := range map[string]string{
			"memory_terms":   "(terms, counts, length) = (SELECT terms, counts, length",
			"memory_vectors": "vector = (SELECT vector",
		} {
			w.exec(`UPDATE `+table+` SET `+columns+` FROM `+table+` WHERE memory_id = $2) WHERE memory_id = $1`, mine[1], theirs[0])
		}
		for _, mode := range modes {
			found := ask(w, w.searcher(offline.NewEmbedder()), mode, "buried secret treasure")
			if len(found) == 0 {
				t.Errorf("%s: the corruption shows nothing", mode)
			}
			for _, r := range found {
				if !slices.Contains(mine, r.ID) || slices.Contains(bobs, r.ID) {
					t.Errorf("%s leaks %q", mode, r.Text)
				}
			}
		}
	})
	t.Run("AProjectionOfOtherContentIsNotUsed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea")
		w.exec(`UPDATE memory_terms SET content_key = sha256('other')`)
		w.exec(`UPDATE memory_vectors SET content_key = sha256('other')`)
		for _, mode := range modes {
			if found := ask(w, w.searcher(offline.NewEmbedder()), mode, "tea"); len(found) != 0 {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
		}
		// A change that keeps the content keeps the projections, whatever version they were made from.
		w.exec(`UPDATE memories SET version = 2 WHERE id = $1`, ids[0])
		w.exec(`UPDATE memory_terms p SET content_key = m.content_key FROM memories m`)
		w.exec(`UPDATE memory_vectors p SET content_key = m.content_key FROM memories m`)
		for _, mode := range modes {
			if found := ask(w, w.searcher(offline.NewEmbedder()), mode, "tea"); len(found) != 1 || found[0].Version != 2 {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
		}
	})
	t.Run("WhatASearcherRemembersNeverOutlivesARecord", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea", "Ana drinks tea", "Ana sells tea", "Ana grows tea")
		s := w.searcher(offline.NewEmbedder())
		for _, mode := range modes {
			if found := ask(w, s, mode, "tea"); len(found) != 4 {
				t.Fatalf("%s finds %q", mode, textsOf(found))
			}
		}
		w.exec(`UPDATE memories SET deleted_at = clock_timestamp() WHERE id = $1`, ids[0])
		w.exec(`UPDATE memories SET expires_at = clock_timestamp() WHERE id = $1`, ids[1])
		w.exec(`UPDATE memories SET user_id = 'bob' WHERE id = $1`, ids[2])
		w.exec(`UPDATE memories SET text = 'Ana grows cake', content_key = sha256('cake') WHERE id = $1`, ids[3])
		for _, mode := range modes {
			if found := ask(w, s, mode, "tea"); len(found) != 0 {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
		}
		w.remember(memory.Scope{UserID: "ana"}, "Ana likes tea")
		for _, mode := range modes {
			if found := ask(w, s, mode, "tea"); len(found) != 1 {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
		}
	})
	t.Run("SupersededRecordsShowTheirSuccessorWhenAskedFor", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		ids := w.remember(memory.Scope{UserID: "ana"}, "Ana lives in Paris", "Ana lives in Berlin")
		w.exec(`UPDATE memories SET valid_to = clock_timestamp(), superseded_by = $2 WHERE id = $1`, ids[0], ids[1])
		s := w.searcher(offline.NewEmbedder())
		for _, mode := range modes {
			if found := ask(w, s, mode, "where does Ana live"); len(found) != 1 || found[0].ID != ids[1] {
				t.Errorf("%s finds %q", mode, textsOf(found))
			}
			found := ask(w, s, mode, "where does Ana live", func(q *recall.SearchQuery) { q.LatestOnly = false })
			place := slices.IndexFunc(found, func(r memory.Record) bool { return r.ID == ids[0] })
			if len(found) != 2 || place < 0 || found[place].ValidTo == nil || found[place].SupersededBy == nil || *found[place].SupersededBy != ids[1] {
				t.Errorf("%s finds %+v", mode, found)
			}
		}
	})
	t.Run("ExplainShowsThePartsOfAScore", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 100)
		w.remember(memory.Scope{UserID: "ana"}, "Ana likes green tea", "Ana likes tea and cake and jam", "Rex barks")
		s := w.searcher(offline.NewEmbedder())
		explained := func(q *recall.SearchQuery) { q.Explain = true }
		found := ask(w, s, recall.Hybrid, "green tea", explained)
		if len(found) < 2 || found[0].Text != "Ana likes green tea" {
			t.Fatalf("%q", textsOf(found))
		}
		first, second := *found[0].Explain, *found[1].Explain
		if first.LexicalRank != 1 || first.SemanticRank != 1 || second.LexicalRank != 2 || first.LexicalScore <= second.LexicalScore {
			t.Fatalf("%+v and %+v", first, second)
		}
		if found[0].Score != max(first.LexicalScore, first.SemanticScore) || first.SemanticScore <= 0 || first.SemanticScore > 1 {
			t.Fatalf("%v, %+v", found[0].Score, first)
		}
		if words := ask(w, s, recall.Lexical, "green tea", explained); words[0].Explain.SemanticRank != 0 || words[0].Explain.LexicalScore != words[0].Score {
			t.Fatalf("%+v", words[0].Explain)
		}
		if plain := ask(w, s, recall.Hybrid, "green tea"); plain[0].Explain != nil {
			t.Fatal("explained without being asked")
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
	refs, err := w.db.Searched(t.Context(), w.caller.Workspace.ID, within)
	if err != nil || len(refs) != 100 {
		t.Fatalf("%d records, %v", len(refs), err)
	}
	for i, ref := range refs {
		if text := one[string](w, `SELECT text FROM memories WHERE id = $1`, ref.ID); text != fmt.Sprintf("fact number %d", 2994-10*i) {
			t.Fatalf("place %d has %q", i, text)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.db.Searched(ctx, w.caller.Workspace.ID, within); !fault.Is(err, fault.UnavailableNow) {
		t.Fatalf("a cancelled search: %v", err)
	}
}
