package app

import (
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/docs"
	"github.com/holdfast-memory/holdfast/internal/httpapi/mcp"
)

// mounts builds what is served beside the routes: the tools for agents, the reference, what operators do, and the console.
func (c *core) mounts(deps httpapi.Deps) ([]httpapi.Mount, error) {
	tools, err := mcp.New(mcp.Deps{
		Accepter: deps.Accepter, Changer: deps.Changer, Events: deps.Events, Memories: deps.Memories, Searcher: deps.Searcher,
	}, mcp.Config{Version: Version(), Origins: c.settings.MCPOrigins})
	if err != nil {
		return nil, err
	}
	reference, err := docs.New()
	if err != nil {
		return nil, err
	}
	operators, err := c.newAdmin()
	if err != nil {
		return nil, err
	}
	pages, err := c.newConsole(deps)
	if err != nil {
		return nil, err
	}
	return []httpapi.Mount{tools, reference, operators, pages}, nil
}
