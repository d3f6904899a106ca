package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const dbosStop = 10 * time.Second // nothing is under way by then

// DBOS runs the same command as a durable workflow: key, hold and balance in a transaction of the caller, then two
// steps, what the model would say and a transaction with record and settlement. It starts the workflow directly in
// this process, which is its fastest way: a queue polls.
type DBOS struct {
	books *books
	ctx   dbos.Context
	text  string
	next  atomic.Int64
}

// dbosCommand is a workflow's input.
type dbosCommand struct {
	Task, Workspace uuid.UUID
	Text            string
}

// OpenDBOS starts its executor.
func OpenDBOS(ctx context.Context, databaseURL string, workspaces, bytes int) (*DBOS, error) {
	b, err := openBooks(ctx, databaseURL, workspaces, 32)
	if err != nil {
		return nil, err
	}
	d := &DBOS{books: b, text: body(bytes)}
	d.ctx, err = dbos.NewContext(ctx, dbos.Config{
		AppName: "bench", DatabaseURL: databaseURL, Logger: quiet(), ApplicationVersion: "bench", ExecutorID: "bench",
	})
	if err != nil {
		b.pool.Close()
		return nil, fmt.Errorf("dbos: %w", err)
	}
	dbos.RegisterWorkflow(d.ctx, d.run)
	if err := dbos.Launch(d.ctx); err != nil {
		b.pool.Close()
		return nil, fmt.Errorf("dbos: launch: %w", err)
	}
	return d, nil
}

// Close ends it and checks its books.
func (d *DBOS) Close(ctx context.Context) error {
	defer d.books.pool.Close()
	if err := dbos.Shutdown(d.ctx, dbosStop); err != nil {
		return fmt.Errorf("dbos: stop: %w", err)
	}
	return d.books.balanced(ctx)
}

func (d *DBOS) run(ctx dbos.Context, c dbosCommand) (string, error) {
	fact, err := dbos.RunAsStep(ctx, func(context.Context) (string, error) { return c.Text[:50], nil })
	if err != nil {
		return "", err
	}
	return dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) {
		batch := &pgx.Batch{}
		d.books.finish(batch, c.Workspace, c.Task, fact)
		return "", d.atomically(ctx, batch)
	})
}

// Finish accepts one command and waits for its workflow's end.
func (d *DBOS) Finish(ctx context.Context, _ int) error {
	c := dbosCommand{Task: uuid.New(), Workspace: d.books.workspaces[d.next.Add(1)%int64(len(d.books.workspaces))], Text: d.text}
	batch := &pgx.Batch{}
	d.books.accept(batch, c.Workspace, c.Task)
	if err := d.atomically(ctx, batch); err != nil {
		return err
	}
	handle, err := dbos.RunWorkflow(d.ctx, d.run, c)
	if err != nil {
		return err
	}
	_, err = handle.GetResult()
	return err
}

// atomically sends a batch as one transaction in one round trip.
func (d *DBOS) atomically(ctx context.Context, batch *pgx.Batch) error {
	return d.books.pool.SendBatch(ctx, batch).Close() // without BEGIN a batch is one implicit transaction
}
