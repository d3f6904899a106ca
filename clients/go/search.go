package holdfast

import "context"

// SearchRequest is a question to the memories of a scope.
type SearchRequest struct {
	Scope
	Query string
	// Limit is 1 to 100; 0 leaves it to the service, which takes 10.
	Limit int
	// MinScore leaves out what scores less, from 0 to 1.
	MinScore float64
	// Mode is hybrid, lexical or semantic; empty is hybrid.
	Mode string
	// Superseded asks for what a later memory has superseded too.
	Superseded bool
	// Explain asks for the parts of each score.
	Explain bool
	// Filters is what the memories must meet beside the scope: anything that encodes to the object that the service
	// documents.
	Filters any
}

type searchBody struct {
	Scope
	Query      string  `json:"query"`
	Limit      int     `json:"limit,omitempty"`
	MinScore   float64 `json:"min_score,omitempty"`
	Mode       string  `json:"mode,omitempty"`
	LatestOnly *bool   `json:"latest_only,omitempty"`
	Explain    bool    `json:"explain,omitempty"`
	Filters    any     `json:"filters,omitempty"`
}

// Search finds the memories that answer a question best, the best first.
func (c *Client) Search(ctx context.Context, search SearchRequest) ([]Memory, error) {
	body := searchBody{
		Scope: search.Scope, Query: search.Query, Limit: search.Limit, MinScore: search.MinScore, Mode: search.Mode,
		Explain: search.Explain, Filters: search.Filters,
	}
	if search.Superseded {
		body.LatestOnly = new(bool)
	}
	r, err := ask("search", "/v1/memories/search", body)
	if err != nil {
		return nil, err
	}
	found, err := answer[found](ctx, c, r)
	if err != nil {
		return nil, err
	}
	return found.Results, nil
}

// found is the answer to a search.
type found struct {
	Results []Memory `json:"results"`
}
