package mem0

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/memory"
)

// every is the value that stands for any.
const every = "*"

// maxNesting is how deep filters are read here: deeper than the filters that are taken, which are eight levels deep.
const maxNesting = 16

func badFilter(rule string) error { return fault.At(fault.InvalidFilter, "/filters", rule) }

// plain reads JSON with its numbers as they are written; nil for what is none.
func plain(raw json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

func sorted(members map[string]any) []string { return slices.Sorted(maps.Keys(members)) }

// filterOf reads filters in the grammar of the clients. It answers the condition, nil for none, and the scope that
// every record which meets it has: the fields that must equal something. Scoped tells whether the filter says anything
// about whose records they are. Faults: INVALID_FILTER, which names an unknown key.
func filterOf(parts ...any) (filter *memory.Filter, scope memory.Scope, scoped bool, err error) {
	var reader filterReader
	list := []any{}
	for _, part := range parts {
		members, isObject := part.(map[string]any)
		if !isObject {
			return nil, memory.Scope{}, false, badFilter("an object")
		}
		if len(members) == 0 {
			continue
		}
		native, err := reader.object(members, 1)
		if err != nil {
			return nil, memory.Scope{}, false, err
		}
		list = append(list, native)
	}
	if len(list) == 0 {
		return nil, memory.Scope{}, false, nil
	}
	raw, err := json.Marshal(all(list))
	if err != nil {
		return nil, memory.Scope{}, false, fault.Wrap(fault.InternalError, err)
	}
	filter, err = memory.ParseFilter(raw)
	if f, isFault := errors.AsType[*fault.Error](err); isFault {
		return nil, memory.Scope{}, false, badFilter(f.Rule) // the place is one of the translation
	}
	if err != nil {
		return nil, memory.Scope{}, false, err
	}
	narrow(*filter, &scope)
	return filter, scope, reader.scoped, nil
}

// narrow finds the ids that all records of a filter have, so that an index of theirs can be used.
func narrow(f memory.Filter, scope *memory.Scope) {
	switch f.Op {
	case memory.FilterAll:
		for _, inner := range f.Of {
			narrow(inner, scope)
		}
	case memory.FilterEqual:
		if len(f.Values) != 1 || f.Values[0].Kind != memory.FilterString {
			return
		}
		for _, id := range []struct {
			field memory.FilterField
			into  *string
		}{
			{memory.FilterUser, &scope.UserID},
			{memory.FilterAgent, &scope.AgentID},
			{memory.FilterRun, &scope.RunID},
			{memory.FilterApp, &scope.AppID},
		} {
			if f.Field == id.field && *id.into == "" {
				*id.into = f.Values[0].Text
			}
		}
	case memory.FilterAny, memory.FilterNone, memory.FilterIn, memory.FilterGreater, memory.FilterAtLeast,
		memory.FilterLess, memory.FilterAtMost, memory.FilterContains, memory.FilterContainsFolded:
	}
}

// filterReader turns filters of the clients into native ones.
type filterReader struct{ scoped bool }

// native is a native filter in JSON, not yet checked.
type native = map[string]any

func all(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return native{"AND": list}
}

func not(what any) any { return native{"NOT": []any{what}} }

// object reads an object, all of whose members must be met.
func (r *filterReader) object(members map[string]any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, badFilter("at most 8 levels")
	}
	if len(members) == 0 {
		return nil, badFilter("at least one condition")
	}
	var parts []any
	for _, name := range sorted(members) {
		var part any
		var err error
		switch name {
		case "AND", "OR", "NOT":
			part, err = r.group(name, members[name], depth)
		default:
			part, err = r.field(name, members[name], depth)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return all(parts), nil
}

func (r *filterReader) group(name string, value any, depth int) (any, error) {
	if single, isObject := value.(map[string]any); isObject {
		value = []any{single}
	}
	list, isList := value.([]any)
	if !isList || len(list) == 0 {
		return nil, badFilter("AND, OR and NOT hold lists of filters")
	}
	parts := make([]any, len(list))
	for i, member := range list {
		inner, isObject := member.(map[string]any)
		if !isObject {
			return nil, badFilter("AND, OR and NOT hold lists of filters")
		}
		var err error
		if parts[i], err = r.object(inner, depth+1); err != nil {
			return nil, err
		}
	}
	return native{name: parts}, nil
}

// field reads what one key asks for.
func (r *filterReader) field(name string, value any, depth int) (any, error) {
	if id, known := scopeName(name); known {
		r.scoped = true
		return compared(string(id), value, textOps, asID)
	}
	switch name {
	case "created_at", "createdAt":
		return instants(value, columnOf("created_at"))
	case "updated_at", "updatedAt":
		return instants(value, columnOf("updated_at"))
	case "timestamp":
		return instants(value, whenSaid)
	case "expiration_date", "expirationDate":
		return expiries(value)
	case "categories":
		return compared("categories", value, append([]string{"contains"}, textOps...), nil)
	case "text":
		return compared("memory", value, append([]string{"contains", "icontains"}, textOps...), nil)
	case "keywords", "keywords_search":
		if said, isText := value.(string); isText {
			value = native{"icontains": said}
		}
		return compared("memory", value, []string{"contains", "icontains"}, nil)
	case "memory_ids", "memoryIds":
		return compared("id", value, textOps, asMemory)
	case "metadata":
		return metadata(value, depth)
	}
	if harmless.MatchString(name) {
		return nil, badFilter("no key " + name)
	}
	return nil, badFilter("no unknown keys")
}

// harmless is a key that can be named to its caller: what a person would write as one, and nothing longer.
var harmless = regexp.MustCompile(`^[A-Za-z_]{1,32}$`)

var textOps = []string{"eq", "ne", "in"}

// compared reads a value, a list of values, or an object of the operators ops. Read, if set, checks each text.
func compared(field string, value any, ops []string, read func(string) (string, error)) (any, error) {
	operators, isObject := value.(map[string]any)
	if _, isList := value.([]any); isList {
		operators = native{"in": value}
	} else if !isObject {
		operators = native{"eq": value}
	}
	if len(operators) == 0 {
		return nil, badFilter("at least one operator")
	}
	var parts []any
	for _, op := range sorted(operators) {
		if !slices.Contains(ops, op) {
			return nil, badFilter(field + " with " + strings.Join(slices.Sorted(slices.Values(ops)), ", "))
		}
		part, err := comparison(field, op, operators[op], read)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return all(parts), nil
}

// comparison is one comparison of a field; the value * is any that is there.
func comparison(field, op string, value any, read func(string) (string, error)) (any, error) {
	there := native{field: native{"ne": nil}}
	list, isList := value.([]any)
	switch {
	case op == "in" && isList && slices.Contains(list, any(every)), op == "eq" && value == every:
		return there, nil
	case op == "ne" && value == every:
		return not(there), nil
	case read == nil:
	case isList:
		values := make([]any, len(list))
		for i, member := range list {
			var err error
			if values[i], err = readText(member, read); err != nil {
				return nil, err
			}
		}
		value = values
	default:
		var err error
		if value, err = readText(value, read); err != nil {
			return nil, err
		}
	}
	return native{field: native{op: value}}, nil
}

func readText(value any, read func(string) (string, error)) (any, error) {
	said, isText := value.(string)
	if !isText {
		return value, nil // the native reader refuses what it can't be
	}
	return read(said)
}

// asID reads an id of a scope as a write reads it.
func asID(id string) (string, error) { return strings.TrimSpace(id), nil }

// asMemory reads the id of a memory.
func asMemory(id string) (string, error) {
	parsed, ok := httpapi.ParseMemoryID(id)
	if !ok {
		return "", badFilter("memory_ids with ids of memories")
	}
	return parsed.String(), nil
}
