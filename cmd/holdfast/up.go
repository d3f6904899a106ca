package main

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type upCommand struct {
	app.Settings
	Workers  int  `default:"1" help:"Workers in this process; 0 leaves them to cmd/worker."`
	Detach   bool `short:"d" env:"-" help:"Return when it is ready and let it run on; status, logs and stop are for it."`
	Detached bool `env:"-" hidden:""`
}

func (c *upCommand) Run(s *session) error {
	switch {
	case c.Detached:
		return c.runDetached(s)
	case c.Detach:
		return c.detach(s)
	}
	return app.RunUp(s.ctx, c.Settings, app.Up{Workers: c.Workers, Started: func(r app.Running) error {
		return s.printRunning(r, c.Workers)
	}})
}

// running is the one line of up --json.
type running struct {
	API         string   `json:"api"`
	Key         string   `json:"key"`
	DatabaseURL string   `json:"database_url"`
	NATSURL     string   `json:"nats_url"`
	PIDs        app.PIDs `json:"pids"`
}

func (s *session) printRunning(r app.Running, workers int) error {
	if err := s.printReady(r); err != nil || s.json {
		return err
	}
	return s.afterReady("Ctrl-C stops everything; the data stays.\n", workers)
}

// afterReady says how it ends, and what is missing.
func (s *session) afterReady(end string, workers int) error {
	if workers > 0 {
		return s.show(nil, "%s", end)
	}
	return s.show(nil, "%s", end+workersText)
}

func (s *session) printReady(r app.Running) error {
	if s.json {
		line, err := json.Marshal(running{API: r.API, Key: r.Key, DatabaseURL: r.DatabaseURL, NATSURL: r.NATSURL, PIDs: r.PIDs})
		if err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return s.raw(line)
	}
	return s.show(nil, upText, r.API, r.Key, r.API, r.API, r.Key, r.API, r.Key, r.API, r.Key)
}

const upText = `
Holdfast is ready.

  API      %s
  key      %s
  console  %s/console (sign in with the key)

Remember something. The answer is a receipt; the same request again answers the same receipt:

curl -sS %s/v1/memories -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -H 'Idempotency-Key: first-memory' -d '{"user_id":"ada","messages":[{"role":"user","content":"I live in Lisbon and I am allergic to peanuts."}]}'

Ask what became of it, by the key:

curl -sS %s/v1/events -H 'Authorization: Bearer %s' -H 'Idempotency-Key: first-memory'

Find it:

curl -sS %s/v1/memories/search -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '{"user_id":"ada","query":"Where does Ada live?"}'

`

const workersText = `
No worker runs here (--workers 0). Start as many as you like: bin/worker
`
