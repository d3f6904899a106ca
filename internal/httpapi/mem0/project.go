package mem0

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

const (
	projectUpdated  = "Project updated. What was accepted before keeps the settings it was accepted with."
	projectNotFound = "Project not found!"
	settingsRule    = "The settings of a project here are custom_instructions and custom_categories. Nothing was changed."
)

// project answers the settings of the key's workspace, or those of them that the query's fields name.
func (h handlers) project(_ context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	if err := ownProject(call); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	workspace := call.Caller.Workspace
	policy := command.ReadExtractionPolicy(workspace.Extraction)
	shown := map[string]any{
		"id": projectID(workspace.ID), "org_id": orgID(workspace.ID), "name": workspace.Name, "custom_instructions": nil,
		"custom_categories": shownCategories(policy.Categories),
	}
	if policy.Instructions != "" {
		shown["custom_instructions"] = policy.Instructions
	}
	if fields := fieldsOf(call.Query["fields"]); len(fields) > 0 {
		for name := range shown {
			if !slices.Contains(fields, name) {
				delete(shown, name)
			}
		}
	}
	return httpapi.GuestAnswer{Body: shown}, nil
}

// fieldsOf reads the names of members: one or several in each value.
func fieldsOf(values []string) []string {
	var fields []string
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				fields = append(fields, name)
			}
		}
	}
	return fields
}

// shownCategories is the form in which the clients send them: one object of name and description each.
func shownCategories(categories []memory.Category) []map[string]string {
	shown := make([]map[string]string, len(categories))
	for i, c := range categories {
		shown[i] = map[string]string{c.Name: c.Description}
	}
	return shown
}

// updateProject changes the workspace's extraction policy: what is null is empty from now on, what is absent stays. A
// setting that there is none of here is refused, unless it is switched off.
func (h handlers) updateProject(ctx context.Context, call httpapi.GuestCall) (httpapi.GuestAnswer, error) {
	if err := ownProject(call); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	change, err := policyChangeOf(call)
	if err != nil {
		return httpapi.GuestAnswer{}, err
	}
	if _, err := h.deps.Policies.Change(ctx, call.Caller, change); err != nil {
		return httpapi.GuestAnswer{}, err
	}
	return httpapi.GuestAnswer{Body: told{Message: projectUpdated}}, nil
}

func policyChangeOf(call httpapi.GuestCall) (command.PolicyChange, error) {
	var members map[string]json.RawMessage // with those that are null
	if err := json.Unmarshal(call.Body, &members); err != nil || members == nil {
		return command.PolicyChange{}, bad("", "an object")
	}
	var change command.PolicyChange
	for name, raw := range members {
		off := slices.Contains([]string{"null", "false"}, string(bytes.TrimSpace(raw)))
		switch name {
		case "custom_instructions":
			text := ""
			if err := json.Unmarshal(raw, &text); err != nil {
				return command.PolicyChange{}, bad("/custom_instructions", "a string or null")
			}
			change.Instructions = &text
		case "custom_categories":
			categories, err := categoriesOf(raw)
			if err != nil {
				return command.PolicyChange{}, err
			}
			change.Categories = &categories
		case "org_id", "project_id": // which the path says too
		default:
			if !off {
				return command.PolicyChange{}, inWords(fault.NotImplemented, settingsRule)
			}
		}
	}
	change, err := command.NewPolicyChange(change)
	return change, renamed(err)
}

// ownProject refuses what is not the organisation and the project of the key's workspace.
func ownProject(call httpapi.GuestCall) error {
	id := call.Caller.Workspace.ID
	if call.Param("org") != orgID(id) || call.Param("project") != projectID(id) {
		return inWords(fault.RouteNotFound, projectNotFound)
	}
	return nil
}

// inWords is a fault with words of this dialect.
func inWords(code fault.Code, text string) error {
	f := fault.New(code)
	f.Details = map[string]any{words: text}
	return f
}
