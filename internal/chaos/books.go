package chaos

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const (
	accountsSQL = `
SELECT a.workspace_id, a.available, a.held,
       coalesce((SELECT sum(amount) FROM credit_grants g WHERE g.workspace_id = a.workspace_id), 0)::bigint,
       coalesce((SELECT sum(settled) FROM credit_closings c WHERE c.workspace_id = a.workspace_id), 0)::bigint,
       coalesce((SELECT sum(amount) FROM task_runs r WHERE r.workspace_id = a.workspace_id AND outcome IS NULL), 0)::bigint
  FROM credit_accounts a`
	chargesSQL = `
SELECT task_id, sum(settled)::bigint, count(*) FILTER (WHERE outcome = 'succeeded')
  FROM credit_closings GROUP BY task_id`
)

type account struct {
	space                                     uuid.UUID
	available, held, granted, settled, inRuns int64
}

type charge struct {
	task    uuid.UUID
	settled int64
	times   int
}

// checkBooks holds every account against its grants and closings, and every charge against the command that it is for.
func (w *world) checkBooks(ctx context.Context, n *notes, r *report) error {
	rows, err := w.sql.Query(ctx, accountsSQL)
	if err != nil {
		return fmt.Errorf("read accounts: %w", err)
	}
	accounts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a account, err error) {
		return a, row.Scan(&a.space, &a.available, &a.held, &a.granted, &a.settled, &a.inRuns)
	})
	if err != nil {
		return fmt.Errorf("read accounts: %w", err)
	}
	for _, a := range accounts {
		if a.granted != a.available+a.held+a.settled || a.held != a.inRuns || a.held != 0 {
			r.find(ledgerDrift, "the books don't add up", "workspace %s: granted %d, available %d, held %d (open runs %d), settled %d",
				a.space, a.granted, a.available, a.held, a.inRuns, a.settled)
		}
	}
	for _, s := range w.spaces {
		granted := int64(-1)
		for _, a := range accounts {
			if a.space == s.id {
				granted = a.granted
			}
		}
		if granted != s.granted {
			r.find(ledgerDrift, "grants are not what was granted", "workspace %s: %d, not %d", s.id, granted, s.granted)
		}
	}
	return w.checkCharges(ctx, n, r)
}

func (w *world) checkCharges(ctx context.Context, n *notes, r *report) error {
	rows, err := w.sql.Query(ctx, chargesSQL)
	if err != nil {
		return fmt.Errorf("read charges: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c charge, err error) {
		return c, row.Scan(&c.task, &c.settled, &c.times)
	})
	if err != nil {
		return fmt.Errorf("read charges: %w", err)
	}
	charges := make(map[uuid.UUID]charge, len(list))
	for _, c := range list {
		charges[c.task] = c
		if c.times > 1 {
			r.find(doubleCharged, "charged more than once", "%s: %d times, %d credits", c.task, c.times, c.settled)
		}
	}
	tasks, err := w.tasks(ctx)
	if err != nil {
		return err
	}
	for _, c := range n.accepted() {
		x, got := tasks[c.event], charges[c.event].settled
		due := int64(0)
		if x.status == "succeeded" {
			due = price(c.kind)
		}
		switch {
		case got > due:
			r.find(doubleCharged, "charged too much", "%s %s (%s): %d for %d", c.kind, c.event, x.status, got, due)
		case got < due:
			r.find(ledgerDrift, "charged too little", "%s %s: %d for %d", c.kind, c.event, got, due)
		}
	}
	return nil
}
