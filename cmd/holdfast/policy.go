package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/app"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/postgres"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// maxPolicyFile is above the longest policy: a hundred descriptions and the instructions, four bytes a character.
const maxPolicyFile = 1 << 20

type workspacePolicy struct {
	app.Database
	Workspace string `arg:"" help:"Its id or name."`
	Set       string `env:"-" placeholder:"FILE" help:"A JSON file with instructions and categories to take its place (- for standard input)."`
}

func (c *workspacePolicy) Run(s *session) error {
	change, err := c.change(s)
	if err != nil {
		return err
	}
	return s.admin(c.Database, func(db *postgres.DB) error {
		w, err := db.Workspace(s.ctx, c.Workspace)
		if err != nil {
			return unknownWorkspace(err, c.Workspace)
		}
		if change != nil {
			policies, err := write.NewPolicies(db)
			if err != nil {
				return err
			}
			operator := access.Caller{Workspace: access.Workspace{ID: w.ID}}
			if _, err := policies.Change(s.ctx, operator, *change); err != nil {
				return err
			}
		}
		kept, err := db.Policy(s.ctx, w.ID)
		if err != nil {
			return err
		}
		policy := command.ReadExtractionPolicy(kept)
		shown := map[string]any{"instructions": policy.Instructions, "categories": append([]memory.Category{}, policy.Categories...)}
		if s.json {
			return s.encode(shown)
		}
		pretty, err := json.MarshalIndent(shown, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the policy: %w", err)
		}
		return s.show(nil, "%s\n", pretty)
	})
}

// change reads the file, nil without one. What it doesn't have is empty from now on.
func (c *workspacePolicy) change(s *session) (*command.PolicyChange, error) {
	if c.Set == "" {
		return nil, nil
	}
	from := s.in
	if c.Set != "-" {
		file, err := os.Open(c.Set)
		if err != nil {
			return nil, exitf(app.ExitUsage, "the policy: %v", err)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxPolicyFile))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	var given command.ExtractionPolicy
	reader := json.NewDecoder(bytes.NewReader(raw))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&given); err != nil {
		return nil, exitf(app.ExitUsage, "the policy is no JSON object of instructions and categories")
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return nil, exitf(app.ExitUsage, "the policy is more than one JSON object")
	}
	change, err := command.NewPolicyChange(command.PolicyChange{Instructions: &given.Instructions, Categories: &given.Categories})
	if err != nil {
		return nil, err
	}
	return &change, nil
}
