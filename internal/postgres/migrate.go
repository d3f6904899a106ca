package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/holdfast-memory/holdfast/migrations"
)

const (
	// migrationLockID is Holdfast's own, so that another program's goose in the same database doesn't wait for us.
	migrationLockID = 7_235_417_804
	// migrationWaits is how many seconds a process waits for another one that migrates: building an index over a
	// large table takes minutes.
	migrationWaits = 600
	// migrationConnect bounds the making of the one connection.
	migrationConnect = 5 * time.Second
)

// Migrate brings the database at url to the newest schema and returns the versions that this call applied, none
// if it was there already. Processes that call it at once take turns. The url must reach the server itself: the
// lock belongs to a session, which a pooler in transaction mode doesn't keep. One that is recognised is refused.
func Migrate(ctx context.Context, url string) (applied []int64, err error) {
	if pooling, err := ReadPooling(ctx, url); err == nil && pooling.Shared {
		return nil, fmt.Errorf("migrate: %w", errPooled)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLockID), lock.WithLockTimeout(1, migrationWaits))
	if err != nil {
		return nil, fmt.Errorf("migrate: make lock: %w", err)
	}
	provider, err := openMigrations(url, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	results, err := provider.Up(ctx)
	if partial, ok := errors.AsType[*goose.PartialError](err); ok {
		results = partial.Applied
		err = fmt.Errorf("version %d: %w", partial.Failed.Source.Version, migrationError(partial.Err))
	}
	for _, r := range results {
		applied = append(applied, r.Source.Version)
	}
	if err != nil {
		return applied, fmt.Errorf("migrate: %w", migrationError(err))
	}
	return applied, nil
}

// MigrationStatus returns the schema version of the database at url, 0 for an empty one, and the newest one that
// this build knows. It changes nothing and waits for nobody.
func MigrationStatus(ctx context.Context, url string) (current, latest int64, err error) {
	provider, err := openMigrations(url)
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", err)
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	current, latest, err = provider.GetVersions(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("read schema version: %w", migrationError(err))
	}
	return current, latest, nil
}

// openMigrations makes a provider over its own connection, which is opened when it is used.
func openMigrations(url string, options ...goose.ProviderOption) (*goose.Provider, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", errUnparsed(err))
	}
	cfg.ConnectTimeout = migrationConnect
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // a version may be read through a pooler (ADR 0007)
	db := stdlib.OpenDB(*cfg)
	db.SetMaxIdleConns(1)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, options...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read migrations: %w", err), db.Close())
	}
	return provider, nil
}

// errNoRoles is for an owner of the database who may not make roles.
var errNoRoles = errors.New("the roles holdfast_api and holdfast_worker are missing and the role of this URL may not make them: " +
	"run deploy/postgres/roles.sql as a superuser first")

// migrationError strips what the driver says and keeps what goose says, which quotes file names only.
func migrationError(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if e.Code == stateNoRoles {
			return errNoRoles
		}
		return classify(err)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return classify(err)
	}
	return err
}
