package app

import (
	"context"
	"time"

	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// watchPool shows how busy the connections of that use are.
func (c *core) watchPool(use string, db *postgres.DB) {
	c.metrics.WatchPool(use, func() obs.Pool { return obs.Pool(db.Load()) })
}

// countedAccepts counts what is decided about inferred adds, and how long it took.
type countedAccepts struct {
	store   write.AcceptStore
	metrics *obs.Metrics
}

func (s countedAccepts) Accept(ctx context.Context, items []write.Acceptance) []write.Accepted {
	began := time.Now()
	answers := s.store.Accept(ctx, items)
	for i, a := range answers {
		s.metrics.Accept(string(items[i].Kind), verdict(a.Replayed, a.Refused), refusal(a.Refused), time.Since(began))
	}
	return answers
}

// countedWrites counts what is decided about verbatim adds, and how long it took.
type countedWrites struct {
	store   write.NowStore
	metrics *obs.Metrics
}

func (s countedWrites) WriteNow(ctx context.Context, w write.Written) (write.Stored, *task.Hint, error) {
	began := time.Now()
	stored, hint, err := s.store.WriteNow(ctx, w)
	s.metrics.Accept(string(task.Add), verdict(stored.Replayed, err), refusal(err), time.Since(began))
	return stored, hint, err
}
