package model

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// Policy is how a command is to be read, as it was when the command was accepted. It is kept with the task. Prompt,
// instructions and categories bind the worker that runs it; extractor and model are there for whoever asks later why a memory reads as
// it does, and a task of a provider that is gone is read by the one that there is.
type Policy struct {
	Prompt    string `json:"prompt,omitempty"`
	Extractor string `json:"extractor,omitempty"`
	Model     string `json:"model,omitempty"`
	// Instructions and Categories are the workspace's own.
	Instructions string            `json:"instructions,omitempty"`
	Categories   []memory.Category `json:"categories,omitempty"`
}

// Encode returns the policy as it is kept.
func (p Policy) Encode() ([]byte, error) {
	encoded, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode policy: %w", err)
	}
	return encoded, nil
}

// ReadPolicy returns a policy that was kept, the empty one if it cannot be read: a command is never lost to it.
func ReadPolicy(encoded []byte) Policy {
	var p Policy
	if json.Unmarshal(encoded, &p) != nil {
		return Policy{}
	}
	return p
}
