package worker

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Wakeup is one delivered hint. Ack says that the row has been looked at and needs this message no more; Nak
// asks for it again after delay; InProgress tells that its task is still being worked on.
type Wakeup interface {
	Hint() task.Hint
	Ack(ctx context.Context) error
	Nak(delay time.Duration) error
	InProgress() error
}

// Wakeups delivers hints of one priority class. Fetch waits until the first hint or the end of ctx, and answers
// at most n; no hint before the end of ctx is an empty answer or the context's error.
type Wakeups interface {
	Fetch(ctx context.Context, priority string, n int) ([]Wakeup, error)
}

// Publisher publishes wakeups after a commit. It bounds itself and never fails the caller.
type Publisher interface {
	Publish(ctx context.Context, hint task.Hint)
}

// Notifier wakes those who wait for an event. It bounds itself and never fails the caller.
type Notifier interface {
	Notify(ctx context.Context, workspace, event uuid.UUID)
}

// Beats extends leases. It should have connections of its own, so that work which uses up the pool never costs
// a lease.
type Beats interface {
	Heartbeat(ctx context.Context, lease Lease, ttl time.Duration, provider string) (Beat, error)
}

// Observer counts what a worker does. Its methods return at once and are called from many goroutines.
type Observer interface {
	// Claimed counts a lease and where its task was found.
	Claimed(by Source)
	// Ended counts the end of a claim: how, the failure's class if there was one, and how long it took.
	Ended(how End, class task.Class, took time.Duration)
	// Landed counts an event that has succeeded, in a first run, and how long ago it was accepted.
	Landed(kind task.Kind, took time.Duration)
	// Called counts a provider call; class is empty when it succeeded.
	Called(provider string, class task.Class, took time.Duration, usage model.Usage)
	// Troubled counts something that went wrong and was got over.
	Troubled(what Trouble)
	// Busy tells how many tasks are in hand.
	Busy(tasks int)
}

// Tracer follows claims. Its methods return at once and are called from many goroutines.
type Tracer interface {
	// Claim begins to follow a claim that was sent at that time: hint is where the hint that woke it came from. The context
	// is that of its work, which has an origin of its own; the function ends it.
	Claim(ctx context.Context, lease Lease, by Source, hint task.Origin, began time.Time) (context.Context, func(End, task.Class))
	// Part begins to follow a part of the claim of ctx. The function ends it with a word for what went wrong, or none.
	Part(ctx context.Context, part Part) (context.Context, func(trouble string))
}

// Part names a part of a claim.
type Part string

// The parts that are followed.
const (
	ModelPart    Part = "model call"
	CommitPart   Part = "commit"
	SettlePart   Part = "settle"
	PiecePart    Part = "apply piece"
	DeliveryPart Part = "deliver"
	ReleasePart  Part = "release" // the run's failure is written
	GiveUpPart   Part = "give up" // the lease goes back, with a failure or without
)

// Source says where a task was found.
type Source string

// The sources.
const (
	ByHint Source = "hint"
	ByPoll Source = "poll"
)

// Trouble names what went wrong.
type Trouble string

// The troubles that are counted.
const (
	FetchFailed     Trouble = "fetch_failed"
	ClaimFailed     Trouble = "claim_failed"
	DueFailed       Trouble = "due_failed"
	RescueFailed    Trouble = "rescue_failed"
	HeartbeatFailed Trouble = "heartbeat_failed"
	StepRepeated    Trouble = "step_repeated"
	AckFailed       Trouble = "ack_failed"
	ProviderUnsaved Trouble = "provider_unsaved"
	DispatchFailed  Trouble = "dispatch_failed"
	CountFailed     Trouble = "count_failed"
	WebhookDisabled Trouble = "webhook_disabled"
	LeaseExpired    Trouble = "lease_expired" // of any worker, moved on by this one
)

// Deps is what a worker needs. Wakeups may be nil: the worker then only polls. Beats may be nil: heartbeats then
// go to Claims. Observer and Tracer may be nil.
type Deps struct {
	Claims     Claims
	Steps      Steps
	Providers  Providers
	Beats      Beats
	Known      Known             // nil: extraction is told nothing of what is known
	Jobs       map[task.Kind]Job // kinds that work in pieces
	Deliveries Deliveries        // nil, as Deliverer: webhooks are left to others
	Deliverer  Deliverer
	Extractor  model.Extractor
	Embedder   model.Embedder
	Wakeups    Wakeups
	Publisher  Publisher
	Notifier   Notifier
	Observer   Observer
	Tracer     Tracer
}

// unobserved counts nothing.
type unobserved struct{}

func (unobserved) Claimed(Source)                                        {}
func (unobserved) Ended(End, task.Class, time.Duration)                  {}
func (unobserved) Landed(task.Kind, time.Duration)                       {}
func (unobserved) Called(string, task.Class, time.Duration, model.Usage) {}
func (unobserved) Troubled(Trouble)                                      {}
func (unobserved) Busy(int)                                              {}

// untraced follows nothing.
type untraced struct{}

func (untraced) Claim(ctx context.Context, _ Lease, _ Source, _ task.Origin, _ time.Time) (context.Context, func(End, task.Class)) {
	return ctx, func(End, task.Class) {}
}

func (untraced) Part(ctx context.Context, _ Part) (context.Context, func(string)) {
	return ctx, func(string) {}
}
