package app

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// serverDir is a state directory that PostgreSQL's user can enter, which t.TempDir is not.
func serverDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "holdfast-app-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestStartPostgres(t *testing.T) {
	t.Parallel()
	dir := serverDir(t)
	taken, err := listenFrom(t.Context(), 24_000)
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	server, err := startPostgres(t.Context(), dir, port)
	if err != nil {
		t.Fatalf("with its port taken: %v", err)
	}
	if server.Port() == port {
		t.Error("two servers on one port")
	}
	if err := server.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}

	// What is wrong with the directory is wrong on every port.
	conf, err := os.OpenFile(filepath.Join(dir, "postgres", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conf.WriteString("\nno such setting\n"); err != nil {
		t.Fatal(err)
	}
	if err := conf.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := startPostgres(t.Context(), dir, port); err == nil {
		t.Fatal("it started with a broken configuration")
	}
	log, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "contains errors"); n != 1 {
		t.Errorf("it was tried %d times: %s", n, log)
	}
}
