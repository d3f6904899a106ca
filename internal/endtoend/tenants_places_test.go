package endtoend

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/mem0"
)

// place is a route or a tool that is served.
type place struct {
	name       string
	permission access.Permission // empty if every key may
	public     bool
}

// places are all of them: what the served document describes, the routes of the mem0 dialect, and the tools.
func (s *system) places() []place {
	s.t.Helper()
	var all []place
	for path, item := range s.document("/v1/openapi.json").Paths {
		for method, op := range item {
			p := place{name: strings.ToUpper(method) + " " + path, permission: access.Permission(op.Permission)}
			p.public = op.Security != nil && len(*op.Security) == 0
			if (p.permission == "") != p.public {
				s.t.Errorf("%s has the permission %q", p.name, p.permission)
			}
			all = append(all, p)
		}
	}
	for _, route := range s.guestRoutes() {
		all = append(all, place{name: "mem0 " + route.Method + " " + route.Path, permission: route.Permission})
	}
	for name, permission := range s.tools() {
		all = append(all, place{name: "tool " + name, permission: permission})
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.name, b.name) })
	return all
}

// document is what the walk reads of an OpenAPI document.
type document struct {
	Paths map[string]map[string]struct {
		ID         string                 `json:"operationId"`
		Permission string                 `json:"x-permission"`
		Security   *[]map[string][]string `json:"security"`
		Body       *struct {
			Content map[string]json.RawMessage `json:"content"`
		} `json:"requestBody"`
	} `json:"paths"`
}

func (s *system) document(path string) document {
	s.t.Helper()
	var d document
	a := s.knock("", "GET", path, "")
	s.want(a, http.StatusOK)
	a.into(s.t, &d)
	return d
}

// guestRoutes are the routes of the mem0 dialect as they are served: none of its dependencies is called for them.
func (s *system) guestRoutes() []httpapi.GuestRoute {
	s.t.Helper()
	guest, err := mem0.New(mem0.Deps{
		Accepter: struct{ httpapi.Accepter }{}, Writer: struct{ httpapi.Writer }{}, Changer: struct{ httpapi.Changer }{},
		Batcher: struct{ httpapi.Batcher }{}, Eraser: struct{ httpapi.Eraser }{}, Events: struct{ httpapi.Events }{},
		Memories: struct{ httpapi.Memories }{}, Entities: struct{ httpapi.Entities }{}, Searcher: struct{ httpapi.Searcher }{},
		Browser: struct{ mem0.Browser }{}, Policies: struct{ httpapi.Policies }{}, Feedbacks: struct{ httpapi.Feedbacks }{},
		ExportDefiner: struct{ mem0.ExportDefiner }{}, ExportReader: struct{ mem0.ExportReader }{},
		Webhooks: struct{ httpapi.Webhooks }{}, WebhookReader: struct{ httpapi.WebhookReader }{},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return guest.Routes
}

// tools are the tools that are served, with the permission that each needs.
func (s *system) tools() map[string]access.Permission {
	s.t.Helper()
	var listed struct {
		Result struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"result"`
	}
	a := s.post(s.header(s.key, "User", "lea"), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err := json.Unmarshal(a.body, &listed); err != nil || len(listed.Result.Tools) == 0 {
		s.t.Fatalf("tools: %d %s", a.status, a.body)
	}
	needs := map[string]access.Permission{
		"add_memory": access.MemoryWrite, "search_memory": access.MemoryRead, "list_memories": access.MemoryRead,
		"get_event": access.OperationsRead, "delete_memory": access.MemoryWrite,
	}
	tools := map[string]access.Permission{}
	for _, tool := range listed.Result.Tools {
		if needs[tool.Name] == "" {
			s.t.Errorf("nobody knows what the tool %s needs", tool.Name)
		}
		tools[tool.Name] = needs[tool.Name]
	}
	return tools
}
