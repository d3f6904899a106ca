package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/obs/tracing"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/repair"
	"github.com/holdfast-memory/holdfast/internal/wakeup"
)

const (
	// beatConns are connections of their own for heartbeats, so that work which uses up the pool costs no lease. Two
	// are enough: a heartbeat is one short statement.
	beatConns = 2
	// watchConns are connections of their own for readiness, health and the gauges of the queue, so that what tells of
	// an overload isn't its first victim.
	watchConns = 2
	// ackMargin is how much longer than a lease a hint stays out before NATS delivers it again.
	ackMargin = 15 * time.Second
	// watchEvery is how often stream and consumers are looked at; a reconnect looks at once.
	watchEvery = 15 * time.Second
	// topologyBound is how long a start waits for NATS: it can do without.
	topologyBound = 5 * time.Second
	// natsStop and poolStop bound the last two steps of a stop.
	natsStop = 3 * time.Second
	poolStop = 5 * time.Second
)

// core is what the parts of one process share.
type core struct {
	settings Settings
	log      zerolog.Logger
	metrics  *obs.Metrics
	minutes  *obs.Minutes
	// repairTotals is set before the process starts, where repair runs in it.
	repairTotals func() map[string]repair.Result
	db           *postgres.DB
	api          *postgres.DB // the API's way to the database: db itself, unless it has a login of its own
	sealing      postgres.Sealing
	watched      *postgres.DB // the same database over connections that no work uses
	wakeups      wakeups
	extractor    model.Extractor
	embedder     model.Embedder
	tracer       *tracing.Tracer // nil without
}

// openCore opens database and NATS. The database must be reachable and migrated; NATS need not be there.
func openCore(ctx context.Context, s Settings, log zerolog.Logger, process string) (_ *core, err error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	collectSeldom()
	c := &core{settings: s, log: log, metrics: obs.NewMetrics(Version())}
	c.minutes = c.newMinutes()
	if c.extractor, err = s.NewExtractor(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if c.embedder, err = s.embedder(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if err := requireMigrated(ctx, s.Database); err != nil {
		return nil, err
	}
	if err := c.openTracing(ctx, process, os.Getenv); err != nil {
		return nil, err
	}
	if c.sealing, err = s.sealing(); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if c.db, err = openStore(ctx, s.Database, c.store()); err != nil {
		return nil, err
	}
	if err := c.examineStore(ctx, process); err != nil {
		c.db.Close()
		return nil, err
	}
	c.api = c.db
	if c.watched, err = openPool(ctx, s.Database, watchConns); err != nil {
		c.db.Close()
		return nil, err
	}
	c.watchPool("main", c.db)
	warnOfPlainText(s, log)
	if s.NATSURL == "" {
		log.Warn().Msg("no NATS URL is set: tasks are found by polling only")
		return c, nil
	}
	client, err := wakeup.Connect(ctx, wakeup.Config{
		URL: s.NATSURL.Reveal(), Name: "holdfast-" + process, AckWait: s.LeaseTTL + ackMargin, Replicas: s.NATSReplicas,
		Log: log, Link: s.link(process),
	})
	if err != nil {
		c.db.Close()
		c.watched.Close()
		return nil, err
	}
	c.wakeups = wakeups{client}
	c.metrics.WatchHints(c.wakeups.counts)
	return c, nil
}

// examineStore refuses a database in which the process of that name would go on in silence and do wrong.
func (c *core) examineStore(ctx context.Context, process string) error {
	if process != "api" { // all others do the work of all workspaces
		if err := requireSight(ctx, c.db); err != nil {
			return err
		}
	}
	return checkKeys(ctx, c.db, c.sealing, process, c.log)
}

// OpenDB opens a pool with what the settings say.
func OpenDB(ctx context.Context, d Database) (*postgres.DB, error) {
	return openPool(ctx, d, 0)
}

func openPool(ctx context.Context, d Database, conns int32) (*postgres.DB, error) {
	return openStore(ctx, d, postgres.Config{MaxConns: conns})
}

// store is how this process's stores behave, whoever they log in as.
func (c *core) store() postgres.Config {
	return postgres.Config{MaxPending: c.settings.MaxPending, Sealing: c.sealing, GroupCommit: c.settings.GroupCommit, Grouped: c.metrics.Group}
}

// openStore opens a pool with what the settings say of the database and cfg of the rest.
func openStore(ctx context.Context, d Database, cfg postgres.Config) (*postgres.DB, error) {
	if d.DatabaseURL == "" {
		return nil, errNoDatabase
	}
	cfg.URL, cfg.TransactionPooler = d.DatabaseURL.Reveal(), d.DatabasePooler == "transaction"
	db, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, reached(d.DatabaseURL, fmt.Errorf("open: %w", err))
	}
	return db, nil
}

var errNoDatabase = errors.New("no database: set HOLDFAST_DATABASE_URL, or start one with `holdfast up`")

// requireMigrated refuses a database whose schema is older than this build. A newer one is taken: binaries of the
// previous version go on working during a rollout.
func requireMigrated(ctx context.Context, d Database) error {
	if d.DatabaseURL == "" {
		return errNoDatabase
	}
	current, latest, err := postgres.MigrationStatus(ctx, d.Direct().Reveal())
	if err != nil {
		return reached(d.Direct(), err)
	}
	if current < latest {
		return fmt.Errorf("the database has schema version %d and this build needs %d: run `holdfast migrate` first", current, latest)
	}
	return nil
}

// ready tells whether the process can do its work. What the driver says is kept out of the answer.
func (c *core) ready(ctx context.Context) error {
	if c.watched.Ping(ctx) != nil {
		return errors.New("the database does not answer")
	}
	return nil
}

// topology makes stream and consumers before the first hint, if NATS is there; otherwise watch makes them later.
func (c *core) topology(ctx context.Context) {
	if c.wakeups.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, topologyBound)
	defer cancel()
	if _, err := c.wakeups.client.EnsureTopology(ctx); err != nil {
		c.log.Warn().Err(err).Msg("hints wait for NATS; tasks are found by polling meanwhile")
	}
}

// watch keeps stream and consumers there until ctx ends; onMissing is called after they were made anew.
func (c *core) watch(ctx context.Context, onMissing func(context.Context)) {
	if c.wakeups.client != nil {
		c.wakeups.client.Watch(ctx, watchEvery, onMissing)
	}
}

// close ends NATS and then the pool, both bounded.
func (c *core) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	limited, cancel := context.WithTimeout(ctx, natsStop)
	defer cancel()
	err := c.wakeups.stop(limited)
	if c.api != c.db {
		err = errors.Join(err, closePool(c.api))
	}
	err = errors.Join(err, closePool(c.db), closePool(c.watched))
	c.closeTracing(ctx)
	return err
}

// closePool waits for borrowed connections, but not for ever: they end with the process anyway.
func closePool(db *postgres.DB) error {
	closed := make(chan struct{})
	go func() {
		db.Close()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(poolStop):
		return fmt.Errorf("close pool: connections are still in use after %s", poolStop)
	}
}

// Logger returns the logger of a process, on standard error: JSON lines, or words when a person watches.
func Logger(s Settings, process string) (zerolog.Logger, error) {
	var to io.Writer = os.Stderr
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		to = zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly, FieldsExclude: []string{"process"}}
	}
	return obs.NewLogger(to, s.LogLevel, process)
}
