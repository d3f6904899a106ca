package holdfast

import (
	"context"
	"time"
)

// Item is one kept item.
type Item struct {
	ID      string    `json:"id"`
	EventID string    `json:"event_id"`
	Text    string    `json:"text"`
	Author  string    `json:"author"`
	Session string    `json:"session"`
	At      time.Time `json:"at"`
	// Revision is 1 at the first send, one more with each edit.
	Revision int `json:"revision"`
	// Landed tells whether the memories of its present content are there.
	Landed bool `json:"landed"`
}

// ItemsSearch is a question to the memories of an account.
type ItemsSearch struct {
	Query string `json:"query"`
	// Limit is 1 to 100; 0 leaves it to the service, which takes 10.
	Limit   int    `json:"limit,omitempty"`
	Session string `json:"session,omitempty"`
}

// Search finds the memories of the account that answer a question best, the best first.
func (i *Items) Search(ctx context.Context, search ItemsSearch) ([]Memory, error) {
	found, err := question[found](ctx, i, "search items", "/v1/memory/search", search)
	if err != nil {
		return nil, err
	}
	return found.Results, nil
}

// ItemsGrep is a pattern to look for.
type ItemsGrep struct {
	// Pattern is compared byte for byte or, with Regex, is a regular expression of RE2.
	Pattern string `json:"pattern"`
	Regex   bool   `json:"regex,omitempty"`
	// Limit is 1 to 100; 0 leaves it to the service, which takes 50.
	Limit   int    `json:"limit,omitempty"`
	Session string `json:"session,omitempty"`
}

// Matches are what a pattern was found in.
type Matches struct {
	Items    []Item   `json:"items"`
	Memories []Memory `json:"results"`
	// Truncated tells that a bound was met before everything was looked at.
	Truncated bool `json:"truncated"`
}

// Grep finds the items and memories of the account whose text contains a pattern.
func (i *Items) Grep(ctx context.Context, grep ItemsGrep) (*Matches, error) {
	return question[Matches](ctx, i, "grep items", "/v1/memory/grep", grep)
}

// ItemsRead says which items: IDs, answered in that order, or a Session, answered by time.
type ItemsRead struct {
	IDs     []string `json:"ids,omitempty"`
	Session string   `json:"session,omitempty"`
	// After is the id of an item of the session; what comes behind it is read.
	After string `json:"after,omitempty"`
	// Limit is 1 to 100; 0 leaves it to the service, which takes 50.
	Limit int `json:"limit,omitempty"`
}

// ItemsPage is one page of items.
type ItemsPage struct {
	Items []Item `json:"items"`
	// Next is the After of the following page, empty at the end.
	Next string `json:"next"`
}

// Read reads items in order.
func (i *Items) Read(ctx context.Context, which ItemsRead) (*ItemsPage, error) {
	return question[ItemsPage](ctx, i, "read items", "/v1/memory/read", which)
}

func question[T any](ctx context.Context, i *Items, op, path string, body any) (*T, error) {
	r, err := ask(op, path, body)
	if err != nil {
		return nil, err
	}
	if r.header, err = i.header(); err != nil {
		return nil, err
	}
	return answer[T](ctx, i.c, r)
}
