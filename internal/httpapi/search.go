package httpapi

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// defaultFound is how many results a search has unless the caller says.
const defaultFound = 10

// SearchMemories answers the records of a scope that fit a question best.
func (s *Server) SearchMemories(ctx context.Context, request contract.SearchMemoriesRequestObject) (contract.SearchMemoriesResponseObject, error) {
	query, err := searchOf(*request.Body)
	if err != nil {
		return nil, err
	}
	records, err := s.deps.Searcher.Search(ctx, callOf(ctx).caller.Workspace.ID, query)
	if err != nil {
		return nil, err
	}
	results := make([]contract.Memory, len(records))
	for i, record := range records {
		results[i] = memoryOf(record)
		results[i].Score = &record.Score
		results[i].Explain = explanationOf(record.Explain)
	}
	return ok(contract.SearchAnswer{Results: results}), nil
}

func searchOf(body contract.SearchRequest) (recall.SearchQuery, error) {
	if command.Blank(body.Query) {
		return recall.SearchQuery{}, fault.At(fault.InvalidRequest, "/query", "at least one visible character")
	}
	if body.Limit != nil && body.TopK != nil {
		return recall.SearchQuery{}, fault.At(fault.InvalidRequest, "/top_k", "limit or top_k, not both")
	}
	scope, err := command.NewScope(body.UserId, body.AgentId, body.RunId, body.AppId)
	if err != nil {
		return recall.SearchQuery{}, err
	}
	filter, err := memory.ParseFilter(body.Filters)
	if err != nil {
		return recall.SearchQuery{}, err
	}
	return recall.SearchQuery{
		Text: body.Query, Scope: scope, Filter: filter, Limit: or(body.Limit, or(body.TopK, defaultFound)),
		MinScore: or(body.MinScore, 0), Mode: recall.SearchMode(or(body.Mode, contract.SearchRequestMode(recall.Hybrid))),
		LatestOnly: or(body.LatestOnly, true), Explain: or(body.Explain, false),
	}, nil
}

// explanationOf shows the parts of a score, nil if they weren't asked for.
func explanationOf(parts *memory.Explain) *contract.Explanation {
	if parts == nil {
		return nil
	}
	return &contract.Explanation{
		Lexical: partOf(parts.LexicalScore, parts.LexicalRank), Semantic: partOf(parts.SemanticScore, parts.SemanticRank),
	}
}

func partOf(score float64, rank int) *contract.ScorePart {
	if rank == 0 {
		return nil
	}
	return &contract.ScorePart{Score: score, Rank: rank}
}
