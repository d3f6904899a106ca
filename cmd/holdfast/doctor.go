package main

import (
	"fmt"

	"github.com/holdfast-memory/holdfast/internal/app"
)

type doctorCommand struct{ app.Settings }

// Run prints what was found and ends with 1 when something is dangerous.
func (c *doctorCommand) Run(s *session) error {
	found, err := app.Doctor(s.ctx, c.Settings)
	if err != nil {
		return err
	}
	dangers, warnings := 0, 0
	rows := make([]string, 0, len(found))
	for _, f := range found {
		switch f.Grade {
		case app.Danger:
			dangers++
		case app.Warning:
			warnings++
		case app.Good:
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s", f.Grade, f.Check, f.Found))
		if f.Advice != "" {
			rows = append(rows, "\t\t  "+f.Advice)
		}
	}
	if s.json {
		err = s.encode(map[string]any{"dangers": dangers, "warnings": warnings, "findings": found})
	} else if err = s.table("grade\tcheck\tfound", rows); err == nil {
		err = s.show(nil, "%d dangerous, %d to look at\n", dangers, warnings)
	}
	if err == nil && dangers > 0 {
		return &exitError{code: app.ExitFailed}
	}
	return err
}
