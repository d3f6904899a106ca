package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// errStopping is why provider calls end when the worker stops: their leases are given back.
var errStopping = errors.New("the worker is stopping")

// errAbandoned is why everything else ends when the time to stop is over: leases are left to expire.
var errAbandoned = errors.New("the worker's time to stop is over")

// Worker claims tasks and runs them. It starts once.
type Worker struct {
	deps Deps
	cfg  Config
	who  Claimant
	log  zerolog.Logger

	slots   *slots
	places  *slots        // of deliveries, beside the slots
	parcels chan struct{} // deliveries have been made
	calm    breather      // after the database failed: intake waits
	crowd   *crowd
	waiting chan struct{} // tasks are known to wait
	crashed chan struct{} // tasks that crashed before may wait
	lonely  atomic.Bool   // such a task runs alone, or waits to
	others  atomic.Int64  // tasks in hand beside it

	mu    sync.Mutex
	state lifecycle
	live  map[uuid.UUID]int // tasks in hand, for the names of what did not stop
	wg    sync.WaitGroup
	done  chan struct{} // closed when everything has ended

	// Three lifetimes end one after the other: looking for tasks, calling providers, and all the rest.
	calls, work               context.Context
	endIntake, endCalls, kill context.CancelCauseFunc
}

type lifecycle int

const (
	fresh lifecycle = iota
	started
	stopped
)

// New checks deps and cfg and fills in the defaults. It starts nothing.
func New(deps Deps, cfg Config) (*Worker, error) {
	switch {
	case deps.Claims == nil || deps.Steps == nil || deps.Providers == nil:
		return nil, errors.New("worker: claims, steps and providers are required")
	case deps.Extractor == nil || deps.Embedder == nil:
		return nil, errors.New("worker: an extractor and an embedder are required")
	case (deps.Deliveries == nil) != (deps.Deliverer == nil):
		return nil, errors.New("worker: deliveries need a deliverer, and the other way round")
	case deps.Publisher == nil || deps.Notifier == nil:
		return nil, errors.New("worker: a publisher and a notifier are required")
	}
	cfg, err := cfg.checked(deps.Wakeups != nil)
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	if deps.Beats == nil {
		deps.Beats = deps.Claims
	}
	if deps.Observer == nil {
		deps.Observer = unobserved{}
	}
	if deps.Tracer == nil {
		deps.Tracer = untraced{}
	}
	return &Worker{
		deps: deps, cfg: cfg, log: cfg.Log.With().Str("worker", cfg.Worker).Logger(),
		who: Claimant{
			Worker: cfg.Worker, TTL: cfg.LeaseTTL, Kinds: kindsOf(cfg, deps), Format: command.Format,
			MaxAttempts: cfg.Policy.MaxAttempts, Extractor: deps.Extractor.Provider(), Embedder: deps.Embedder.Provider(),
		},
		slots: newSlots(cfg.Slots), places: newSlots(deliveryPlaces(cfg.Slots)), parcels: make(chan struct{}, 1), live: map[uuid.UUID]int{}, done: make(chan struct{}),
		crowd: newCrowd(cfg.WorkspaceLeases), waiting: make(chan struct{}, 1),
		crashed: make(chan struct{}, 1),
	}, nil
}

// Name returns the worker's incarnation.
func (w *Worker) Name() string { return w.cfg.Worker }

// Start begins to look for tasks and returns at once. The end of ctx does not end the worker, Stop does. A
// worker that was started or stopped before is refused.
func (w *Worker) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != fresh {
		return errors.New("worker: it was started or stopped before")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("worker: start: %w", err)
	}
	w.state = started
	ctx = context.WithoutCancel(ctx)
	w.work, w.kill = context.WithCancelCause(ctx)
	w.calls, w.endCalls = context.WithCancelCause(ctx)
	intake, endIntake := context.WithCancelCause(ctx)
	w.endIntake = endIntake
	w.wg.Go(func() {
		w.first(intake)
		w.look(intake)
	})
	go func() {
		w.wg.Wait()
		close(w.done)
	}()
	w.log.Info().Int("slots", w.cfg.Slots).Dur("lease_ttl", w.cfg.LeaseTTL).Msg("worker started")
	return nil
}

// look starts everything that looks for tasks.
func (w *Worker) look(intake context.Context) {
	if w.deps.Wakeups != nil {
		for _, class := range []string{task.Interactive, task.Bulk} {
			w.wg.Go(func() { w.pull(intake, class) })
		}
	}
	w.wg.Go(func() { w.alone(intake) })
	if w.cfg.Poll > 0 {
		w.wg.Go(func() { w.drain(intake) })
		w.wg.Go(func() { w.count(intake) })
	}
	if w.deps.Deliveries != nil {
		w.wg.Go(func() { w.dispatch(intake) })
		w.wg.Go(func() { w.send(intake) })
	}
}

// EndIntake ends the search for tasks; those in hand go on until Stop. Workers that stop together end it first, so that
// none of them takes what another one gives back.
func (w *Worker) EndIntake() {
	w.mu.Lock()
	end := w.endIntake
	w.mu.Unlock()
	if end != nil {
		end(errStopping)
	}
}

// Stop ends intake, cancels provider calls and gives their leases back, and lets steps under way finish. When
// ctx ends first, everything is cancelled and the error names the tasks whose leases were not given back. It may
// be called again, to wait longer, and before Start, which is then refused.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	before := w.state
	w.state = stopped
	begun := w.work != nil
	w.mu.Unlock()
	if !begun {
		return nil
	}
	if before == started {
		w.log.Info().Msg("worker stopping")
	}
	w.endIntake(errStopping)
	w.endCalls(errStopping)
	select {
	case <-w.done:
		w.kill(errAbandoned)
		return nil
	case <-ctx.Done():
	}
	names := w.inHand()
	w.kill(errAbandoned)
	select {
	case <-w.done:
		if len(names) == 0 {
			return nil
		}
	default:
	}
	if len(names) == 0 {
		names = []string{"intake"}
	}
	return fmt.Errorf("worker: did not stop in time: %s: %w", strings.Join(names, ", "), context.Cause(ctx))
}

// inHand names the tasks that are being claimed or run.
func (w *Worker) inHand() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, 0, len(w.live))
	for id := range w.live {
		names = append(names, "task "+id.String())
	}
	slices.Sort(names)
	return names
}

// hold notes that a task is in hand until the returned function is called. The same task may be in hand twice:
// an old run that has lost its lease, and a new one.
func (w *Worker) hold(id uuid.UUID) func() {
	w.note(id, 1)
	return func() { w.note(id, -1) }
}

func (w *Worker) note(id uuid.UUID, n int) {
	w.mu.Lock()
	w.live[id] += n
	if w.live[id] == 0 {
		delete(w.live, id)
	}
	busy := len(w.live)
	w.mu.Unlock()
	w.deps.Observer.Busy(busy)
}
