package main

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// root is the directory with go.mod.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// TestList keeps the list from rotting: whoever changes a guard changes its mutant too.
func TestList(t *testing.T) {
	t.Parallel()
	all, err := readList()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Errorf("%d mutants", len(all))
	}
	where := root(t)
	t.Run("EveryPatchAppliesOnceAndStillParses", func(t *testing.T) {
		t.Parallel()
		for _, m := range all {
			if _, err := m.mutate(where); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("TheTestBuildOfAllParses", func(t *testing.T) {
		t.Parallel()
		s, err := newSwitched(where, "now", all)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range s.files {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("EveryScenarioIsATestOfItsPackage", func(t *testing.T) {
		t.Parallel()
		for _, m := range all {
			if err := m.caughtBy.exists(where); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	})
}
