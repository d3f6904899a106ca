package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/obs"
)

// part is something that a process starts and stops. Stop may be called twice, and before Start.
type part interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// bounded is a part with its name and the longest time that its stop may take.
type bounded struct {
	name string
	part part
	stop time.Duration
}

// adminStop bounds the end of the admin server: scrapes and probes are short.
const adminStop = 2 * time.Second

// process runs the parts of one program. They start in order, and stop in the same order: what takes work in comes
// before what finishes it.
type process struct {
	core   *core
	admin  *obs.Admin // nil when there is none
	parts  []bounded
	failed chan error // a part that broke while it ran
}

func newProcess(c *core) *process { return &process{core: c, failed: make(chan error, 1)} }

func (p *process) add(name string, part part, stop time.Duration) {
	p.parts = append(p.parts, bounded{name, part, stop})
}

// fail ends the process with err; the first failure counts.
func (p *process) fail(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// openAdmin makes the admin server; base is the port from which a free one is taken when no address is set.
func (p *process) openAdmin(ctx context.Context, base int) error {
	listener, err := adminListener(ctx, p.core.settings.AdminListen, base)
	if err != nil || listener == nil {
		return err
	}
	p.admin, err = obs.NewAdmin(listener, p.core.metrics, p.core.ready)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	if p.core.settings.AdminProfiles {
		p.admin.ShowProfiles()
	}
	p.core.log.Info().Str("address", p.admin.Addr()).Msg("admin server listens")
	return p.admin.Start(ctx)
}

// run starts everything, calls started, and stops everything when ctx ends or a part fails.
func (p *process) run(ctx context.Context, started func() error) error {
	err := p.start(ctx)
	if err == nil && started != nil && ctx.Err() == nil {
		err = started()
	}
	if err != nil {
		err = unlessStopped(ctx, err)
	} else {
		if p.admin != nil {
			p.admin.SetReady(true)
		}
		p.core.log.Info().Msg("ready")
		select {
		case <-ctx.Done():
			p.core.log.Info().Msg("stopping")
		case err = <-p.failed:
			p.core.log.Error().Err(err).Msg("a part failed, stopping")
		}
	}
	return errors.Join(err, p.stop(ctx))
}

func (p *process) start(ctx context.Context) error {
	p.core.topology(ctx)
	for _, b := range p.parts {
		if err := b.part.Start(ctx); err != nil {
			return fmt.Errorf("start %s: %w", b.name, err)
		}
	}
	return nil
}

// stop turns readiness off first and ends the admin server last, so that a probe can watch the rest.
func (p *process) stop(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if p.admin != nil {
		p.admin.SetReady(false)
	}
	var errs []error
	for _, b := range p.parts {
		errs = append(errs, within(ctx, b.stop, b.part.Stop))
	}
	errs = append(errs, p.core.close(ctx))
	if p.admin != nil {
		errs = append(errs, within(ctx, adminStop, p.admin.Stop))
	}
	p.core.log.Info().Msg("stopped")
	return errors.Join(errs...)
}

func within(ctx context.Context, bound time.Duration, stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return stop(ctx)
}

// loop runs a function until Stop, as a part.
type loop struct {
	run func(ctx context.Context)

	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// Start begins the loop and returns at once.
func (l *loop) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done != nil {
		return errors.New("it was started or stopped before")
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	l.done = done
	go func() {
		defer close(done)
		l.run(ctx)
	}()
	return nil
}

// Stop ends the loop and waits for it.
func (l *loop) Stop(ctx context.Context) error {
	l.mu.Lock()
	done, cancel := l.done, l.cancel
	if done == nil {
		done = make(chan struct{})
		close(done)
		l.done, cancel = done, func() {}
		l.cancel = cancel
	}
	l.mu.Unlock()
	cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it did not stop in time: %w", context.Cause(ctx))
	}
}

// freePorts is how many ports above the wanted one are tried: more processes than that on one machine have
// addresses of their own.
const freePorts = 100

// listenFrom listens on 127.0.0.1 at port, or at the next free one.
func listenFrom(ctx context.Context, port int) (net.Listener, error) {
	var err error
	for candidate := port; candidate < port+freePorts; candidate++ {
		var listener net.Listener
		if listener, err = listenOn(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(candidate))); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("no free port from %d to %d: %w", port, port+freePorts-1, err)
}

func listenOn(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// adminListener is nil when the admin server is off.
func adminListener(ctx context.Context, address string, base int) (net.Listener, error) {
	switch address {
	case "off":
		return nil, nil
	case "":
		return listenFrom(ctx, base)
	}
	return listenOn(ctx, address)
}
