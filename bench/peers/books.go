package peers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// price is what each command costs in the ledger.
const price = 1

const booksSQL = `
CREATE TABLE keys (workspace_id uuid, key_hash bytea, fingerprint bytea NOT NULL, task_id uuid NOT NULL,
                   PRIMARY KEY (workspace_id, key_hash));
CREATE TABLE accounts (workspace_id uuid PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0),
                       held bigint NOT NULL CHECK (held >= 0)) WITH (fillfactor = 50);
CREATE TABLE runs (task_id uuid PRIMARY KEY, workspace_id uuid NOT NULL, amount bigint NOT NULL, outcome text,
                   opened_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE closings (task_id uuid PRIMARY KEY, workspace_id uuid NOT NULL, settled bigint NOT NULL,
                       closed_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE records (id uuid PRIMARY KEY, task_id uuid NOT NULL, workspace_id uuid NOT NULL, text text NOT NULL,
                      created_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX records_workspace ON records (workspace_id, id);
CREATE TABLE floor (id uuid PRIMARY KEY, workspace_id uuid NOT NULL, body bytea NOT NULL)`

// books are the rows that Holdfast keeps for each command beside the task itself: key, hold and balance at the
// acceptance; record, settlement and balance at the end.
type books struct {
	pool       *pgxpool.Pool
	workspaces []uuid.UUID
}

func openBooks(ctx context.Context, databaseURL string, workspaces int, conns int32) (*books, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("open books: the database URL cannot be read") // its error quotes the password
	}
	cfg.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open books: %w", err)
	}
	b := &books{pool: pool}
	if err := b.make(ctx, workspaces); err != nil {
		pool.Close()
		return nil, err
	}
	return b, nil
}

func (b *books) make(ctx context.Context, workspaces int) error {
	if _, err := b.pool.Exec(ctx, booksSQL); err != nil {
		return fmt.Errorf("make books: %w", err)
	}
	for range workspaces {
		b.workspaces = append(b.workspaces, uuid.New())
	}
	_, err := b.pool.Exec(ctx, `INSERT INTO accounts SELECT w, 1 << 30, 0 FROM unnest($1::uuid[]) w`, b.workspaces)
	if err != nil {
		return fmt.Errorf("make accounts: %w", err)
	}
	return nil
}

// accept queues the rows of an acceptance; the balance comes last, as it does in Holdfast.
func (b *books) accept(batch *pgx.Batch, workspace, id uuid.UUID) {
	var hash, print [32]byte
	_, _ = rand.Read(hash[:]) // never fails
	_, _ = rand.Read(print[:])
	batch.Queue(`INSERT INTO keys (workspace_id, key_hash, fingerprint, task_id) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		workspace, hash[:], print[:], id)
	batch.Queue(`INSERT INTO runs (task_id, workspace_id, amount) VALUES ($1, $2, $3)`, id, workspace, price)
	batch.Queue(`UPDATE accounts SET available = available - $2, held = held + $2 WHERE workspace_id = $1 AND available >= $2`,
		workspace, price)
}

// finish queues the rows of an end.
func (b *books) finish(batch *pgx.Batch, workspace, id uuid.UUID, text string) {
	record, err := uuid.NewV7()
	if err != nil {
		record = uuid.New()
	}
	batch.Queue(`INSERT INTO records (id, task_id, workspace_id, text) VALUES ($1, $2, $3, $4)`, record, id, workspace, text)
	batch.Queue(`UPDATE runs SET outcome = 'succeeded' WHERE task_id = $1`, id)
	batch.Queue(`INSERT INTO closings (task_id, workspace_id, settled) VALUES ($1, $2, $3)`, id, workspace, price)
	batch.Queue(`UPDATE accounts SET held = held - $2 WHERE workspace_id = $1`, workspace, price)
}

// balanced checks the books after a run: one whose books don't balance measures nothing.
func (b *books) balanced(ctx context.Context) error {
	var held, open, closed, records, taken int64
	err := b.pool.QueryRow(ctx, `
SELECT (SELECT sum(held) FROM accounts), (SELECT count(*) FROM runs WHERE outcome IS NULL), (SELECT count(*) FROM closings),
       (SELECT count(*) FROM records), (SELECT sum((1 << 30) - available) FROM accounts)`).Scan(&held, &open, &closed, &records, &taken)
	if err != nil {
		return fmt.Errorf("check the books: %w", err)
	}
	if held != open*price || closed != records || taken != (open+closed)*price {
		return fmt.Errorf("the books don't balance: %d held for %d open, %d closed for %d records, %d taken", held, open, closed, records, taken)
	}
	return nil
}

// body is a command of about the length that is measured everywhere.
func body(bytes int) string {
	const words = "I see, let us go on with what we spoke about then. "
	return strings.Repeat(words, bytes/len(words))
}
