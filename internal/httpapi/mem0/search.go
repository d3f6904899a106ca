package mem0

import (
	"context"
	"math"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	// defaultFound is how many memories a search answers unless it says.
	defaultFound = 10
	// mostAsked is the most that the clients' contract lets a search ask for. A search here answers at most
	// recall.MaxSearchLimit.
	mostAsked = 1_000
)

// searchV3 answers the memories that fit best within an object.
func (h handlers) searchV3(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	records, _, err := h.search(ctx, call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: map[string]any{"results": foundOf(records)}}, nil
}

// searchV1 answers them as a list, within an object for output_format v1.1.
func (h handlers) searchV1(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	records, b, err := h.search(ctx, call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: enveloped(b, foundOf(records))}, nil
}

// searchV2 answers them as a list.
func (h handlers) searchV2(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	records, _, err := h.search(ctx, call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: foundOf(records)}, nil
}

func (h handlers) search(ctx context.Context, call httpapi.GuestCall) ([]memory.Record, body, error) {
	b, err := bodyOf(call)
	if err != nil {
		return nil, nil, err
	}
	query, err := searchOf(b)
	if err != nil {
		return nil, nil, err
	}
	records, err := h.deps.Searcher.Search(ctx, call.Caller.Workspace.ID, query)
	return records, b, err
}

// searchOf reads a search. Without a threshold nothing is left out for its score: scores here are fractions of the
// best that a memory could have, and the clients' default would hide answers.
func searchOf(b body) (recall.SearchQuery, error) {
	asked, err := b.text("query")
	if err != nil {
		return recall.SearchQuery{}, err
	}
	if asked == nil || command.Blank(*asked) {
		return recall.SearchQuery{}, bad("/query", "at least one visible character")
	}
	chosen, err := selectionOf(b)
	if err != nil {
		return recall.SearchQuery{}, err
	}
	query := recall.SearchQuery{
		Text: *asked, Scope: chosen.scope, Filter: chosen.filter, LatestOnly: chosen.latestOnly, Expired: chosen.expired,
		Limit: defaultFound, Mode: recall.Hybrid, Explain: true,
	}
	for _, name := range []string{"limit", "top_k"} {
		most, err := b.number(name)
		if err != nil {
			return recall.SearchQuery{}, err
		}
		if most == nil {
			continue
		}
		if *most != math.Trunc(*most) || *most < 1 || *most > mostAsked {
			return recall.SearchQuery{}, bad("/"+name, "an integer from 1 to 1000")
		}
		query.Limit = min(int(*most), recall.MaxSearchLimit)
	}
	least, err := b.number("threshold")
	if err != nil {
		return recall.SearchQuery{}, err
	}
	if least != nil {
		if *least < 0 || *least > 1 {
			return recall.SearchQuery{}, bad("/threshold", "a number from 0 to 1")
		}
		query.MinScore = *least
	}
	return query, nil
}
