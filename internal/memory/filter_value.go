package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// readValue reads a value that the comparison can take, or names the broken rule.
func readValue(v any, c Filter) (value FilterValue, rule string) {
	value, rule = scalar(v)
	if rule != "" {
		return value, rule
	}
	kind, typed := fieldKind(c.Field)
	switch c.Op {
	case FilterContains, FilterContainsFolded:
		switch {
		case typed && kind != FilterString, c.Field == FilterID, c.Field == FilterCategories && c.Op == FilterContainsFolded:
			return value, "an operator of this field"
		case value.Kind == FilterString && value.Text != "":
		case typed || c.Op == FilterContainsFolded || value.Kind == FilterString || value.Kind == FilterNull:
			return value, "a text that is not empty"
		}
		if c.Op == FilterContainsFolded && utf8.RuneCountInString(value.Text) > maxFoldedText {
			return value, fmt.Sprintf("at most %d characters", maxFoldedText)
		}
		return value, ""
	case FilterGreater, FilterAtLeast, FilterLess, FilterAtMost:
		return ranged(value, kind, typed)
	case FilterEqual, FilterIn, FilterAll, FilterAny, FilterNone:
	}
	if value.Kind == FilterNull {
		if c.Op == FilterEqual {
			return value, ""
		}
		return value, "not null"
	}
	if kind == FilterInstant {
		return instant(value)
	}
	if typed && value.Kind != kind {
		return value, "a " + string(kind)
	}
	if c.Field == FilterID {
		return identity(value)
	}
	return value, ""
}

// identity reads the id of a record, with the prefix that it is shown with or without.
func identity(value FilterValue) (FilterValue, string) {
	const prefix, length = "mem_", 36
	bare := strings.TrimPrefix(value.Text, prefix)
	id, err := uuid.Parse(bare)
	if err != nil || len(bare) != length {
		return value, "the id of a memory"
	}
	value.Text = id.String()
	value.JSON = strconv.Quote(value.Text)
	return value, ""
}

// ranged reads the bound of a range: a number or an instant, whichever the field has.
func ranged(value FilterValue, kind FilterKind, typed bool) (FilterValue, string) {
	switch {
	case typed && kind == FilterString:
		return value, "an operator of this field"
	case typed && kind == FilterInstant, !typed && value.Kind == FilterString:
		return instant(value)
	case value.Kind != FilterNumber && typed:
		return value, "a number"
	case value.Kind != FilterNumber:
		return value, "a number or " + instantRule
	}
	return value, ""
}

const instantRule = "an RFC 3339 time with an offset"

func instant(value FilterValue) (FilterValue, string) {
	if value.Kind != FilterString {
		return value, instantRule
	}
	at, err := time.Parse(time.RFC3339Nano, value.Text)
	if err != nil {
		return value, instantRule
	}
	value.Kind, value.Time = FilterInstant, at.UTC()
	return value, ""
}

// scalar reads a value that is no list and no object.
func scalar(v any) (FilterValue, string) {
	switch v := v.(type) {
	case nil:
		return FilterValue{Kind: FilterNull, JSON: "null"}, ""
	case bool:
		return FilterValue{Kind: FilterBoolean, JSON: strconv.FormatBool(v)}, ""
	case string:
		if rule := brokenText(v, maxFilterText); rule != "" {
			return FilterValue{}, rule
		}
		quoted, err := jsontext.AppendQuote(nil, v)
		if err != nil {
			return FilterValue{}, "valid UTF-8"
		}
		return FilterValue{Kind: FilterString, Text: v, JSON: string(quoted)}, ""
	case json.Number:
		return number(v.String())
	}
	return FilterValue{}, "a text, a number, true, false or null"
}

// maxNumberText is the longest number in characters: a float64 needs at most 24.
const maxNumberText = 100

func number(text string) (FilterValue, string) {
	parsed, err := strconv.ParseFloat(text, 64)
	if len(text) > maxNumberText || math.IsInf(parsed, 0) || err != nil && !errors.Is(err, strconv.ErrRange) {
		return FilterValue{}, "a number within the range of float64"
	}
	if parsed == 0 { // also what is too small for a float64: the database would spell it out
		text = "0"
	}
	return FilterValue{Kind: FilterNumber, Text: text, JSON: text}, ""
}

func brokenText(text string, most int) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "no NUL"
	case utf8.RuneCountInString(text) > most:
		return fmt.Sprintf("at most %d characters", most)
	}
	return ""
}
