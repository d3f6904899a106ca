package twin

import (
	"context"
	"time"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	// defaultFound and defaultPage are those of the native routes.
	defaultFound = 10
	defaultPage  = 50
)

type searchBody struct {
	Query   string  `json:"query"`
	Limit   *int    `json:"limit"`
	Session *string `json:"session"`
}

type found struct {
	Results []contract.Memory `json:"results"`
}

func (h handlers) search(ctx context.Context, call httpapi.Call) (any, error) {
	account, err := accountOf(call)
	if err != nil {
		return nil, err
	}
	var body searchBody
	if err := call.Read(&body); err != nil {
		return nil, err
	}
	session, err := sessionOf(body.Session)
	if err != nil {
		return nil, err
	}
	if command.Blank(body.Query) {
		return nil, fault.At(fault.InvalidRequest, "/query", "at least one visible character")
	}
	records, err := h.deps.Searcher.Search(ctx, call.Caller.Workspace.ID, recall.SearchQuery{
		Text: body.Query, Scope: memory.Scope{UserID: account, RunID: session}, Limit: or(body.Limit, defaultFound),
		Mode: recall.Hybrid, LatestOnly: true,
	})
	if err != nil {
		return nil, err
	}
	answer := found{Results: make([]contract.Memory, len(records))}
	for i, record := range records {
		answer.Results[i] = httpapi.MemoryOf(record)
		answer.Results[i].Score = &record.Score
	}
	return answer, nil
}

type grepBody struct {
	Pattern string  `json:"pattern"`
	Regex   bool    `json:"regex"`
	Limit   *int    `json:"limit"`
	Session *string `json:"session"`
}

type grepped struct {
	Items     []shownItem       `json:"items"`
	Results   []contract.Memory `json:"results"`
	Truncated bool              `json:"truncated"`
}

func (h handlers) grep(ctx context.Context, call httpapi.Call) (any, error) {
	account, err := accountOf(call)
	if err != nil {
		return nil, err
	}
	var body grepBody
	if err := call.Read(&body); err != nil {
		return nil, err
	}
	session, err := sessionOf(body.Session)
	if err != nil {
		return nil, err
	}
	got, err := h.deps.Reader.Grep(ctx, call.Caller.Workspace.ID, recall.Grep{
		Account: account, Session: session, Pattern: body.Pattern, Regex: body.Regex, Limit: or(body.Limit, defaultPage),
	})
	if err != nil {
		return nil, err
	}
	answer := grepped{Items: shown(got.Items), Results: make([]contract.Memory, len(got.Records)), Truncated: got.Truncated}
	for i, record := range got.Records {
		answer.Results[i] = httpapi.MemoryOf(record)
	}
	return answer, nil
}

type readBody struct {
	IDs     []string `json:"ids"`
	Session *string  `json:"session"`
	After   *string  `json:"after"`
	Limit   *int     `json:"limit"`
}

type page struct {
	Items []shownItem `json:"items"`
	Next  *string     `json:"next"`
}

type shownItem struct {
	ID       string    `json:"id"`
	EventID  string    `json:"event_id"`
	Text     string    `json:"text"`
	Author   *string   `json:"author"`
	Session  *string   `json:"session"`
	At       time.Time `json:"at"`
	Revision int       `json:"revision"`
	Landed   bool      `json:"landed"`
}

func shown(items []recall.Item) []shownItem {
	list := make([]shownItem, len(items))
	for i, item := range items {
		list[i] = shownItem{
			ID: item.ID, EventID: item.EventID, Text: item.Text, Author: present(item.Author), Session: present(item.Session),
			At: item.At, Revision: item.Revision, Landed: item.Landed,
		}
	}
	return list
}

func present(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (h handlers) read(ctx context.Context, call httpapi.Call) (any, error) {
	account, err := accountOf(call)
	if err != nil {
		return nil, err
	}
	var body readBody
	if err := call.Read(&body); err != nil {
		return nil, err
	}
	workspace := call.Caller.Workspace.ID
	if body.IDs != nil {
		if body.Session != nil || body.After != nil || body.Limit != nil {
			return nil, fault.At(fault.InvalidRequest, "", "ids, or a session with after and limit")
		}
		if err := command.ItemIDs(body.IDs); err != nil {
			return nil, err
		}
		items, err := h.deps.Reader.ByID(ctx, workspace, account, body.IDs)
		if err != nil {
			return nil, err
		}
		return page{Items: shown(items)}, nil
	}
	session, err := sessionOf(body.Session)
	if err == nil && session == "" {
		err = fault.At(fault.InvalidRequest, "/session", "ids or a session required")
	}
	if err != nil {
		return nil, err
	}
	items, more, err := h.deps.Reader.Session(ctx, workspace, account, session, or(body.After, ""), or(body.Limit, defaultPage))
	if err != nil {
		return nil, err
	}
	answer := page{Items: shown(items)}
	if more {
		answer.Next = &items[len(items)-1].ID
	}
	return answer, nil
}
