package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

func TestFindText(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	const text = `say "x\y" to Jürgen`
	for _, sql := range []string{
		"CREATE TABLE texts (t text)", "CREATE TABLE bytes (b bytea)", "CREATE TABLE lists (l text[])", "CREATE TABLE others (t text)",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range []string{"INSERT INTO texts VALUES ($1)", "INSERT INTO bytes VALUES (convert_to($1, 'UTF8'))"} {
		if _, err := pool.Exec(t.Context(), sql, "before "+text+" after"); err != nil {
			t.Fatal(err)
		}
	}
	found, tables, err := postgres.FindText(t.Context(), pool.Config().ConnString(), text)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found["texts"] != 1 || found["bytes"] != 1 || tables < 10 {
		t.Fatalf("one row of text and one of bytes, not %v in %d tables", found, tables)
	}
}

func TestReadServer(t *testing.T) {
	t.Parallel()
	pool := testkit.Postgres(t)
	server, err := postgres.ReadServer(t.Context(), pool.Config().ConnString(), []string{"fsync", "no_such_setting"})
	if err != nil {
		t.Fatal(err)
	}
	if len(server.Settings) != 1 || server.Settings["fsync"] != "off" || server.Replica {
		t.Errorf("got %+v", server)
	}
	if server.Took <= 0 || server.Skew.Abs() > server.Took {
		t.Errorf("one machine has one clock, not %s apart (±%s)", server.Skew, server.Took/2)
	}
	for _, url := range []string{"postgres://u:canary@127.0.0.1:1/d", "postgres://u:canary@[/d"} {
		_, err = postgres.ReadServer(t.Context(), url, nil)
		if _, ok := errors.AsType[*postgres.Unreachable](err); !ok || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
