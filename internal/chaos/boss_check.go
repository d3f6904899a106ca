package chaos

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

const (
	broughtSQL  = `SELECT text FROM memories WHERE workspace_id = $1 AND deleted_at IS NULL`
	importedSQL = `SELECT kind, status, coalesce(outcome, error_code, '') FROM all_tasks WHERE id = $1 AND workspace_id = $2`
	actSQL      = `SELECT count(*) FROM operator_acts WHERE act = $1 AND workspace_id = $2 AND actor = 'operator:chaos'`
)

// check holds every newcomer against what the operator was told of it. The auditor holds the log of acts against the tables.
func (b *boss) check(w *world) func(ctx context.Context, n *notes, r *report) error {
	return func(ctx context.Context, _ *notes, r *report) error {
		found, err := w.dump(ctx)
		if err != nil {
			return err
		}
		for _, c := range b.newcomers {
			var acts int
			if err := w.sql.QueryRow(ctx, actSQL, "workspace.create", c.space.id).Scan(&acts); err != nil {
				return fmt.Errorf("read acts: %w", err)
			}
			if acts != 1 {
				r.find(lost, "an act is not recorded once", "%d creations of %s", acts, c.name)
			}
			if err := b.checkKeys(ctx, c, r); err != nil {
				return err
			}
			if c.deleted {
				for _, word := range c.words {
					if in := found[word]; len(in) > 0 {
						r.find(leaked, "content of a deleted workspace is there", "%s of %s is in %s", word, c.name, strings.Join(in, ", "))
					}
				}
				continue
			}
			if c.event != uuid.Nil {
				if err := w.checkImport(ctx, c, r); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// checkKeys holds that a key opens what it may, and none that was revoked, nor any of a deleted workspace.
func (b *boss) checkKeys(ctx context.Context, c *newcomer, r *report) error {
	for _, key := range []struct {
		secret string
		opens  bool
	}{{c.space.key, !c.deleted}, {c.spare, false}} {
		if key.secret == "" {
			continue
		}
		got, err := b.client.send(ctx, nil, request{method: http.MethodGet, path: "/v1/memories?user_id=newcomer", bearer: key.secret})
		if err != nil {
			return err
		}
		if opened := got.ok(); opened != key.opens {
			r.find(lost, "a key doesn't open what it may, or opens what it may not", "%s: %d %s", c.name, got.status, got.code())
		}
	}
	return nil
}

// checkImport holds that an import has brought everything once, or nothing when too many workers died of something else
// while they had it.
func (w *world) checkImport(ctx context.Context, c *newcomer, r *report) error {
	var kind, status, outcome string
	if err := w.sql.QueryRow(ctx, importedSQL, c.event, c.space.id).Scan(&kind, &status, &outcome); err != nil {
		r.find(lost, "no task of a receipt", "%s %s: %v", kindImport, c.event, err)
		return nil
	}
	brought := len(c.words)
	switch {
	case kind == kindImport && status == "failed" && outcome == "ATTEMPTS_EXHAUSTED":
		brought = 0
	case kind != kindImport || status != "succeeded" || outcome != "STORED":
		r.find(lost, "an import did not succeed", "%s of %s is %s, %s", c.event, c.name, status, outcome)
		return nil
	}
	rows, err := w.sql.Query(ctx, broughtSQL, c.space.id)
	if err != nil {
		return fmt.Errorf("read imported: %w", err)
	}
	defer rows.Close()
	times := 0
	for rows.Next() {
		times++
	}
	switch {
	case times < brought:
		r.find(lost, "records are missing", "%s of %s: %d of %d", kindImport, c.name, times, brought)
	case times > brought:
		r.find(duplicated, "records are there twice", "%s of %s: %d for %d", kindImport, c.name, times, brought)
	}
	return rows.Err()
}
