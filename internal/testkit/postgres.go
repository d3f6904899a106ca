package testkit

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // goose wants a database/sql driver
	"github.com/pressly/goose/v3"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/migrations"
)

const (
	startTimeout = 2 * time.Minute  // a server starts in a second; two cores may run ten test binaries
	databaseTime = 60 * time.Second // a database is copied in 50 ms; every parallel test makes one at the start
	poolSize     = 10               // 300 connections are for some 20 parallel tests
)

// sharedPostgres is the test binary's server. Its database "holdfast" is migrated and is the template of all others.
type sharedPostgres struct {
	server *localdev.Postgres
	admin  *pgxpool.Pool // on the database "postgres"
}

// NewDatabase makes a migrated database for one test, drops it at the test's end, and returns its URL. With
// TESTKIT_POOLER=transaction in the environment the URL leads through a PgBouncer; Direct is the way past it.
func NewDatabase(t testing.TB) string {
	t.Helper()
	shared := sharedServer(t)
	suffix := make([]byte, 8)
	_, _ = rand.Read(suffix) // never fails
	name := "test_" + hex.EncodeToString(suffix)
	ctx, cancel := context.WithTimeout(t.Context(), databaseTime)
	defer cancel()
	if _, err := shared.admin.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE holdfast"); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), databaseTime)
		defer cancel()
		if _, err := shared.admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	databaseURL, err := throughPooler(withDatabase(t, shared.server.URL(), name))
	if err != nil {
		t.Fatal(err)
	}
	return databaseURL
}

// Postgres is a pool on a database of its own, as NewDatabase makes it, closed at the test's end.
func Postgres(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, NewDatabase(t))
}

// Pool opens a pool of ten connections on a URL of this package and closes it at the test's end.
func Pool(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatalf("parse database url: %v", err)
	}
	cfg.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// PostgresLog is everything that the test binary's server has logged so far, for all tests together.
func PostgresLog(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(sharedServer(t).server.LogPath())
	if err != nil {
		t.Fatalf("read server log: %v", err)
	}
	return string(b)
}

// PrivatePostgres is a server for one test alone, with its database "holdfast" migrated. The test may restart and kill
// it; it ends with the test. With fsync it is set as in production.
func PrivatePostgres(t testing.TB, fsync bool) *localdev.Postgres {
	t.Helper()
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		t.Fatalf("make server directory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// PostgreSQL runs as another user when we are root.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("open server directory: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	pg, err := localdev.StartPostgres(ctx, localdev.PostgresConfig{
		DataDir: filepath.Join(dir, "postgres"), Fsync: fsync, Settings: serverSettings(fsync),
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
	if err := prepareDatabase(ctx, pg.URL()); err != nil {
		t.Fatal(err)
	}
	return pg
}

// RestartPostgres restarts a server of PrivatePostgres, with a checkpoint or (immediate) as in a crash, and returns when
// it takes connections again.
func RestartPostgres(t testing.TB, pg *localdev.Postgres, immediate bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := pg.Restart(ctx, immediate); err != nil {
		t.Fatal(err)
	}
}

// Migrate brings a database to the newest schema.
func Migrate(ctx context.Context, databaseURL string) error {
	db, err := sql.Open("pgx", databaseURL)
	if err != nil {
		return fmt.Errorf("migrate: open: %w", err)
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// prepareDatabase migrates the database and makes the logins of its server.
func prepareDatabase(ctx context.Context, ownerURL string) error {
	if err := Migrate(ctx, ownerURL); err != nil {
		return err
	}
	return localdev.MakeLogins(ctx, ownerURL)
}

// As is the way of a login to the database of a URL of this package, which is its owner's.
func As(t testing.TB, login localdev.Login, databaseURL string) string {
	t.Helper()
	own, err := localdev.LoginURL(databaseURL, login)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// sharedServer starts the server at its first use.
func sharedServer(t testing.TB) *sharedPostgres {
	t.Helper()
	current.mu.Lock()
	defer current.mu.Unlock()
	if current.database == nil && current.dbErr == nil {
		current.database, current.dbErr = startShared(t.Context(), current)
	}
	if current.dbErr != nil {
		t.Fatalf("testkit: %v", current.dbErr)
	}
	return current.database
}

func startShared(ctx context.Context, s *suite) (*sharedPostgres, error) {
	dir, err := s.directory()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	server, err := localdev.StartPostgres(ctx, localdev.PostgresConfig{
		DataDir: filepath.Join(dir, "postgres"), Settings: serverSettings(false),
	})
	if err != nil {
		return nil, err
	}
	admin, err := prepareShared(ctx, server)
	if err != nil {
		_ = server.Stop(ctx)
		return nil, err
	}
	return &sharedPostgres{server: server, admin: admin}, nil
}

func prepareShared(ctx context.Context, server *localdev.Postgres) (*pgxpool.Pool, error) {
	if err := prepareDatabase(ctx, server.URL()); err != nil {
		return nil, err
	}
	u, err := url.Parse(server.URL())
	if err != nil {
		return nil, err
	}
	u.Path = "/postgres"
	admin, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return nil, err
	}
	// A database can only be copied while nobody is connected to it.
	if _, err := admin.Exec(ctx, "ALTER DATABASE holdfast ALLOW_CONNECTIONS false"); err != nil {
		admin.Close()
		return nil, err
	}
	return admin, nil
}

// serverSettings are for speed and calm where data needn't survive, and nothing beyond that.
func serverSettings(fsync bool) map[string]string {
	s := map[string]string{"max_connections": "300"}
	if !fsync {
		maps.Copy(s, map[string]string{
			"autovacuum":         "off", // plans and counts stay the same from run to run
			"wal_level":          "minimal",
			"max_wal_senders":    "0",
			"checkpoint_timeout": "1h",
			"max_wal_size":       "4GB",
		})
	}
	return s
}

func withDatabase(t testing.TB, databaseURL, name string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatalf("parse database url: %v", err)
	}
	u.Path = "/" + name
	return u.String()
}
