package rig

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

const (
	stopBound = time.Minute // a fast shutdown writes a checkpoint after heavy writing
	tmpfs     = 0x01021994  // the magic number of a file system in memory
)

// Rig is what everything runs on.
type Rig struct {
	dir   string
	pg    *localdev.Postgres
	nats  []*localdev.NATS
	admin *pgxpool.Pool // on the database "holdfast", which only holds the counters
}

// settings are those of a small server of today. Counters of statements are for the summary per task; everything
// measured pays for them alike.
func settings() map[string]string {
	return map[string]string{
		"max_connections": "400", "shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "15min",
		"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all",
		"pg_stat_statements.max": "5000",
	}
}

// Start makes a PostgreSQL in a new directory below parent and returns when it takes connections. It refuses a parent
// that is no disk: in memory every flush is free.
func Start(ctx context.Context, parent string) (*Rig, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(parent, &fs); err != nil {
		return nil, fmt.Errorf("look at %s: %w", parent, err)
	}
	if fs.Type == tmpfs {
		return nil, fmt.Errorf("%s is in memory, where a flush costs nothing: set BENCH_DIR to a directory on a disk", parent)
	}
	dir, err := os.MkdirTemp(parent, "holdfast-bench-")
	if err != nil {
		return nil, fmt.Errorf("make the bench's directory: %w", err)
	}
	r := &Rig{dir: dir}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.Stop(ctx))
	}
	return r, nil
}

func (r *Rig) start(ctx context.Context) error {
	if err := os.Chmod(r.dir, 0o711); err != nil { // PostgreSQL runs as another user when this is root
		return fmt.Errorf("open the bench's directory: %w", err)
	}
	var err error
	r.pg, err = localdev.StartPostgres(ctx, localdev.PostgresConfig{
		DataDir: filepath.Join(r.dir, "postgres"), Fsync: true, Settings: settings(),
	})
	if err != nil {
		return err
	}
	if r.admin, err = pgxpool.New(ctx, r.pg.URL()); err != nil {
		return fmt.Errorf("connect to the bench's database: %w", err)
	}
	if _, err := r.admin.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		return fmt.Errorf("count statements: %w", err)
	}
	return nil
}

// Dir is a directory that is removed at the end.
func (r *Rig) Dir() string { return r.dir }

// NATS starts one more NATS server, with an empty store, and returns its address. Sites share none, so that the workers
// of one never hear of tasks of another.
func (r *Rig) NATS(ctx context.Context) (string, error) {
	store := filepath.Join(r.dir, fmt.Sprintf("nats-%d", len(r.nats)))
	server, err := localdev.StartNATS(ctx, localdev.NATSConfig{StoreDir: store})
	if err != nil {
		return "", err
	}
	r.nats = append(r.nats, server)
	return server.URL(), nil
}

// Database makes an empty database and returns its URL.
func (r *Rig) Database(ctx context.Context, name string) (string, error) {
	if _, err := r.admin.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	u, err := url.Parse(r.pg.URL())
	if err != nil {
		return "", fmt.Errorf("read database URL: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Migrated is Database with Holdfast's schema.
func (r *Rig) Migrated(ctx context.Context, name string) (string, error) {
	u, err := r.Database(ctx, name)
	if err != nil {
		return "", err
	}
	if _, err := postgres.Migrate(ctx, u); err != nil {
		return "", err
	}
	return u, nil
}

// Drop removes a database, whoever is connected.
func (r *Rig) Drop(ctx context.Context, name string) error {
	if _, err := r.admin.Exec(ctx, "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// Settle writes a checkpoint, so that no measurement pays for what an earlier one left behind.
func (r *Rig) Settle(ctx context.Context) error {
	if _, err := r.admin.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Stop ends all servers and removes everything. It may be called twice.
func (r *Rig) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	var errs []error
	if r.admin != nil {
		r.admin.Close()
	}
	for _, server := range r.nats {
		errs = append(errs, server.Stop(ctx))
	}
	if r.pg != nil {
		errs = append(errs, r.pg.Stop(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}
