package app

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

// The ports that are tried first; a machine can run one process of each kind without any setting.
const (
	apiPort         = 8765
	apiAdminPort    = 8766
	workerAdminPort = 8767
	repairAdminPort = 8768
)

// killedBySignal is what the exit code of a process that a signal ended begins at.
const killedBySignal = 128

// Signals returns a context that ends at the first SIGINT or SIGTERM. The second one ends the process at once with
// the code 128 + its number: what was not given back expires, what was not committed never happened.
func Signals(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		if number, ok := (<-signals).(syscall.Signal); ok {
			os.Exit(killedBySignal + int(number))
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// RunAPI serves the HTTP API until ctx ends.
func RunAPI(ctx context.Context, s Settings) error {
	p, err := prepare(ctx, s, "api", apiAdminPort)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	address := s.Listen
	if address == "" {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(apiPort))
	}
	listener, err := listenOn(ctx, address)
	if err != nil {
		return errors.Join(unlessStopped(ctx, err), p.stop(ctx))
	}
	if err := p.core.warnOfSlack(ctx); err != nil {
		return errors.Join(unlessStopped(ctx, err), listener.Close(), p.stop(ctx))
	}
	if err := p.addAPI(listener); err != nil {
		return errors.Join(err, p.stop(ctx))
	}
	p.addMinutes("api")
	p.addWatch()
	return p.run(ctx, nil)
}

// RunWorker runs one worker until ctx ends.
func RunWorker(ctx context.Context, s Settings) error {
	p, err := prepare(ctx, s, "worker", workerAdminPort)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if err := p.addWorkers(ctx, 1); err != nil {
		return errors.Join(unlessStopped(ctx, err), p.stop(ctx))
	}
	p.addMinutes("worker")
	p.addWatch()
	return p.run(ctx, nil)
}

// prepare opens what a process of that name needs and its admin server.
func prepare(ctx context.Context, s Settings, name string, adminPort int) (*process, error) {
	log, err := Logger(s, name)
	if err != nil {
		return nil, err
	}
	if s.Database, s.NATSURL, err = s.located(); err != nil {
		return nil, err
	}
	c, err := openCore(ctx, s, log, name)
	if err != nil {
		return nil, err
	}
	p := newProcess(c)
	if err := p.openAdmin(ctx, adminPort); err != nil {
		return nil, errors.Join(err, p.stop(ctx))
	}
	return p, nil
}

// addAPI adds the API on listener, which it owns from here on.
func (p *process) addAPI(listener net.Listener) error {
	server, err := p.core.newAPI(listener)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	p.add("api", &apiPart{Server: server, fail: p.fail}, apiStop)
	p.core.log.Info().Str("address", listener.Addr().String()).Msg("API listens")
	warnOfOpenAPI(listener.Addr(), p.core.log)
	return nil
}

// apiPart ends the process when the listener breaks.
type apiPart struct {
	*httpapi.Server
	fail func(error)
}

// Start serves and returns once connections are taken.
func (a *apiPart) Start(ctx context.Context) error {
	if err := a.Server.Start(ctx); err != nil {
		return err
	}
	go func() { // ends with the process: a server that is stopped says nothing
		a.fail(<-a.Failed())
	}()
	return nil
}

// addWorkers adds n workers that stop together.
func (p *process) addWorkers(ctx context.Context, n int) error {
	group := make(workerGroup, 0, n)
	for range n {
		w, err := p.core.newWorker(ctx)
		if err != nil {
			return errors.Join(err, group.Stop(ctx))
		}
		group = append(group, w)
	}
	p.add("workers", group, workerStop)
	return nil
}

// addWatch keeps the NATS topology there. It comes last, so that it stops after whoever uses hints. Hints that were lost
// with it are made again by repair, which notices by itself that the stream was made anew.
func (p *process) addWatch() {
	p.add("nats watch", &loop{run: func(ctx context.Context) { p.core.watch(ctx, nil) }}, natsStop)
}
