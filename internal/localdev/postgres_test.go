package localdev_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

func TestPostgres(t *testing.T) {
	t.Parallel()

	t.Run("KeepsItsDataOverStopStartAndRestart", func(t *testing.T) {
		t.Parallel()
		cfg := localdev.PostgresConfig{DataDir: filepath.Join(stateDir(t), "postgres"), Fsync: true}
		pg := start(t, cfg)
		exec1(t, pg.URL(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
		url, pid := pg.URL(), pg.PID()

		require.NoError(t, pg.Restart(bounded(t), false))
		require.Equal(t, url, pg.URL())
		require.NotEqual(t, pid, pg.PID())
		require.NoError(t, pg.Restart(bounded(t), true))
		require.Equal(t, "7", queryText(t, pg.URL(), "SELECT n::text FROM kept"))
		requireOpen(t, pg.Done())

		require.NoError(t, pg.Stop(bounded(t)))
		require.NoError(t, pg.Stop(bounded(t)))
		requireClosed(t, pg.Done())
		require.ErrorContains(t, pg.Restart(bounded(t), false), "stopped")

		again := start(t, cfg)
		require.Equal(t, "7", queryText(t, again.URL(), "SELECT n::text FROM kept"))
	})

	t.Run("HasTheEncodingLocaleAndAccessItPromises", func(t *testing.T) {
		t.Parallel()
		state := stateDir(t)
		pg := start(t, localdev.PostgresConfig{
			DataDir: filepath.Join(state, "postgres"), Fsync: true,
			Settings: map[string]string{"max_connections": "17"},
		})
		for query, want := range map[string]string{
			"SHOW server_encoding": "UTF8",
			"SELECT datcollate FROM pg_database WHERE datname='holdfast'": "C.UTF-8",
			"SHOW listen_addresses":        "127.0.0.1",
			"SHOW unix_socket_directories": "",
			"SHOW fsync":                   "on",
			"SHOW synchronous_commit":      "on",
			"SHOW full_page_writes":        "on",
			"SHOW password_encryption":     "scram-sha-256",
			"SHOW max_connections":         "17",
			"SHOW data_checksums":          "on",
		} {
			require.Equal(t, want, queryText(t, pg.URL(), query), query)
		}
		wrong := strings.Replace(pg.URL(), "holdfast:", "holdfast:x", 1)
		_, err := pgx.Connect(bounded(t), wrong)
		require.ErrorContains(t, err, "28P01")

		info, err := os.Stat(filepath.Join(state, "postgres.password"))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		left, err := filepath.Glob(filepath.Join(state, "*.pw"))
		require.NoError(t, err)
		require.Empty(t, left)
		if os.Geteuid() == 0 {
			require.NotEqual(t, uint32(0), uidOf(t, pg.PID()))
		}
	})

	t.Run("LogHoldsNoRowText", func(t *testing.T) {
		t.Parallel()
		pg := start(t, localdev.PostgresConfig{DataDir: filepath.Join(stateDir(t), "postgres")})
		conn := connect(t, pg.URL())
		ctx := bounded(t)
		_, err := conn.Exec(ctx, "CREATE TABLE secrets (body text UNIQUE, n int CHECK (n > 0))")
		require.NoError(t, err)
		for _, n := range []int{1, 1, -1} {
			_, err = conn.Exec(ctx, "INSERT INTO secrets VALUES ($1, $2)", "canary-93b1", n)
		}
		require.Error(t, err)
		_, err = conn.Exec(ctx, "SELECT 'canary-93b1' FROM nowhere")
		require.Error(t, err)
		log, err := os.ReadFile(pg.LogPath())
		require.NoError(t, err)
		require.Contains(t, string(log), "secrets_n_check") // the refusals were logged
		require.NotContains(t, string(log), "canary-93b1")
	})

	t.Run("MakesNoLoginsInADatabaseOfAnEarlierBuild", func(t *testing.T) {
		t.Parallel()
		pg := start(t, localdev.PostgresConfig{DataDir: filepath.Join(stateDir(t), "postgres")})
		require.ErrorContains(t, localdev.MakeLogins(bounded(t), pg.URL()), "another state directory")
	})

	t.Run("EndsWhenItsParentIsKilledAndStartsAgain", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(stateDir(t), "postgres")
		helper, report := startHelper(t, dir)
		exec1(t, report.URL, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (9)")
		conn := connect(t, report.URL)

		require.NoError(t, helper.Process.Kill())
		_ = helper.Wait()
		// The connection ends with its server process; until then this waits.
		_, err := conn.Exec(bounded(t), "SELECT pg_sleep(600)")
		require.Error(t, err)

		pg := start(t, localdev.PostgresConfig{DataDir: dir, Fsync: true})
		requireGone(t, report.PID)
		require.Equal(t, "9", queryText(t, pg.URL(), "SELECT n::text FROM kept"))
	})

	t.Run("IgnoresAPidFileWhoseNumberIsAnotherProgramNow", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(stateDir(t), "postgres")
		pg := start(t, localdev.PostgresConfig{DataDir: dir})
		pidFile := filepath.Join(dir, "postmaster.pid")
		content, err := os.ReadFile(pidFile)
		require.NoError(t, err)
		require.NoError(t, pg.Stop(bounded(t)))
		_, rest, _ := strings.Cut(string(content), "\n")
		other := sleeper(t, uidGid(t, dir))
		require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(other)+"\n"+rest), 0o600))
		chownLike(t, pidFile, dir)

		again := start(t, localdev.PostgresConfig{DataDir: dir})
		require.Equal(t, "1", queryText(t, again.URL(), "SELECT '1'"))
	})

	t.Run("AnUnfinishedInitIsMadeAgain", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(stateDir(t), "postgres")
		require.NoError(t, os.MkdirAll(filepath.Join(dir+".init", "base"), 0o700))
		require.NoError(t, os.Mkdir(dir, 0o700)) // an empty one, as a package or an operator makes it
		pg := start(t, localdev.PostgresConfig{DataDir: dir})
		require.Equal(t, "1", queryText(t, pg.URL(), "SELECT '1'"))
		require.NoDirExists(t, dir+".init")
	})
}

