package app

import (
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/twin"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// addItems fills in how events of items are found and answers the dialect that keeps items.
func (c *core) addItems(deps *httpapi.Deps, prices credit.Prices, policy []byte) (httpapi.Dialect, error) {
	writer, err := write.NewItems(c.db, c.wakeups, c.wakeups, c.embedder, prices, policy)
	if err != nil {
		return httpapi.Dialect{}, err
	}
	reader, err := recall.NewItems(c.db)
	if err != nil {
		return httpapi.Dialect{}, err
	}
	deps.ItemEvents = reader
	return twin.New(twin.Deps{Writer: writer, Reader: reader, Searcher: deps.Searcher})
}
