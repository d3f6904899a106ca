package app

import (
	"context"
	"time"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/twin"
	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// addItems fills in how events of items are found and answers the dialect that keeps items.
func (c *core) addItems(deps *httpapi.Deps, prices credit.Prices, policy []byte) (httpapi.Dialect, error) {
	writer, err := write.NewItems(countedItems{c.db, c.metrics}, c.wakeups, c.wakeups, c.embedder, prices, policy)
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

// countedItems counts what is decided about calls that keep items: one that queues nothing is a replay.
type countedItems struct {
	write.ItemStore
	metrics *obs.Metrics
}

func (s countedItems) KeepItems(ctx context.Context, ask write.ItemsAsk) (write.ItemsKept, error) {
	began := time.Now()
	kept, err := s.ItemStore.KeepItems(ctx, ask)
	queued := false
	for _, state := range kept.Items {
		queued = queued || state.Queued
	}
	s.metrics.Accept(string(task.Item), verdict(err == nil && !queued, err), refusal(err), time.Since(began))
	return kept, err
}
