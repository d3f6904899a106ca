// Command api serves Holdfast's HTTP API.
package main

import (
	"context"
	"os"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type settings struct {
	app.Settings
	app.Probe
	Version app.VersionFlag `env:"-" help:"Print the version and end."`
}

func main() { os.Exit(run()) }

func run() int {
	var s settings
	app.Parse(&s, "api", "It serves Holdfast's HTTP API. Settings are flags or HOLDFAST_… variables.")
	ctx, release := app.Signals(context.Background())
	defer release()
	if s.Probe.Probe {
		return app.Exit("api", app.ProbeAPI(ctx, s.Settings))
	}
	return app.Exit("api", app.RunAPI(ctx, s.Settings))
}
