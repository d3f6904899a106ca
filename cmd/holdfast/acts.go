package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type actCommands struct {
	List actList `cmd:"" help:"List who did what, when and from where, newest first."`
}

type actList struct {
	app.Database
	Workspace string `env:"-" help:"Only of this workspace (id or name)."`
	Act       string `env:"-" placeholder:"NAME" help:"Only such acts, as key.create."`
	Actor     string `env:"-" placeholder:"NAME" help:"Only of this actor, as operator:ann, user:root or key:ID."`
	Limit     int    `default:"50" env:"-" help:"How many."`
}

// maxActs is what one page may have.
const maxActs = 1_000

func (c *actList) Run(s *session) error {
	if c.Limit < 1 || c.Limit > maxActs {
		return exitf(app.ExitUsage, "--limit must be 1 to %d", maxActs)
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		query := operator.ActQuery{Act: c.Act, Actor: c.Actor, Limit: c.Limit}
		if c.Workspace != "" {
			w, err := db.Workspace(s.ctx, c.Workspace)
			if err != nil {
				return unknownWorkspace(err, c.Workspace)
			}
			query.Workspace = w.ID
		}
		page, err := db.Acts(s.ctx, query)
		if err != nil {
			return err
		}
		shown, rows := make([]shownAct, len(page.Acts)), make([]string, len(page.Acts))
		for i, a := range page.Acts {
			shown[i] = actOf(a)
			rows[i] = fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", a.At.Format(time.RFC3339), a.Actor, a.Origin, a.Act, a.Subject, a.Details)
		}
		if s.json {
			return s.encode(shown)
		}
		return s.table("at\tactor\tfrom\tact\tsubject\tdetails", rows)
	})
}

type shownAct struct {
	ID        uuid.UUID       `json:"id"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor"`
	Origin    string          `json:"origin"`
	RequestID string          `json:"request_id,omitempty"`
	Workspace string          `json:"workspace,omitempty"`
	Act       string          `json:"act"`
	Subject   string          `json:"subject"`
	Details   json.RawMessage `json:"details"`
}

func actOf(a operator.Act) shownAct {
	shown := shownAct{a.ID, a.At, a.Actor, a.Origin, a.RequestID, "", a.Act, a.Subject, a.Details}
	if a.Workspace != uuid.Nil {
		shown.Workspace = "ws_" + a.Workspace.String()
	}
	return shown
}
