package repair

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// loop is the lifecycle of a repairer that runs until it is stopped.
type loop struct {
	mu      sync.Mutex
	started bool
	stopped bool
	cancel  context.CancelFunc
	kicked  chan struct{}
	done    chan struct{}
}

func newLoop() loop { return loop{kicked: make(chan struct{}, 1), done: make(chan struct{})} }

// Start begins to run rounds, the first within half an interval, and returns at once. The end of ctx does not end the
// loop, Stop does. A repairer whose loop was started or stopped before is refused.
func (r *Repairer) Start(ctx context.Context) error {
	r.loop.mu.Lock()
	defer r.loop.mu.Unlock()
	if r.loop.started || r.loop.stopped {
		return errors.New("repair: it was started or stopped before")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("repair: start: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.loop.started, r.loop.cancel = true, cancel
	go func() {
		defer close(r.loop.done)
		r.run(running)
	}()
	r.log.Info().Dur("every", r.cfg.Every).Msg("repair started")
	return nil
}

// Stop ends the loop. A step under way is cancelled: whatever it had not committed, the next round of any repairer
// does. It may be called again, to wait longer, and before Start, which is then refused.
func (r *Repairer) Stop(ctx context.Context) error {
	r.loop.mu.Lock()
	r.loop.stopped = true
	begun := r.loop.started
	r.loop.mu.Unlock()
	if !begun {
		return nil
	}
	r.loop.cancel()
	select {
	case <-r.loop.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("repair: the round under way did not stop in time: %w", ctx.Err())
	}
}

// Kick asks the loop for a round at once, in which due tasks are hinted whatever the age of their last hint: after the
// stream was lost their hints are gone. It never blocks; several kicks before the round are one.
func (r *Repairer) Kick() {
	select {
	case r.loop.kicked <- struct{}{}:
	default:
	}
}

// run spreads rounds over half the interval on either side of it, so that several repairers don't meet.
func (r *Repairer) run(ctx context.Context) {
	pause := time.Duration(r.cfg.Rand() * float64(r.cfg.Every) / 2)
	failing := map[string]bool{}
	for {
		timer := time.NewTimer(pause)
		kicked := false
		select {
		case <-timer.C:
		case <-r.loop.kicked:
			kicked = true
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		r.turn.Lock()
		report, failed := r.round(ctx, r.passes(kicked, false), false)
		r.turn.Unlock()
		if ctx.Err() == nil {
			r.tellFailures(report, failed, failing)
		}
		pause = r.cfg.Every/2 + time.Duration(r.cfg.Rand()*float64(r.cfg.Every))
	}
}

// tellFailures logs when a pass begins to fail and when it works again, and notes it in failing.
func (r *Repairer) tellFailures(report Report, failed map[string]error, failing map[string]bool) {
	for _, res := range report.Results {
		err := failed[res.Pass]
		switch {
		case err != nil && !failing[res.Pass]:
			r.log.Warn().Err(err).Str("pass", res.Pass).Msg("repair pass failed")
		case err == nil && failing[res.Pass]:
			r.log.Info().Str("pass", res.Pass).Msg("repair pass works again")
		}
		failing[res.Pass] = err != nil
	}
}
