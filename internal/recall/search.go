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
	// searchedRecords bounds the records that one search looks at: the newest that meet scope and filter. Beyond it a
	// scope wants an index of its own (docs/adr/0006).
	searchedRecords = 10_000
	// searchedTerms bounds the terms of a question; a pasted page has more and finds the same.
	searchedTerms = 64
	// candidates is how many records each way of finding hands on: twice the largest page.
	candidates = 2 * MaxSearchLimit
	// spare is how many more records than needed are read again at once.
	spare = 5
	// embedBound is how long a search waits for a vector of its question before it does without.
	embedBound = 5 * time.Second
)

// SearchQuery asks for the records of a scope that answer a question best. Limit is 1 to 100. Records that score
// below MinScore, a number from 0 to 1, are left out, and those that don't meet Filter, before Limit is applied.
// LatestOnly leaves out what later records superseded, Expired doesn't leave out what has expired. Explain asks for the
// parts of each score.
type SearchQuery struct {
	Text       string
	Scope      memory.Scope
	Filter     *memory.Filter
	Limit      int
	MinScore   float64
	Mode       SearchMode
	LatestOnly bool
	Expired    bool
	Explain    bool
}

// SearchMode chooses how records are found.
type SearchMode string

// The modes. Hybrid fuses the other two.
const (
	Hybrid   SearchMode = "hybrid"
	Lexical  SearchMode = "lexical"
	Semantic SearchMode = "semantic"
)

// Searched is the part of a workspace that a search looks at: the newest Limit live records of the scope that meet
// the filter.
type Searched struct {
	Scope      memory.Scope
	Filter     *memory.Filter
	LatestOnly bool
	Expired    bool
	Limit      int
}

// Ref is a record with one content: the start of its content key. What was projected from a Ref stays true of it.
type Ref struct {
	ID      uuid.UUID
	Content uint64
}

// SearchStore reads projections, which only propose, and the canonical records, which decide.
type SearchStore interface {
	// Searched answers the records to look at, newest first.
	Searched(ctx context.Context, workspace uuid.UUID, within Searched) ([]Ref, error)
	// Terms hands the terms that are current to each, of those of the workspace's live records ids that have some.
	Terms(ctx context.Context, workspace uuid.UUID, ids []uuid.UUID, each func(ref Ref, terms memory.Terms)) error
	// Vectors does the same with the vectors that model made.
	Vectors(ctx context.Context, workspace uuid.UUID, ids []uuid.UUID, model string, each func(ref Ref, vector model.Vector)) error
	// LiveRecords answers those of ids that are live, in the scope and meet the filter now, in any order.
	LiveRecords(ctx context.Context, workspace uuid.UUID, within Searched, ids []uuid.UUID) ([]memory.Record, error)
}

// Searcher finds records by words and by meaning. It remembers projections that it has read, within a bound; which
// records they are compared for is read anew by each search.
type Searcher struct {
	store    SearchStore
	embedder model.Embedder
	shelves  *shelves
}

// NewSearcher returns a Searcher. The embedder must be the one that makes the records' vectors.
func NewSearcher(store SearchStore, embedder model.Embedder) (*Searcher, error) {
	if store == nil || embedder == nil {
		return nil, errors.New("searcher: store and embedder are required")
	}
	return &Searcher{store: store, embedder: embedder, shelves: newShelves(projectionBytes)}, nil
}

// Search answers the best records, best first, with scores in (0,1]. What it answers was live, in the scope and met
// the filter when it was read from the canonical records at the end. Without an embedder hybrid search goes on by
// words alone; semantic search is a fault UNAVAILABLE then.
func (s *Searcher) Search(ctx context.Context, workspace uuid.UUID, query SearchQuery) ([]memory.Record, error) {
	if query.Limit < 1 || query.Limit > MaxSearchLimit {
		return nil, fault.At(fault.InvalidRequest, "/limit", "1 to 100")
	}
	within := Searched{
		Scope: query.Scope, Filter: query.Filter, LatestOnly: query.LatestOnly, Expired: query.Expired, Limit: searchedRecords,
	}
	found, err := s.find(ctx, workspace, within, query)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	records, err := s.reread(ctx, workspace, within, atLeast(found.ranked, query.MinScore), query.Limit)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	if query.Explain {
		found.explain(records)
	}
	return records, nil
}

// found is what a search ranked, and the rankings it came from.
type found struct {
	ranked   []scored
	words    []scored
	meanings []scored
}

