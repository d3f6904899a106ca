package mem0

import (
	"slices"
	"strings"
)

var metadataOps = []string{"eq", "ne", "in", "gt", "gte", "lt", "lte", "contains", "icontains"}

// metadata reads what is asked of the metadata: an object whose members they have, or the operators eq and contains
// (they have these members) or ne (they don't) with such an object.
func metadata(value any, depth int) (any, error) {
	members, isObject := value.(map[string]any)
	if !isObject || len(members) == 0 {
		return nil, badFilter("metadata with an object that is not empty")
	}
	for _, op := range []string{"eq", "ne", "contains"} {
		wanted, compares := members[op].(map[string]any)
		if !compares {
			continue
		}
		if len(members) > 1 {
			return nil, badFilter("metadata with one operator")
		}
		part, err := within("metadata", wanted, depth+1)
		if op == "ne" && err == nil {
			part = not(part)
		}
		return part, err
	}
	return within("metadata", members, depth)
}

// within reads the members that an object of the metadata has to have.
func within(path string, members map[string]any, depth int) (any, error) {
	if depth > maxNesting || len(members) == 0 {
		return nil, badFilter("metadata with objects that are not empty, at most 8 levels deep")
	}
	var parts []any
	for _, name := range sorted(members) {
		if name == "" || strings.Contains(name, ".") {
			return nil, badFilter("metadata with names without a dot")
		}
		at := path + "." + name
		if _, isList := members[name].([]any); isList { // that it is this list, or one of it?
			return nil, badFilter("metadata with lists below the operator in only")
		}
		inner, isObject := members[name].(map[string]any)
		if !isObject || operatorsOnly(inner) {
			part, err := compared(at, members[name], metadataOps, nil)
			if err != nil {
				return nil, badFilter("metadata with eq, ne, in, gt, gte, lt, lte, contains, icontains")
			}
			parts = append(parts, part)
			continue
		}
		part, err := within(at, inner, depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return all(parts), nil
}

// operatorsOnly tells whether an object compares rather than names members.
func operatorsOnly(members map[string]any) bool {
	for name := range members {
		if !slices.Contains(metadataOps, name) {
			return false
		}
	}
	return len(members) > 0
}
