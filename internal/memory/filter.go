package memory

import (
	"time"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

const (
	// maxFilterDepth is how deep groups may nest: more than people write, little enough to be compiled by recursion.
	maxFilterDepth = 8
	// maxFilterConditions bounds what one record costs to be compared.
	maxFilterConditions = 64
	// maxFilterValues bounds one list of values.
	maxFilterValues = 100
	// maxFilterText is the longest text to compare with, in characters: scope ids and labels are shorter.
	maxFilterText = 1_000
	// maxFoldedText is the longest text to look for in any case: each of its letters is tried in all its forms.
	maxFoldedText = 200
	// maxFilterPath is how deep metadata is looked into.
	maxFilterPath = 8
)

// FilterOp says what a node of a filter does.
type FilterOp string

// The groups, by their names in JSON, and the comparisons. A comparison is either true or false of a record: what it
// doesn't have equals nothing, is in no range and contains nothing, so that NOT turns each of them around.
const (
	FilterAll  FilterOp = "AND" // each of them
	FilterAny  FilterOp = "OR"  // at least one of them
	FilterNone FilterOp = "NOT" // none of them

	FilterEqual          FilterOp = "eq"
	FilterIn             FilterOp = "in"
	FilterGreater        FilterOp = "gt"
	FilterAtLeast        FilterOp = "gte"
	FilterLess           FilterOp = "lt"
	FilterAtMost         FilterOp = "lte"
	FilterContains       FilterOp = "contains"
	FilterContainsFolded FilterOp = "icontains"
)

// filterUnequal is the negation of eq; it is read as a NOT.
const filterUnequal = "ne"

// FilterField names what is compared.
type FilterField string

// The fields, by their names in JSON.
const (
	FilterID        FilterField = "id" // with or without its prefix
	FilterUser      FilterField = "user_id"
	FilterAgent     FilterField = "agent_id"
	FilterRun       FilterField = "run_id"
	FilterApp       FilterField = "app_id"
	FilterType      FilterField = "type"
	FilterRole      FilterField = "role"
	FilterItem      FilterField = "item_id"
	FilterText      FilterField = "memory"
	FilterVersion   FilterField = "version"
	FilterCreatedAt FilterField = "created_at"
	FilterUpdatedAt FilterField = "updated_at"
	FilterEventDate FilterField = "event_date"
	FilterExpiresAt FilterField = "expires_at"
	// FilterCategories equals each name that the record is filed under, and null where there is none.
	FilterCategories FilterField = "categories"
	FilterMetadata   FilterField = "metadata" // with a path
)

// FilterKind is the type of a value to compare with.
type FilterKind string

// The kinds.
const (
	FilterNull    FilterKind = "null" // equals what is absent
	FilterString  FilterKind = "string"
	FilterNumber  FilterKind = "number"
	FilterBoolean FilterKind = "boolean"
	FilterInstant FilterKind = "instant"
)

// FilterValue is a value to compare with. Text is the text of a string, or a number as it is written, within what a
// float64 can hold; JSON is the value as JSON.
type FilterValue struct {
	Kind FilterKind
	Text string
	Time time.Time
	JSON string
}

// Filter is a condition on records: a group of others, or a comparison of one field with one value, or of several
// with FilterIn. It is at most 8 deep and has at most 64 comparisons. Path is where in the metadata to look.
type Filter struct {
	Op     FilterOp
	Of     []Filter
	Field  FilterField
	Path   []string
	Values []FilterValue
}

// fieldKind is what a field can be compared with.
func fieldKind(field FilterField) (FilterKind, bool) {
	switch field {
	case FilterID, FilterUser, FilterAgent, FilterRun, FilterApp, FilterType, FilterRole, FilterItem, FilterText,
		FilterCategories:
		return FilterString, true
	case FilterVersion:
		return FilterNumber, true
	case FilterCreatedAt, FilterUpdatedAt, FilterEventDate, FilterExpiresAt:
		return FilterInstant, true
	case FilterMetadata: // what the caller keeps there has no type of ours
	}
	return "", false
}

func badFilter(pointer, rule string) error { return fault.At(fault.InvalidFilter, pointer, rule) }
