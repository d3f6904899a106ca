package command

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// ExtractionPolicy is what a workspace adds to how its conversations are read. It is kept with each command as it was
// when the command was accepted.
type ExtractionPolicy struct {
	// Instructions are wishes for each extraction; a command's own come on top.
	Instructions string `json:"instructions,omitempty"`
	// Categories are what facts may be filed under, none if it is empty.
	Categories []memory.Category `json:"categories,omitempty"`
}

// PolicyChange is what to change of an extraction policy. What is nil stays as it is.
type PolicyChange struct {
	Instructions *string
	Categories   *[]memory.Category
}

// NewPolicyChange returns the change that was asked for: blank instructions are none, names and descriptions are
// trimmed. Faults: INVALID_REQUEST with pointer and rule.
func NewPolicyChange(given PolicyChange) (PolicyChange, error) {
	var change PolicyChange
	if given.Instructions != nil {
		text := *given.Instructions
		switch {
		case utf8.RuneCountInString(text) > MaxInstructions:
			return PolicyChange{}, fault.At(fault.InvalidRequest, "/instructions", "at most 5000 characters")
		case !storable(text):
			return PolicyChange{}, fault.At(fault.InvalidRequest, "/instructions", "valid UTF-8 without NUL")
		case Blank(text):
			text = ""
		}
		change.Instructions = &text
	}
	if given.Categories != nil {
		categories, err := memory.NewCategories("/categories", *given.Categories)
		if err != nil {
			return PolicyChange{}, err
		}
		change.Categories = &categories
	}
	return change, nil
}

// Encode returns the members to change, as they are kept.
func (c PolicyChange) Encode() ([]byte, error) {
	members := map[string]any{}
	if c.Instructions != nil {
		members["instructions"] = *c.Instructions
	}
	if c.Categories != nil {
		members["categories"] = append([]memory.Category{}, *c.Categories...) // a list, also when it is empty
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("encode extraction policy: %w", err)
	}
	return encoded, nil
}

// ReadExtractionPolicy returns a policy that was kept, the empty one if it cannot be read: no command is refused for it.
func ReadExtractionPolicy(kept []byte) ExtractionPolicy {
	var policy ExtractionPolicy
	if json.Unmarshal(kept, &policy) != nil {
		return ExtractionPolicy{}
	}
	return policy
}

// Empty tells whether the policy adds nothing.
func (p ExtractionPolicy) Empty() bool { return p.Instructions == "" && len(p.Categories) == 0 }
