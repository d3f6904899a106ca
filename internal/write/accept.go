package write

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/failpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Claim is the key of a command: the hash of the caller's key and the keyed fingerprint of what was asked.
type Claim struct {
	KeyHash            [sha256.Size]byte
	Fingerprint        [sha256.Size]byte
	FingerprintVersion int
	// Suspended refuses a key that is new: a suspended workspace begins nothing, but a replay is answered all the same.
	Suspended bool
}

// Acceptance is one command to accept. Payload is the encoded command that a worker will read; Price is held.
type Acceptance struct {
	TaskID      uuid.UUID
	WorkspaceID uuid.UUID
	Kind        task.Kind
	Claim       Claim
	Scope       memory.Scope
	Ordered     bool
	Payload     []byte
	Format      int
	Policy      []byte
	Price       credit.Amount
	Priority    string
	Origin      task.Origin
}

// Accepted is what became of one acceptance: a receipt, or Refused with the reason as a value. Replayed tells
// that the key was known already. Hint is set if a wakeup should be published.
type Accepted struct {
	TaskID   uuid.UUID
	Status   task.EventStatus
	Replayed bool
	Hint     *task.Hint
	Refused  error
}

// AcceptStore commits acceptances, each in a transaction of its own with one answer for each. An error is
// about that transaction's fate only: ErrCommitUnknown, or a fault UNAVAILABLE when it is known not to have
// happened.
type AcceptStore interface {
	Accept(ctx context.Context, items []Acceptance) []Accepted
}

// Publisher publishes wakeups after a commit. It bounds itself and never fails the caller.
type Publisher interface {
	Publish(ctx context.Context, hint task.Hint)
}

// acceptBound is how long one acceptance may take, repeats included. It doesn't end with the client's
// connection: a client that hangs up must not decide whether its command exists.
const acceptBound = 15 * time.Second

// Accepter accepts inferred adds.
type Accepter struct {
	store     AcceptStore
	publisher Publisher
	prices    credit.Prices
	policy    []byte
}

// NewAccepter returns an Accepter. Policy is the service's extraction policy, as JSON; it is kept with each task
// together with the workspace's.
func NewAccepter(store AcceptStore, publisher Publisher, prices credit.Prices, policy []byte) (*Accepter, error) {
	if store == nil || publisher == nil {
		return nil, errors.New("accepter: store and publisher are required")
	}
	if err := prices.Validate(); err != nil {
		return nil, fmt.Errorf("accepter: %w", err)
	}
	if policy == nil {
		policy = []byte("{}")
	}
	return &Accepter{store: store, publisher: publisher, prices: prices, policy: policy}, nil
}

// Receipt is what the caller holds after an acceptance.
type Receipt struct {
	EventID  uuid.UUID
	Status   task.EventStatus
	Replayed bool
}

// Accept commits add under key and answers its receipt; the same add under the same key answers the same
// receipt. Faults: IDEMPOTENCY_CONFLICT, IDEMPOTENCY_IN_PROGRESS, INSUFFICIENT_CREDITS, UNAVAILABLE (nothing
// was kept), ACCEPTANCE_UNKNOWN (send the same again).
func (a *Accepter) Accept(ctx context.Context, caller access.Caller, key command.Key, add command.Add) (Receipt, error) {
	claim, err := claimOf(caller.Workspace, key, add)
	if err != nil {
		return Receipt{}, err
	}
	payload, err := add.Encode()
	if err != nil {
		return Receipt{}, err
	}
	policy, err := snapshot(a.policy, caller.Workspace)
	if err != nil {
		return Receipt{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Receipt{}, fmt.Errorf("make event id: %w", err)
	}
	item := Acceptance{
		TaskID: id, WorkspaceID: caller.Workspace.ID, Kind: task.Infer, Claim: claim, Scope: add.Scope,
		Ordered: add.Ordered, Payload: payload, Format: command.Format, Policy: policy,
		Price: a.prices.Of(task.Infer, caller.Workspace.Metered), Priority: task.Interactive,
	}
	item.Origin = task.OriginOf(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	accepted := resolve(func() Accepted { return a.store.Accept(ctx, []Acceptance{item})[0] })
	if accepted.Refused != nil {
		return Receipt{}, accepted.Refused
	}
	failpoint.Hit("accept.before_hint")
	if accepted.Hint != nil {
		a.publisher.Publish(ctx, *accepted.Hint)
	}
	return Receipt{EventID: accepted.TaskID, Status: accepted.Status, Replayed: accepted.Replayed && accepted.TaskID != id}, nil
}

// resolve runs an acceptance and, when the answer to its COMMIT was lost, repeats it once: the repeat finds its
// own task id under the key, or accepts. Any failure of the repeat leaves it open: ACCEPTANCE_UNKNOWN.
func resolve(run func() Accepted) Accepted {
	first := run()
	if !errors.Is(first.Refused, fault.ErrCommitUnknown) {
		return first
	}
	second := run()
	if second.Refused != nil {
		return Accepted{Refused: fault.Wrap(fault.AcceptanceUnknown, second.Refused)}
	}
	return second
}

// claimOf derives the key's claim: the hash of the key, and the fingerprint under the workspace's own secret.
func claimOf(w access.Workspace, key command.Key, add command.Add) (Claim, error) {
	print, err := add.Fingerprint()
	if err != nil {
		return Claim{}, err
	}
	return newClaim(w, key, print), nil
}

func newClaim(w access.Workspace, key command.Key, print command.Fingerprint) Claim {
	mac := hmac.New(sha256.New, w.FingerprintKey)
	mac.Write(print[:])
	return Claim{
		KeyHash: key.Hash(), Fingerprint: [sha256.Size]byte(mac.Sum(nil)),
		FingerprintVersion: command.FingerprintVersion, Suspended: w.Suspended,
	}
}
