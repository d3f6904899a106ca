package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

const addSchema = `{
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "text": {"type": "string", "minLength": 1, "maxLength": 200000, "description": "What to remember, in plain words. Give text or messages."},
    "messages": {
      "type": "array", "minItems": 1, "maxItems": 500, "description": "A conversation to remember from. Give text or messages.",
      "items": {
        "type": "object", "additionalProperties": false, "required": ["role", "content"],
        "properties": {
          "role": {"type": "string", "minLength": 1, "maxLength": 64, "description": "user, assistant or another speaker's role."},
          "content": {"type": "string", "minLength": 1, "maxLength": 200000}
        }
      }
    },
    "wait": {"type": "integer", "minimum": 0, "maximum": 25, "description": "Seconds to wait for the outcome. Without it the receipt comes at once."},
    "idempotency_key": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$", "description": "Names this write. To repeat a call whose answer was lost, send the same arguments with the same key: it is stored once. Without one the call is a write of its own, and the answer tells the key that was made for it."}
  }
}`

func addTool(deps Deps) tool {
	return tool{
		name: "add_memory", title: "Remember",
		description: "Remember a text or a conversation. Facts are extracted and stored for this connection's user. Answers a " +
			"receipt {event_id, status, idempotency_key}; with wait, what became of it too. PENDING, RUNNING and RETRYING " +
			"are not failures: the write is accepted and must not be sent again; ask get_event.",
		schema: addSchema, permission: access.MemoryWrite,
		call: func(ctx context.Context, c call) (any, error) { return add(ctx, deps, c) },
	}
}

// keyedError is a refused write with the key that a repeat names it by.
type keyedError struct {
	key string
	err error
}

func (e *keyedError) Error() string { return e.err.Error() }
func (e *keyedError) Unwrap() error { return e.err }

func add(ctx context.Context, deps Deps, c call) (any, error) {
	var given struct {
		Text           *string        `json:"text"`
		Messages       jsontext.Value `json:"messages"`
		Wait           *int           `json:"wait"`
		IdempotencyKey *string        `json:"idempotency_key"`
	}
	if err := read(c.arguments, &given); err != nil {
		return nil, err
	}
	wait, err := waitOf(given.Wait)
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		if err := c.caller.Require(access.OperationsRead); err != nil {
			return nil, err
		}
	}
	asked, err := newAdd(c.scope, given.Text, given.Messages)
	if err != nil {
		return nil, err
	}
	name, key, err := keyOf(c.scope, given.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	receipt, err := deps.Accepter.Accept(ctx, c.caller, key, asked)
	if err != nil {
		return nil, &keyedError{name, err}
	}
	answer := map[string]any{
		"event_id": httpapi.EventID(receipt.EventID), "status": receipt.Status, "idempotency_key": name,
	}
	if receipt.Replayed {
		answer["replayed"] = true
	}
	if wait > 0 {
		// The write is accepted: whatever comes of the wait, its caller gets the receipt.
		if event, err := httpapi.AwaitEvent(ctx, receipt.EventID, time.Duration(wait)*time.Second); err == nil {
			maps.Copy(answer, eventView(event))
		}
	}
	return answer, nil
}

// newAdd returns the command of a text or messages in a scope.
func newAdd(scope memory.Scope, text *string, messages jsontext.Value) (command.Add, error) {
	input := command.AddInput{Content: text}
	switch {
	case len(messages) == 0 || string(messages) == "null":
	case !isList(messages):
		return command.Add{}, fault.At(fault.InvalidRequest, "/messages", "an array of 1 to 500 messages")
	default:
		input.Messages = json.RawMessage(messages)
	}
	if input.Content == nil && input.Messages == nil {
		return command.Add{}, fault.At(fault.InvalidRequest, "/text", "text or messages required")
	}
	for _, id := range []struct {
		value string
		field **string
	}{{scope.UserID, &input.UserID}, {scope.AgentID, &input.AgentID}, {scope.RunID, &input.RunID}, {scope.AppID, &input.AppID}} {
		if id.value != "" {
			*id.field = &id.value
		}
	}
	asked, err := command.NewAdd(input)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Pointer == "/content" {
		return command.Add{}, fault.At(f.Code, "/text", strings.ReplaceAll(f.Rule, "content", "text"))
	}
	return asked, err
}

// keyOf returns the caller's name of a write, or one that is made for it, and the key that it stands for. Names that
// models choose are short and alike, so each scope has its own: one user's agent can't meet another's.
func keyOf(scope memory.Scope, given *string) (string, command.Key, error) {
	var name string
	if given == nil {
		id, err := uuid.NewV7()
		if err != nil {
			return "", command.Key{}, fmt.Errorf("make idempotency key: %w", err)
		}
		name = id.String()
	} else {
		name = *given
	}
	if name == "" || len(name) > command.MaxKey || strings.IndexFunc(name, func(c rune) bool { return c < '!' || c > '~' }) >= 0 {
		return "", command.Key{}, fault.At(fault.InvalidIdempotencyKey, "/idempotency_key", "1 to 200 visible ASCII characters")
	}
	lane := scope.Lane()
	sum := sha256.Sum256(append(lane[:], name...))
	key, err := command.ParseKey([]string{"mcp:" + hex.EncodeToString(sum[:])})
	if err != nil {
		return "", command.Key{}, err
	}
	return name, *key, nil
}
