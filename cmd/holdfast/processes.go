package main

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type apiCommand struct{ app.Settings }

func (c *apiCommand) Run(s *session) error { return app.RunAPI(s.ctx, c.Settings) }

type workerCommand struct{ app.Settings }

func (c *workerCommand) Run(s *session) error { return app.RunWorker(s.ctx, c.Settings) }

type repairCommand struct {
	app.Settings
	Once  bool          `env:"-" help:"Make one round, print it and end."`
	Every time.Duration `env:"-" placeholder:"10s" help:"Make a round that often."`
}

func (c *repairCommand) Run(s *session) error {
	return app.RunRepair(s.ctx, c.Settings, app.RepairMode{Once: c.Once, Every: c.Every, JSON: s.json}, s.out)
}
