package write

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/model"
)

// PolicyStore keeps the extraction policy of a workspace. ChangePolicy replaces the members of it that are given and
// answers all of it; its errors are those of AcceptStore.
type PolicyStore interface {
	ChangePolicy(ctx context.Context, workspace uuid.UUID, members []byte) (policy []byte, err error)
}

// Policies changes how the conversations of a workspace are read.
type Policies struct{ store PolicyStore }

// NewPolicies returns the use case.
func NewPolicies(store PolicyStore) (*Policies, error) {
	if store == nil {
		return nil, errors.New("policies: a store is required")
	}
	return &Policies{store}, nil
}

// Change commits the change and answers the whole policy. It is for commands that are accepted from now on: those that
// are accepted already are read as the policy was then, also when they are retried. Doing it twice changes nothing.
func (p *Policies) Change(ctx context.Context, caller access.Caller, change command.PolicyChange) (command.ExtractionPolicy, error) {
	if err := caller.Writable(); err != nil {
		return command.ExtractionPolicy{}, err
	}
	members, err := change.Encode()
	if err != nil {
		return command.ExtractionPolicy{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptBound)
	defer cancel()
	var kept []byte
	answer := resolve(func() Accepted {
		var err error
		kept, err = p.store.ChangePolicy(ctx, caller.Workspace.ID, members)
		return Accepted{Refused: err}
	})
	if answer.Refused != nil {
		return command.ExtractionPolicy{}, answer.Refused
	}
	return command.ReadExtractionPolicy(kept), nil
}

// snapshot returns what is kept with a command: the service's policy with what the workspace adds to it now.
func snapshot(service []byte, workspace access.Workspace) ([]byte, error) {
	added := command.ReadExtractionPolicy(workspace.Extraction)
	if added.Empty() {
		return service, nil
	}
	policy := model.ReadPolicy(service)
	policy.Instructions, policy.Categories = added.Instructions, added.Categories
	kept, err := policy.Encode()
	if err != nil {
		return nil, fmt.Errorf("keep the policy: %w", err)
	}
	return kept, nil
}
