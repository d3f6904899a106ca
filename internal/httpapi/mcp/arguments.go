package mcp

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// unknownArgument says why an argument that nobody asked for is refused, and not left out: a model that names a user
// must learn that this does nothing.
const unknownArgument = "no unknown arguments; whose memory it is, is fixed by the connection"

// read decodes arguments into a struct whose members are those of the tool's schema. An argument that is null is as
// if absent, which is how many models write one that they don't need.
func read(raw []byte, into any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if len(raw) > command.MaxBody {
		f := fault.New(fault.PayloadTooLarge)
		f.Details = map[string]any{"limit": command.MaxBody}
		return f
	}
	strict, err := command.ReadJSON(raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(strict, into, json.RejectUnknownMembers(true)); err != nil {
		return misfit(err)
	}
	return nil
}

// misfit turns the decoder's error into a fault without any of its text, which quotes the caller.
func misfit(err error) error {
	broken, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fault.At(fault.InvalidRequest, "", "the form of the tool's schema")
	}
	if errors.Is(err, json.ErrUnknownName) {
		return fault.At(fault.InvalidRequest, "", unknownArgument)
	}
	// What is no unknown name stands at a name of the schema.
	name := ""
	for token := range broken.JSONPointer.Tokens() {
		name = "/" + token
		break
	}
	return fault.At(fault.InvalidRequest, name, "the type that the tool's schema says")
}

// limitOf reads how many results are asked for.
func limitOf(given *int, otherwise, most int) (int, error) {
	switch {
	case given == nil:
		return otherwise, nil
	case *given < 1 || *given > most:
		return 0, fault.At(fault.InvalidRequest, "/limit", "1 to 100")
	}
	return *given, nil
}

// maxWait is how many seconds a call may wait: below the 30 s after which many clients and proxies give a call up.
const maxWait = 25

func waitOf(given *int) (int, error) {
	switch {
	case given == nil:
		return 0, nil
	case *given < 0 || *given > maxWait:
		return 0, fault.At(fault.InvalidRequest, "/wait", "0 to 25 seconds")
	}
	return *given, nil
}

// text reads a required text.
func text(name string, given *string, most int) (string, error) {
	switch {
	case given == nil:
		return "", fault.At(fault.InvalidRequest, "/"+name, "required")
	case command.Blank(*given):
		return "", fault.At(fault.InvalidRequest, "/"+name, "at least one visible character")
	case utf8.RuneCountInString(*given) > most:
		return "", fault.At(fault.InvalidRequest, "/"+name, "shorter: see the tool's schema")
	}
	return *given, nil
}

// isList tells whether a raw argument is an array.
func isList(raw jsontext.Value) bool { return strings.HasPrefix(strings.TrimSpace(string(raw)), "[") }
