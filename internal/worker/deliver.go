package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/seal"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// deliverEvery is the mean time between two looks for what webhooks have to be told. A second is what a receiver
	// hardly notices, and an idle look reads two empty indexes.
	deliverEvery = time.Second
	// deliverShare is which part of as many places as there are slots deliveries have, beside the slots: they wait for
	// receivers, and slow ones must not keep memory work from running.
	deliverShare = 4
	// perWebhook bounds the deliveries to one webhook that are under way, so that a slow receiver leaves places to others.
	perWebhook = 4
	// minPlaces is what small workers have: below it one slow receiver would take all places, and a place that waits for
	// a receiver costs next to nothing.
	minPlaces = 2 * perWebhook
	// dispatchRounds bounds the rounds of one look: a pause lets others have the database.
	dispatchRounds = 20
)

// Deliverer sends one message to its receiver. It bounds itself.
type Deliverer interface {
	Deliver(ctx context.Context, p endpoint.Parcel) endpoint.Receipt
}

// Deliveries is the store of deliveries.
type Deliveries interface {
	// Dispatch turns what has ended into deliveries and tells whether there is more to do at once.
	Dispatch(ctx context.Context) (made int, more bool, err error)
	// DueDeliveries answers up to limit due deliveries that who can have, fair over webhooks and at most each of one webhook with those
	// under way, and whether more wait.
	DueDeliveries(ctx context.Context, who Claimant, limit, each int) (ids []uuid.UUID, more bool, err error)
	// Parcel answers what a delivery needs, nil when its webhook is gone.
	Parcel(ctx context.Context, lease Lease) (*endpoint.Parcel, error)
	// Delivered ends the task of a message that its receiver has taken.
	Delivered(ctx context.Context, lease Lease, p endpoint.Parcel, r endpoint.Receipt, work Work) Done
	// Undelivered keeps how an attempt failed, and tells whether the webhook was disabled by it.
	Undelivered(ctx context.Context, lease Lease, p endpoint.Parcel, r endpoint.Receipt) (disabled bool, err error)
}

// courier is who claims deliveries: none waits for a provider, and no other kind is claimed in their places.
func (w *Worker) courier() Claimant {
	who := w.who
	who.Kinds, who.Extractor, who.Embedder = []task.Kind{task.Webhook}, "", ""
	return who
}

// dispatch turns what has ended into deliveries until intake ends. One that is made wakes those who send.
func (w *Worker) dispatch(ctx context.Context) {
	stuck := false
	for pause(ctx, w.deliverPause()) {
		made := 0
		for range dispatchRounds {
			limited, cancel := context.WithTimeout(ctx, scanBound)
			n, more, err := w.deps.Deliveries.Dispatch(limited)
			cancel()
			made += n
			if err != nil && ctx.Err() == nil {
				w.deps.Observer.Troubled(DispatchFailed)
				if !stuck {
					w.log.Warn().Err(err).Msg("webhooks cannot be told; it is tried again")
				}
			}
			stuck = err != nil
			if !more || err != nil || ctx.Err() != nil {
				break
			}
		}
		if made > 0 {
			w.knock()
		}
	}
}

// knock lets the sender look again at once.
func (w *Worker) knock() {
	select {
	case w.parcels <- struct{}{}:
	default:
	}
}

// deliveryPlaces is how many deliveries a worker with so many slots has under way at most.
func deliveryPlaces(slots int) int { return max(minPlaces, slots/deliverShare) }

func (w *Worker) deliverPause() time.Duration {
	return deliverEvery/2 + time.Duration(w.cfg.Rand()*float64(deliverEvery))
}

// send claims due deliveries for free places until intake ends.
func (w *Worker) send(ctx context.Context) {
	who := newSeat(0, false)
	for {
		n, err := w.places.take(ctx, who, deliveryPlaces(w.cfg.Slots))
		if err != nil {
			return
		}
		if w.sendRound(ctx, n) {
			continue
		}
		idle := time.NewTimer(w.deliverPause())
		select {
		case <-ctx.Done():
			idle.Stop()
			return
		case <-w.parcels:
		case <-idle.C:
		}
		idle.Stop()
	}
}

// sendRound fills n taken places with due deliveries and tells whether more are known to wait. A webhook that has as many
// under way as it may has more without being known to: each delivery that ends makes the sender look again.
func (w *Worker) sendRound(ctx context.Context, n int) bool {
	limited, cancel := context.WithTimeout(ctx, scanBound)
	ids, more, err := w.deps.Deliveries.DueDeliveries(limited, w.courier(), n, perWebhook)
	cancel()
	if err != nil {
		w.places.give(n)
		if ctx.Err() == nil {
			w.deps.Observer.Troubled(DueFailed)
		}
		return false
	}
	w.places.give(n - len(ids))
	var decided sync.WaitGroup
	var leased atomic.Int64
	decided.Add(len(ids))
	for _, id := range ids {
		w.wg.Go(func() {
			carried := false
			defer func() {
				w.places.give(1)
				if carried { // one that could not be claimed is still there: it must not be looked at in a circle
					w.knock()
				}
			}()
			w.carry(w.work, id, func(got bool) {
				if carried = got; got {
					leased.Add(1)
				}
				decided.Done()
			})
		})
	}
	decided.Wait() // the next round must not meet the same ones
	return more && leased.Load() > 0
}

