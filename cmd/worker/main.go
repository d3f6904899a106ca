// Command worker runs Holdfast's tasks.
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
	app.Parse(&s, "worker", "It runs Holdfast's tasks. Settings are flags or HOLDFAST_… variables.")
	ctx, release := app.Signals(context.Background())
	defer release()
	if s.Probe.Probe {
		return app.Exit("worker", app.ProbeWorker(ctx, s.Settings))
	}
	return app.Exit("worker", app.RunWorker(ctx, s.Settings))
}
