package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

type migrateCommand struct{ app.Database }

func (c *migrateCommand) Run(s *session) error {
	applied, err := app.Migrate(s.ctx, c.Database)
	if err != nil {
		return err
	}
	if applied == nil {
		applied = []int64{}
	}
	if len(applied) == 0 {
		return s.show(map[string]any{"applied": applied}, "The database is up to date.\n")
	}
	return s.show(map[string]any{"applied": applied}, "Migrated: %v\n", applied)
}

// admin opens the database for an operator's command.
func (s *session) admin(d app.Database, do func(db *postgres.DB) error) error {
	located, err := d.Located()
	if err != nil {
		return err
	}
	db, err := app.OpenDB(s.ctx, located)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

type workspaceCommand struct {
	Create  workspaceCreate  `cmd:"" help:"Make a workspace."`
	List    workspaceList    `cmd:"" help:"List workspaces."`
	Suspend workspaceSuspend `cmd:"" help:"Refuse a workspace's writes and leave its work alone, or let both go on."`
	Pause   workspacePause   `cmd:"" help:"Leave a workspace's work alone and go on accepting its writes, or let its work go on."`
	Limit   workspaceLimit   `cmd:"" help:"Set how much a workspace may ask for and have waiting."`
	Delete  workspaceDelete  `cmd:"" help:"Delete a workspace with everything in it."`
	Policy  workspacePolicy  `cmd:"" help:"Show or replace what a workspace adds to how its conversations are read."`
}

type workspaceCreate struct {
	app.Database
	Name      string `arg:"" help:"Its name."`
	Unmetered bool   `env:"-" help:"Its writes cost nothing."`
}

func (c *workspaceCreate) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.CreateWorkspace(s.ctx, c.Name, !c.Unmetered)
		if errors.Is(err, postgres.ErrWorkspaceExists) {
			return exitf(app.ExitFailed, "a workspace named %q exists", c.Name)
		}
		if err != nil {
			return err
		}
		return s.show(workspaceOf(w), "ws_%s  %s\n", w.ID, w.Name)
	})
}

type workspaceList struct{ app.Database }

func (c *workspaceList) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		found, err := db.ListWorkspaces(s.ctx)
		if err != nil {
			return err
		}
		shown, rows := make([]workspace, len(found)), make([]string, len(found))
		for i, w := range found {
			shown[i] = workspaceOf(w)
			rows[i] = fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s", shown[i].ID, w.Name, shown[i].Status, w.Available, w.Held,
				limitOf(w.MaxPending), limitOf(w.RateLimit), limitOf(w.LeaseCap))
		}
		if s.json {
			return s.encode(shown)
		}
		return s.table("id\tname\tstatus\tavailable\theld\tmax pending\trate limit\tlease cap", rows)
	})
}

type workspaceSuspend struct {
	app.Database
	Workspace string `arg:"" help:"Its id or name."`
	Resume    bool   `env:"-" help:"Let it go on."`
}

func (c *workspaceSuspend) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.SuspendWorkspace(s.ctx, c.Workspace, !c.Resume)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		return s.show(workspaceOf(w), "ws_%s  %s  %s\n", w.ID, w.Name, workspaceOf(w).Status)
	})
}

type workspaceLimit struct {
	app.Database
	Workspace  string `arg:"" help:"Its id or name."`
	MaxPending *int   `env:"-" placeholder:"N" help:"Writes that may wait; 0 is the service's limit."`
	RateLimit  *int   `env:"-" placeholder:"N" help:"Requests a minute over all its keys; 0 is the service's limit."`
	LeaseCap   *int   `env:"-" placeholder:"N" help:"Live leases from which its hints are left to the fair drain; 0 is the service's limit."`
}

func (c *workspaceLimit) Run(s *session) error {
	if c.MaxPending == nil && c.RateLimit == nil && c.LeaseCap == nil {
		return exitf(app.ExitUsage, "name --max-pending, --rate-limit, --lease-cap or several of them")
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.LimitWorkspace(s.ctx, c.Workspace, postgres.Limits{MaxPending: c.MaxPending, RateLimit: c.RateLimit, LeaseCap: c.LeaseCap})
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		return s.show(workspaceOf(w), "ws_%s  %s  max-pending %s  rate-limit %s  lease-cap %s\n", w.ID, w.Name, limitOf(w.MaxPending),
			limitOf(w.RateLimit), limitOf(w.LeaseCap))
	})
}

// limitOf is a limit as it is shown.
func limitOf(n int) string {
	if n == 0 {
		return "default"
	}
	return strconv.Itoa(n)
}

type workspace struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Status    string    `json:"status"`
	Metered   bool      `json:"metered"`
	Available int64     `json:"available"`
	Held      int64     `json:"held"`
	CreatedAt time.Time `json:"created_at"`
	// Limits of its own, 0 for the service's.
	MaxPending int `json:"max_pending"`
	RateLimit  int `json:"rate_limit"`
	LeaseCap   int `json:"lease_cap"`
}

func workspaceOf(w postgres.Workspace) workspace {
	return workspace{"ws_" + w.ID.String(), w.Name, w.Status(), w.Metered, w.Available, w.Held, w.CreatedAt, w.MaxPending, w.RateLimit, w.LeaseCap}
}

type keyCommands struct {
	Create keyCreate `cmd:"" help:"Make a key. It is shown once."`
	List   keyList   `cmd:"" help:"List a workspace's keys."`
	Revoke keyRevoke `cmd:"" help:"End a key for good."`
}

type ofWorkspace struct {
	app.Database
	Workspace string `default:"default" help:"The workspace's id or name."`
}

