package app

import (
	"context"
	"time"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// addChanges fills in the use cases that change records, and the reader of who has some.
func (c *core) addChanges(deps *httpapi.Deps, prices credit.Prices) error {
	changer, err := write.NewChanger(countedChanges{c.db, c.metrics}, c.wakeups, c.embedder, prices)
	if err != nil {
		return err
	}
	batcher, err := write.NewBatcher(countedAccepts{minuteAccepts{c.db, c.minutes}, c.metrics}, c.wakeups, prices)
	if err != nil {
		return err
	}
	entities, err := recall.NewEntities(c.db)
	if err != nil {
		return err
	}
	deps.Changer, deps.Batcher, deps.Entities = changer, batcher, entities
	if deps.Policies, err = write.NewPolicies(c.db); err != nil {
		return err
	}
	if deps.Feedbacks, err = write.NewFeedbacks(c.db); err != nil {
		return err
	}
	if deps.Exports, err = recall.NewExports(c.db); err != nil {
		return err
	}
	if deps.Mover, err = write.NewMover(countedAccepts{minuteAccepts{c.db, c.minutes}, c.metrics}, countedImports{c.db, c.metrics}, c.wakeups); err != nil {
		return err
	}
	deps.Eraser, err = c.newEraser()
	return err
}

// countedImports counts what is decided about imports.
type countedImports struct {
	store   write.ImportStore
	metrics *obs.Metrics
}

func (s countedImports) AcceptImport(ctx context.Context, item write.Acceptance, parts write.Parts) write.Accepted {
	began := time.Now()
	a := s.store.AcceptImport(ctx, item, parts)
	s.metrics.Accept(string(item.Kind), verdict(a.Replayed, a.Refused), refusal(a.Refused), time.Since(began))
	return a
}

// newEraser builds erases that the API runs itself as long as their caller waits.
func (c *core) newEraser() (*write.Eraser, error) {
	inline, err := worker.NewInline(c.db, c.db, task.Erase, c.db.EraseJob(), c.wakeups, c.wakeups, c.settings.LeaseTTL)
	if err != nil {
		return nil, err
	}
	return write.NewEraser(countedErases{c.db, c.metrics}, inline, c.wakeups)
}

// countedErases counts what is decided about erases.
type countedErases struct {
	write.EraseStore
	metrics *obs.Metrics
}

func (s countedErases) BeginErase(ctx context.Context, e write.Erasing) (write.Erased, *task.Hint, error) {
	began := time.Now()
	begun, hint, err := s.EraseStore.BeginErase(ctx, e)
	s.metrics.Accept(string(task.Erase), verdict(begun.Replayed, err), refusal(err), time.Since(began))
	return begun, hint, err
}

// countedChanges counts what is decided about changes of single records.
type countedChanges struct {
	store   write.ChangeStore
	metrics *obs.Metrics
}

func (s countedChanges) Change(ctx context.Context, c write.Changing) (write.Changed, *task.Hint, error) {
	began := time.Now()
	changed, hint, err := s.store.Change(ctx, c)
	kind := task.Update
	if c.Change.Delete {
		kind = task.Delete
	}
	s.metrics.Accept(string(kind), verdict(changed.Replayed, err), refusal(err), time.Since(began))
	return changed, hint, err
}
