// Command worker runs Holdfast's tasks.
package main

import (
	"context"
	"os"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type settings struct {
	app.Settings
	Version app.VersionFlag `env:"-" help:"Print the version and end."`
}

func main() { os.Exit(run()) }

func run() int {
	var s settings
	app.Parse(&s, "worker", "It runs Holdfast's tasks. Settings are flags or HOLDFAST_… variables.")
	ctx, release := app.Signals(context.Background())
	defer release()
	return app.Exit("worker", app.RunWorker(ctx, s.Settings))
}
