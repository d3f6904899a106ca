package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/worker"
)

// workerStop lets steps under way finish and gives leases back; a step is bounded by 15 s.
const workerStop = 20 * time.Second

// workerPart is one worker with its own connections for heartbeats.
type workerPart struct {
	worker *worker.Worker
	beats  *postgres.DB
}

func (c *core) newWorker(ctx context.Context) (*workerPart, error) {
	beats, err := openPool(ctx, c.settings.Database, beatConns)
	if err != nil {
		return nil, fmt.Errorf("build worker: %w", err)
	}
	hints, err := c.wakeups.pull()
	if err != nil {
		beats.Close()
		return nil, fmt.Errorf("build worker: %w", err)
	}
	receivers, err := c.receivers()
	if err != nil {
		beats.Close()
		return nil, fmt.Errorf("build worker: %w", err)
	}
	cfg := worker.DefaultConfig()
	cfg.LeaseTTL, cfg.ModelTimeout = c.settings.LeaseTTL, c.settings.ModelTimeout
	cfg.InputChars = c.settings.ModelInputChars
	cfg.Slots, cfg.Poll = c.settings.WorkerSlots, c.settings.WorkerPoll
	cfg.WorkspaceLeases = c.settings.WorkspaceLeases
	cfg.Policy, cfg.Log = c.settings.policy(), c.log
	deps := worker.Deps{
		Claims: c.db, Steps: c.db, Providers: c.db, Known: c.db, Beats: beats, Extractor: c.extractor, Embedder: c.embedder,
		Wakeups: hints, Publisher: c.wakeups, Notifier: c.wakeups, Observer: c.minutes.Worker(c.metrics.Worker(cfg.Slots)), Jobs: c.jobs(),
		Deliveries: c.db, Deliverer: receivers,
	}
	if c.tracer != nil {
		deps.Tracer = c.tracer
	}
	w, err := worker.New(deps, cfg)
	if err != nil {
		beats.Close()
		return nil, err
	}
	return &workerPart{worker: w, beats: beats}, nil
}

// jobs is the work of the kinds that are done in pieces.
func (c *core) jobs() map[task.Kind]worker.Job {
	batches := c.db.BatchJob()
	return map[task.Kind]worker.Job{
		task.BatchUpdate: batches, task.BatchDelete: batches, task.Erase: c.db.EraseJob(),
		task.Export: c.db.ExportJob(), task.Import: c.db.ImportJob(),
	}
}

// Start begins to take tasks.
func (p *workerPart) Start(ctx context.Context) error { return p.worker.Start(ctx) }

// Stop gives the leases back.
func (p *workerPart) Stop(ctx context.Context) error {
	err := p.worker.Stop(ctx)
	return errors.Join(err, closePool(p.beats))
}

// workerGroup is the workers of one process. None waits for another one's leases to be given back.
type workerGroup []*workerPart

// Start starts all of them.
func (g workerGroup) Start(ctx context.Context) error {
	for _, w := range g {
		if err := w.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop stops all of them at the same time, once none takes tasks any more: what one gives back is not for the others.
func (g workerGroup) Stop(ctx context.Context) error {
	for _, w := range g {
		w.worker.EndIntake()
	}
	errs := make([]error, len(g))
	var all sync.WaitGroup
	for i, w := range g {
		all.Go(func() { errs[i] = w.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
