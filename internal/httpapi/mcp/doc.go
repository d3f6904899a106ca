// Package mcp serves Holdfast to agents over the Model Context Protocol: five tools at one path, without sessions
// and without streams, so that a connection leaves nothing behind and any replica answers any request.
//
// Rules it guards: whose memory it is comes from the connection's headers and never from an argument, because
// arguments are written by a model that reads other people's texts; what lies outside the connection's scope is
// answered like what doesn't exist; a tool that the key does not allow is not listed, and refused when it is called
// all the same; texts of memories are answered as data and never interpreted; a write always has an idempotency key
// and its caller always learns it; a page of a foreign site that runs in somebody's browser is refused.
//
// It belongs to the httpapi family and may import that, the use cases, the domain and the MCP SDK.
package mcp
