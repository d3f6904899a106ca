package main

import (
	"embed"
	"fmt"
	"path"
	"strings"
	"time"
)

//go:embed list/*.txt
var lists embed.FS

// mutant is one guard with the patch that switches it off and the test that must fail without it.
type mutant struct {
	group, name string
	patches     []patch
	caughtBy    scenario
	// hangs says that without the guard the test waits for ever: running out of time is then what catches it.
	hangs bool
	limit time.Duration
}

// defaultLimit is how long a scenario may take; the longest of the store's takes some ten seconds on two busy cores.
const defaultLimit = 90 * time.Second

// readList reads every mutant of the files, in the order of the files' names.
func readList() ([]mutant, error) {
	names, err := lists.ReadDir("list")
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var all []mutant
	seen := map[string]bool{}
	for _, entry := range names {
		text, err := lists.ReadFile(path.Join("list", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		found, err := parseList(entry.Name(), string(text))
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if seen[m.name] {
				return nil, fmt.Errorf("%s: two mutants are named %q", entry.Name(), m.name)
			}
			seen[m.name] = true
		}
		all = append(all, found...)
	}
	return all, nil
}

// parseList reads one file of the list: "= group", "# remark", and a mutant for each line "guard: name".
func parseList(file, text string) ([]mutant, error) {
	r := reader{}
	for i, line := range strings.Split(text, "\n") {
		if err := r.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r.found, nil
}

type reader struct {
	found []mutant
	group string
	now   *mutant
}

func (r *reader) line(line string) error {
	switch {
	case strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
		return nil
	case strings.HasPrefix(line, "= "):
		r.group = line[2:]
		return r.end()
	}
	if name, ok := strings.CutPrefix(line, "guard: "); ok {
		if err := r.end(); err != nil {
			return err
		}
		r.now = &mutant{group: r.group, name: name, limit: defaultLimit}
		return nil
	}
	if r.now == nil {
		return fmt.Errorf("%q belongs to no guard", line)
	}
	return r.member(line)
}

func (r *reader) member(line string) error {
	m := r.now
	if value, ok := strings.CutPrefix(line, "in: "); ok {
		file, within, _ := strings.Cut(value, " ")
		m.patches = append(m.patches, patch{file: file, within: within})
		return nil
	}
	if value, ok := strings.CutPrefix(line, "caught by: "); ok {
		pkg, test, named := strings.Cut(value, " ")
		if !named {
			return fmt.Errorf("%q names no test", value)
		}
		m.caughtBy = scenario{pkg, test}
		return nil
	}
	if value, ok := strings.CutPrefix(line, "limit: "); ok {
		limit, err := time.ParseDuration(value)
		m.limit = limit
		return err
	}
	if line == "hangs" {
		m.hangs = true
		return nil
	}
	if len(m.patches) == 0 {
		return fmt.Errorf("%q comes before the file it is about", line)
	}
	last := &m.patches[len(m.patches)-1]
	switch line[0] {
	case '-':
		last.old = append(last.old, strings.TrimPrefix(line[1:], " "))
	case '+':
		last.new = append(last.new, strings.TrimPrefix(line[1:], " "))
	default:
		return fmt.Errorf("%q is nothing that a list has", line)
	}
	return nil
}

// end closes the mutant that was being read, which must be whole.
func (r *reader) end() error {
	m := r.now
	if m == nil {
		return nil
	}
	r.now = nil
	switch {
	case m.group == "":
		return fmt.Errorf("%q is in no group", m.name)
	case len(m.patches) == 0:
		return fmt.Errorf("%q changes nothing", m.name)
	case m.caughtBy.test == "":
		return fmt.Errorf("%q is caught by nothing", m.name)
	case m.limit <= 0:
		return fmt.Errorf("%q has no time", m.name)
	}
	for _, c := range m.patches {
		if len(c.old) == 0 {
			return fmt.Errorf("%q takes nothing out of %s", m.name, c.file)
		}
	}
	r.found = append(r.found, *m)
	return nil
}
