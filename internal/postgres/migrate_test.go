package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/testkit"
)

// emptyDatabase is one without any schema.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	url := testkit.Direct(testkit.NewDatabase(t))
	if _, err := testkit.Pool(t, url).Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	t.Run("SeveralAtOnceApplyEachVersionOnce", func(t *testing.T) {
		t.Parallel()
		url := emptyDatabase(t)
		current, latest, err := postgres.MigrationStatus(t.Context(), url)
		if err != nil || current != 0 || latest < 1 {
			t.Fatalf("before: %d of %d, %v", current, latest, err)
		}
		applied := make([][]int64, 4)
		errs := make([]error, len(applied))
		together(len(applied), func(i int) { applied[i], errs[i] = postgres.Migrate(t.Context(), url) })
		var all []int64
		for i := range applied {
			if errs[i] != nil {
				t.Error(errs[i])
			}
			all = append(all, applied[i]...)
		}
		slices.Sort(all)
		if len(all) != len(slices.Compact(slices.Clone(all))) || len(all) == 0 || all[len(all)-1] != latest {
			t.Fatalf("applied %v, latest %d", all, latest)
		}
		if current, _, err = postgres.MigrationStatus(t.Context(), url); err != nil || current != latest {
			t.Fatalf("after: %d of %d, %v", current, latest, err)
		}
	})
	t.Run("AMigratedDatabaseStaysAsItIs", func(t *testing.T) {
		t.Parallel()
		if applied, err := postgres.Migrate(t.Context(), testkit.Direct(testkit.NewDatabase(t))); err != nil || len(applied) != 0 {
			t.Fatalf("%v, %v", applied, err)
		}
	})
	t.Run("AFailureNamesItsVersionAndQuotesNoRow", func(t *testing.T) {
		t.Parallel()
		url := emptyDatabase(t)
		if _, err := testkit.Pool(t, url).Exec(t.Context(), `CREATE TABLE workspaces (secret text)`); err != nil {
			t.Fatal(err)
		}
		applied, err := postgres.Migrate(t.Context(), url)
		if err == nil || len(applied) != 0 || !strings.Contains(err.Error(), "version 1") || !strings.Contains(err.Error(), "42P07") {
			t.Fatalf("%v, %v", applied, err)
		}
		if current, _, err := postgres.MigrationStatus(t.Context(), url); err != nil || current != 0 {
			t.Fatalf("%d, %v", current, err)
		}
	})
	t.Run("AnOwnerWhoMayMakeNoRolesIsToldWhatTo", func(t *testing.T) {
		t.Parallel()
		pg := testkit.PrivatePostgres(t, false)
		pool := testkit.Pool(t, pg.URL())
		for _, sql := range []string{
			`DROP OWNED BY holdfast_api, holdfast_worker`,
			`DROP ROLE holdfast_api_login, holdfast_worker_login, holdfast_api, holdfast_worker`,
			`CREATE ROLE plain LOGIN PASSWORD 'plain'`,
			`CREATE DATABASE plain OWNER plain`,
		} {
			if _, err := pool.Exec(t.Context(), sql); err != nil {
				t.Fatal(sql, err)
			}
		}
		url := fmt.Sprintf("postgres://plain:plain@127.0.0.1:%d/plain?sslmode=disable", pg.Port())
		applied, err := postgres.Migrate(t.Context(), url)
		if err == nil || len(applied) != 0 || !strings.Contains(err.Error(), "deploy/postgres/roles.sql") {
			t.Fatalf("%v, %v", applied, err)
		}
		if _, err := pool.Exec(t.Context(), `CREATE ROLE holdfast_api; CREATE ROLE holdfast_worker`); err != nil {
			t.Fatal(err)
		}
		if _, err := postgres.Migrate(t.Context(), url); err != nil {
			t.Fatalf("with the roles: %v", err)
		}
	})
	t.Run("ADatabaseThatIsNotThereIsUnavailable", func(t *testing.T) {
		t.Parallel()
		url := "postgres://someone:hunter2@127.0.0.1:1/nothing"
		_, err := postgres.Migrate(t.Context(), url)
		if !fault.Is(err, fault.UnavailableNow) || strings.Contains(err.Error(), "hunter2") {
			t.Fatal(err)
		}
		if _, _, err := postgres.MigrationStatus(t.Context(), "postgres://x:hunter2@[broken"); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Fatal(err)
		}
	})
}
