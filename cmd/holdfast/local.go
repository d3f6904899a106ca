package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// stateful is a command about the `holdfast up` of one state directory.
type stateful struct {
	StateDir string `name:"state-dir" placeholder:"DIR" help:"The state directory (root: /var/lib/holdfast, others: $$XDG_STATE_HOME/holdfast)."`
}

type statusCommand struct{ stateful }

// shownStatus is what runs over a state directory. It holds no secret.
type shownStatus struct {
	Running   bool       `json:"running"`
	StateDir  string     `json:"state_dir"`
	Health    string     `json:"health,omitempty"`
	Reasons   []string   `json:"reasons,omitempty"`
	API       string     `json:"api,omitempty"`
	Admin     string     `json:"admin,omitempty"`
	Database  string     `json:"database,omitempty"`
	NATS      string     `json:"nats,omitempty"`
	PID       int        `json:"pid,omitempty"`
	Postgres  int        `json:"postgres_pid,omitempty"`
	Detached  bool       `json:"detached"`
	Version   string     `json:"version,omitempty"`
	StartedAt *time.Time `json:"started_at,omitempty"`
	Command   string     `json:"command_version"`
	Log       string     `json:"log,omitempty"`
}

// The healths of a status beside the API's own, which are ok and degraded.
const (
	healthStarting = "starting"
	healthSilent   = "not answering"
)

// statusBound is how long the API may take to say how it is.
const statusBound = 5 * time.Second

func (c *statusCommand) Run(s *session) error {
	dir, err := app.StateDir(c.StateDir)
	if err != nil {
		return err
	}
	holder, err := localdev.Holder(dir)
	if errors.Is(err, localdev.ErrNotHeld) {
		if err := s.show(shownStatus{StateDir: dir, Command: app.Version()}, "Nothing runs over %s. Start it with `holdfast up --detach`.\n", dir); err != nil {
			return err
		}
		return &exitError{code: exitStopped}
	}
	if err != nil {
		return err
	}
	shown := shownStatus{Running: true, StateDir: dir, PID: holder.Pid, Health: healthStarting, Command: app.Version()}
	running, err := app.ReadRunning(dir)
	if err != nil {
		return err
	}
	if running != nil && running.PIDs.Holdfast == holder.Pid { // otherwise it is one that was killed that wrote it
		shown.tell(s.ctx, *running)
	}
	if err := s.printStatus(shown); err != nil {
		return err
	}
	if shown.Health != "ok" {
		return &exitError{code: app.ExitFailed}
	}
	return nil
}

// tell fills in what a ready one has said of itself, and how it is now.
func (t *shownStatus) tell(ctx context.Context, r app.Running) {
	t.API, t.Admin, t.Database, t.NATS = r.API, r.Admin, withoutSecret(r.DatabaseURL), withoutSecret(r.NATSURL)
	t.Postgres, t.Version, t.Detached = r.PIDs.Postgres, r.Version, r.Detached
	if !r.StartedAt.IsZero() {
		t.StartedAt = &r.StartedAt
	}
	if r.Detached {
		t.Log = filepath.Join(t.StateDir, app.LogFile)
	}
	ctx, cancel := context.WithTimeout(ctx, statusBound)
	defer cancel()
	var health struct {
		Status  string   `json:"status"`
		Reasons []string `json:"reasons"`
	}
	got, err := newClient(r.API, model.Secret(r.Key)).send(ctx, http.MethodGet, "/v1/health", "", nil)
	if t.Health = healthSilent; err == nil && got.status == http.StatusOK && json.Unmarshal(got.body, &health) == nil {
		t.Health, t.Reasons = cmp.Or(health.Status, healthSilent), health.Reasons
	}
}

// withoutSecret is a URL without its password.
func withoutSecret(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	u.RawQuery = ""
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	return u.String()
}

