package localdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ErrPortTaken says that a server could not start because something else listens on its port.
var ErrPortTaken = errors.New("it is taken")

const (
	natsMaxStore  = 1 << 30          // four times the WAKE stream's limit
	natsMaxMemory = 64 << 20         // nothing of ours uses memory storage
	natsReady     = 10 * time.Second // recovering a full store of hints takes under a second
)

// NATSConfig says where the embedded NATS server keeps its store and listens.
type NATSConfig struct {
	StoreDir string // made if missing; only hints are in it, so it may be deleted while the server is down
	Port     int    // 0 takes a free one
	LogFile  string // empty: no log
	// ConfigFile is a configuration of nats-server for what isn't said here: TLS and users. Empty: everybody may do
	// everything, from this machine.
	ConfigFile string
}

// NATS is a NATS server with JetStream inside this process, on 127.0.0.1 only.
type NATS struct {
	srv    *server.Server
	dir    string
	port   int
	config string
}

// StartNATS starts a server and returns when it takes connections. It installs no signal handlers and writes nothing to
// standard output. The error names the step; the caller need not clean up after one.
func StartNATS(ctx context.Context, cfg NATSConfig) (*NATS, error) {
	if cfg.StoreDir == "" {
		return nil, errors.New("start nats: StoreDir is empty")
	}
	if err := checkPort(cfg.Port); err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	port := cfg.Port
	if port == 0 {
		var err error
		if port, err = freePort(); err != nil {
			return nil, fmt.Errorf("start nats: %w", err)
		}
	}
	if !portFree(port) {
		return nil, fmt.Errorf("start nats: port %d on 127.0.0.1: %w", port, ErrPortTaken)
	}
	if err := os.MkdirAll(cfg.StoreDir, 0o700); err != nil {
		return nil, fmt.Errorf("start nats: create store: %w", err)
	}
	options, err := cfg.options(port)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	srv, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	if cfg.LogFile != "" {
		srv.ConfigureLogger()
	}
	srv.Start()
	n := &NATS{srv: srv, dir: cfg.StoreDir, port: port, config: cfg.ConfigFile}
	wait := natsReady
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	if !srv.ReadyForConnections(wait) || !srv.JetStreamEnabled() {
		srv.Shutdown()
		return nil, fmt.Errorf("start nats on port %d: not ready after %s", port, wait)
	}
	return n, nil
}

func (cfg NATSConfig) options(port int) (*server.Options, error) {
	o := &server.Options{}
	if cfg.ConfigFile != "" {
		var err error
		if o, err = server.ProcessConfigFile(cfg.ConfigFile); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
	}
	o.ServerName, o.Host, o.Port = "holdfast", "127.0.0.1", port
	o.JetStream, o.StoreDir = true, cfg.StoreDir
	o.JetStreamMaxStore, o.JetStreamMaxMemory = natsMaxStore, natsMaxMemory
	o.NoSigs, o.NoLog, o.LogFile = true, cfg.LogFile == "", cfg.LogFile
	return o, nil
}

// URL is where clients connect to.
func (n *NATS) URL() string { return "nats://" + loopback(n.port) }

// Port is the port in use; a later server that is started with it and the same StoreDir continues this one.
func (n *NATS) Port() int { return n.port }

// StoreDir is where JetStream keeps its files.
func (n *NATS) StoreDir() string { return n.dir }

// ConfigFile is the configuration that it was started with; empty without one.
func (n *NATS) ConfigFile() string { return n.config }

// Stop ends the server and returns when its connections are closed and its files written, or when ctx ends. It may be
// called twice.
func (n *NATS) Stop(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.srv.Shutdown()
		n.srv.WaitForShutdown()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop nats on port %d: %w", n.port, ctx.Err())
	}
}
