package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/operator"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// bulkFlags choose many events in place of one id, beside the database.
type bulkFlags struct {
	Code        string       `env:"-" placeholder:"CODE" help:"With --since: only of this class of failure or code, as provider_unavailable."`
	Since       string       `env:"-" placeholder:"2h" help:"In place of an id: all from so long ago, or from a time as 2026-03-01T12:00:00Z, to now."`
	Until       string       `env:"-" placeholder:"TIME" help:"With --since: only to this time, or to so long ago."`
	Workspace   string       `env:"-" placeholder:"NAME" help:"With --since: only of this workspace (id or name); otherwise of all."`
	UserID      string       `name:"user-id" env:"-" placeholder:"ID" help:"With --since: only of this user."`
	AgentID     string       `name:"agent-id" env:"-" placeholder:"ID" help:"With --since: only of this agent."`
	RunID       string       `name:"run-id" env:"-" placeholder:"ID" help:"With --since: only of this run."`
	AppID       string       `name:"app-id" env:"-" placeholder:"ID" help:"With --since: only of this app."`
	DryRun      bool         `env:"-" help:"With --since: count what it would do and what it costs, and do nothing."`
	Yes         bool         `env:"-" help:"With --since: do it without asking."`
	Bulk        string       `env:"-" placeholder:"UUID" help:"With --since and --until: go on with that bulk, which does nothing twice."`
	DatabaseURL model.Secret `name:"database-url" placeholder:"URL" help:"With --since: the database; otherwise the one that run.json names."`
}

// many tells whether the command is about many events, and refuses what is about both or neither.
func (f *bulkFlags) many(id string) (bool, error) {
	given := f.Code + f.Until + f.Workspace + f.UserID + f.AgentID + f.RunID + f.AppID + f.Bulk
	switch {
	case id != "" && (f.Since != "" || given != "" || f.DryRun || f.Yes):
		return false, exitf(app.ExitUsage, "name one event by its id, or many by --since and what else they have in common, but not both")
	case id == "" && f.Since == "":
		return false, exitf(app.ExitUsage, "name an event by its id, or many by --since, as --code provider_unavailable --since 2h")
	case f.Bulk != "" && f.Until == "":
		return false, exitf(app.ExitUsage, "to go on with a bulk also name the --since and --until that it was begun with")
	}
	return id == "", nil
}

// moment reads a time, or how long ago it was.
func moment(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return time.Now().Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, exitf(app.ExitUsage, "--%s must be how long ago, as 90m, or a time as 2026-03-01T12:00:00Z", flag)
	}
	return at, nil
}

// errand is a bulk over one workspace or several.
type errand struct {
	s      *session
	flags  *bulkFlags
	bulk   *write.Bulk
	choice write.BulkChoice
	id     uuid.UUID
	parts  []*bulkPart
}

// bulkPart is what it comes to in one workspace.
type bulkPart struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Count     int            `json:"count"`
	Credits   int64          `json:"credits"`
	Available int64          `json:"available"`
	Gone      int            `json:"input_gone"`
	Classes   map[string]int `json:"classes"`
	More      bool           `json:"more"`
	Done      int            `json:"done"`
	Before    int            `json:"done_before"`
	Refused   map[string]int `json:"refused"`

	workspace uuid.UUID
}

func (s *session) bulk(act write.BulkAct, flags *bulkFlags, stateDir string) error {
	e := &errand{s: s, flags: flags, choice: write.BulkChoice{
		Act: act, Code: flags.Code,
		Scope: memory.Scope{UserID: flags.UserID, AgentID: flags.AgentID, RunID: flags.RunID, AppID: flags.AppID},
	}}
	if err := e.read(); err != nil {
		return err
	}
	return s.admin(app.Database{DatabaseURL: flags.DatabaseURL, StateDir: stateDir}, func(db *postgres.DB) (err error) {
		if e.bulk, err = app.NewBulk(db); err != nil {
			return err
		}
		if err := e.preview(db); err != nil {
			return err
		}
		if e.count() == 0 || flags.DryRun {
			return e.show()
		}
		if !flags.Yes {
			if err := e.confirm(); err != nil {
				return err
			}
		}
		return e.run()
	})
}

