package mem0

import (
	"encoding/json"
	"net/url"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// selection is which records a search or a list is about.
type selection struct {
	scope      memory.Scope
	filter     *memory.Filter
	latestOnly bool
	expired    bool
}

// selectionOf reads it from a body: ids beside the filters or in them, and the members that select as filters do. A
// selection that says nothing of whose records it means is refused with SCOPE_REQUIRED.
func selectionOf(b body) (selection, error) {
	if err := b.refuse("reference_date"); err != nil {
		return selection{}, err
	}
	given := ids{}
	if err := given.take("", b); err != nil {
		return selection{}, err
	}
	conditions, err := conditionsOf(b)
	if err != nil {
		return selection{}, err
	}
	filter, scope, scoped, err := filterOf(conditions...)
	if err != nil {
		return selection{}, err
	}
	chosen := selection{scope: scope, filter: filter}
	if len(given) > 0 || !scoped {
		if chosen.scope, err = given.scope(); err != nil {
			return selection{}, err
		}
	}
	if chosen.latestOnly, err = b.flag("latest_only", true); err != nil {
		return selection{}, err
	}
	chosen.expired, err = b.flag("show_expired", false)
	return chosen, err
}

// conditionsOf answers the filters, and other members as filters.
func conditionsOf(b body) ([]any, error) {
	var conditions []any
	if b["filters"] != nil {
		conditions = append(conditions, plain(b["filters"]))
	}
	if b["metadata"] != nil {
		if members, isObject := plain(b["metadata"]).(map[string]any); !isObject || len(members) > 0 {
			conditions = append(conditions, native{"metadata": members})
		}
	}
	categories, err := b.texts("categories")
	if err != nil {
		return nil, err
	}
	if len(categories) > 0 {
		list := make([]any, len(categories))
		for i, name := range categories {
			list[i] = name
		}
		conditions = append(conditions, native{"categories": native{"in": list}})
	}
	created := native{}
	for name, op := range map[string]string{"start_date": "gte", "end_date": "lte"} {
		if b[name] != nil {
			created[op] = plain(b[name])
		}
	}
	if len(created) > 0 {
		conditions = append(conditions, native{"created_at": created})
	}
	return conditions, nil
}

// queryScope reads a scope from a query. What isn't known there is refused: left out, it could mean more records.
func queryScope(query url.Values, known ...string) (memory.Scope, error) {
	scope, _, err := queryMembers(query, known...)
	return scope, err
}

// queryMembers answers the scope and the other members of a query.
func queryMembers(query url.Values, known ...string) (memory.Scope, map[string]string, error) {
	given, others := ids{}, map[string]string{}
	for name, values := range query {
		if len(values) > 1 {
			return memory.Scope{}, nil, bad(pointerOf(name, known), "given once")
		}
		field, isID := scopeName(name)
		switch {
		case isID && given[field] != nil:
			return memory.Scope{}, nil, bad("/"+string(field), "given once")
		case isID && values[0] == every:
			return memory.Scope{}, nil, bad("/"+string(field), "an id: * stands for none here")
		case isID:
			given[field] = &values[0]
		case contains(known, name):
			others[name] = values[0]
		case !ofPing(name):
			return memory.Scope{}, nil, bad("", "no unknown parameters") // the name may be the rest of an id with an & in it
		}
	}
	scope, err := command.NewScope(given[memory.FilterUser], given[memory.FilterAgent], given[memory.FilterRun], given[memory.FilterApp])
	return scope, others, err
}

// ofPing tells whether a parameter is one of the ids that the clients send back from their ping.
func ofPing(name string) bool { return name == "org_id" || name == "project_id" }

func pointerOf(name string, known []string) string {
	if field, isID := scopeName(name); isID {
		return "/" + string(field)
	}
	if contains(known, name) {
		return "/" + name
	}
	return ""
}

func contains(list []string, name string) bool {
	for _, one := range list {
		if one == name {
			return true
		}
	}
	return false
}

// encoded writes a value of ours as JSON.
func encoded(value any) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fault.Wrap(fault.InternalError, err)
	}
	return raw, nil
}
