package localdev

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// Login is a role of a private server that one kind of process logs in as.
type Login string

// The logins, each a member of the group role that the migrations have made.
const (
	APILogin    Login = "holdfast_api_login"
	WorkerLogin Login = "holdfast_worker_login"
)

// group is the role whose rights the login has.
func (l Login) group() string {
	if l == WorkerLogin {
		return "holdfast_worker"
	}
	return "holdfast_api"
}

// loginsBound is how long making the logins may take: four statements.
const loginsBound = 30 * time.Second

// The names are constants of this file and the password is hexadecimal, so nothing has to be quoted. Another process
// may make the same login for another database of the server.
const (
	makeLoginSQL = `
DO $$
BEGIN
    CREATE ROLE %[1]s LOGIN PASSWORD '%[2]s' IN ROLE %[3]s;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$`
	groupsSQL     = `SELECT count(*) FROM pg_roles WHERE rolname IN ('holdfast_api', 'holdfast_worker')`
	loginsLockSQL = `SELECT pg_advisory_xact_lock(7235417805)` // Holdfast's own: who sets a password waits for who does
	setLoginSQL   = `ALTER ROLE %[1]s LOGIN PASSWORD '%[2]s'; GRANT %[3]s TO %[1]s`
)

// errNoGroups is for a database that a build before the first release has made: until then no migration leads on from it.
var errNoGroups = errors.New("make logins: the database lacks the roles holdfast_api and holdfast_worker, as an earlier build made it: " +
	"start with another state directory, or move this one away")

// MakeLogins makes the logins of the API and of workers at the migrated database of the owner's URL, or sets their
// passwords again. The server must be a private one: the passwords come from the owner's.
func MakeLogins(ctx context.Context, ownerURL string) error {
	ctx, cancel := context.WithTimeout(ctx, loginsBound)
	defer cancel()
	conn, err := pgx.Connect(ctx, ownerURL)
	if err != nil {
		return fmt.Errorf("make logins: connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("make logins: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // nothing is left of it after a commit
	if _, err := tx.Exec(ctx, loginsLockSQL); err != nil {
		return fmt.Errorf("make logins: %w", err)
	}
	groups := 0
	if err := tx.QueryRow(ctx, groupsSQL).Scan(&groups); err != nil {
		return fmt.Errorf("make logins: %w", err)
	}
	if groups != 2 {
		return errNoGroups
	}
	for _, login := range []Login{APILogin, WorkerLogin} {
		for _, sql := range []string{makeLoginSQL, setLoginSQL} {
			if _, err := tx.Exec(ctx, fmt.Sprintf(sql, login, login.password(conn.Config().Password), login.group())); err != nil {
				return fmt.Errorf("make login %s: %w", login, err)
			}
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("make logins: %w", err)
	}
	return nil
}

// LoginURL is the way of the login to the database of the owner's URL, or of one that leads to it through something
// else. It holds a password: never log it.
func LoginURL(ownerURL string, login Login) (string, error) {
	u, err := url.Parse(ownerURL)
	if err != nil {
		return "", fmt.Errorf("the way of %s: the owner's URL cannot be read", login)
	}
	password, _ := u.User.Password()
	u.User = url.UserPassword(string(login), login.password(password))
	return u.String(), nil
}

// password follows from the owner's, so that it need not be kept: whoever has the owner's may have all.
func (l Login) password(owner string) string {
	mac := hmac.New(sha256.New, []byte(owner))
	mac.Write([]byte("login/1 " + string(l))) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}
