package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type encryptionAbandon struct {
	sealedDatabase

	ID  string `arg:"" help:"The id of the lost master key."`
	Yes bool   `env:"-" help:"Yes, what only this key could open is lost, for good."`
}

// abandonPage is how much is looked for at once, which sorts all that is left; each task is a transaction of its own, so that
// a page takes seconds.
const abandonPage = 1_000

// lostShown is what needs a lost master key.
type lostShown struct {
	DataKeys   int64 `json:"data_keys"`
	Workspaces int64 `json:"workspaces"`
	Waiting    int64 `json:"waiting"`
	Committed  int64 `json:"committed"`
	Running    int64 `json:"running"`
	Inputs     int64 `json:"failed_inputs"`
	Exports    int64 `json:"exports"`
	Webhooks   int64 `json:"webhooks"`
}

// Run without --yes shows what would be lost and changes nothing. What was done stays done when it is stopped or fails.
func (c *encryptionAbandon) Run(s *session) error {
	return c.open(s, func(db *postgres.DB) error {
		lost, err := db.LostUnder(s.ctx, c.ID)
		switch {
		case errors.Is(err, postgres.ErrMasterConfigured):
			return exitf(app.ExitUsage, "master key %q is configured, so nothing is lost; take it out of the settings if it is another key than it was", c.ID)
		case err != nil:
			return err
		case lost == postgres.Lost{}:
			return exitf(app.ExitFailed, "no data key needs a master key %q", c.ID)
		case !c.Yes:
			return c.preview(s, lost)
		}
		return c.abandon(s, db)
	})
}

func (c *encryptionAbandon) preview(s *session, lost postgres.Lost) error {
	err := s.show(lostShown(lost), `What needs master key %q (tasks counted up to 10,000 of each sort):
  %d data keys of %d workspaces
  %d waiting events: will fail with PAYLOAD_UNREADABLE, their credits released
  %d committed events: will go on, or end with what they have
  %d running events: are left to their workers
  %d inputs of failed events: will be removed
  %d exports: will be removed
  %d webhooks: will be disabled until their secrets are rotated
`, c.ID, lost.DataKeys, lost.Workspaces, lost.Waiting, lost.Committed, lost.Running, lost.Inputs, lost.Exports, lost.Webhooks)
	if err != nil {
		return err
	}
	return exitf(app.ExitUsage, "nothing was changed; say --yes to give this up for good")
}

// abandon does all pages, tasks first: a data key goes when nothing needs it.
func (c *encryptionAbandon) abandon(s *session, db *postgres.DB) error {
	var total postgres.Abandoned
	after := uuid.Nil
	shown := time.Now()
	for _, step := range []func() (postgres.Abandoned, error){
		func() (postgres.Abandoned, error) { return db.AbandonTasks(s.ctx, c.ID, after, abandonPage) },
		func() (postgres.Abandoned, error) { return db.AbandonSecrets(s.ctx, c.ID, abandonPage) },
		func() (postgres.Abandoned, error) { return db.AbandonKeys(s.ctx, c.ID, abandonPage) },
	} {
		for more := true; more; {
			page, err := step()
			total.Add(page)
			if err != nil {
				return exitf(app.ExitFailed, "stopped after %d events; the same command goes on there: %v", total.Events(), err)
			}
			after, more = page.After, page.More
			if now := time.Now(); more && now.Sub(shown) >= progressEvery {
				shown = now
				fmt.Fprintf(s.err, "%d events, %d data keys\n", total.Events(), total.DataKeys)
			}
		}
	}
	return c.report(s, db, total)
}

// report says what was done and what is left.
func (c *encryptionAbandon) report(s *session, db *postgres.DB, total postgres.Abandoned) error {
	left, err := db.LostUnder(s.ctx, c.ID)
	if err != nil {
		return err
	}
	err = s.show(map[string]any{
		"master_key": c.ID, "failed": total.Failed, "go_on": total.GoOn, "failed_inputs": total.Inputs, "exports": total.Exports,
		"webhooks": total.Webhooks, "data_keys": total.DataKeys, "left": lostShown(left),
	}, "%d events failed, %d go on, %d inputs and %d exports removed, %d webhooks disabled, %d data keys removed.\n",
		total.Failed, total.GoOn, total.Inputs, total.Exports, total.Webhooks, total.DataKeys)
	switch {
	case err != nil:
		return err
	case total.Stuck > 0:
		return exitf(app.ExitFailed, "%d events could not be given up: %v", total.Stuck, total.Reason)
	case left != postgres.Lost{}:
		return exitf(exitPending, "%d data keys are left: %d events are running; run the same command when they or their leases have ended", left.DataKeys, left.Running)
	}
	return nil
}
