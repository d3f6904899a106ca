package model

import (
	"encoding/json"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// readNames reads a list of names, or one name alone. Like the other optional members of a fact it never makes an
// answer invalid: what is no text is no name, and what is no list names nothing.
func readNames(value json.RawMessage) []string {
	if name, ok := readString(value); ok {
		return []string{name}
	}
	var elements []json.RawMessage
	if len(value) == 0 || json.Unmarshal(value, &elements) != nil {
		return nil
	}
	var names []string
	for _, element := range elements {
		if name, ok := readString(element); ok {
			names = append(names, name)
		}
	}
	return names
}

// file leaves of each fact's categories those that there are, in their order and spelling. Models spell names in other
// cases; a name that isn't there is dropped, and the fact stays.
func file(facts []Fact, categories []memory.Category) {
	for i := range facts {
		facts[i].Categories = among(facts[i].Categories, categories)
	}
}

func among(named []string, categories []memory.Category) []string {
	if len(named) == 0 || len(categories) == 0 {
		return nil
	}
	said := make(map[string]bool, len(named))
	for _, name := range named {
		said[memory.Fold(name)] = true
	}
	var kept []string
	for _, c := range categories {
		if said[memory.Fold(c.Name)] {
			kept = append(kept, c.Name)
		}
	}
	return kept
}
