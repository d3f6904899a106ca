package httpapi

import (
	"context"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// Policies changes how the conversations of a workspace are read.
type Policies interface {
	Change(ctx context.Context, caller access.Caller, change command.PolicyChange) (command.ExtractionPolicy, error)
}

// GetExtractionPolicy answers what the caller's workspace adds to how its conversations are read.
func (s *Server) GetExtractionPolicy(ctx context.Context, _ contract.GetExtractionPolicyRequestObject) (contract.GetExtractionPolicyResponseObject, error) {
	return ok(policyOf(command.ReadExtractionPolicy(callOf(ctx).caller.Workspace.Extraction))), nil
}

// SetExtractionPolicy replaces it; what the body doesn't have is empty from now on.
func (s *Server) SetExtractionPolicy(ctx context.Context, request contract.SetExtractionPolicyRequestObject) (contract.SetExtractionPolicyResponseObject, error) {
	instructions, categories := or(request.Body.Instructions, ""), categoriesIn(request.Body.Categories)
	change, err := command.NewPolicyChange(command.PolicyChange{Instructions: &instructions, Categories: &categories})
	if err != nil {
		return nil, err
	}
	policy, err := s.deps.Policies.Change(ctx, callOf(ctx).caller, change)
	if err != nil {
		return nil, err
	}
	return ok(policyOf(policy)), nil
}

func policyOf(p command.ExtractionPolicy) contract.ExtractionPolicy {
	shown := contract.ExtractionPolicy{Instructions: p.Instructions, Categories: make([]contract.Category, len(p.Categories))}
	for i, c := range p.Categories {
		shown.Categories[i] = contract.Category{Name: c.Name, Description: present(c.Description)}
	}
	return shown
}

// categoriesIn reads a list of a body, nil without one.
func categoriesIn(given *[]contract.Category) []memory.Category {
	if given == nil {
		return nil
	}
	categories := make([]memory.Category, len(*given))
	for i, c := range *given {
		categories[i] = memory.Category{Name: c.Name, Description: or(c.Description, "")}
	}
	return categories
}
