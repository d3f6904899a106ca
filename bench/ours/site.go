package ours

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-memory/holdfast/bench/rig"
)

// Site is Holdfast as it is run: an API and workers, processes of their own.
type Site struct {
	cfg     SiteConfig
	api     *rig.Process
	address string
	admin   string // of the API
	workers []*rig.Process
	admins  []string // of the workers
	conn    *nats.Conn
	done    *arrivals
}

// workerSlots is as many tasks as most cases have in flight, which is what the peers get too. The product's own default is less.
const workerSlots = 64

// SiteConfig says what a site runs with.
type SiteConfig struct {
	Bin         string
	DatabaseURL string
	NATS        string
	Slots       int // of each worker, 0 is 64
	ModelURL    string
	Profiles    bool
}

// NewSite starts nothing yet but the subscription to notices of ends.
func NewSite(cfg SiteConfig) (*Site, error) {
	s := &Site{cfg: cfg, done: newArrivals()}
	var err error
	if s.conn, err = nats.Connect(cfg.NATS); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	// The subject of a notice is done.<workspace>.<task>.
	if _, err = s.conn.Subscribe("done.*.*", func(m *nats.Msg) { s.done.arrive(m.Subject[len(m.Subject)-idLength:]) }); err != nil {
		s.conn.Close()
		return nil, fmt.Errorf("subscribe to notices: %w", err)
	}
	return s, nil
}

func (s *Site) env(more ...string) []string {
	env := []string{
		"HOLDFAST_DATABASE_URL=" + s.cfg.DatabaseURL, "HOLDFAST_NATS_URL=" + s.cfg.NATS,
		"HOLDFAST_ADMIN_PROFILES=" + strconv.FormatBool(s.cfg.Profiles), "HOLDFAST_LOG_LEVEL=info",
		// What protects workspaces from each other would protect the server from the bench.
		"HOLDFAST_RATE_LIMIT=0", "HOLDFAST_MAX_PENDING=0", "HOLDFAST_WORKSPACE_LEASES=0",
	}
	if s.cfg.Slots == 0 {
		s.cfg.Slots = workerSlots
	}
	env = append(env, "HOLDFAST_WORKER_SLOTS="+strconv.Itoa(s.cfg.Slots))
	if s.cfg.ModelURL != "" {
		env = append(env, "HOLDFAST_EXTRACTOR=openai", "HOLDFAST_EMBEDDER=openai", "HOLDFAST_OPENAI_BASE_URL="+s.cfg.ModelURL,
			"HOLDFAST_OPENAI_MODEL=stub", "HOLDFAST_OPENAI_EMBEDDING_MODEL=stub")
	}
	return append(env, more...)
}

func (s *Site) launch(ctx context.Context, name string, more ...string) (*rig.Process, string, error) {
	admin, err := rig.FreeAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(filepath.Join(s.cfg.Bin, name))
	p, err := rig.Launch(ctx, name, cmd, `"message":"ready"`, s.env(append(more, "HOLDFAST_ADMIN_LISTEN="+admin)...)...)
	return p, admin, err
}

// StartAPI starts the API.
func (s *Site) StartAPI(ctx context.Context) error {
	var err error
	if s.address, err = rig.FreeAddress(ctx); err != nil {
		return err
	}
	s.api, s.admin, err = s.launch(ctx, "api", "HOLDFAST_LISTEN="+s.address)
	return err
}

// StartWorker starts one more worker.
func (s *Site) StartWorker(ctx context.Context) error {
	p, admin, err := s.launch(ctx, "worker")
	if err == nil {
		s.workers, s.admins = append(s.workers, p), append(s.admins, admin)
	}
	return err
}

// StopWorkers ends the workers alone.
func (s *Site) StopWorkers() error {
	var errs []error
	for _, w := range s.workers {
		errs = append(errs, w.Stop())
	}
	s.workers, s.admins = nil, nil
	return errors.Join(errs...)
}

// StartRepair starts the process that finds what was left lying.
func (s *Site) StartRepair(ctx context.Context, more ...string) (*rig.Process, error) {
	p, _, err := s.launch(ctx, "repair", more...)
	return p, err
}

// Address is where the API listens, as host:port.
func (s *Site) Address() string { return s.address }

// Admins are the admin listeners of the API and the first worker.
func (s *Site) Admins() (api, worker string) { return s.admin, s.admins[0] }

// Stop ends everything. It may be called twice.
func (s *Site) Stop() error {
	err := errors.Join(s.StopWorkers(), s.StopAPI())
	s.conn.Close()
	return err
}

// StopAPI ends the API alone. It may be called twice.
func (s *Site) StopAPI() error {
	if s.api == nil {
		return nil
	}
	p := s.api
	s.api = nil
	return p.Stop()
}
