// Command repair finds due, expired, exhausted and orphaned work and moves it on, and checks the books.
package main

import (
	"context"
	"os"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type settings struct {
	app.Settings
	app.RepairMode
	app.Probe
	Version app.VersionFlag `env:"-" help:"Print the version and end."`
}

func main() { os.Exit(run()) }

func run() int {
	var s settings
	app.Parse(&s, "repair", "It finds due, expired, exhausted and orphaned work and moves it on, removes what is past its time, "+
		"and checks the books. It ends with 1 when something doesn't add up. Several at once are harmless.")
	ctx, release := app.Signals(context.Background())
	defer release()
	if s.Probe.Probe {
		return app.Exit("repair", app.ProbeRepair(ctx, s.Settings))
	}
	return app.Exit("repair", app.RunRepair(ctx, s.Settings, s.RepairMode, os.Stdout))
}
