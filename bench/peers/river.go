package peers

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// endBound is how long a job may take under load.
const endBound = 90 * time.Second

// River runs the same command with the same rows and ledger: InsertTx with key, hold and balance, then a worker whose
// transaction writes record and settlement and ends with JobCompleteTx. It runs in this process, without HTTP, which
// spares it what Holdfast pays.
type River struct {
	books  *books
	client *river.Client[pgx.Tx]
	text   string
	next   atomic.Int64
	ends   sync.Map // of a task's id to the channel that its caller waits on
}

// OpenRiver starts a client that works with slots jobs at once. Its fetch settings are faster than River's own.
func OpenRiver(ctx context.Context, databaseURL string, workspaces, bytes, slots int) (*River, error) {
	b, err := openBooks(ctx, databaseURL, workspaces, 32)
	if err != nil {
		return nil, err
	}
	r := &River{books: b, text: body(bytes)}
	if err := r.start(ctx, slots); err != nil {
		b.pool.Close()
		return nil, err
	}
	return r, nil
}

func (r *River) start(ctx context.Context, slots int) error {
	driver := riverpgxv5.New(r.books.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return fmt.Errorf("river: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("river: migrate: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{owner: r})
	r.client, err = river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}}, Workers: workers, Logger: quiet(),
		FetchCooldown: time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
	})
	if err != nil {
		return fmt.Errorf("river: %w", err)
	}
	if err := r.client.Start(ctx); err != nil {
		return fmt.Errorf("river: start: %w", err)
	}
	return nil
}

// Close stops it and checks its books.
func (r *River) Close(ctx context.Context) error {
	defer r.books.pool.Close()
	if err := r.client.Stop(ctx); err != nil {
		return fmt.Errorf("river: stop: %w", err)
	}
	return r.books.balanced(ctx)
}

// riverArgs is the command.
type riverArgs struct {
	Task      uuid.UUID `json:"task"`
	Workspace uuid.UUID `json:"workspace"`
	Text      string    `json:"text"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "command" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	owner *River
}

// Work implements river.Worker.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	tx, err := w.owner.books.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing after a commit
	batch := &pgx.Batch{}
	w.owner.books.finish(batch, job.Args.Workspace, job.Args.Task, job.Args.Text[:50])
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if ch, ok := w.owner.ends.LoadAndDelete(job.Args.Task); ok {
		close(ch.(chan struct{}))
	}
	return nil
}

// Finish inserts one command and waits for its end.
func (r *River) Finish(ctx context.Context, _ int) error {
	id := uuid.New()
	ended := make(chan struct{})
	r.ends.Store(id, ended)
	if err := r.insert(ctx, id); err != nil {
		r.ends.Delete(id)
		return err
	}
	return await(ctx, ended)
}

func (r *River) insert(ctx context.Context, id uuid.UUID) error {
	workspace := r.books.workspaces[r.next.Add(1)%int64(len(r.books.workspaces))]
	tx, err := r.books.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing after a commit
	if _, err := r.client.InsertTx(ctx, tx, riverArgs{Task: id, Workspace: workspace, Text: r.text}, nil); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	r.books.accept(batch, workspace, id)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func await(ctx context.Context, ended <-chan struct{}) error {
	timer := time.NewTimer(endBound)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("a job has not ended within %s", endBound)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// quiet is a log that costs nothing.
func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
}
