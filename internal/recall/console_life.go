package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Attempt is one claim of an event that has ended.
type Attempt struct {
	Claim      int
	Generation int
	// Worker is the process that had the lease.
	Worker    string
	ClaimedAt time.Time
	EndedAt   time.Time
	// Ending is succeeded, retry, failed, given_back or crashed.
	Ending        string
	Class         task.Class // empty without a failure
	Delay         time.Duration
	Model         time.Duration
	ProviderCalls int
	TokensIn      int
	TokensOut     int
}

// LifeRun is one authorised run of an event with its hold, and how it was closed.
type LifeRun struct {
	Generation int
	Amount     credit.Amount
	OpenedAt   time.Time
	ClosedAt   *time.Time
	Settled    credit.Amount
	Released   credit.Amount
}

// LifeLease is the lease that a worker has now.
type LifeLease struct {
	Claim     int
	Worker    string
	ClaimedAt time.Time
	Until     time.Time
	Expired   bool
}

// Life is what is kept of how an event came about. It holds no text of anybody.
type Life struct {
	Now        time.Time // by the database's clock
	Kind       task.Kind
	Stage      task.Stage
	AcceptedAt time.Time
	// HintAt is when the latest of Hints hints was made.
	HintAt      time.Time
	Hints       int64
	Attempts    []Attempt  // oldest first; the first ones may be missing
	Omitted     int        // how many are
	Runs        []LifeRun  // oldest first
	Lease       *LifeLease // nil without one
	PlanAt      *time.Time
	PlanOf      int // the generation that froze the plan
	CommittedAt *time.Time
	CompletedAt *time.Time
	// InTurn is false while earlier writes of the same scope come first.
	InTurn  bool
	Ordered bool
}

// LifeStore reads lives. Fault EVENT_NOT_FOUND.
type LifeStore interface {
	Life(ctx context.Context, workspace, id uuid.UUID) (Life, error)
}

// Lives reads how events came about.
type Lives struct{ store LifeStore }

// NewLives returns a reader of lives.
func NewLives(store LifeStore) (*Lives, error) {
	if store == nil {
		return nil, errors.New("lives: a store is required")
	}
	return &Lives{store}, nil
}

// Life answers how an event of the workspace came about, a fault EVENT_NOT_FOUND for any other id.
func (l *Lives) Life(ctx context.Context, workspace, id uuid.UUID) (Life, error) {
	life, err := l.store.Life(ctx, workspace, id)
	if err != nil {
		return Life{}, fmt.Errorf("read life of event: %w", err)
	}
	return life, nil
}

// StepKind names what happened at a step.
type StepKind string

// The steps of an event's life.
const (
	StepAccepted  StepKind = "accepted"
	StepReopened  StepKind = "reopened"
	StepHinted    StepKind = "hinted"
	StepClaimed   StepKind = "claimed"
	StepModel     StepKind = "model"
	StepPlanned   StepKind = "planned"
	StepCommitted StepKind = "committed"
	StepAttempt   StepKind = "attempt" // a claim's end other than success
	StepProjected StepKind = "projected"
	StepSettled   StepKind = "settled"
	StepReleased  StepKind = "released"
)

// Step is one point of an event's life. Attempt and Run are set where the step belongs to one.
type Step struct {
	Kind    StepKind
	At      time.Time
	Attempt *Attempt
	Run     *LifeRun
	Hints   int64
}

// order says which of two steps at the same time came first.
func (s Step) order() int {
	return slices.Index([]StepKind{
		StepAccepted, StepReopened, StepAttempt, StepHinted, StepClaimed, StepModel, StepPlanned, StepCommitted, StepProjected,
		StepSettled, StepReleased,
	}, s.Kind)
}

// Steps are the points of the life in the order in which they happened.
func (l Life) Steps() []Step {
	var steps []Step
	add := func(s Step) { steps = append(steps, s) }
	for i := range l.Runs {
		run := &l.Runs[i]
		kind := StepReopened
		if run.Generation == 1 {
			kind = StepAccepted
		}
		add(Step{Kind: kind, At: run.OpenedAt, Run: run})
		if run.ClosedAt != nil && run.Settled > 0 {
			add(Step{Kind: StepSettled, At: *run.ClosedAt, Run: run})
		} else if run.ClosedAt != nil && run.Released > 0 {
			add(Step{Kind: StepReleased, At: *run.ClosedAt, Run: run})
		}
	}
	if l.Hints > 0 {
		add(Step{Kind: StepHinted, At: l.HintAt, Hints: l.Hints})
	}
	for i := range l.Attempts {
		l.addAttempt(&l.Attempts[i], add)
	}
	if l.Lease != nil {
		add(Step{Kind: StepClaimed, At: l.Lease.ClaimedAt, Attempt: &Attempt{Claim: l.Lease.Claim, Worker: l.Lease.Worker, ClaimedAt: l.Lease.ClaimedAt}})
	}
	if l.PlanAt != nil {
		add(Step{Kind: StepPlanned, At: *l.PlanAt})
	}
	if l.CommittedAt != nil {
		add(Step{Kind: StepCommitted, At: *l.CommittedAt})
	}
	if l.Stage == task.Projected && l.CompletedAt != nil {
		add(Step{Kind: StepProjected, At: *l.CompletedAt})
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.order(), b.order())) })
	return steps
}

func (l Life) addAttempt(a *Attempt, add func(Step)) {
	add(Step{Kind: StepClaimed, At: a.ClaimedAt, Attempt: a})
	if a.ProviderCalls > 0 {
		add(Step{Kind: StepModel, At: a.ClaimedAt, Attempt: a})
	}
	if a.Ending != "succeeded" {
		add(Step{Kind: StepAttempt, At: a.EndedAt, Attempt: a})
	}
}