func (s *session) printStatus(t shownStatus) error {
	if s.json {
		return s.encode(t)
	}
	lines := []string{"health\t" + strings.Join(append([]string{t.Health}, t.Reasons...), ", ")}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, name+"\t"+value)
		}
	}
	add("API", t.API)
	add("metrics", t.Admin)
	add("database", t.Database)
	add("NATS", t.NATS)
	version := t.Version
	if version != "" && version != t.Command {
		version += " (this command is " + t.Command + ")"
	}
	add("version", version)
	if t.StartedAt != nil {
		add("since", fmt.Sprintf("%s (%s)", t.StartedAt.Local().Format(time.DateTime), time.Since(*t.StartedAt).Round(time.Second)))
	}
	processes := fmt.Sprintf("holdfast %d", t.PID)
	if t.Postgres > 0 {
		processes += fmt.Sprintf(", postgres %d", t.Postgres)
	}
	add("processes", processes)
	add("state", t.StateDir)
	add("log", t.Log)
	add("stop", "holdfast stop")
	return s.table("up\truns", lines)
}

type stopCommand struct {
	stateful
	Timeout time.Duration `default:"60s" env:"-" help:"How long to wait for its end at most."`
	Now     bool          `env:"-" help:"Kill it: what is under way is done again after the next start."`
}

func (c *stopCommand) Run(s *session) error {
	dir, err := app.StateDir(c.StateDir)
	if err != nil {
		return err
	}
	holder, err := localdev.Holder(dir)
	if errors.Is(err, localdev.ErrNotHeld) {
		return s.show(map[string]any{"stopped": false, "state_dir": dir}, "Nothing runs over %s.\n", dir)
	}
	if err != nil {
		return err
	}
	end := syscall.SIGTERM
	if c.Now {
		end = syscall.SIGKILL
	}
	if err := holder.Signal(end); err != nil && !errors.Is(err, syscall.ESRCH) && !strings.Contains(err.Error(), "already finished") {
		return exitf(app.ExitFailed, "process %d can't be stopped: %v", holder.Pid, err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, c.Timeout)
	defer cancel()
	switch err := localdev.Released(ctx, dir); {
	case err != nil && s.ctx.Err() != nil:
		return s.ctx.Err()
	case err != nil:
		return exitf(exitPending, "process %d has not ended after %s: wait, or `holdfast stop --now`", holder.Pid, c.Timeout)
	}
	return s.show(map[string]any{"stopped": true, "pid": holder.Pid, "state_dir": dir}, "Stopped. The data is kept in %s.\n", dir)
}

type resetCommand struct {
	stateful
	Yes bool `env:"-" help:"Yes, everything in it, for good."`
}

func (c *resetCommand) Run(s *session) error {
	dir, err := app.StateDir(c.StateDir)
	if err != nil {
		return err
	}
	if holder, err := localdev.Holder(dir); err == nil {
		return exitf(app.ExitFailed, "it runs as process %d: end it first with `holdfast stop`", holder.Pid)
	}
	files, err := app.StateFiles(dir)
	if errors.Is(err, app.ErrNoState) {
		return s.show(map[string]any{"removed": []string{}, "state_dir": dir}, "There is nothing to remove in %s.\n", dir)
	}
	if err != nil {
		return err
	}
	if !c.Yes {
		if !terminal(s.in) {
			return exitf(app.ExitUsage, "this removes every memory, key and credit of %s for good; say --yes", dir)
		}
		fmt.Fprintf(s.err, "This removes for good, from %s:\n  %s\nAll memories, keys and credits in it are gone. Type reset to do it: ", dir, strings.Join(files, "  "))
		if err := s.answered("reset"); err != nil {
			return err
		}
	}
	removed, err := app.ResetState(dir)
	if errors.Is(err, app.ErrNoState) {
		removed, err = []string{}, nil // another one was quicker
	}
	if err != nil {
		return err
	}
	return s.show(map[string]any{"removed": removed, "state_dir": dir}, "%s is as before the first start.\n", dir)
}
