package mem0

import (
	"context"
	"strconv"

	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// listV3 answers one page of the memories that filters select, with its neighbours.
func (h handlers) listV3(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	shown, err := h.browse(ctx, call)
	return httpapi.GuestAnswer{Body: shown}, err
}

// listV2 answers the page alone.
func (h handlers) listV2(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	shown, err := h.browse(ctx, call)
	return httpapi.GuestAnswer{Body: shown.Results}, err
}

func (h handlers) browse(ctx context.Context, call httpapi.GuestCall) (listed, error) {
	b, err := bodyOf(call)
	if err != nil {
		return listed{}, err
	}
	page, _, err := pageOf(call.Query)
	if err != nil {
		return listed{}, err
	}
	chosen, err := selectionOf(b)
	if err != nil {
		return listed{}, err
	}
	return h.page(ctx, call, page, chosen)
}

func (h handlers) page(ctx context.Context, call httpapi.GuestCall, page recall.PageQuery, chosen selection) (listed, error) {
	found, err := h.deps.Browser.Memories(ctx, call.Caller.Workspace.ID, recall.BrowseQuery{
		PageQuery: reached(page), Scope: chosen.scope, Filter: chosen.filter, LatestOnly: chosen.latestOnly,
		Expired: chosen.expired,
	})
	if err != nil {
		return listed{}, err
	}
	return answer(call, page, found.Total, recordsOf(found.Records))
}

// listV1 answers the memories of a scope as a list, or with page and page_size one page with its neighbours.
func (h handlers) listV1(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	scope, others, err := queryMembers(call.Query, "page", "page_size", "limit", "output_format", "version", "api_version", "enable_graph")
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	page, paged, err := pageOf(call.Query)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if !paged {
		page = recall.PageQuery{Page: 1, Size: wholeList}
	}
	if most, given := others["limit"]; given && !paged {
		n, err := strconv.Atoi(most)
		if err != nil || n < 1 {
			return httpapi.GuestAnswer{}, bad("/limit", "an integer from 1")
		}
		page.Size = min(n, wholeList)
	}
	shown, err := h.page(ctx, call, page, selection{scope: scope, latestOnly: true})
	if err != nil || paged {
		return httpapi.GuestAnswer{Body: shown}, err
	}
	return httpapi.GuestAnswer{Body: shown.Results}, nil
}