func TestPostgresRefuses(t *testing.T) {
	t.Parallel()

	t.Run("AnotherMajorVersion", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(stateDir(t), "postgres")
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("9\n"), 0o600))
		_, err := localdev.StartPostgres(bounded(t), localdev.PostgresConfig{DataDir: dir})
		require.ErrorContains(t, err, "made by PostgreSQL 9")
		require.ErrorContains(t, err, "install PostgreSQL 9")
	})

	t.Run("ADirectoryOfSomethingElse", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(stateDir(t), "postgres")
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("x"), 0o600))
		_, err := localdev.StartPostgres(bounded(t), localdev.PostgresConfig{DataDir: dir})
		require.ErrorContains(t, err, "no PostgreSQL data directory")
		require.FileExists(t, filepath.Join(dir, "thesis.txt"))
	})

	t.Run("AParentItsUserCantEnter", func(t *testing.T) {
		t.Parallel()
		closed := stateDir(t)
		require.NoError(t, os.Chmod(closed, 0o700))
		dir := filepath.Join(closed, "postgres")
		if os.Geteuid() != 0 { // then the server has this user, and the directory is its own
			start(t, localdev.PostgresConfig{DataDir: dir})
			return
		}
		_, err := localdev.StartPostgres(bounded(t), localdev.PostgresConfig{DataDir: dir})
		require.ErrorContains(t, err, "can't enter "+closed)
	})

	t.Run("ATakenPort", func(t *testing.T) {
		t.Parallel()
		pg := start(t, localdev.PostgresConfig{DataDir: filepath.Join(stateDir(t), "postgres")})
		_, err := localdev.StartPostgres(bounded(t), localdev.PostgresConfig{
			DataDir: filepath.Join(stateDir(t), "postgres"), Port: pg.Port(),
		})
		require.ErrorIs(t, err, localdev.ErrPortTaken)
	})

	t.Run("AStartThatIsBrokenOffAndSaysNothingElse", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the probes for an installed PostgreSQL end with it
		_, err := localdev.StartPostgres(ctx, localdev.PostgresConfig{DataDir: filepath.Join(stateDir(t), "postgres")})
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "no PostgreSQL is installed")
	})

	t.Run("ABinDirWithoutPostgres", func(t *testing.T) {
		t.Parallel()
		state := stateDir(t)
		_, err := localdev.StartPostgres(bounded(t), localdev.PostgresConfig{
			DataDir: filepath.Join(state, "postgres"), BinDir: state,
		})
		require.ErrorContains(t, err, "no PostgreSQL in "+state)
	})

	t.Run("ASettingThatTheServerDoesNotKnow", func(t *testing.T) {
		t.Parallel()
		_, err := localdev.StartPostgres(bounded(t), localdev.PostgresConfig{
			DataDir: filepath.Join(stateDir(t), "postgres"), Settings: map[string]string{"no_such_setting": "1"},
		})
		require.ErrorContains(t, err, "no_such_setting") // from the server's own log
	})
}

func startHelper(t *testing.T, dir string) (*exec.Cmd, helperReport) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var report helperReport
	require.NoError(t, json.Unmarshal(line, &report))
	return cmd, report
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err == nil && len(b) > 0 { // an ended process that nobody waited for has an empty command line
		require.NotContains(t, string(b), "postgres")
	}
}

func sleeper(t *testing.T, cred *syscall.Credential) int {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	}
	child, err := localdev.StartChild(cmd, syscall.SIGKILL)
	require.NoError(t, err)
	t.Cleanup(func() {
		child.KillGroup()
		<-child.Exited()
	})
	return child.PID()
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second) // many servers on two cores
	t.Cleanup(cancel)
	return ctx
}
