package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

// instructions tell a client's model how the tools belong together.
const instructions = "Long-term memory. add_memory keeps what was said and answers a receipt at once; the memories are made a " +
	"little later, and get_event tells what became of it. search_memory finds memories by meaning and words. Whose " +
	"memory it is, is fixed by this connection and cannot be chosen. " + notice

// callBound is how long a call may take apart from the time that it waits: longer than what an acceptance may take.
const callBound = 20 * time.Second

// tool is one thing that a model can do.
type tool struct {
	name        string
	title       string
	description string
	schema      string
	permission  access.Permission
	readOnly    bool
	destructive bool
	idempotent  bool
	call        func(ctx context.Context, call call) (any, error)
}

// call is one use of a tool by an authenticated caller inside the connection's scope.
type call struct {
	connection

	caller    access.Caller
	arguments json.RawMessage
}

// described is the tool as clients see it.
func (t tool) described() *sdk.Tool {
	closed := false
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(t.schema),
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.readOnly, DestructiveHint: &t.destructive, IdempotentHint: t.idempotent,
			OpenWorldHint: &closed,
		},
	}
}

// serve answers one call. Whatever is refused is a result that the model reads, with a code of the catalogue; a line
// in the log has the code, and nothing that was said.
func (t tool) serve(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	began := time.Now()
	value, err := t.answer(ctx, req)
	line := zerolog.Ctx(ctx).Info().Str("tool", t.name).Int64("duration_ms", time.Since(began).Milliseconds())
	if err != nil {
		f := httpapi.Refusal(ctx, err)
		line.Str("code", string(f.Code)).Msg("tool call")
		said := refusalOf(f)
		if keyed, ok := errors.AsType[*keyedError](err); ok {
			said.IdempotencyKey = keyed.key
		}
		return refused(said)
	}
	line.Msg("tool call")
	return answered(value)
}

func (t tool) answer(ctx context.Context, req *sdk.CallToolRequest) (value any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			logPanic(ctx, panicked)
			value, err = nil, fault.New(fault.InternalError)
		}
	}()
	c := call{connection: connectionOf(ctx), caller: httpapi.CallerOf(ctx), arguments: req.Params.Arguments}
	if err := c.caller.Require(t.permission); err != nil {
		return nil, err
	}
	if c.refused != nil {
		return nil, c.refused
	}
	ctx, cancel := context.WithTimeout(ctx, callBound+maxWait*time.Second)
	defer cancel()
	defer context.AfterFunc(c.left, cancel)() //nolint:contextcheck // the request's own context, which ctx may outlive
	return t.call(ctx, c)
}

// tools returns all tools in the order in which they are listed.
func tools(deps Deps) []tool {
	return []tool{
		addTool(deps), searchTool(deps), eventTool(deps), listTool(deps), deleteTool(deps),
	}
}
