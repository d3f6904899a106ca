package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// logins answers the database as workers and repair reach it, and as the API does. A private server has logins for both;
// in one of the operator's everything logs in as the settings say.
func (r *servers) logins(ctx context.Context, d Database) (workers, api Database, err error) {
	if r.postgres == nil {
		return d, d, nil
	}
	if err := localdev.MakeLogins(ctx, r.postgres.URL()); err != nil {
		return d, d, err
	}
	if workers, err = as(d, localdev.WorkerLogin); err != nil {
		return d, d, err
	}
	api, err = as(d, localdev.APILogin)
	return workers, api, err
}

// as is the private database for a login.
func as(d Database, login localdev.Login) (Database, error) {
	own, err := localdev.LoginURL(d.DatabaseURL.Reveal(), login)
	d.DatabaseURL = model.Secret(own)
	return d, err
}

// openAPI gives the API a way to the database of its own.
func (c *core) openAPI(ctx context.Context, d Database) error {
	db, err := openStore(ctx, d, c.store())
	if err == nil {
		c.api = db
		c.watchPool("api", db)
	}
	return err
}

// warnOfSlack says when the second belt doesn't hold the API: every query names its workspace all the same. A role that
// can't be an API's is refused.
func (c *core) warnOfSlack(ctx context.Context) error {
	role, err := c.api.Role(ctx)
	if err != nil {
		return fmt.Errorf("look at the API's database role: %w", err)
	}
	if !role.Serves() {
		return errNoAPI
	}
	if slack := role.Slack(); slack != "" {
		c.log.Warn().Str("reason", slack).Msg("row-level security does not hold the API's database role, see docs/database-roles.md")
	}
	return nil
}

// errHidden is for whoever looks at all workspaces and would be shown none: it would find that there is nothing to do, or
// that nothing is wrong.
var errHidden = errors.New("row-level security hides the rows of workspaces from this database role: " +
	"log in as a member of holdfast_worker or as the owner of the database, see docs/database-roles.md")

// errNoAPI is for an API that could answer nobody.
var errNoAPI = errors.New("this database role can't serve the API: " +
	"log in as a member of holdfast_api or as the owner of the database, see docs/database-roles.md")

// requireSight refuses a role that the policies don't show all workspaces.
func requireSight(ctx context.Context, db *postgres.DB) error {
	role, err := db.Role(ctx)
	if err != nil {
		return fmt.Errorf("look at the database role: %w", err)
	}
	if !role.Sees() {
		return errHidden
	}
	return nil
}

// ownServer tells whether the database is found by the run.json of an `up` that runs the server itself.
func (d Database) ownServer() bool {
	if d.DatabaseURL != "" {
		return false
	}
	running, err := ReadRunning(d.StateDir)
	return err == nil && running != nil && running.PIDs.Postgres != 0
}

// examineRole judges whether the second belt holds the role that the settings name.
func examineRole(ctx context.Context, d Database, private bool) Finding {
	const check = "database role"
	if private {
		return Finding{Check: check, Grade: Good, Found: "`holdfast up` has logins of its own for the API and for workers"}
	}
	role, err := postgres.ReadRole(ctx, d.DatabaseURL.Reveal())
	switch {
	case err != nil:
		return Finding{check, Warning, "it cannot be read: " + err.Error(), "Let the user read pg_roles."}
	case role.Held():
		return Finding{Check: check, Grade: Good, Found: "row-level security holds it: an API's"}
	case role.Worker && !role.Superuser && !role.BypassRLS && !role.Owner && !role.API:
		return Finding{Check: check, Grade: Good, Found: "a worker's"}
	case !role.API && !role.Worker:
		return Finding{check, Danger, "it has the rights of neither holdfast_api nor holdfast_worker", "Make it with deploy/postgres/roles.sql."}
	}
	return Finding{
		check, Warning, "row-level security does not hold it: " + role.Slack(),
		"Give the API and the workers logins of their own (docs/database-roles.md). Every query names its workspace all the same.",
	}
}
