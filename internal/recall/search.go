package recall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
)

const (
	// MaxSearchLimit is the most records that one search answers.
	MaxSearchLimit = 100
	// searchedRecords bounds the records that one search looks at: the newest of the scope. Beyond it a scope
	// wants an index of its own.
	searchedRecords = 10_000
	// searchedTerms bounds the terms of a question; a pasted page has more and finds the same.
	searchedTerms = 64
	// candidates is how many records each way of finding hands on: twice the largest page.
	candidates = 2 * MaxSearchLimit
	// embedBound is how long a search waits for a vector of its question before it does without.
	embedBound = 5 * time.Second
)

// SearchQuery asks for the records of a scope that answer a question best. Limit is 1 to 100. Records that score
// below MinScore, a number from 0 to 1, are left out. LatestOnly leaves out what later records superseded.
type SearchQuery struct {
	Text       string
	Scope      memory.Scope
	Limit      int
	MinScore   float64
	Mode       SearchMode
	LatestOnly bool
}

// SearchMode chooses how records are found.
type SearchMode string

// The modes. Hybrid fuses the other two.
const (
	Hybrid   SearchMode = "hybrid"
	Lexical  SearchMode = "lexical"
	Semantic SearchMode = "semantic"
)

// Searched is the part of a workspace that a search looks at: the newest Limit live records of the scope.
type Searched struct {
	Scope      memory.Scope
	LatestOnly bool
	Limit      int
}

// Hit is a record that has at least one of the asked terms: how often it has each, and its length in words.
type Hit struct {
	ID     uuid.UUID
	Counts []int
	Length int
}

// Corpus is what the lexical projection says about the searched records: their number, their length together
// and the hits, newest first.
type Corpus struct {
	Records int
	Length  int64
	Hits    []Hit
}

// SearchStore reads projections, which only propose, and the canonical records, which decide.
type SearchStore interface {
	Terms(ctx context.Context, workspace uuid.UUID, within Searched, terms []string) (Corpus, error)
	// Vectors hands each vector that model made of the searched records to each, newest first.
	Vectors(ctx context.Context, workspace uuid.UUID, within Searched, model string, each func(id uuid.UUID, vector model.Vector)) error
	// LiveRecords answers those of ids that are live and in the scope now, in any order.
	LiveRecords(ctx context.Context, workspace uuid.UUID, within Searched, ids []uuid.UUID) ([]memory.Record, error)
}

// Searcher finds records by words and by meaning.
type Searcher struct {
	store    SearchStore
	embedder model.Embedder
}

// NewSearcher returns a Searcher. The embedder must be the one that makes the records' vectors.
func NewSearcher(store SearchStore, embedder model.Embedder) (*Searcher, error) {
	if store == nil || embedder == nil {
		return nil, errors.New("searcher: store and embedder are required")
	}
	return &Searcher{store: store, embedder: embedder}, nil
}

// Search answers the best records, best first, with scores in (0,1]. What it answers was live and in the scope
// when it was read from the canonical records at the end. Without an embedder hybrid search goes on by words
// alone; semantic search is a fault UNAVAILABLE then.
func (s *Searcher) Search(ctx context.Context, workspace uuid.UUID, query SearchQuery) ([]memory.Record, error) {
	if query.Limit < 1 || query.Limit > MaxSearchLimit {
		return nil, fault.At(fault.InvalidRequest, "/limit", "1 to 100")
	}
	within := Searched{Scope: query.Scope, LatestOnly: query.LatestOnly, Limit: searchedRecords}
	var ranked []scored
	var err error
	switch query.Mode {
	case Lexical:
		ranked, err = s.byWords(ctx, workspace, within, query.Text)
	case Semantic:
		ranked, err = s.byMeaning(ctx, workspace, within, query.Text)
	case Hybrid, "":
		ranked, err = s.byBoth(ctx, workspace, within, query.Text)
	default:
		return nil, fault.At(fault.InvalidRequest, "/mode", "hybrid, lexical or semantic")
	}
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	records, err := s.reread(ctx, workspace, within, atLeast(ranked, query.MinScore))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return records[:min(len(records), query.Limit)], nil
}

// byWords ranks by BM25 over the lexical projection.
func (s *Searcher) byWords(ctx context.Context, workspace uuid.UUID, within Searched, text string) ([]scored, error) {
	terms := memory.TermsOf(text).Terms
	if len(terms) == 0 {
		return nil, nil
	}
	terms = terms[:min(len(terms), searchedTerms)]
	corpus, err := s.store.Terms(ctx, workspace, within, terms)
	if err != nil {
		return nil, fmt.Errorf("by words: %w", err)
	}
	return best(bm25(corpus, len(terms)), candidates), nil
}

// byMeaning ranks by the cosine of the vectors.
func (s *Searcher) byMeaning(ctx context.Context, workspace uuid.UUID, within Searched, text string) ([]scored, error) {
	question, err := s.embed(ctx, text)
	if err != nil {
		return nil, fault.Wrap(fault.UnavailableNow, err)
	}
	return s.near(ctx, workspace, within, question)
}

// byBoth fuses both rankings. The ways differ too much for their scores to be added, so their ranks are.
func (s *Searcher) byBoth(ctx context.Context, workspace uuid.UUID, within Searched, text string) ([]scored, error) {
	words, err := s.byWords(ctx, workspace, within, text)
	if err != nil {
		return nil, err
	}
	question, failed := s.embed(ctx, text)
	if failed != nil { // a provider that fails must not take the search by words with it
		return words, nil
	}
	meanings, err := s.near(ctx, workspace, within, question)
	if err != nil {
		return nil, err
	}
	return fuse(words, meanings), nil
}

// embed makes the question's vector, nil if the embedder refuses the text.
func (s *Searcher) embed(ctx context.Context, text string) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(ctx, embedBound)
	defer cancel()
	embedding, err := s.embedder.Embed(ctx, []string{text})
	if err != nil {
		return nil, fmt.Errorf("embed question: %w", err)
	}
	if len(embedding.Vectors) != 1 {
		return nil, errors.New("embed question: not one vector for one text")
	}
	return embedding.Vectors[0], nil
}

func (s *Searcher) near(ctx context.Context, workspace uuid.UUID, within Searched, question model.Vector) ([]scored, error) {
	if len(question) == 0 {
		return nil, nil
	}
	var found []scored
	err := s.store.Vectors(ctx, workspace, within, s.embedder.Model(), func(id uuid.UUID, vector model.Vector) {
		if score := cosine(question, vector); score > 0 {
			found = append(found, scored{id, score})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("by meaning: %w", err)
	}
	return best(found, candidates), nil
}

// reread asks the canonical records about what the projections propose and keeps the order of the ranking.
func (s *Searcher) reread(ctx context.Context, workspace uuid.UUID, within Searched, ranked []scored) ([]memory.Record, error) {
	if len(ranked) == 0 {
		return nil, nil
	}
	ids := make([]uuid.UUID, len(ranked))
	for i, r := range ranked {
		ids[i] = r.id
	}
	live, err := s.store.LiveRecords(ctx, workspace, within, ids)
	if err != nil {
		return nil, fmt.Errorf("read found records: %w", err)
	}
	byID := make(map[uuid.UUID]memory.Record, len(live))
	for _, record := range live {
		byID[record.ID] = record
	}
	records := make([]memory.Record, 0, len(live))
	for _, r := range ranked {
		if record, ok := byID[r.id]; ok {
			record.Score = r.score
			records = append(records, record)
		}
	}
	return records, nil
}
