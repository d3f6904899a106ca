package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
)

// show prints value as one line of JSON with --json, and the words otherwise.
func (s *session) show(value any, format string, args ...any) error {
	if s.json {
		return s.encode(value)
	}
	if _, err := fmt.Fprintf(s.out, format, args...); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

func (s *session) encode(value any) error {
	encoder := json.NewEncoder(s.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// raw prints what the API answered as it is.
func (s *session) raw(body []byte) error {
	if _, err := s.out.Write(append(body, '\n')); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// table prints rows under a heading.
func (s *session) table(heading string, rows []string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, heading)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
