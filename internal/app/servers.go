package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-memory/holdfast/internal/localdev"
	"github.com/holdfast-memory/holdfast/internal/model"
)

const (
	// serverStart bounds the start of both servers; a database that recovers from a crash takes longest.
	serverStart = 6 * time.Minute
	// databaseStop is longer than the checkpoint of a server that is stopped in the middle of heavy writing takes.
	databaseStop = 40 * time.Second
)

// servers are the two that `holdfast up` runs itself, unless the settings name others.
type servers struct {
	dir      string
	postgres *localdev.Postgres
	nats     *localdev.NATS
}

// ports are kept over restarts, so that workers that run as processes of their own find the servers again.
type ports struct {
	Postgres int `json:"postgres"`
	NATS     int `json:"nats"`
}

// start starts what s doesn't name and writes the addresses into it. What is up after an error is the caller's to stop.
func (r *servers) start(ctx context.Context, s *Settings) (err error) {
	ctx, cancel := context.WithTimeout(ctx, serverStart)
	defer cancel()
	before := r.keptPorts()
	if s.DatabaseURL == "" {
		if r.postgres, err = startPostgres(ctx, r.dir, before.Postgres); err != nil {
			return err
		}
		s.DatabaseURL, s.DatabaseDirectURL = model.Secret(r.postgres.URL()), ""
		s.DatabasePooler = "none"
	}
	if s.NATSURL == "" {
		if r.nats, err = startNATS(ctx, r.dir, before.NATS); err != nil {
			return err
		}
		s.NATSURL = model.Secret(r.nats.URL())
	}
	return r.keepPorts(before)
}

// startPostgres tries the port of the last start first, and any free one when that is taken.
func startPostgres(ctx context.Context, dir string, port int) (*localdev.Postgres, error) {
	cfg := localdev.PostgresConfig{DataDir: filepath.Join(dir, "postgres"), Fsync: true, Port: port}
	server, err := localdev.StartPostgres(ctx, cfg)
	if errors.Is(err, localdev.ErrPortTaken) {
		cfg.Port = 0
		server, err = localdev.StartPostgres(ctx, cfg)
	}
	return server, err
}

func startNATS(ctx context.Context, dir string, port int) (*localdev.NATS, error) {
	cfg := localdev.NATSConfig{StoreDir: filepath.Join(dir, "nats"), Port: port}
	server, err := localdev.StartNATS(ctx, cfg)
	if errors.Is(err, localdev.ErrPortTaken) {
		cfg.Port = 0
		server, err = localdev.StartNATS(ctx, cfg)
	}
	return server, err
}

// keptPorts reads the ports of the last start. They are a convenience: without them free ones are taken.
func (r *servers) keptPorts() (p ports) {
	text, err := os.ReadFile(filepath.Join(r.dir, portsFile))
	if err != nil || json.Unmarshal(text, &p) != nil {
		return ports{}
	}
	return p
}

func (r *servers) keepPorts(p ports) error {
	before := p
	if r.postgres != nil {
		p.Postgres = r.postgres.Port()
	}
	if r.nats != nil {
		p.NATS = r.nats.Port()
	}
	if p == before {
		return nil
	}
	return writeJSON(r.dir, portsFile, p)
}

// databasePID is the private server's process, 0 without one.
func (r *servers) databasePID() int {
	if r.postgres == nil {
		return 0
	}
	return r.postgres.PID()
}

// watch tells fail when the private database ends by itself.
func (r *servers) watch(ctx context.Context, fail func(error)) {
	if r.postgres == nil {
		<-ctx.Done()
		return
	}
	select {
	case <-r.postgres.Done():
		fail(fmt.Errorf("the private PostgreSQL has ended; its log is %s", r.postgres.LogPath()))
	case <-ctx.Done():
	}
}

const (
	// serverLogBytes bounds the private database's log, of which as much again is kept; it says little but of start and stop.
	serverLogBytes = 10 << 20
	logLook        = time.Minute
)

// shortenLog keeps the private database's log within its bound until ctx ends. A log that can't be shortened is looked at
// again: it is no reason to stop.
func (r *servers) shortenLog(ctx context.Context) {
	if r.postgres == nil {
		<-ctx.Done()
		return
	}
	look := time.NewTicker(logLook)
	defer look.Stop()
	for {
		_ = localdev.ShortenLog(r.postgres.LogPath(), serverLogBytes)
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// stop ends NATS and then the database. It may be called twice.
func (r *servers) stop(ctx context.Context) error {
	var errs []error
	if r.nats != nil {
		errs = append(errs, within(ctx, natsStop, r.nats.Stop))
	}
	if r.postgres != nil {
		errs = append(errs, within(ctx, databaseStop, r.postgres.Stop))
	}
	return errors.Join(errs...)
}
