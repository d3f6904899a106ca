package localdev_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-memory/holdfast/internal/localdev"
)

// stateDir is a directory that the server's user can enter, which t.TempDir is not.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-localdev-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func start(t *testing.T, cfg localdev.PostgresConfig) *localdev.Postgres {
	t.Helper()
	pg, err := localdev.StartPostgres(bounded(t), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := pg.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return pg
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(bounded(t), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	_, err := connect(t, url).Exec(bounded(t), sql)
	require.NoError(t, err)
}

func queryText(t *testing.T, url, sql string) string {
	t.Helper()
	var s string
	require.NoError(t, connect(t, url).QueryRow(bounded(t), sql).Scan(&s))
	return s
}

func requireOpen(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
		require.Fail(t, "closed")
	default:
	}
}

func requireClosed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-bounded(t).Done():
		require.Fail(t, "still open")
	}
}

func uidOf(t *testing.T, pid int) uint32 {
	t.Helper()
	return uidGid(t, filepath.Join("/proc", strconv.Itoa(pid))).Uid
}

func uidGid(t *testing.T, path string) *syscall.Credential {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	st, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	return &syscall.Credential{Uid: st.Uid, Gid: st.Gid}
}

func chownLike(t *testing.T, path, like string) {
	t.Helper()
	cred := uidGid(t, like)
	require.NoError(t, os.Chown(path, int(cred.Uid), int(cred.Gid)))
}
