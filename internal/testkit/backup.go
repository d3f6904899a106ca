package testkit

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// backupTime bounds a base backup of a test's server, which takes seconds: it waits for a checkpoint.
const backupTime = 3 * time.Minute

// Archive lets a server of PrivatePostgres with fsync keep its log, restarts it for that, and returns the directory that
// the log is copied to.
func Archive(t testing.TB, pg *localdev.Postgres) string {
	t.Helper()
	dir := openDir(t)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{
		"archive_mode = on", fmt.Sprintf("archive_command = 'cp %%p %s/%%f'", dir),
	} {
		if _, err := conn.Exec(t.Context(), "ALTER SYSTEM SET "+setting); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	RestartPostgres(t, pg, false)
	return dir
}

// BaseBackup copies a server of PrivatePostgres with fsync while it runs, as an operator does, and returns the copy.
func BaseBackup(t testing.TB, pg *localdev.Postgres) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), backupTime)
	defer cancel()
	u, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	dir := filepath.Join(openDir(t), "postgres")
	cmd := exec.CommandContext(ctx, postgresProgram(t, "pg_basebackup"), "--no-password", "-h", u.Hostname(), "-p", u.Port(),
		"-U", u.User.Username(), "-D", dir, "-X", "stream", "-c", "fast")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	return dir
}

// RestorePostgres starts a server of its own on a copy that BaseBackup made of from, and lets it recover as the settings say.
// It ends with the test.
func RestorePostgres(t testing.TB, from *localdev.Postgres, dir string, recovery map[string]string) *localdev.Postgres {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "recovery.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return startCopy(t, from, dir, recovery)
}

func startCopy(t testing.TB, from *localdev.Postgres, dir string, settings map[string]string) *localdev.Postgres {
	t.Helper()
	all := serverSettings(true)
	maps.Copy(all, settings)
	all["archive_mode"] = "off" // the copy's log is another one
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	pg, err := localdev.StartPostgres(ctx, localdev.PostgresConfig{
		DataDir: dir, Fsync: true, Settings: all, PasswordFile: from.DataDir() + ".password",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := pg.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return pg
}

// openDir is a directory of the test that servers of another user can write to.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // #nosec G302 -- the server runs as another user when we are root
		t.Fatal(err)
	}
	return dir
}

// postgresProgram is a client program of the newest PostgreSQL installed, which is the one that servers are started from.
func postgresProgram(t testing.TB, name string) string {
	t.Helper()
	newest, found := 0, ""
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is valid, so there is no error
	for _, path := range dirs {
		if major, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))); err == nil && major > newest {
			newest, found = major, path
		}
	}
	if found != "" {
		return found
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: %v", name, err)
	}
	return path
}

// Replica starts a second server that follows pg, a server of PrivatePostgres with fsync, and returns once pg waits for it:
// what is committed from then on is on both. Unless synchronous, pg doesn't wait, and it returns once it follows.
func Replica(t testing.TB, pg *localdev.Postgres, synchronous bool) *localdev.Postgres {
	t.Helper()
	dir := BaseBackup(t, pg)
	if err := os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	replica := startCopy(t, pg, dir, map[string]string{
		"primary_conninfo": fmt.Sprintf("host=%s port=%s user=%s password=%s", u.Hostname(), u.Port(), u.User.Username(), password),
	})
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if synchronous {
		for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	tick, deadline := time.NewTicker(50*time.Millisecond), time.After(startTimeout)
	defer tick.Stop()
	for {
		var follows bool
		err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_replication
			WHERE state = 'streaming' AND (sync_state = 'sync') = $1)`, synchronous).Scan(&follows)
		switch {
		case err != nil:
			t.Fatal(err)
		case follows:
			return replica
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the replica does not follow")
		}
	}
}
