package mcp

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
)

// path is where the tools are served.
const path = "/mcp"

// maxMessage bounds one message: the largest command and what the protocol puts around it.
const maxMessage = command.MaxBody + 16<<10

// Events reads single events.
type Events interface {
	Get(ctx context.Context, workspace, id uuid.UUID) (recall.Event, error)
}

// Deps are the use cases that the tools need, all of them required.
type Deps struct {
	Accepter httpapi.Accepter
	Changer  httpapi.Changer
	Events   Events
	Memories httpapi.Memories
	Searcher httpapi.Searcher
}

// Config holds the settings of the tools.
type Config struct {
	// Version is this build's, as it is told to clients.
	Version string
	// Origins are pages, such as https://console.example.com, that may call the tools from a browser beside those of
	// the server's own host.
	Origins []string
}

// New returns the tools, to be mounted into an httpapi.Server.
func New(deps Deps, config Config) (httpapi.Mount, error) {
	if deps.Accepter == nil || deps.Changer == nil || deps.Events == nil || deps.Memories == nil || deps.Searcher == nil {
		return httpapi.Mount{}, errors.New("mcp: accepter, changer, events, memories and searcher are required")
	}
	allowed, err := newOrigins(config.Origins)
	if err != nil {
		return httpapi.Mount{}, err
	}
	server := newServer(deps, config.Version)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxMessage,
		// The door judges hosts and origins, and lets a proxy on this machine keep the host that its client named.
		DisableLocalhostProtection: true,
	})
	return httpapi.Mount{Path: path, MaxBody: maxMessage, Handler: door{allowed, handler}}, nil
}

// newServer returns the one server of all connections. It keeps nothing of a request.
func newServer(deps Deps, version string) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "holdfast", Title: "Holdfast", Version: version}, &sdk.ServerOptions{
		Instructions: instructions,
		// No list ever changes, and there is no log to subscribe to.
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}},
		// What is listed depends on the key.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	table := tools(deps)
	for _, t := range table {
		server.AddTool(t.described(), t.serve)
	}
	server.AddReceivingMiddleware(gate(table))
	return server
}
