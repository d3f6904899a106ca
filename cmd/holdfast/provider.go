package main

import (
	"fmt"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type providerCommands struct {
	List   providerList   `cmd:"" help:"Show the providers of models that are left alone now, and why."`
	Pause  providerPause  `cmd:"" help:"Have all workers leave a provider alone until it is resumed."`
	Resume providerResume `cmd:"" help:"Let the workers use a provider again."`
}

type providerList struct{ app.Database }

func (c *providerList) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		work, err := db.Work(s.ctx)
		if err != nil {
			return err
		}
		shown, rows := make([]shownPause, len(work.Pauses)), make([]string, len(work.Pauses))
		for i, p := range work.Pauses {
			shown[i] = shownPause(p)
			rows[i] = fmt.Sprintf("%s\t%s", p.Provider, shown[i].why())
		}
		if s.json {
			return s.encode(shown)
		}
		if len(rows) == 0 {
			return s.show(nil, "No provider is paused.\n")
		}
		return s.table("provider\tpaused", rows)
	})
}

type shownPause struct {
	Provider  string     `json:"provider"`
	Class     string     `json:"class"`
	Until     *time.Time `json:"until"`
	StoppedAt *time.Time `json:"stopped_at"`
	Reason    string     `json:"reason"`
}

// why says who paused it, for what and until when.
func (p shownPause) why() string {
	if p.StoppedAt != nil {
		words := "by an operator since " + p.StoppedAt.Format(time.RFC3339)
		if p.Reason != "" {
			words += ": " + p.Reason
		}
		return words
	}
	words := "by the workers after " + p.Class
	if p.Until != nil {
		words += " until " + p.Until.Format(time.RFC3339)
	}
	return words
}

type providerPause struct {
	app.Database
	Provider string `arg:"" help:"Its name, as logs, top and event errors show it."`
	Reason   string `env:"-" placeholder:"TEXT" help:"Why, for others who look."`
}

func (c *providerPause) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		if err := db.PauseProvider(s.ctx, c.Provider, c.Reason); err != nil {
			return err
		}
		return s.show(map[string]any{"provider": c.Provider, "paused": true},
			"%s is left alone until: holdfast provider resume %s\n", c.Provider, c.Provider)
	})
}

type providerResume struct {
	app.Database
	Provider string `arg:"" help:"Its name."`
}

func (c *providerResume) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		if err := db.ResumeProvider(s.ctx, c.Provider); err != nil {
			return err
		}
		return s.show(map[string]any{"provider": c.Provider, "paused": false}, "%s may be used again; what waits comes back little by little.\n", c.Provider)
	})
}

type workspacePause struct {
	app.Database
	Workspace string `arg:"" help:"Its id or name."`
	Resume    bool   `env:"-" help:"Let its work go on."`
}

func (c *workspacePause) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.PauseWorkspace(s.ctx, c.Workspace, !c.Resume)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		return s.show(workspaceOf(w), "ws_%s  %s  %s\n", w.ID, w.Name, workspaceOf(w).Status)
	})
}
