package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type operatorCommands struct {
	Create operatorCreate `cmd:"" help:"Make a token for the admin API. It is shown once."`
	List   operatorList   `cmd:"" help:"List who has a token."`
	Revoke operatorRevoke `cmd:"" help:"End a token for good."`
}

type operatorCreate struct {
	app.Database
	Name string `arg:"" help:"Whose it is: the log of acts names operator:NAME."`
}

func (c *operatorCreate) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		token, err := db.CreateOperator(s.ctx, c.Name)
		if err != nil {
			return err
		}
		return s.show(map[string]any{"id": token.ID(), "token": token.Reveal(), "name": c.Name}, "%s\n", token.Reveal())
	})
}

type operatorList struct{ app.Database }

func (c *operatorList) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		found, err := db.ListOperators(s.ctx)
		if err != nil {
			return err
		}
		type shownOperator struct {
			ID        string     `json:"id"`
			Name      string     `json:"name"`
			CreatedAt time.Time  `json:"created_at"`
			RevokedAt *time.Time `json:"revoked_at"`
		}
		shown, rows := make([]shownOperator, len(found)), make([]string, len(found))
		for i, o := range found {
			shown[i] = shownOperator{o.ID, o.Name, o.CreatedAt, o.RevokedAt}
			state := "active"
			if o.RevokedAt != nil {
				state = "revoked"
			}
			rows[i] = fmt.Sprintf("%s\t%s\t%s", o.ID, o.Name, state)
		}
		if s.json {
			return s.encode(shown)
		}
		return s.table("id\tname\tstate", rows)
	})
}

type operatorRevoke struct {
	app.Database
	ID string `arg:"" help:"The token's id."`
}

func (c *operatorRevoke) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		err := db.RevokeOperator(s.ctx, c.ID)
		if errors.Is(err, postgres.ErrNoOperator) {
			return exitf(app.ExitFailed, "there is no token of this id")
		}
		if err != nil {
			return err
		}
		return s.show(map[string]string{"id": c.ID, "state": "revoked"}, "%s is revoked.\n", c.ID)
	})
}
