package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// filterPointer is where filters stand in a request.
const filterPointer = "/filters"

// ParseFilter reads a filter from JSON, nil for null, for an empty object and for no bytes at all. Otherwise it
// answers a fault INVALID_FILTER with the pointer of the place below /filters, which holds names of the contract and
// numbers only, and the broken rule; neither quotes the caller.
//
// An object is all of its members together. AND, OR and NOT hold lists of filters (NOT also a single one) that must
// all, at least one, or none of them be met. Any other member names a field, or "metadata" and a path after dots, and
// holds the value that it equals, null for none, or an object of operators: eq, ne, in, gt, gte, lt, lte, contains,
// icontains. Times are RFC 3339 with an offset and compared as instants.
func ParseFilter(raw json.RawMessage) (*Filter, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if !jsontext.Value(raw).IsValid() {
		return nil, badFilter(filterPointer, "one strict JSON value")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, badFilter(filterPointer, "one strict JSON value")
	}
	members, isObject := value.(map[string]any)
	if !isObject {
		return nil, badFilter(filterPointer, "an object")
	}
	if len(members) == 0 {
		return nil, nil
	}
	p := &filterParser{}
	filter, err := p.object(filterPointer, members, 1)
	if err != nil {
		return nil, err
	}
	return &filter, nil
}

// filterParser counts the comparisons of one filter.
type filterParser struct{ conditions int }

// object reads the members of a filter in the order of their names, so that equal filters are compiled alike.
func (p *filterParser) object(at string, members map[string]any, depth int) (Filter, error) {
	if depth > maxFilterDepth {
		return Filter{}, badFilter(at, fmt.Sprintf("at most %d levels", maxFilterDepth))
	}
	if len(members) == 0 {
		return Filter{}, badFilter(at, "at least one condition")
	}
	all := Filter{Op: FilterAll}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var err error
		switch op := FilterOp(name); op {
		case FilterAll, FilterAny, FilterNone:
			err = p.group(at+"/"+name, op, members[name], depth, &all)
		default:
			err = p.field(at, name, members[name], &all)
		}
		if err != nil {
			return Filter{}, err
		}
	}
	if len(all.Of) == 1 {
		return all.Of[0], nil
	}
	return all, nil
}

func (p *filterParser) group(at string, op FilterOp, value any, depth int, into *Filter) error {
	list, isList := value.([]any)
	if single, isObject := value.(map[string]any); isObject && op == FilterNone {
		inner, err := p.object(at, single, depth+1)
		if err != nil {
			return err
		}
		into.Of = append(into.Of, Filter{Op: op, Of: []Filter{inner}})
		return nil
	}
	if !isList {
		return badFilter(at, "a list of filters")
	}
	if len(list) == 0 {
		return badFilter(at, "at least one condition")
	}
	group := Filter{Op: op}
	for i, member := range list {
		place := at + "/" + strconv.Itoa(i)
		object, isObject := member.(map[string]any)
		if !isObject {
			return badFilter(place, "an object")
		}
		inner, err := p.object(place, object, depth+1)
		if err != nil {
			return err
		}
		group.Of = append(group.Of, inner)
	}
	into.Of = append(into.Of, group)
	return nil
}

// field reads what one member asks of a field.
func (p *filterParser) field(at, name string, value any, into *Filter) error {
	field, path, err := fieldOf(at, name)
	if err != nil {
		return err
	}
	at += "/" + string(field)
	operators, isObject := value.(map[string]any)
	if !isObject {
		operators = map[string]any{string(FilterEqual): value}
	} else if len(operators) == 0 {
		return badFilter(at, "at least one operator")
	}
	for _, op := range slices.Sorted(maps.Keys(operators)) {
		if p.conditions++; p.conditions > maxFilterConditions {
			return badFilter(at, fmt.Sprintf("at most %d conditions", maxFilterConditions))
		}
		place := at
		if isObject && (knownOperator(FilterOp(op)) || op == filterUnequal) {
			place += "/" + op
		}
		compared, err := compare(place, field, path, op, operators[op])
		if err != nil {
			return err
		}
		into.Of = append(into.Of, compared)
	}
	return nil
}

// fieldOf reads a field's name. An unknown name is the caller's text, so the pointer ends before it.
func fieldOf(at, name string) (FilterField, []string, error) {
	if _, known := fieldKind(FilterField(name)); known {
		return FilterField(name), nil, nil
	}
	path, isMetadata := strings.CutPrefix(name, string(FilterMetadata)+".")
	if !isMetadata {
		return "", nil, badFilter(at, "known fields: "+fieldNames)
	}
	at += "/" + string(FilterMetadata)
	steps := strings.Split(path, ".")
	if len(steps) > maxFilterPath {
		return "", nil, badFilter(at, fmt.Sprintf("a path of at most %d names", maxFilterPath))
	}
	for _, step := range steps {
		if step == "" || brokenText(step, maxFilterText) != "" {
			return "", nil, badFilter(at, "a path of names with dots between them")
		}
	}
	return FilterMetadata, steps, nil
}

const fieldNames = "id, user_id, agent_id, run_id, app_id, type, role, item_id, memory, version, created_at, updated_at, " +
	"event_date, expires_at, categories, metadata.<path>"

func knownOperator(op FilterOp) bool {
	switch op {
	case FilterEqual, FilterIn, FilterGreater, FilterAtLeast, FilterLess, FilterAtMost, FilterContains, FilterContainsFolded:
		return true
	case FilterAll, FilterAny, FilterNone:
	}
	return false
}

// compare reads one comparison; ne becomes the negation of eq.
func compare(at string, field FilterField, path []string, op string, value any) (Filter, error) {
	if op == filterUnequal {
		equal, err := compare(at, field, path, string(FilterEqual), value)
		return Filter{Op: FilterNone, Of: []Filter{equal}}, err
	}
	compared := Filter{Op: FilterOp(op), Field: field, Path: path}
	if !knownOperator(compared.Op) {
		return Filter{}, badFilter(at, "known operators: eq, ne, in, gt, gte, lt, lte, contains, icontains")
	}
	values := []any{value}
	if compared.Op == FilterIn {
		list, isList := value.([]any)
		if !isList || len(list) == 0 || len(list) > maxFilterValues {
			return Filter{}, badFilter(at, fmt.Sprintf("a list of 1 to %d values", maxFilterValues))
		}
		values = list
	}
	for i, v := range values {
		place := at
		if compared.Op == FilterIn {
			place += "/" + strconv.Itoa(i)
		}
		read, rule := readValue(v, compared)
		if rule != "" {
			return Filter{}, badFilter(place, rule)
		}
		compared.Values = append(compared.Values, read)
	}
	return compared, nil
}
