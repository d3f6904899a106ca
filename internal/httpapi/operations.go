package httpapi

import (
	_ "embed" // the document is compiled in
	"fmt"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

//go:embed openapi.yaml
var document string

// operation is one route of the document with what has to be known before its handler runs.
type operation struct {
	id         string
	public     bool              // no key needed
	permission access.Permission // what the key must allow
	query      map[string]bool   // the names of its query parameters
	takesBody  bool
	takesKey   bool // reads Idempotency-Key
	waits      bool // may be asked to wait
	maxBody    int  // of its body, in bytes
	streams    bool // reads its body or writes its answer piece by piece
	follows    bool // goes on until one of both has enough
	named      bool // its path ends in a type and an id of the caller's
	prefix     string
	notFound   fault.Code // the answer to an id that isn't one
	route      *routers.Route
}

// operations finds an operation by method and Echo's pattern of the path.
type operations map[string]*operation

func (o operations) find(method, pattern string) *operation { return o[method+" "+pattern] }

func loadDocument(text []byte) (*openapi3.T, error) {
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("httpapi: read document: %w", err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		return nil, fmt.Errorf("httpapi: check document: %w", err)
	}
	return doc, nil
}

func newOperations(doc *openapi3.T) (operations, error) {
	table := operations{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			entry, err := newOperation(doc, path, method, item, op)
			if err != nil {
				return nil, fmt.Errorf("httpapi: %s %s: %w", method, path, err)
			}
			table[method+" "+echoPattern(path)] = entry
		}
	}
	return table, nil
}

// echoPattern is Echo's form of a path of the document.
func echoPattern(path string) string { return strings.NewReplacer("{", ":", "}", "").Replace(path) }

func newOperation(doc *openapi3.T, path, method string, item *openapi3.PathItem, op *openapi3.Operation) (*operation, error) {
	entry := &operation{
		id: op.OperationID, query: map[string]bool{}, takesBody: op.RequestBody != nil,
		public: op.Security != nil && len(*op.Security) == 0,
		prefix: eventPrefix, notFound: fault.EventNotFound, named: strings.HasSuffix(path, "/{type}/{id}"),
		route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: op},
		maxBody: command.MaxBody,
	}
	if limit, own := op.Extensions["x-max-body"].(float64); own {
		entry.maxBody = int(limit)
	}
	entry.streams, _ = op.Extensions["x-streams"].(bool)
	entry.follows, _ = op.Extensions["x-follows"].(bool)
	ownKey, _ := op.Extensions["x-own-key"].(bool) // read by other rules than those of the native contract
	if strings.HasPrefix(path, "/v1/memories") {
		entry.prefix, entry.notFound = memoryPrefix, fault.MemoryNotFound
	}
	if strings.HasPrefix(path, "/v1/webhooks") {
		entry.prefix, entry.notFound = webhookPrefix, fault.WebhookNotFound
	}
	if !entry.public {
		text, _ := op.Extensions["x-permission"].(string)
		permission, known := access.ParsePermission(text)
		if !known {
			return nil, fmt.Errorf("x-permission %q is no permission", text)
		}
		entry.permission = permission
	}
	for _, ref := range op.Parameters {
		switch parameter := ref.Value; {
		case parameter.In == openapi3.ParameterInQuery:
			entry.query[parameter.Name] = true
			entry.waits = entry.waits || parameter.Name == "wait"
		case parameter.In == openapi3.ParameterInHeader && http.CanonicalHeaderKey(parameter.Name) == keyHeader:
			entry.takesKey = !ownKey
		}
	}
	return entry, nil
}