// carry claims one delivery and runs it.
func (w *Worker) carry(ctx context.Context, id uuid.UUID, claimed func(bool)) {
	defer w.hold(id)()
	lease, sent, err := w.claim(ctx, w.courier(), id, true)
	claimed(lease != nil)
	if err != nil {
		w.deps.Observer.Troubled(ClaimFailed)
		return
	}
	if lease != nil {
		w.deps.Observer.Claimed(ByPoll)
		w.run(ctx, *lease, sent, nil)
	}
}

// deliver makes one attempt. A call under way is let finish when the worker stops: it is short, and a message that is
// cut off is sent twice.
func (r *run) deliver(ctx context.Context) (Done, error) {
	parcel, err := r.parcel(ctx)
	switch {
	case err != nil:
		return Done{}, err
	case parcel == nil:
		return Done{}, undeliverable(task.Cancelled, task.CodeCancelled)
	case !parcel.Active:
		return Done{}, undeliverable(task.EndpointDisabled, task.CodeWebhookDisabled)
	case r.w.calls.Err() != nil:
		return Done{}, &giveBack{}
	}
	if err := r.keeper.held(ctx); err != nil {
		return Done{}, err
	}
	failpoint.Hit("worker.before_delivery")
	sending, followed := r.w.deps.Tracer.Part(ctx, DeliveryPart)
	receipt := r.w.deps.Deliverer.Deliver(sending, *parcel)
	followed(string(receipt.Error))
	failpoint.Hit("worker.after_delivery")
	if receipt.Error == "" {
		done := r.follow(ctx, SettlePart, func(ctx context.Context) Done {
			return r.w.deps.Deliveries.Delivered(ctx, r.lease, *parcel, receipt, r.work)
		})
		if done.Err != nil {
			return done, fmt.Errorf("settle delivery: %w", done.Err)
		}
		return done, nil
	}
	if ctx.Err() != nil { // the lease or the worker's time ended, not the receiver's
		return Done{}, context.Cause(ctx)
	}
	return r.undelivered(ctx, *parcel, receipt)
}

// parcel reads what the delivery needs.
func (r *run) parcel(ctx context.Context) (*endpoint.Parcel, error) {
	var parcel *endpoint.Parcel
	var verdict *failure
	read := r.step(ctx, func(ctx context.Context) Done {
		var err error
		parcel, err = r.w.deps.Deliveries.Parcel(ctx, r.lease)
		switch {
		case errors.Is(err, command.ErrUnreadable):
			verdict, err = unreadable(), nil
		case errors.Is(err, seal.ErrUnreadable):
			verdict, err = closed(err), nil
		}
		return Done{Err: err}
	})
	if read.Err != nil {
		return nil, fmt.Errorf("read parcel: %w", read.Err)
	}
	if verdict != nil {
		return nil, verdict
	}
	return parcel, nil
}

// undelivered notes how the attempt failed and answers what that means for the task.
func (r *run) undelivered(ctx context.Context, parcel endpoint.Parcel, receipt endpoint.Receipt) (Done, error) {
	disabled := false
	noted := r.step(ctx, func(ctx context.Context) Done {
		off, err := r.w.deps.Deliveries.Undelivered(ctx, r.lease, parcel, receipt)
		disabled = disabled || off
		return Done{Err: err}
	})
	if noted.Err != nil && !fault.Is(noted.Err, fault.UnavailableNow) && !errors.Is(noted.Err, fault.ErrCommitUnknown) {
		return Done{}, fmt.Errorf("note attempt: %w", noted.Err)
	}
	if disabled {
		r.w.deps.Observer.Troubled(WebhookDisabled)
		r.log.Warn().Stringer("webhook_id", parcel.WebhookID).Bool("gone", receipt.Gone()).Msg("webhook disabled")
	}
	if receipt.Gone() || disabled {
		return Done{}, undeliverable(task.EndpointDisabled, task.CodeWebhookDisabled)
	}
	return Done{}, &failure{
		Failure: task.Failure{Class: task.DeliveryFailed, Code: task.CodeWebhookUndelivered, RetryAfter: receipt.RetryAfter},
		origin:  task.DeliveryFailed, reason: string(receipt.Error), status: receipt.Status,
	}
}

// undeliverable says that nobody is there to deliver to.
func undeliverable(class task.Class, code task.ErrorCode) *failure {
	return &failure{Failure: task.Failure{Class: class, Code: code}, origin: class, final: true}
}