func (s *Searcher) find(ctx context.Context, workspace uuid.UUID, within Searched, query SearchQuery) (found, error) {
	switch query.Mode {
	case Lexical:
		p, err := s.scan(ctx, workspace, within)
		if err != nil {
			return found{}, err
		}
		words, err := s.byWords(ctx, p, query.Text)
		return found{ranked: words, words: words}, err
	case Semantic:
		question, err := s.embed(ctx, query.Text)
		if err != nil {
			return found{}, fault.Wrap(fault.UnavailableNow, err)
		}
		p, err := s.scan(ctx, workspace, within)
		if err != nil {
			return found{}, err
		}
		meanings, err := s.byMeaning(ctx, p, question)
		return found{ranked: meanings, meanings: meanings}, err
	case Hybrid, "":
		return s.byBoth(ctx, workspace, within, query.Text)
	}
	return found{}, fault.At(fault.InvalidRequest, "/mode", "hybrid, lexical or semantic")
}

// scanned is the records to look at on the shelf of their scope.
type scanned struct {
	key   scopeKey
	shelf *shelf
	view  *view
}

func (s *Searcher) scan(ctx context.Context, workspace uuid.UUID, within Searched) (scanned, error) {
	refs, err := s.store.Searched(ctx, workspace, within)
	if err != nil {
		return scanned{}, fmt.Errorf("scan: %w", err)
	}
	key := scopeKey{workspace, within.Scope}
	shelf := s.shelves.of(key)
	return scanned{key, shelf, shelf.view(refs)}, nil
}

// byWords ranks by BM25 over the lexical projection.
func (s *Searcher) byWords(ctx context.Context, p scanned, text string) ([]scored, error) {
	defer s.shelves.weigh(p.key, p.shelf)
	terms := memory.TermsOf(text).Terms
	if len(terms) == 0 {
		return nil, nil
	}
	if ids := p.shelf.withoutTerms(p.view); len(ids) > 0 {
		var read []document
		err := s.store.Terms(ctx, p.key.workspace, ids, func(ref Ref, terms memory.Terms) {
			read = append(read, p.shelf.document(ref, terms))
		})
		if err != nil {
			return nil, fmt.Errorf("by words: %w", err)
		}
		p.shelf.addTerms(read)
	}
	return p.shelf.words(p.view, p.shelf.hashes(terms[:min(len(terms), searchedTerms)]), candidates), nil
}

// byMeaning ranks by the cosine of the vectors, each of them: there is no index that could miss one.
func (s *Searcher) byMeaning(ctx context.Context, p scanned, question model.Vector) ([]scored, error) {
	defer s.shelves.weigh(p.key, p.shelf)
	if len(question) == 0 {
		return nil, nil
	}
	if ids := p.shelf.withoutVectors(p.view, len(question)); len(ids) > 0 {
		var read []embedded
		err := s.store.Vectors(ctx, p.key.workspace, ids, s.embedder.Model(), func(ref Ref, vector model.Vector) {
			read = append(read, embedded{ref, vector})
		})
		if err != nil {
			return nil, fmt.Errorf("by meaning: %w", err)
		}
		p.shelf.addVectors(read, len(question))
	}
	return p.shelf.near(p.view, question, candidates), nil
}

// byBoth fuses both rankings. The ways differ too much for their scores to be added, so their ranks are.
func (s *Searcher) byBoth(ctx context.Context, workspace uuid.UUID, within Searched, text string) (found, error) {
	embedded := make(chan model.Vector, 1)
	go func() { // meanwhile words are looked for; the call ends by itself at its bound
		question, err := s.embed(ctx, text)
		if err != nil { // a provider that fails must not take the search by words with it
			close(embedded)
			return
		}
		embedded <- question
	}()
	p, err := s.scan(ctx, workspace, within)
	if err != nil {
		return found{}, err
	}
	words, err := s.byWords(ctx, p, text)
	if err != nil {
		return found{}, err
	}
	question, answered := <-embedded
	if !answered {
		return found{ranked: words, words: words}, nil
	}
	meanings, err := s.byMeaning(ctx, p, question)
	if err != nil {
		return found{}, err
	}
	return found{ranked: fuse(words, meanings), words: words, meanings: meanings}, nil
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

// reread asks the canonical records about what the projections propose, best first and as far as it takes to answer
// limit of them, and keeps the order of the ranking.
func (s *Searcher) reread(ctx context.Context, workspace uuid.UUID, within Searched, ranked []scored, limit int) ([]memory.Record, error) {
	records := make([]memory.Record, 0, min(limit, len(ranked)))
	for len(records) < limit && len(ranked) > 0 {
		// Most of them are as they were a moment ago: the few more make a second look rare.
		some := ranked[:min(len(ranked), limit-len(records)+spare)]
		ranked = ranked[len(some):]
		ids := make([]uuid.UUID, len(some))
		for i, r := range some {
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
		for _, r := range some {
			if record, ok := byID[r.id]; ok && len(records) < limit {
				record.Score = r.score
				records = append(records, record)
			}
		}
	}
	return records, nil
}
