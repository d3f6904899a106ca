package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/obs"
	"github.com/holdfast-memory/holdfast/internal/postgres"
)

// Up says how `holdfast up` runs. Workers is how many run in the process; 0 leaves them to processes of their own.
// Started is called once when everything is ready; its error ends the program. Log is where its log goes, standard error
// without one.
type Up struct {
	Workers  int
	Started  func(Running) error
	Log      io.Writer
	Detached bool
}

// maxWorkers bounds the workers of one process: each has slots of its own, and more processes do better.
const maxWorkers = 16

// RunUp runs everything in this process until ctx ends: a private PostgreSQL and an embedded NATS unless the
// settings name others, the API, repair and the workers.
func RunUp(ctx context.Context, s Settings, up Up) (err error) {
	if up.Workers < 0 || up.Workers > maxWorkers {
		return fmt.Errorf("workers must be 0 to %d, not %d", maxWorkers, up.Workers)
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	log, err := upLogger(s, up.Log)
	if err != nil {
		return err
	}
	dir, err := StateDir(s.StateDir)
	if err != nil {
		return err
	}
	if err := makeStateDir(dir); err != nil {
		return err
	}
	unlock, err := localdev.LockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	log.Info().Msg("starting")
	run := &servers{dir: dir}
	defer func() { err = errors.Join(err, run.stop(context.WithoutCancel(ctx))) }()
	if err := run.start(ctx, &s); err != nil {
		return unlessStopped(ctx, err)
	}
	if err := migrateFor(ctx, s.Database, log); err != nil {
		return unlessStopped(ctx, err)
	}
	owner := s.DatabaseURL
	workers, api, err := run.logins(ctx, s.Database)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	s.Database = workers
	c, err := openCore(ctx, s, log, "up")
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if api != workers {
		if err := c.openAPI(ctx, api); err != nil {
			return errors.Join(unlessStopped(ctx, err), c.close(ctx))
		}
	}
	return upProcess(ctx, c, run, up, owner)
}

func upLogger(s Settings, to io.Writer) (zerolog.Logger, error) {
	if to == nil {
		return Logger(s, "up")
	}
	return obs.NewLogger(to, s.LogLevel, "up")
}

// unlessStopped is the error of a step of the start, nil when the program was told to stop meanwhile: a start that is
// broken off is a stop, and what it says of itself then is no finding.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// upProcess runs the parts over servers that are there. What it says of itself names the database by its owner, whom
// operators' commands need.
func upProcess(ctx context.Context, c *core, run *servers, up Up, owner model.Secret) error {
	p := newProcess(c)
	key, listener, err := p.assemble(ctx, run, up.Workers)
	if err != nil {
		return errors.Join(unlessStopped(ctx, err), p.stop(ctx))
	}
	running := Running{
		API: "http://" + listener.Addr().String(), Key: key.Reveal(),
		DatabaseURL: owner.Reveal(), NATSURL: c.settings.NATSURL.Reveal(),
		PIDs:    PIDs{Holdfast: os.Getpid(), Postgres: run.databasePID()},
		Version: Version(), StartedAt: time.Now().UTC().Truncate(time.Second), Detached: up.Detached,
	}
	if p.admin != nil {
		running.Admin = "http://" + p.admin.Addr()
	}
	defer func() { _ = os.Remove(filepath.Join(run.dir, runFile)) }() // a leftover is refused by whoever reads it
	return p.run(ctx, func() error {
		if err := writeJSON(run.dir, runFile, running); err != nil {
			return err
		}
		if up.Started == nil {
			return nil
		}
		return up.Started(running)
	})
}

// assemble adds the parts in the order in which they stop.
func (p *process) assemble(ctx context.Context, run *servers, workers int) (access.Key, net.Listener, error) {
	if err := p.core.warnOfSlack(ctx); err != nil {
		return access.Key{}, nil, err
	}
	key, err := firstStart(ctx, p.core.api, run.dir)
	if err != nil {
		return key, nil, err
	}
	if err := p.openAdmin(ctx, apiAdminPort); err != nil {
		return key, nil, err
	}
	var listener net.Listener
	if p.core.settings.Listen == "" {
		listener, err = listenFrom(ctx, apiPort)
	} else {
		listener, err = listenOn(ctx, p.core.settings.Listen)
	}
	if err != nil {
		return key, nil, err
	}
	if err := p.addAPI(listener); err != nil {
		return key, nil, err
	}
	if err := p.addWorkers(ctx, workers); err != nil {
		return key, nil, err
	}
	if err := p.addRepair(); err != nil {
		return key, nil, err
	}
	p.addMinutes("up")
	p.add("database log", &loop{run: run.shortenLog}, natsStop)
	p.add("database watch", &loop{run: func(ctx context.Context) { run.watch(ctx, p.fail) }}, natsStop)
	return key, listener, nil
}

// migrateFor brings the database to the newest schema.
func migrateFor(ctx context.Context, d Database, log zerolog.Logger) error {
	applied, err := postgres.Migrate(ctx, d.Direct().Reveal())
	if err != nil {
		return reached(d.Direct(), err)
	}
	if len(applied) > 0 {
		log.Info().Ints64("versions", applied).Msg("database migrated")
	}
	return nil
}

// Migrate brings the database that the settings name to the newest schema and returns the versions that it applied.
func Migrate(ctx context.Context, d Database) ([]int64, error) {
	located, err := d.Located()
	if err != nil {
		return nil, err
	}
	applied, err := postgres.Migrate(ctx, located.Direct().Reveal())
	return applied, reached(located.Direct(), err)
}
