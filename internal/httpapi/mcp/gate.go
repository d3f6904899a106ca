package mcp

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

// maxStack is how much of a panic's stack is logged: enough for the frames of ours.
const maxStack = 4 << 10

// gate comes before every message: it knows the methods that there are, lists the tools that the key allows, and
// tells a client without a scope so before it lists any. Handlers run in goroutines of the SDK, so panics end here.
func gate(table []tool) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
			defer func() {
				if value := recover(); value != nil {
					logPanic(ctx, value)
					result, err = nil, protocolError(fault.New(fault.InternalError))
				}
			}()
			switch {
			case method == "tools/call" || method == "ping" || strings.HasPrefix(method, "notifications/"):
				return next(ctx, method, req) // a tool says itself what is wrong, in a way that its model reads
			case method == "initialize" || method == "server/discover" || method == "tools/list":
			default:
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there are tools only"}
			}
			if refused := connectionOf(ctx).refused; refused != nil {
				return nil, protocolError(httpapi.Refusal(ctx, refused))
			}
			result, err = next(ctx, method, req)
			if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
				list.Tools = permitted(ctx, table, list.Tools)
			}
			return result, err
		}
	}
}

// permitted returns those of the listed tools that the caller's key allows.
func permitted(ctx context.Context, table []tool, listed []*sdk.Tool) []*sdk.Tool {
	caller := httpapi.CallerOf(ctx)
	allowed := map[string]bool{}
	for _, t := range table {
		allowed[t.name] = caller.Require(t.permission) == nil
	}
	kept := make([]*sdk.Tool, 0, len(listed))
	for _, t := range listed {
		if allowed[t.Name] {
			kept = append(kept, t)
		}
	}
	return kept
}

// protocolError says a fault to a client, not to its model.
func protocolError(f *fault.Error) error {
	said := refusalOf(f)
	text := said.Code + ": " + said.Message
	if f.Code == fault.ScopeRequired {
		text = fmt.Sprintf("%s: send at least one of the headers %s, %s, %s and %s.", said.Code, userHeader, agentHeader,
			runHeader, appHeader)
	}
	if f.Rule != "" {
		text += " " + strings.TrimPrefix(f.Pointer, "/") + ": " + f.Rule + "."
	}
	code := int64(jsonrpc.CodeInvalidParams)
	if f.Kind() == fault.Internal {
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Error{Code: code, Message: text}
}

// logPanic logs that something panicked, neither its value nor anything of the call.
func logPanic(ctx context.Context, value any) {
	stack := debug.Stack()
	zerolog.Ctx(ctx).Error().Str("code", string(fault.InternalError)).Str("panic", fmt.Sprintf("%T", value)).
		Bytes("stack", stack[:min(len(stack), maxStack)]).Msg("tool panicked")
}
