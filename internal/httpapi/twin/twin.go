package twin

import (
	"context"
	_ "embed" // the document is compiled in
	"errors"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

//go:embed openapi.yaml
var document []byte

// accountHeader names the end user that a call is about.
const accountHeader = "X-Twin-Account"

// Writer keeps, erases and corrects what an account has.
type Writer interface {
	Keep(ctx context.Context, caller access.Caller, account string, items []command.Item) (write.ItemsReceipt, error)
	Forget(ctx context.Context, caller access.Caller, account string, what write.Forget) (write.Forgotten, error)
	Correct(ctx context.Context, caller access.Caller, account string, record uuid.UUID, text *string) (write.Corrected, error)
}

// Reader reads what an account has.
type Reader interface {
	ByID(ctx context.Context, workspace uuid.UUID, account string, ids []string) ([]recall.Item, error)
	Session(ctx context.Context, workspace uuid.UUID, account, session, after string, limit int) ([]recall.Item, bool, error)
	Grep(ctx context.Context, workspace uuid.UUID, ask recall.Grep) (recall.Grepped, error)
}

// Deps are the use cases that the dialect serves, all of them required.
type Deps struct {
	Writer   Writer
	Reader   Reader
	Searcher httpapi.Searcher
}

// New returns the dialect, to be mounted into an httpapi.Server.
func New(deps Deps) (httpapi.Dialect, error) {
	if deps.Writer == nil || deps.Reader == nil || deps.Searcher == nil {
		return httpapi.Dialect{}, errors.New("twin: writer, reader and searcher are required")
	}
	h := handlers{deps}
	return httpapi.Dialect{Document: document, Handlers: map[string]httpapi.Handler{
		"keepItems": h.keep, "forgetItems": h.forget, "correctRecord": h.correct, "searchItems": h.search,
		"grepItems": h.grep, "readItems": h.read,
	}}, nil
}

type handlers struct{ deps Deps }

// accountOf reads the end user from its one header line.
func accountOf(call httpapi.Call) (string, error) {
	lines := call.Header.Values(accountHeader)
	if len(lines) != 1 {
		return "", inHeader("one header line")
	}
	scope, err := command.NewScope(&lines[0], nil, nil, nil)
	if err != nil {
		return "", inHeader("1 to 512 characters of valid UTF-8 after trimming")
	}
	return scope.UserID, nil
}

func inHeader(rule string) error {
	f := fault.At(fault.InvalidRequest, "/"+accountHeader, rule)
	f.Details = map[string]any{"in": "header"}
	return f
}

// sessionOf reads a session that may be absent; one without anything visible is absent too.
func sessionOf(given *string) (string, error) {
	if given == nil || command.Blank(*given) {
		return "", nil
	}
	scope, err := command.NewScope(nil, nil, given, nil)
	if err != nil {
		return "", fault.At(fault.InvalidRequest, "/session", "at most 512 characters of valid UTF-8 without NUL")
	}
	return scope.RunID, nil
}

func or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}
