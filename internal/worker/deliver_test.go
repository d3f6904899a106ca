package worker

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// post is one webhook with deliveries that wait, and its receiver.
type post struct {
	*rig
	waiting []uuid.UUID
	under   int
	most    int
	looks   int
	taken   int
	takes   time.Duration // a call
}

// letters gives the rig a webhook with n waiting deliveries.
func (r *rig) letters(n int, takes time.Duration) *post {
	p := &post{rig: r, takes: takes}
	for range n {
		p.waiting = append(p.waiting, r.add(func(l *Lease) { l.Kind, l.Payload = task.Webhook, nil }))
	}
	r.deps.Deliveries, r.deps.Deliverer = p, p
	return p
}

func (p *post) Dispatch(context.Context) (int, bool, error) { return 0, false, nil }

func (p *post) DueDeliveries(_ context.Context, _ Claimant, limit, each int) ([]uuid.UUID, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	due := p.waiting[:min(len(p.waiting), max(0, each-p.under))]
	return slices.Clone(due[:min(len(due), limit)]), len(due) > limit, nil
}

func (p *post) Parcel(_ context.Context, l Lease) (*endpoint.Parcel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(id uuid.UUID) bool { return id == l.TaskID })
	p.under++
	p.most = max(p.most, p.under)
	return &endpoint.Parcel{Message: l.TaskID, Active: true}, nil
}

func (p *post) Deliver(ctx context.Context, _ endpoint.Parcel) endpoint.Receipt {
	select {
	case <-time.After(p.takes):
		return endpoint.Receipt{Status: 200}
	case <-ctx.Done():
		return endpoint.Receipt{}
	}
}

func (p *post) Delivered(context.Context, Lease, endpoint.Parcel, endpoint.Receipt, Work) Done {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
	p.taken++
	return Done{Ended: true}
}

func (p *post) Undelivered(context.Context, Lease, endpoint.Parcel, endpoint.Receipt) (bool, error) {
	return false, nil
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	t.Run("AFastReceiverIsSentAllThatWaits", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			p := r.letters(100, 10*time.Millisecond)
			r.begin()
			r.elapse(2 * time.Second) // a second until the first look, and 25 rounds of four
			if p.taken != 100 || p.most != perWebhook {
				t.Errorf("%d of 100 taken, %d at once", p.taken, p.most)
			}
			r.end()
		})
	})
	t.Run("ASlowOneLeavesPlacesInTheSmallestWorker", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			r.cfg.Slots = 1
			p := r.letters(100, 10*time.Second)
			r.begin()
			r.elapse(5 * time.Second)
			if free := r.w.places.free(); p.under != perWebhook || free < perWebhook {
				t.Errorf("%d under way, %d places free", p.under, free)
			}
			r.end()
		})
	})
	t.Run("WhatCannotBeClaimedIsNotLookedAtInACircle", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(t *testing.T, r *rig) {
			p := r.letters(100, 0)
			r.claim = func() error { return errDatabase }
			r.begin()
			r.elapse(time.Minute)
			if p.taken != 0 || p.looks < 30 || p.looks > 100 {
				t.Errorf("%d taken, %d looks in a minute", p.taken, p.looks)
			}
			r.end()
		})
	})
}
