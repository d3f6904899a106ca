package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type mcpCommand struct {
	remote
	scoped
}

const (
	// toolBound is longer than a tool call may take on the server, its wait of 25 s included.
	toolBound = 60 * time.Second
	// maxProblem bounds a refusal.
	maxProblem = 64 << 10
)

// Run passes the tools of a running Holdfast on over standard input and output, until the input ends. Only the protocol
// is written to standard output.
func (c *mcpCommand) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	scope := map[string]any{}
	c.into(scope)
	if len(scope) == 0 {
		return exitf(app.ExitUsage, "whose memory? Give at least one of --user-id, --agent-id, --run-id and --app-id")
	}
	up := &upstream{connect: func(ctx context.Context) (*sdk.ClientSession, error) { return dialTools(ctx, api, c.scoped) }}
	defer up.close()
	server, err := newRelay(s.ctx, up)
	if err != nil {
		return startFailure(s.ctx, api.base, err)
	}
	fmt.Fprintf(s.err, "holdfast: MCP on standard input and output, for %s\n", api.base)
	err = server.Run(s.ctx, &sdk.IOTransport{Reader: s.in, Writer: keepOpen{s.out}})
	if err != nil && s.ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// startFailure tells why there is nothing to pass on.
func startFailure(ctx context.Context, base string, err error) error {
	if ctx.Err() != nil {
		return exitf(exitInterrupted, "interrupted")
	}
	if refused, ok := errors.AsType[*exitError](err); ok {
		return refused
	}
	return exitf(exitTryAgain, "%s does not serve MCP: %v", base, err)
}

// keepOpen is an output that isn't closed by who writes to it.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// dialTools connects to the tools of an API, in the scope.
func dialTools(ctx context.Context, api *client, scope scoped) (*sdk.ClientSession, error) {
	header := http.Header{"Authorization": {"Bearer " + api.key.Reveal()}}
	for name, value := range map[string]string{
		"X-Holdfast-User-Id": scope.UserID, "X-Holdfast-Agent-Id": scope.AgentID, "X-Holdfast-Run-Id": scope.RunID,
		"X-Holdfast-App-Id": scope.AppID,
	} {
		if value != "" {
			header.Set(name, value)
		}
	}
	caller := sdk.NewClient(&sdk.Implementation{Name: "holdfast", Version: app.Version()}, nil)
	session, err := caller.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: api.base + "/mcp", DisableStandaloneSSE: true, MaxRetries: -1, // a relay decides what is repeated
		HTTPClient: &http.Client{
			Timeout: toolBound, Transport: signed{header},
			// The key goes to the API that was named and to no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return session, nil
}

// signed adds the key and the scope to every request, and turns problem documents into errors.
type signed struct{ header http.Header }

func (t signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range t.header {
		r.Header[name] = values
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/problem+json") {
		return response, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return nil, fmt.Errorf("read refusal: %w", err)
	}
	return nil, answer{response.StatusCode, response.Header, body}.refusal()
}
