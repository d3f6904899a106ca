package model

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// reasonNoAnswer says that a value is JSON, but not an answer at all: no list, and no object with facts.
const reasonNoAnswer = "no answer"

// facts reads a value that is the whole answer.
func facts(value jsontext.Value) ([]Fact, error) {
	found, problem := readAnswer(value)
	switch problem {
	case "":
		return found, nil
	case reasonNoAnswer:
		return nil, invalid(ReasonWrongShape)
	default:
		return nil, invalid(problem)
	}
}

// readAnswer reads {"facts": […]} or a list. Elements are strings or objects with one of text, fact, memory and
// content, taken in this order. It returns why the value doesn't fit, nothing if it does.
func readAnswer(value jsontext.Value) (found []Fact, problem string) {
	switch value.Kind() {
	case '[':
		found, problem = readList(value)
		if problem == ReasonWrongShape {
			problem = reasonNoAnswer // a list of something else, such as a reference in prose
		}
		return found, problem
	case '{':
		members, ok := readObject(value)
		if !ok {
			return nil, ReasonWrongShape
		}
		list, ok := members["facts"]
		if !ok || isSchema(members) {
			return nil, reasonNoAnswer
		}
		return readList(jsontext.Value(list))
	default:
		return nil, reasonNoAnswer
	}
}

// isSchema tells that an object is the JSON schema itself, which some models repeat instead of following it.
func isSchema(members map[string]json.RawMessage) bool {
	for _, name := range []string{"$schema", "$defs", "properties"} {
		if _, ok := members[name]; ok {
			return true
		}
	}
	return false
}

func readObject(value jsontext.Value) (map[string]json.RawMessage, bool) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(value, &members)
	return members, err == nil && members != nil
}

func readList(value jsontext.Value) ([]Fact, string) {
	if value.Kind() != '[' {
		return nil, ReasonWrongShape
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(value, &elements); err != nil {
		return nil, ReasonWrongShape
	}
	if len(elements) > maxFacts {
		return nil, ReasonTooLarge
	}
	found := make([]Fact, 0, len(elements))
	total := 0
	for _, element := range elements {
		fact, ok := readFact(element)
		if !ok {
			return nil, ReasonWrongShape
		}
		size := utf8.RuneCountInString(fact.Text)
		total += size
		if size > maxFactRunes || total > maxTotalRunes {
			return nil, ReasonTooLarge
		}
		if visible(fact.Text) {
			found = append(found, fact)
		}
	}
	return found, ""
}

func readFact(element json.RawMessage) (Fact, bool) {
	if text, ok := readString(element); ok {
		return Fact{Text: clean(text)}, true
	}
	if jsontext.Value(element).Kind() != '{' {
		return Fact{}, false
	}
	members, ok := readObject(jsontext.Value(element))
	if !ok {
		return Fact{}, false
	}
	for _, name := range []string{"text", "fact", "memory", "content"} {
		member, ok := members[name]
		if !ok || bytes.Equal(member, []byte("null")) {
			continue
		}
		text, ok := readString(member)
		if _, turn := members["role"]; !ok || turn && name == "content" {
			return Fact{}, false // a turn of the conversation, repeated instead of read
		}
		fact := Fact{Text: clean(text)}
		if label, ok := readString(members["type"]); ok {
			fact.Type = memory.ParseFactType(label)
		}
		if date, ok := readString(members["event_date"]); ok {
			fact.EventDate = parseDate(date)
		}
		fact.Supersedes = readReference(members["supersedes"])
		fact.Categories = readNames(members["categories"])
		return fact, true
	}
	return Fact{}, false
}

// readString decodes a JSON string. encoding/json turns invalid UTF-8 and lone surrogates into U+FFFD.
func readString(value json.RawMessage) (string, bool) {
	if len(value) == 0 || value[0] != '"' {
		return "", false
	}
	var text string
	err := json.Unmarshal(value, &text)
	return text, err == nil
}

// clean removes NUL, which PostgreSQL cannot store, and white space at the ends.
func clean(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", ""))
}

// visible tells whether a reader would see anything of text: spaces, controls and format characters such as
// zero-width joiners are nothing to see.
func visible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.Is(unicode.C, r) && !unicode.Is(unicode.Z, r) && r != utf8.RuneError
	})
}

// parseDate reads RFC 3339 or YYYY-MM-DD (midnight UTC) and returns nil for anything else. Years outside 1 to
// 9999 are dropped: they have no RFC 3339 form.
func parseDate(text string) *time.Time {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		date, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		date = date.UTC()
		if date.Year() < 1 || date.Year() > 9999 {
			return nil
		}
		return &date
	}
	return nil
}
