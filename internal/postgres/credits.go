package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

const balanceSQL = `
SELECT coalesce(a.available, 0), coalesce(a.held, 0), w.metered
  FROM workspaces w
  LEFT JOIN credit_accounts a ON a.workspace_id = w.id
 WHERE w.id = @workspace`

// Balance answers what the workspace has, or ErrNoWorkspace.
func (db *DB) Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error) {
	var b credit.Balance
	err := db.read(ctx, of(workspace), "read balance", balanceSQL, pgx.NamedArgs{"workspace": workspace}, func(rows pgx.Rows) (err error) {
		b, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (b credit.Balance, err error) {
			return b, row.Scan(&b.Available, &b.Held, &b.Metered)
		})
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return credit.Balance{}, fmt.Errorf("read balance: %w", ErrNoWorkspace)
	}
	return b, err
}

// entriesSQL orders by everything that tells two entries apart: a run that is born ended has its hold and its
// settle at one time.
const entriesSQL = `
SELECT e.type, e.amount, e.task_id, e.generation, e.reference, e.at, e.id
  FROM credit_entries e
 WHERE e.workspace_id = @workspace%s
 ORDER BY e.at DESC, e.id DESC, e.type DESC, e.generation DESC
 LIMIT @limit`

const entriesAfterSQL = `
   AND (e.at, e.id, e.type, e.generation) < (@after_at::timestamptz, @after_id::uuid, @after_type::text, @after_generation::int)`

// Entries answers one page of the workspace's journal, newest first.
func (db *DB) Entries(ctx context.Context, workspace uuid.UUID, after *recall.EntryPlace, limit int) (recall.EntryPage, error) {
	args := pgx.NamedArgs{"workspace": workspace, "limit": limit + 1}
	beyond := ""
	if after != nil {
		beyond = entriesAfterSQL
		args["after_at"], args["after_id"] = after.At, after.ID
		args["after_type"], args["after_generation"] = string(after.Type), after.Generation
	}
	var page recall.EntryPage
	var places []recall.EntryPlace
	err := db.read(ctx, of(workspace), "read journal", fmt.Sprintf(entriesSQL, beyond), args, func(rows pgx.Rows) error {
		for rows.Next() {
			var e credit.Entry
			var id uuid.UUID
			if err := rows.Scan(&e.Type, &e.Amount, &e.TaskID, &e.Generation, &e.Reference, &e.At, &id); err != nil {
				return err
			}
			e.At = e.At.UTC()
			page.Entries = append(page.Entries, e)
			places = append(places, recall.EntryPlace{
				Place: recall.Place{At: e.At, ID: id}, Type: e.Type, Generation: e.Generation,
			})
		}
		return nil
	})
	if err != nil {
		return recall.EntryPage{}, err
	}
	if len(page.Entries) > limit {
		page.Entries = page.Entries[:limit]
		page.Next = &places[limit-1]
	}
	return page, nil
}
