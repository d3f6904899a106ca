package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const (
	// ledgersPage is how many workspaces one look-up answers.
	ledgersPage = 500
	// booksLook is how many rows of each kind are compared in one workspace: some ten milliseconds.
	booksLook = 2_000
	// recentLook is how many running and ended tasks of all workspaces are compared.
	recentLook = 10_000
	// recentOverlap is how far the window of ended tasks reaches beyond the interval: a round may come late.
	recentOverlap = time.Hour
	// maxFindings bounds what a report and the log tell; the counts tell the rest.
	maxFindings = 100
)

// Checkpoint says how far the movements of a workspace have been added up. Was is the horizon that it was made from,
// empty without one; both horizons are the store's own words.
type Checkpoint struct {
	Was     string
	Horizon string
	Granted int64
	Settled int64
}

// Sums is a workspace's account beside its journal, of one moment.
type Sums struct {
	Available int64
	Held      int64
	Granted   int64
	Settled   int64
	// Open is what open runs hold.
	Open int64
	// Incremental tells that movements before the checkpoint were not read again.
	Incremental bool
	// Checkpoint is the next one.
	Checkpoint Checkpoint
}

// findings compares the account with the journal.
func (s Sums) findings(workspace uuid.UUID) []Finding {
	var found []Finding
	if have, want := s.Available+s.Held, s.Granted-s.Settled; have != want {
		found = append(found, Finding{Check: CheckBalance, Workspace: workspace, Count: 1, Want: want, Have: have})
	}
	if s.Held != s.Open {
		found = append(found, Finding{Check: CheckHeld, Workspace: workspace, Count: 1, Want: s.Open, Have: s.Held})
	}
	return found
}

// books reconciles one workspace after the other, each in snapshots of its own that end at once, so that vacuum is
// never held back for long. A round that is cut short goes on with the next workspace.
func (r *Repairer) books(ctx context.Context, res *Result, fresh time.Duration) error {
	var failures []error
	if r.ledger == uuid.Nil {
		found, err := r.deps.Books.CheckRecent(ctx, r.cfg.BooksEvery+recentOverlap, recentLook)
		if err != nil {
			failures = append(failures, err)
		}
		r.report(res, found)
	}
	for ctx.Err() == nil {
		ledgers, err := r.deps.Books.Ledgers(ctx, r.ledger, fresh, ledgersPage)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		for _, workspace := range ledgers {
			if err := r.reconcile(ctx, workspace, res); err != nil && len(failures) < maxFindings {
				failures = append(failures, fmt.Errorf("workspace %s: %w", workspace, err))
			}
			if ctx.Err() != nil {
				break
			}
			r.ledger = workspace
		}
		if len(ledgers) < ledgersPage {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(append(failures, err)...)
	}
	r.ledger = uuid.Nil
	return errors.Join(failures...)
}

// reconcile checks one workspace. The checkpoint moves on only while the books agree, so that a disagreement stays in
// what is added up.
func (r *Repairer) reconcile(ctx context.Context, workspace uuid.UUID, res *Result) error {
	sums, err := r.deps.Books.SumBooks(ctx, workspace, false)
	if err != nil {
		return err
	}
	found := sums.findings(workspace)
	if len(found) > 0 && sums.Incremental {
		// The checkpoint is only a shortcut: the journal itself decides. After a restore into another cluster its
		// transaction ids may start over, and a checkpoint can then have skipped movements.
		if sums, err = r.deps.Books.SumBooks(ctx, workspace, true); err != nil {
			return err
		}
		if found = sums.findings(workspace); len(found) == 0 {
			res.Found, res.Fixed = res.Found+1, res.Fixed+1
			r.log.Warn().Stringer("workspace_id", workspace).Msg("checkpoint of the books was wrong and is made anew")
		}
	}
	if len(found) == 0 {
		if _, err := r.deps.Books.SaveCheckpoint(ctx, workspace, sums.Checkpoint); err != nil {
			return err
		}
	}
	more, err := r.deps.Books.CheckWorkspace(ctx, workspace, booksLook)
	r.report(res, append(found, more...))
	return err
}

// report counts findings and tells the first of a round. Nothing is put right here: money is moved by tasks alone.
func (r *Repairer) report(res *Result, found []Finding) {
	for _, f := range found {
		res.Found += f.Count
		res.Failed += f.Count
		if len(r.found) == maxFindings {
			continue
		}
		r.found = append(r.found, f)
		events := make([]string, len(f.Events))
		for i, id := range f.Events {
			events[i] = id.String()
		}
		r.log.Error().Str("check", string(f.Check)).Stringer("workspace_id", f.Workspace).Int("count", f.Count).
			Strs("event_ids", events).Int64("want", f.Want).Int64("have", f.Have).Msg("the books do not agree")
	}
}