// read reads times and id from the flags.
func (e *errand) read() (err error) {
	if e.choice.Since, err = moment("since", e.flags.Since); err != nil {
		return err
	}
	if e.choice.Until, err = moment("until", e.flags.Until); err != nil {
		return err
	}
	e.id = uuid.New()
	if e.flags.Bulk == "" {
		return nil
	}
	if e.id, err = uuid.Parse(e.flags.Bulk); err != nil {
		return exitf(app.ExitUsage, "--bulk must be the UUID that an earlier run has printed")
	}
	return nil
}

// preview counts in every workspace that is meant, and takes the end of the first one for all.
func (e *errand) preview(db *postgres.DB) error {
	found, err := e.meant(db)
	if err != nil {
		return err
	}
	for _, w := range found {
		p, err := e.bulk.Preview(e.s.ctx, w.ID, e.choice)
		if err != nil {
			return err
		}
		e.choice.Until = p.Until
		part := &bulkPart{
			ID: "ws_" + w.ID.String(), Name: w.Name, Count: p.Count, Credits: int64(p.Credits), Available: w.Available, Gone: p.Gone,
			Classes: map[string]int{}, More: p.More, Refused: map[string]int{}, workspace: w.ID,
		}
		for _, l := range p.Lines {
			part.Classes[string(l.Class)] = l.Count
		}
		if part.Count > 0 || part.Gone > 0 || e.flags.Workspace != "" {
			e.parts = append(e.parts, part)
		}
	}
	return nil
}

// meant are the workspaces: what is being deleted ends by itself.
func (e *errand) meant(db *postgres.DB) ([]operator.Workspace, error) {
	if e.flags.Workspace == "" {
		all, err := db.ListWorkspaces(e.s.ctx)
		return slices.DeleteFunc(all, func(w operator.Workspace) bool { return w.Deletion != nil }), err
	}
	w, err := db.Workspace(e.s.ctx, e.flags.Workspace)
	if err != nil {
		return nil, unknownWorkspace(err, e.flags.Workspace)
	}
	return []operator.Workspace{w}, nil
}

func (e *errand) count() (n int) {
	for _, p := range e.parts {
		n += p.Count
	}
	return n
}

// run does it page by page. What breaks it off leaves it so that the same command goes on.
func (e *errand) run() error {
	fmt.Fprintf(e.s.err, "bulk %s\n", e.id)
	bar := e.s.progress("events")
	for _, p := range e.parts {
		if err := e.runPart(p, bar); err != nil {
			bar.end()
			return e.broken(err)
		}
	}
	bar.end()
	if err := e.show(); err != nil {
		return err
	}
	for _, p := range e.parts {
		if len(p.Refused) > 0 {
			return exitf(app.ExitFailed, "some were refused; when what stands in their way is gone, the same goes on with: %s", e.again())
		}
	}
	return nil
}

func (e *errand) runPart(p *bulkPart, bar *progress) error {
	var after *write.BulkPlace
	for {
		page, err := e.bulk.Run(e.s.ctx, p.workspace, e.id, e.choice, after)
		if err != nil {
			return err
		}
		p.Done, p.Before = p.Done+page.Done, p.Before+page.Before
		for code, n := range page.Refused {
			p.Refused[code] += n
		}
		bar.show(int64(e.handled()), int64(e.count()))
		if after = page.Next; after == nil {
			return nil
		}
		if err := e.s.ctx.Err(); err != nil {
			return err
		}
	}
}

func (e *errand) handled() (n int) {
	for _, p := range e.parts {
		n += p.Done + p.Before
		for _, refused := range p.Refused {
			n += refused
		}
	}
	return n
}

func (e *errand) broken(err error) error {
	code, text := verdict(err)
	if errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	return exitf(code, "%s after %d of %d events; the same goes on with: %s", text, e.handled(), e.count(), e.again())
}
