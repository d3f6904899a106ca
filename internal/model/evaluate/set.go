package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/model"
)

//go:embed set/*.json
var files embed.FS

// sample is one conversation with what should be remembered of it.
type sample struct {
	language string
	Name     string
	Turns    [][2]string // role and text
	// Expect holds the facts that must be found, Also those that may be; without both nothing is to be remembered.
	Expect, Also []wanted
}

// wanted is a fact by its key words: each of them must stand in it, a|b being either of them.
type wanted []string

func (s sample) quiet() bool { return len(s.Expect) == 0 && len(s.Also) == 0 }

func (s sample) messages() []model.Message {
	messages := make([]model.Message, len(s.Turns))
	for i, turn := range s.Turns {
		messages[i] = model.Message{Role: turn[0], Content: turn[1]}
	}
	return messages
}

// load reads the set, language by language.
func load() ([]sample, error) {
	entries, err := files.ReadDir("set")
	if err != nil {
		return nil, fmt.Errorf("read the set: %w", err)
	}
	var all []sample
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("set", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the set: %w", err)
		}
		var samples []sample
		if err := json.Unmarshal(text, &samples); err != nil {
			return nil, fmt.Errorf("read %s: %w", entry.Name(), err)
		}
		for _, s := range samples {
			s.language = strings.TrimSuffix(entry.Name(), ".json")
			all = append(all, s)
		}
	}
	return all, nil
}
