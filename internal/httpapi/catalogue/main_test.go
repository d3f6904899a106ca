package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/task"
)

func TestPage(t *testing.T) {
	t.Parallel()
	page, err := render()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("IsWhatTheCodeSays", func(t *testing.T) {
		t.Parallel()
		kept, err := os.ReadFile("../../../docs/errors.md")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, page) {
			t.Error("docs/errors.md is out of date: run `make generate`")
		}
	})
	t.Run("HasEachCodeOnceWithItsWords", func(t *testing.T) {
		t.Parallel()
		for _, code := range fault.Codes() {
			_, section, _ := strings.Cut(string(page), "\n### "+string(code)+"\n")
			if strings.Count(string(page), "\n### "+string(code)+"\n") != 1 || !strings.Contains(section, fault.Describe(code).Message) {
				t.Errorf("%s is not explained", code)
			}
		}
		for _, code := range task.ErrorCodes() {
			if strings.Count(string(page), "\n| `"+string(code)+"` | ") != 1 {
				t.Errorf("%s is not explained", code)
			}
		}
	})
}
