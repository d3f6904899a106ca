package mem0

import (
	"net/url"
	"strconv"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const (
	// defaultPage and maxPage are those of the clients' contract. A larger page_size is cut: the answer's next says so.
	defaultPage = 100
	maxPage     = 200
	// wholeList is the most that a list without pages answers: the newest, as many as a client can be expected to take
	// at once.
	wholeList = 1_000
)

// listed is a page with its neighbours.
type listed struct {
	Count    int64   `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  any     `json:"results"`
}

// pageOf reads which page is asked for. Paged tells whether the query says page and page_size.
func pageOf(query url.Values) (page recall.PageQuery, paged bool, err error) {
	page = recall.PageQuery{Page: 1, Size: defaultPage}
	for name, into := range map[string]*int{"page": &page.Page, "page_size": &page.Size} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < 1:
			if name == "page" {
				return page, false, invalidPage()
			}
			return page, false, bad("/page_size", "an integer from 1")
		case n > recall.MaxBrowsed:
			n = recall.MaxBrowsed
		}
		*into = n
	}
	page.Size = min(page.Size, maxPage)
	return page, query.Get("page") != "" && query.Get("page_size") != "", nil
}

// reached is the page, or the last one that can be reached: whether one behind it is too far or behind the end of the
// list, its total tells.
func reached(page recall.PageQuery) recall.PageQuery {
	page.Page = min(page.Page, recall.MaxBrowsed/page.Size+1)
	return page
}

func invalidPage() error {
	f := fault.New(fault.RouteNotFound)
	f.Details = map[string]any{words: "Invalid page."}
	return f
}

// answer shows a page of a list that has total entries, if it was reached. One behind the end is none, but for the
// first.
func answer(call httpapi.GuestCall, page recall.PageQuery, total int64, results any) (listed, error) {
	if page.Page > 1 && int64(page.Offset()) >= total {
		return listed{}, invalidPage()
	}
	if page != reached(page) {
		return listed{}, bad("/page", "one up to entry number "+strconv.Itoa(recall.MaxBrowsed))
	}
	shown := listed{Count: total, Results: results}
	if int64(page.Offset()+page.Size) < total {
		shown.Next = addressOf(call.URL, page.Page+1)
	}
	if page.Page > 1 {
		shown.Previous = addressOf(call.URL, page.Page-1)
	}
	return shown, nil
}

// addressOf is the address of another page of the same list, with the slash at its end that the clients write.
func addressOf(asked url.URL, page int) *string {
	query := asked.Query()
	query.Set("page", strconv.Itoa(page))
	asked.RawQuery = query.Encode()
	asked.Path += "/"
	if asked.RawPath != "" {
		asked.RawPath += "/"
	}
	address := asked.String()
	return &address
}
