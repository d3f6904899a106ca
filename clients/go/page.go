package holdfast

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
)

// Page is one page of a list.
type Page[T any] struct {
	Results []T `json:"results"`
	// NextCursor leads to the following page, empty at the end.
	NextCursor string `json:"next_cursor"`
}

// PageOptions says which page, and how long.
type PageOptions struct {
	// Limit is 1 to 100; 0 leaves it to the service, which takes 50.
	Limit int
	// Cursor is the NextCursor of the page before, of the same list.
	Cursor string
}

func (o PageOptions) query() url.Values {
	query := url.Values{}
	if o.Limit != 0 {
		query.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Cursor != "" {
		query.Set("cursor", o.Cursor)
	}
	return query
}

func (s Scope) query(page PageOptions) url.Values {
	query := page.query()
	for name, value := range map[string]string{"user_id": s.UserID, "agent_id": s.AgentID, "run_id": s.RunID, "app_id": s.AppID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

func list[T any](ctx context.Context, c *Client, op, path string, query url.Values) (*Page[T], error) {
	return answer[Page[T]](ctx, c, read(op, path, query))
}

// each goes through a list from its first page, and ends after an error.
func each[T any](fetch func(PageOptions) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		at := PageOptions{Limit: 100} // the most that the service gives, for the fewest calls
		for {
			page, err := fetch(at)
			if err != nil {
				yield(none, err)
				return
			}
			for _, one := range page.Results {
				if !yield(one, nil) {
					return
				}
			}
			switch page.NextCursor {
			case "":
				return
			case at.Cursor: // the list would never end
				yield(none, errors.New("holdfast: the service answers the same page again"))
				return
			}
			at.Cursor = page.NextCursor
		}
	}
}
