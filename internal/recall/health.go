package recall

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Facts are the numbers that health is judged by, over all workspaces, at the database's time.
type Facts struct {
	OldestDue      time.Duration // how long the oldest due task has been due
	Due            int           // tasks that are due, of the first 10,000 that wait
	Leased         int           // tasks in hand (up to 10,000)
	ExpiredLeases  int           // leases past their time that nobody took over yet (counted up to 1,000)
	RecentFailures int           // tasks that failed in the last ten minutes for our reasons, not their callers' (up to 1,000)
	SkippedVectors int           // texts the embedder refused for good (up to 1,000)
	PausedProvider bool          // a provider is being left alone now
}

// HealthStore reads the facts with a bounded cost.
type HealthStore interface {
	Facts(ctx context.Context) (Facts, error)
}

// Reason is a stable word for why the service is degraded.
type Reason string

// The reasons.
const (
	DueTooLong       Reason = "oldest_due_task"
	LeasesExpired    Reason = "expired_leases"
	NATSUnreachable  Reason = "nats_unreachable"
	WorkFailed       Reason = "failed_work"
	ProviderPaused   Reason = "provider_paused"
	VectorsSkipped   Reason = "vectors_skipped"
	DatabaseOverload Reason = "database_unreachable"
)

// Verdict is the state of the service: degraded if there is any reason.
type Verdict struct {
	Reasons []Reason
	Facts   Facts
}

// Degraded tells whether something needs a look.
func (v Verdict) Degraded() bool { return len(v.Reasons) > 0 }

// dueTolerance is how long work may be due before somebody should look: a few fallback polls and one hint age.
const dueTolerance = time.Minute

// Health judges the service.
type Health struct {
	store   HealthStore
	wakeups func() error
}

// NewHealth returns a judge; wakeups reports whether NATS can be used.
func NewHealth(store HealthStore, wakeups func() error) (*Health, error) {
	if store == nil || wakeups == nil {
		return nil, errors.New("health: store and wakeups are required")
	}
	return &Health{store: store, wakeups: wakeups}, nil
}

// Check answers the verdict; an error means that the database itself could not be read.
func (h *Health) Check(ctx context.Context) (Verdict, error) {
	facts, err := h.store.Facts(ctx)
	if err != nil {
		return Verdict{Reasons: []Reason{DatabaseOverload}}, fmt.Errorf("check health: %w", err)
	}
	v := Verdict{Facts: facts}
	for _, finding := range []struct {
		bad    bool
		reason Reason
	}{
		{facts.OldestDue > dueTolerance, DueTooLong},
		{facts.ExpiredLeases > 0, LeasesExpired},
		{h.wakeups() != nil, NATSUnreachable},
		{facts.RecentFailures > 0, WorkFailed},
		{facts.PausedProvider, ProviderPaused},
		{facts.SkippedVectors > 0, VectorsSkipped},
	} {
		if finding.bad {
			v.Reasons = append(v.Reasons, finding.reason)
		}
	}
	return v, nil
}
