package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// scenario is one test: the package, from the module's root, and the test's name with its subtests.
type scenario struct{ pkg, test string }

// pattern is what -test.run takes for the test: each part of its name as it is.
func (s scenario) pattern() string {
	parts := strings.Split(s.test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// exists looks for the test and its subtests in the package's test files. Names that a test makes up as it runs are not
// found and must not be in the list.
func (s scenario) exists(root string) error {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(s.pkg), "*_test.go"))
	if err != nil {
		return fmt.Errorf("look for tests: %w", err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- a package of the list
		if err != nil {
			return fmt.Errorf("read tests: %w", err)
		}
		all.Write(text)
	}
	parts := strings.Split(s.test, "/")
	wanted := []string{"func " + parts[0] + "(t *testing.T)"}
	for _, part := range parts[1:] {
		wanted = append(wanted, `"`+part+`"`)
	}
	for _, text := range wanted {
		if !strings.Contains(all.String(), text) {
			return fmt.Errorf("%s has no test %s: %s is not there", s.pkg, s.test, text)
		}
	}
	return nil
}
