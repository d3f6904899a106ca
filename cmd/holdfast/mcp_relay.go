package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-memory/holdfast/internal/app"
)

const (
	writeTool = "add_memory"
	keyName   = "idempotency_key"
	// relayTries is how often a call is sent whose answer doesn't come: enough for a restart of the API.
	relayTries = 4
	// relayPause is the pause before the second try; it doubles.
	relayPause = 500 * time.Millisecond
)

// upstream is a connection to the API's tools that is made again when it breaks.
type upstream struct {
	connect func(ctx context.Context) (*sdk.ClientSession, error)

	mu   sync.Mutex
	open *sdk.ClientSession
}

// session returns the open session, or makes one.
func (u *upstream) session(ctx context.Context) (*sdk.ClientSession, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open != nil {
		return u.open, nil
	}
	session, err := u.connect(ctx)
	if err != nil {
		return nil, err
	}
	u.open = session
	return session, nil
}

// drop forgets a session that failed. The API keeps none, so there is nothing to tell it.
func (u *upstream) drop(failed *sdk.ClientSession) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if failed != nil && u.open == failed {
		u.open = nil
		_ = failed.Close()
	}
}

func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.open != nil {
		_ = u.open.Close()
		u.open = nil
	}
}

// newRelay returns a server with the tools that the API lists for this key.
func newRelay(ctx context.Context, up *upstream) (*sdk.Server, error) {
	session, err := up.session(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	options := &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}}
	if begun := session.InitializeResult(); begun != nil {
		options.Instructions = begun.Instructions
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "holdfast", Title: "Holdfast", Version: app.Version()}, options)
	for _, tool := range listed.Tools {
		server.AddTool(tool, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return relay(ctx, up, tool, req.Params.Arguments)
		})
	}
	return server, nil
}

// relay passes a call on. A call whose answer is lost is repeated if that does no harm: a question, or a write under
// the one key that it has here.
func relay(ctx context.Context, up *upstream, tool *sdk.Tool, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	arguments, key := keyed(tool.Name, arguments)
	harmless := tool.Annotations != nil && tool.Annotations.ReadOnlyHint || key != ""
	pause := relayPause
	for try := 1; ; try++ {
		result, err := relayOnce(ctx, up, &sdk.CallToolParams{Name: tool.Name, Arguments: arguments})
		if err == nil {
			return result, nil
		}
		if refused := saidNo(err); refused != nil {
			return nil, refused
		}
		_, answered := errors.AsType[*exitError](err)
		if answered || !harmless || try == relayTries || ctx.Err() != nil {
			return lost(err, key)
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return lost(err, key)
		}
	}
}

func relayOnce(ctx context.Context, up *upstream, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	session, err := up.session(ctx)
	if err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, params)
	if err != nil {
		if saidNo(err) == nil && ctx.Err() == nil {
			up.drop(session)
		}
		return nil, fmt.Errorf("call tool: %w", err)
	}
	return result, nil
}

// saidNo returns the API's own refusal in err, nil if there is none. The SDK has errors of the same type, with codes of
// its own, for connections that break.
func saidNo(err error) error {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || refused.Code < jsonrpc.CodeParseError || refused.Code > jsonrpc.CodeInvalidRequest {
		return nil
	}
	return refused
}

// keyed returns the arguments of a write with its key, one that is made here if the caller gave none, and the key; no
// key for other tools and for what is no object, which the API refuses.
func keyed(tool string, arguments json.RawMessage) (json.RawMessage, string) {
	var members map[string]json.RawMessage
	if tool != writeTool || json.Unmarshal(arguments, &members) != nil || members == nil {
		return arguments, ""
	}
	if given := members[keyName]; given != nil && string(given) != "null" {
		var key string
		if json.Unmarshal(given, &key) != nil {
			return arguments, ""
		}
		return arguments, key
	}
	id, err := uuid.NewV7()
	if err != nil {
		return arguments, ""
	}
	members[keyName] = json.RawMessage(`"` + id.String() + `"`)
	with, err := json.Marshal(members)
	if err != nil {
		return arguments, ""
	}
	return with, id.String()
}

// lost is the result of a call that the API refused as a whole, or that it didn't answer.
func lost(err error, key string) (*sdk.CallToolResult, error) {
	said := map[string]any{
		"code": "UNAVAILABLE", "message": "Holdfast does not answer.", "retryable": true,
		"action": "Repeat the same call later. A write is repeated with the same idempotency_key, so that it happens once.",
	}
	if refused, ok := errors.AsType[*exitError](err); ok {
		said = map[string]any{
			"code": "REFUSED", "message": refused.text, "retryable": refused.code == exitTryAgain,
			"action": "Do what the message says.",
		}
	}
	if key != "" {
		said[keyName] = key
	}
	raw, err := json.Marshal(map[string]any{"error": said})
	if err != nil {
		return nil, fmt.Errorf("encode refusal: %w", err)
	}
	return &sdk.CallToolResult{
		IsError: true, StructuredContent: json.RawMessage(raw), Content: []sdk.Content{&sdk.TextContent{Text: string(raw)}},
	}, nil
}
