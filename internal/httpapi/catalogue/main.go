// Command catalogue writes docs/errors.md: what the code says of each error code, with the notes of errors.md.tmpl.
//
// It guards that no code is without its words, its status and its anchor, the code in small letters, which the `type` of
// a problem leads to. It imports the fault and task catalogues and httpapi for the statuses.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/task"
)

//go:generate go run . ../../../docs/errors.md

//go:embed errors.md.tmpl
var words string

// refusal is one code of a refused request.
type refusal struct {
	Code      fault.Code
	Status    int
	Retryable bool
	Message   string
	Note      string
}

// failure is one code of a failed event.
type failure struct {
	Code      task.ErrorCode
	Classes   string
	Retryable bool
	Message   string
	Action    string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "catalogue:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("name the file to write")
	}
	page, err := render()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], page, 0o644) // #nosec G306 G703 -- a document of the repository, named by who generates it
}

// render returns the page.
func render() ([]byte, error) {
	page, err := template.New("errors.md").Parse(words)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	notes := map[string]string{}
	for _, t := range page.Templates() {
		if t.Name() == page.Name() {
			continue
		}
		var note bytes.Buffer
		if err := t.Execute(&note, nil); err != nil {
			return nil, fmt.Errorf("note %s: %w", t.Name(), err)
		}
		notes[t.Name()] = note.String()
	}
	var data struct {
		Codes  []refusal
		Events []failure
	}
	for _, code := range fault.Codes() {
		d := fault.Describe(code)
		data.Codes = append(data.Codes, refusal{code, httpapi.StatusOf(code), d.Retryable, d.Message, notes[string(code)]})
		delete(notes, string(code))
	}
	for name := range notes {
		return nil, fmt.Errorf("there is no code %s", name)
	}
	for _, code := range task.ErrorCodes() {
		e := task.Explain(code)
		data.Events = append(data.Events, failure{code, classesOf(code), e.Retryable, e.Message, e.Action})
	}
	var out bytes.Buffer
	if err := page.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("write page: %w", err)
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

// classesOf names the classes of failures that end with the code.
func classesOf(code task.ErrorCode) string {
	var names []string
	for _, class := range task.Classes() {
		if task.CodeOf(class) == code {
			names = append(names, "`"+string(class)+"`")
		}
	}
	return strings.Join(names, ", ")
}
