package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-memory/holdfast/internal/repair"
)

// Config says how to reach the database. URL is required.
type Config struct {
	URL string
	// MaxConns is the size of the pool; more than 16 buy nothing on one machine (PERFORMANCE.md).
	MaxConns int32
	// LockTimeout bounds every wait for a row or a key inside a transaction.
	LockTimeout time.Duration
	// StatementTimeout bounds every statement.
	StatementTimeout time.Duration
	// TransactionPooler is set behind PgBouncer in transaction mode: no prepared statements.
	TransactionPooler bool
	// MaxPending is how many tasks a workspace without a limit of its own may have waiting; 0 is no limit.
	MaxPending int
	// GroupCommit lets acceptances, and steps of a worker, that come at the same time share a commit.
	GroupCommit bool
	// Grouped, if set, is told of each group when it begins: of what (accept, commit, settle or claim), how many items it has,
	// and how long the first of them waited.
	Grouped func(what string, items int, waited time.Duration)
	// Sealing says how payloads are encrypted; its zero value seals nothing.
	Sealing Sealing
	// Now replaces the database's clock in tests; nil leaves it alone.
	Now func() *time.Time
}

// DB is the store. It is safe for concurrent use.
type DB struct {
	pool          *pgxpool.Pool
	lockTimeout   string
	stmtTimeout   string
	aloneBound    time.Duration
	now           func() *time.Time
	backlog       *backlog
	accepts       *accepts                                           // gathers acceptances into groups; nil commits each by itself
	steps         *steps                                             // gathers commits and settlements into groups; nil commits each by itself
	claims        *claims                                            // gathers claims into groups; nil claims each by itself
	seen          func(what string, items int, waited time.Duration) // is told of each group; nil is not
	sealer        *sealer
	queue         *queue                        // bounds who waits for a connection; nil leaves it to their contexts
	rescued       atomic.Pointer[repair.Cursor] // where Rescue goes on; nil is at the beginning
	served        atomic.Pointer[uuid.UUID]     // the workspace behind which Due goes on; nil is at the beginning
	servedCrashed atomic.Pointer[uuid.UUID]     // the same of those that crashed before
	dispatched    atomic.Pointer[uuid.UUID]     // the webhook behind which Dispatch goes on; nil is at the beginning
}

// Open connects a pool and checks that the database answers.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if cfg.URL == "" {
		return nil, errors.New("postgres: a database URL is required")
	}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 16
	}
	if cfg.LockTimeout == 0 {
		cfg.LockTimeout = 3 * time.Second
	}
	if cfg.StatementTimeout == 0 {
		cfg.StatementTimeout = 10 * time.Second
	}
	if cfg.LockTimeout < time.Millisecond || cfg.StatementTimeout < cfg.LockTimeout {
		return nil, errors.New("postgres: the statement timeout must not be below the lock timeout")
	}
	if cfg.MaxPending < 0 {
		return nil, errors.New("postgres: MaxPending must not be negative")
	}
	pc, err := poolConfig(cfg)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", errUnparsed(err))
	}
	db := &DB{
		pool: pool, now: cfg.Now, aloneBound: cfg.StatementTimeout, backlog: newBacklog(cfg.MaxPending), sealer: newSealer(cfg.Sealing),
		lockTimeout: fmt.Sprintf("%dms", cfg.LockTimeout.Milliseconds()),
		stmtTimeout: fmt.Sprintf("%dms", cfg.StatementTimeout.Milliseconds()),
	}
	if db.now == nil {
		db.now = func() *time.Time { return nil }
	}
	if cfg.GroupCommit {
		db.accepts = newAccepts(db)
		db.steps = newSteps(db)
		db.claims = newClaims(db)
		db.watchGroups(cfg.Grouped)
	}
	if err := db.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return db, nil
}

func poolConfig(cfg Config) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", errUnparsed(err))
	}
	pc.MaxConns = cfg.MaxConns
	pc.MaxConnIdleTime = 5 * time.Minute
	pc.HealthCheckPeriod = 15 * time.Second
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	if cfg.TransactionPooler {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // unnamed statements, typed arguments (ADR 0007)
	}
	// A cancelled request cancels its statement at the server and keeps the connection; if the server doesn't
	// answer within the second the connection is given up.
	pc.ConnConfig.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		if cfg.TransactionPooler {
			return &pooledCancel{conn: c}
		}
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, CancelRequestDelay: 0, DeadlineDelay: cancelAnswer}
	}
	return pc, nil
}

// errUnparsed drops the text of a connection error: it can quote the URL with its password.
func errUnparsed(err error) error {
	if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
		return errors.New("the database URL cannot be read")
	}
	return err
}

// Ping checks that the database answers.
func (db *DB) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // as long as a connection may take
	defer cancel()
	if err := db.pool.Ping(ctx); err != nil {
		return fmt.Errorf("ping database: %w", classify(err))
	}
	return nil
}

// Close waits for borrowed connections and closes the pool.
func (db *DB) Close() { db.pool.Close() }

// Address is host and port of a database URL, of each host if it names several, and nothing else of it.
func Address(url string) string {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return "an address that cannot be read"
	}
	all := []string{net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))}
	for _, next := range cfg.Fallbacks {
		all = append(all, net.JoinHostPort(next.Host, strconv.Itoa(int(next.Port))))
	}
	return strings.Join(slices.Compact(all), ", ")
}
