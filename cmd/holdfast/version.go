package main

import (
	"fmt"
	"io"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type versionCommand struct{}

// Run says which build this is and what it works with.
func (c *versionCommand) Run(s *session) error {
	b := app.ThisBuild()
	if s.json {
		return s.encode(b)
	}
	return writeBuild(s.out, b)
}

func writeBuild(out io.Writer, b app.Build) error {
	_, err := fmt.Fprintf(out, "holdfast %s\nschema %d, %s, %s", b.Version, b.Schema, b.Go, b.Platform)
	if err == nil && b.Revision != "" {
		_, err = fmt.Fprintf(out, ", revision %s", b.Revision)
		if err == nil && b.Modified {
			_, err = fmt.Fprint(out, " with changes")
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(out)
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
