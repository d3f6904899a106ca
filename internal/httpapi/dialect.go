package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/contract"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// maxLargeBodies bounds the bodies above command.MaxBody that are in hand at once; further ones are refused with
// UNAVAILABLE. Each costs several times its size while it is read.
const maxLargeBodies = 16

// Dialect is a further set of routes over the same use cases, guarded like the native ones by a document of its own.
type Dialect struct {
	// Document is the OpenAPI 3.0 document of the routes. Components that the native one has too are the native one's
	// in the document that is served.
	Document []byte
	// Handlers answer the operations of the document by their ids. Each has exactly one.
	Handlers map[string]Handler
}

// Call is a request that the guard has let through: its body is what the document says.
type Call struct {
	Caller access.Caller
	Header http.Header
	body   []byte
}

// Handler answers a call with what is sent as JSON with status 200.
type Handler func(ctx context.Context, call Call) (any, error)

// Read decodes the body.
func (c Call) Read(into any) error {
	if err := json.Unmarshal(c.body, into); err != nil {
		return fault.Wrap(fault.InternalError, fmt.Errorf("decode a body that was validated: %T", err))
	}
	return nil
}

// mount adds a dialect's routes, and its document to the one that is served.
func (s *Server) mount(doc *openapi3.T, d Dialect) error {
	own, err := loadDocument(d.Document)
	if err != nil {
		return err
	}
	table, err := newOperations(own)
	if err != nil {
		return err
	}
	handlers := maps.Clone(d.Handlers)
	for place, op := range table {
		handler, ok := handlers[op.id]
		if !ok || s.operations[place] != nil {
			return fmt.Errorf("httpapi: %s has no handler, or two documents have it", place)
		}
		delete(handlers, op.id)
		s.operations[place] = op
		s.echo.Add(op.route.Method, echoPattern(op.route.Path), route{handler}.serve)
	}
	if len(handlers) > 0 {
		return fmt.Errorf("httpapi: %d handlers are for no operation of the document", len(handlers))
	}
	for path, item := range own.Paths.Map() {
		doc.Paths.Set(path, item)
	}
	addComponents(doc.Components, own.Components)
	doc.Tags = append(doc.Tags, own.Tags...)
	return nil
}

// addComponents adds what the document doesn't have yet.
func addComponents(to, from *openapi3.Components) {
	for name, schema := range from.Schemas {
		if _, known := to.Schemas[name]; !known {
			to.Schemas[name] = schema
		}
	}
	for name, parameter := range from.Parameters {
		if _, known := to.Parameters[name]; !known {
			to.Parameters[name] = parameter
		}
	}
	for name, response := range from.Responses {
		if _, known := to.Responses[name]; !known {
			to.Responses[name] = response
		}
	}
}

// route is one operation of a dialect.
type route struct{ handler Handler }

func (r route) serve(c echo.Context) error {
	raw, err := io.ReadAll(c.Request().Body) // bounded by the guard, which has read it already
	if err != nil {
		return fault.At(fault.InvalidBody, "", command.CompleteJSON)
	}
	ctx := c.Request().Context()
	body, err := r.handler(ctx, Call{Caller: callOf(ctx).caller, Header: c.Request().Header, body: raw})
	if err != nil {
		return err
	}
	return send(c.Response(), http.StatusOK, jsonType, body)
}

// takeLarge takes a place among the large bodies if this one may be one of them, and answers what gives it back.
func (s *Server) takeLarge(r *http.Request, op *operation) (leave func(), err error) {
	if op.maxBody <= command.MaxBody || r.ContentLength >= 0 && r.ContentLength <= command.MaxBody {
		return func() {}, nil
	}
	select {
	case s.large <- struct{}{}:
		return func() { <-s.large }, nil
	default:
		return nil, fault.New(fault.UnavailableNow)
	}
}

// takeItemEvent replaces an item's event id in the path by the id of the item's latest task.
func (s *Server) takeItemEvent(c echo.Context, this *call) error {
	id, err := s.deps.ItemEvents.TaskOf(c.Request().Context(), this.caller.Workspace.ID, c.Param("id"))
	if err != nil {
		return err
	}
	c.SetParamValues(id.String())
	return nil
}

// EventID returns an event's id as it is shown.
func EventID(id uuid.UUID) string { return eventID(id) }

// MemoryID returns a memory's id as it is shown.
func MemoryID(id uuid.UUID) string { return memoryID(id) }

// ParseMemoryID reads a memory's id with its prefix or bare; false for anything else.
func ParseMemoryID(text string) (uuid.UUID, bool) { return parseID(memoryPrefix, text) }

// MemoryOf is the representation of a record.
func MemoryOf(record memory.Record) contract.Memory { return memoryOf(record) }
