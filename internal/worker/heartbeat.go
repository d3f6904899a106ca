package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// errSilent is the loss of a lease that could not be extended in time: nobody has told so, but somebody may.
var errSilent = fmt.Errorf("no heartbeat was confirmed: %w", fault.ErrLeaseLost)

// keeper extends one lease. Heartbeats are sent at a third of its time; when none is confirmed, it ends the
// task's context at five sixths of the time since the last confirmed one was sent, which is earlier than any
// other worker may take the task.
type keeper struct {
	w     *Worker
	lease Lease
	msg   Wakeup
	lose  context.CancelCauseFunc
	turn  chan struct{} // one heartbeat at a time
	stop  context.CancelFunc
	gone  chan struct{}

	mu       sync.Mutex
	sent     time.Time // when the last confirmed heartbeat was sent
	selfStop *time.Timer
}

// keep starts to extend a lease whose claim was sent at that time. The returned context ends with the lease, its
// cause is fault.ErrLeaseLost.
func (w *Worker) keep(ctx context.Context, lease Lease, sent time.Time, msg Wakeup) (context.Context, *keeper) {
	held, lose := context.WithCancelCause(ctx)
	beating, stop := context.WithCancel(held)
	k := &keeper{
		w: w, lease: lease, msg: msg, lose: lose, turn: make(chan struct{}, 1), stop: stop, gone: make(chan struct{}),
		sent: sent,
	}
	k.selfStop = time.AfterFunc(time.Until(k.deadline(sent)), func() { lose(errSilent) })
	go k.run(beating)
	return held, k
}

// end stops the heartbeats and waits for the one under way. The context stays as it is.
func (k *keeper) end() {
	k.stop()
	k.selfStop.Stop()
	<-k.gone
}

// release frees what the context holds.
func (k *keeper) release() {
	k.end()
	k.lose(nil)
}

func (k *keeper) deadline(sent time.Time) time.Time { return sent.Add(k.w.cfg.LeaseTTL * 5 / 6) }

func (k *keeper) run(ctx context.Context) {
	defer close(k.gone)
	ttl := k.w.cfg.LeaseTTL
	next := k.lastSent().Add(ttl / 3)
	for pause(ctx, time.Until(next)) {
		if sent := k.lastSent().Add(ttl / 3); time.Now().Before(sent) {
			next = sent // somebody else's heartbeat came in between
			continue
		}
		switch _, err := k.beat(ctx, k.w.who.Extractor); {
		case errors.Is(err, fault.ErrLeaseLost):
			return
		case err != nil:
			next = time.Now().Add(ttl / 12) // several tries fit before the self-stop
		default:
			next = k.lastSent().Add(ttl / 3)
		}
	}
}

// beat sends one heartbeat: the row first, then the message. Its bound is its own, a sixth of the lease's time,
// so that one lost answer leaves time for another try.
func (k *keeper) beat(ctx context.Context, provider string) (Beat, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return Beat{}, context.Cause(ctx)
	}
	defer func() { <-k.turn }()
	limited, cancel := context.WithTimeout(ctx, k.w.cfg.LeaseTTL/6)
	defer cancel()
	sent := time.Now()
	beat, err := k.w.deps.Beats.Heartbeat(limited, k.lease, k.w.cfg.LeaseTTL, provider)
	switch {
	case errors.Is(err, fault.ErrLeaseLost):
		k.lose(fault.ErrLeaseLost)
		return Beat{}, err
	case err != nil:
		if ctx.Err() == nil {
			k.w.deps.Observer.Troubled(HeartbeatFailed)
		}
		return Beat{}, fmt.Errorf("heartbeat: %w", err)
	}
	k.confirm(sent)
	if k.msg != nil {
		if err := k.msg.InProgress(); err != nil {
			k.w.deps.Observer.Troubled(AckFailed)
		}
	}
	return beat, nil
}

func (k *keeper) confirm(sent time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sent = sent
	if k.selfStop.Stop() { // a self-stop that has fired is final
		k.selfStop.Reset(time.Until(k.deadline(sent)))
	}
}

func (k *keeper) lastSent() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent
}

// held reports why the lease may no longer be used, nil while it may. It reads the clock itself: a process that
// was frozen gets here before its timers do.
func (k *keeper) held(ctx context.Context) error {
	if ctx.Err() == nil && time.Now().After(k.deadline(k.lastSent())) {
		k.lose(errSilent)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// renew sends heartbeats until one is confirmed, which proves that the lease is held and the provider not
// paused right before a call that costs money. It ends with the lease.
func (k *keeper) renew(ctx context.Context, provider string) (Beat, error) {
	for {
		beat, err := k.beat(ctx, provider)
		if err == nil || errors.Is(err, fault.ErrLeaseLost) {
			return beat, err
		}
		if !pause(ctx, k.w.cfg.LeaseTTL/12) {
			return Beat{}, context.Cause(ctx)
		}
	}
}
