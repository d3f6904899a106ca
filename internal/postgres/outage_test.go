package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// TestOutage holds what may be logged of a database that doesn't answer: the code, the step, and a reason that is ours.
func TestOutage(t *testing.T) {
	t.Parallel()
	t.Run("AnErrorHasCodeStepAndReason", func(t *testing.T) {
		t.Parallel()
		url := testkit.NewDatabase(t)
		db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		// A database that takes no connections: those that are there end, and no other one comes.
		name := url[strings.LastIndex(url, "/")+1:]
		name, _, _ = strings.Cut(name, "?")
		server := testkit.Pool(t, strings.Replace(url, "/"+name, "/postgres", 1))
		if _, err := server.Exec(t.Context(), `ALTER DATABASE "`+name+`" ALLOW_CONNECTIONS false`); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name); err != nil {
			t.Fatal(err)
		}
		_, err = db.Balance(t.Context(), uuid.New())
		at, ok := errors.AsType[interface {
			error
			Step() string
		}](err)
		if !ok || at.Step() == "" || strings.Contains(at.Step(), ":") {
			t.Fatalf("no step in %v", err)
		}
	})
	t.Run("AnAddressWithoutAServerIsAPlainReason", func(t *testing.T) {
		t.Parallel()
		_, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://ana:open-sesame@127.0.0.1:1/x"})
		reason, ok := errors.AsType[fault.Plain](err)
		if !fault.Is(err, fault.UnavailableNow) || !ok || reason == "" || strings.Contains(err.Error(), "open-sesame") {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("AnAddressIsHostAndPortOnly", func(t *testing.T) {
		t.Parallel()
		for url, want := range map[string]string{
			"postgres://ana:open-sesame@db.example:6432/x":              "db.example:6432",
			"postgres://ana:open-sesame@one,two:7000/x?sslmode=disable": "one:5432, two:7000",
			"host=/run/postgresql user=ana password=open-sesame":        "/run/postgresql:5432",
			"postgres://ana:open-sesame@[::1]:x/x":                      "an address that cannot be read",
		} {
			if got := postgres.Address(url); got != want {
				t.Errorf("%s: %s", url, got)
			}
		}
	})
}
