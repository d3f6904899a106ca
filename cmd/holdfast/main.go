// Command holdfast runs all of Holdfast in one process (up), shows what it promises (demo), and is the operator's
// and the caller's tool: migrate, encryption, reindex, workspace, key, credits, operator, acts, add, event, search, webhook, mcp, audit, doctor.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type grammar struct {
	JSON        bool            `name:"json" env:"-" help:"Print JSON for scripts."`
	VersionFlag app.VersionFlag `name:"version" env:"-" help:"Print the version and end."`

	Up         upCommand          `cmd:"" help:"Run everything here, with a private PostgreSQL and an embedded NATS unless others are named."`
	Status     statusCommand      `cmd:"" help:"Tell what runs here, where, and how it is."`
	Logs       logsCommand        `cmd:"" help:"Show the log of what runs detached."`
	Stop       stopCommand        `cmd:"" help:"End what runs here; its data stays."`
	Reset      resetCommand       `cmd:"" help:"Remove everything that runs here has kept, to begin anew."`
	Demo       demoCommand        `cmd:"" help:"Show what Holdfast promises with real processes, and leave nothing running."`
	Add        addCommand         `cmd:"" help:"Remember a text or a conversation."`
	Event      eventCommands      `cmd:"" help:"Look at events, wait for them, retry or cancel them."`
	Search     searchCommand      `cmd:"" help:"Find memories."`
	Webhook    webhookCommands    `cmd:"" help:"Tell receivers of what ends, see what was sent, send it again."`
	MCP        mcpCommand         `cmd:"" name:"mcp" help:"Serve the memory tools to a desktop agent over standard input and output."`
	Export     exportCommand      `cmd:"" help:"Write a snapshot of the workspace."`
	Import     importCommand      `cmd:"" help:"Read a snapshot into an empty workspace."`
	Audit      auditCommand       `cmd:"" help:"Look whether the database is as promised. Reads only."`
	Top        topCommand         `cmd:"" help:"Watch what waits, runs and fails, who works, and how the models do."`
	Doctor     doctorCommand      `cmd:"" help:"Check database, NATS, model and clock, and say what to do."`
	Migrate    migrateCommand     `cmd:"" help:"Bring the database to this build's schema."`
	NATSSetup  natsSetupCommand   `cmd:"" name:"nats-setup" help:"Make certificates, users and configuration for NATS with TLS."`
	Encryption encryptionCommands `cmd:"" help:"See what the encryption keys are needed for, rotate them, and give a lost one up."`
	Reindex    reindexCommand     `cmd:"" help:"Make the terms and vectors of all memories anew, while everything else runs."`
	Workspace  workspaceCommand   `cmd:"" help:"Create, list, pause, suspend and delete workspaces."`
	Key        keyCommands        `cmd:"" help:"Create, list and revoke API keys."`
	Credits    creditCommands     `cmd:"" help:"Grant and show credits."`
	Provider   providerCommands   `cmd:"" help:"Pause and resume providers of models, and see which are left alone."`
	Operator   operatorCommands   `cmd:"" help:"Create, list and revoke tokens for the admin API."`
	Acts       actCommands        `cmd:"" help:"Show the log of acts: who did what to workspaces, keys, credits and events."`
	Completion completionCommand  `cmd:"" help:"Print a script that completes command lines in bash, zsh or fish."`
	Version    versionCommand     `cmd:"" help:"Print the version, the schema that it needs, and what it was built with."`

	API      apiCommand      `cmd:"" name:"api" hidden:"" help:"The same as the binary api."`
	Worker   workerCommand   `cmd:"" hidden:"" help:"The same as the binary worker."`
	Complete completeCommand `cmd:"" hidden:"" help:"Answer the completion scripts."`
	Repair   repairCommand   `cmd:"" hidden:"" help:"The same as the binary repair."`
}

// session is what every command gets.
type session struct {
	ctx  context.Context
	out  io.Writer
	err  io.Writer
	in   *os.File
	json bool
}

func main() { os.Exit(run()) }

func run() int {
	ctx, release := app.Signals(context.Background()) // first, so that no signal is met unprepared
	defer release()
	var g grammar
	selected := app.Parse(&g, "holdfast", "Durable memory writes for applications with language models. "+
		"Every flag can also be set as HOLDFAST_…, such as HOLDFAST_API_KEY.")
	s := &session{ctx: app.AsUser(ctx), out: os.Stdout, err: os.Stderr, in: os.Stdin, json: g.JSON}
	code, text := verdict(selected.Run(s))
	if text != "" {
		fmt.Fprintln(os.Stderr, "holdfast:", text)
	}
	return code
}
