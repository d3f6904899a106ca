package main

import (
	"fmt"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type creditCommands struct {
	Grant creditGrant `cmd:"" help:"Give a workspace credits, once for each reference."`
	Show  creditShow  `cmd:"" help:"Show a workspace's balance and journal."`
}

type creditGrant struct {
	ofWorkspace
	Reference string `required:"" env:"-" help:"What it is for, such as an invoice; the same reference grants once."`
	Amount    int64  `arg:"" help:"Credits."`
}

func (c *creditGrant) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.Workspace(s.ctx, c.Workspace)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		granted, err := db.Grant(s.ctx, w.ID, c.Reference, c.Amount)
		if fault.Is(err, fault.IdempotencyConflict) {
			return exitf(app.ExitFailed, "the reference %q was granted before with another amount than %d: nothing is added. "+
				"`holdfast credits show` has the journal; a further grant needs a reference of its own", c.Reference, c.Amount)
		}
		if err != nil {
			return err
		}
		after, err := db.Workspace(s.ctx, w.ID.String())
		if err != nil {
			return err
		}
		words := "Granted %d credits. Available: %d\n"
		if !granted {
			words = "This reference was granted before: nothing is added to its %d credits. Available: %d\n"
		}
		return s.show(map[string]any{
			"granted": granted, "amount": c.Amount, "reference": c.Reference, "workspace": "ws_" + w.ID.String(),
			"available": after.Available, "held": after.Held,
		}, words, c.Amount, after.Available)
	})
}

type creditShow struct {
	ofWorkspace
	Limit int `default:"20" env:"-" help:"Lines of the journal, newest first."`
}

// maxEntries is what one page of the journal may have.
const maxEntries = 1_000

func (c *creditShow) Run(s *session) error {
	if c.Limit < 1 || c.Limit > maxEntries {
		return exitf(app.ExitUsage, "--limit must be 1 to %d", maxEntries)
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.Workspace(s.ctx, c.Workspace)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		page, err := db.Entries(s.ctx, w.ID, nil, c.Limit)
		if err != nil {
			return err
		}
		shown, rows := make([]entry, len(page.Entries)), make([]string, len(page.Entries))
		for i, e := range page.Entries {
			shown[i] = entryOf(e)
			rows[i] = fmt.Sprintf("%s\t%s\t%d\t%s", e.At.Format(time.RFC3339), e.Type, e.Amount, shown[i].subject())
		}
		if s.json {
			return s.encode(map[string]any{
				"workspace": "ws_" + w.ID.String(), "available": w.Available, "held": w.Held, "metered": w.Metered, "entries": shown,
			})
		}
		if err := s.show(nil, "%s: %d available, %d held\n", w.Name, w.Available, w.Held); err != nil {
			return err
		}
		return s.table("at\ttype\tamount\tfor", rows)
	})
}

type entry struct {
	Type       credit.EntryType `json:"type"`
	Amount     int64            `json:"amount"`
	EventID    string           `json:"event_id,omitempty"`
	Generation int              `json:"generation,omitempty"`
	Reference  string           `json:"reference,omitempty"`
	At         time.Time        `json:"at"`
}

func entryOf(e credit.Entry) entry {
	shown := entry{Type: e.Type, Amount: e.Amount, Generation: e.Generation, Reference: e.Reference, At: e.At}
	if e.TaskID != nil {
		shown.EventID = "evt_" + e.TaskID.String()
	}
	return shown
}

// subject is the event or the reference of a line.
func (e entry) subject() string {
	if e.EventID == "" {
		return e.Reference
	}
	return fmt.Sprintf("%s (generation %d)", e.EventID, e.Generation)
}