type keyCreate struct {
	ofWorkspace
	Name       string         `env:"-" help:"What it is for."`
	Permission []string       `env:"-" sep:"none" placeholder:"NAME" help:"What it may do, several times or with commas (all but admin): memory:read, memory:write, operations:read, operations:retry, credits:read, admin."`
	Expires    *time.Duration `env:"-" placeholder:"720h" help:"When it ends by itself (never)."`
	RateLimit  int            `env:"-" placeholder:"N" help:"Requests a minute that it may make (no limit beside the workspace's)."`
}

func (c *keyCreate) Run(s *session) error {
	permissions, err := permissionsOf(c.Permission)
	if err != nil {
		return err
	}
	var expires *time.Time
	if c.Expires != nil {
		if *c.Expires <= 0 {
			return exitf(app.ExitUsage, "--expires must be a time to come, such as 720h; leave it out for a key that does not end by itself")
		}
		at := time.Now().Add(*c.Expires)
		expires = &at
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.Workspace(s.ctx, c.Workspace)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		key, err := db.CreateKey(s.ctx, w.ID, c.Name, permissions, expires)
		if err != nil {
			return err
		}
		if c.RateLimit != 0 { // before anybody sees it
			if err := db.LimitKey(s.ctx, w.ID, key.ID(), c.RateLimit); err != nil {
				return errors.Join(err, db.RevokeKey(s.ctx, w.ID, key.ID()))
			}
		}
		return s.show(map[string]any{"id": key.ID(), "key": key.Reveal(), "workspace": "ws_" + w.ID.String()}, "%s\n", key.Reveal())
	})
}

// permissionsOf are the named ones, and without names all that an application needs.
func permissionsOf(names []string) ([]access.Permission, error) {
	var permissions []access.Permission
	for _, list := range names {
		for name := range strings.SplitSeq(list, ",") {
			p, ok := access.ParsePermission(strings.TrimSpace(name))
			if !ok {
				return nil, exitf(app.ExitUsage, "there is no permission %q", name)
			}
			permissions = append(permissions, p)
		}
	}
	if len(permissions) > 0 {
		return permissions, nil
	}
	return access.ForApplications(), nil
}

type keyList struct{ ofWorkspace }

func (c *keyList) Run(s *session) error {
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.Workspace(s.ctx, c.Workspace)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		found, err := db.ListKeys(s.ctx, w.ID)
		if err != nil {
			return err
		}
		shown, rows := make([]keyInfo, len(found)), make([]string, len(found))
		for i, k := range found {
			shown[i] = keyInfo{k.ID, k.Name, k.Permissions, k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.RateLimit}
			limit := "none"
			if k.RateLimit > 0 {
				limit = strconv.Itoa(k.RateLimit)
			}
			rows[i] = fmt.Sprintf("%s\t%s\t%s\t%s\t%s", k.ID, k.Name, shown[i].state(), limit, joined(k.Permissions))
		}
		if s.json {
			return s.encode(shown)
		}
		return s.table("id\tname\tstate\trate limit\tpermissions", rows)
	})
}

type keyInfo struct {
	ID          string              `json:"id"`
	Name        string              `json:"name"`
	Permissions []access.Permission `json:"permissions"`
	CreatedAt   time.Time           `json:"created_at"`
	ExpiresAt   *time.Time          `json:"expires_at"`
	RevokedAt   *time.Time          `json:"revoked_at"`
	RateLimit   int                 `json:"rate_limit"`
}

func (k keyInfo) state() string {
	switch {
	case k.RevokedAt != nil:
		return "revoked"
	case k.ExpiresAt != nil:
		return "until " + k.ExpiresAt.Format(time.DateOnly)
	}
	return "active"
}

func joined(permissions []access.Permission) string {
	names := make([]string, len(permissions))
	for i, p := range permissions {
		names[i] = string(p)
	}
	return strings.Join(names, ",")
}

type keyRevoke struct {
	app.Database
	Workspace string `help:"The workspace's id or name (the one that has the key)."`
	ID        string `arg:"" help:"The key's id, or the key itself."`
}

func (c *keyRevoke) Run(s *session) error {
	id := c.ID
	if key, err := access.ParseKey(id); err == nil {
		id = key.ID()
	}
	id = strings.TrimPrefix(id, "hfk_")
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := c.owner(s, db, id)
		if err != nil {
			return err
		}
		if err := db.RevokeKey(s.ctx, w.ID, id); err != nil {
			return err
		}
		return s.show(map[string]string{"id": id, "state": "revoked", "workspace": "ws_" + w.ID.String()},
			"%s of workspace %s is revoked.\n", id, w.Name)
	})
}

// owner is the workspace that has the key. One that is named must be that one.
func (c *keyRevoke) owner(s *session, db *postgres.DB, id string) (postgres.Workspace, error) {
	owner, err := db.WorkspaceOfKey(s.ctx, id)
	if errors.Is(err, postgres.ErrNoKey) {
		return postgres.Workspace{}, exitf(app.ExitFailed, "there is no key of this id")
	}
	if err != nil {
		return postgres.Workspace{}, err
	}
	w, err := db.Workspace(s.ctx, owner.String())
	if err != nil || c.Workspace == "" {
		return w, err
	}
	named, err := db.Workspace(s.ctx, c.Workspace)
	if err != nil {
		return w, unknownWorkspace(err, c.Workspace)
	}
	if named.ID != owner {
		return w, exitf(app.ExitFailed, "this key belongs to workspace %q (ws_%s), not to %q; nothing is revoked", w.Name, w.ID, named.Name)
	}
	return w, nil
}

// unknownWorkspace names the workspace that there is not.
func unknownWorkspace(err error, idOrName string) error {
	if errors.Is(err, postgres.ErrNoWorkspace) {
		return exitf(app.ExitFailed, "there is no workspace %q", idOrName)
	}
	return err
}
