package keys

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

//go:embed pages/*.html
var pages embed.FS

// Keys keeps API keys. What it does is in the log of acts.
type Keys interface {
	// ListKeys answers the workspace's keys, oldest first, revoked ones too.
	ListKeys(ctx context.Context, workspace uuid.UUID) ([]operator.Key, error)
	// CreateKeyOnce makes one key for each reference. The secret is nil when it was made before. Faults:
	// IDEMPOTENCY_CONFLICT, INVALID_REQUEST.
	CreateKeyOnce(ctx context.Context, workspace uuid.UUID, ask operator.KeyAsk) (operator.Key, *access.Key, error)
	RevokeKey(ctx context.Context, workspace uuid.UUID, id string) error
}

type section struct{ keys Keys }

// Page returns the section.
func Page(keys Keys) (frame.Page, error) {
	if keys == nil {
		return frame.Page{}, errors.New("console: keys: keys are required")
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{keys}
	route := func(method, path string, handler func(*frame.Visit) (frame.Answer, error)) frame.Route {
		return frame.Route{Method: method, Path: path, Workspace: true, Operators: true, Handler: handler}
	}
	return frame.Page{
		Name: "Keys", Key: "k", Templates: templates, Routes: []frame.Route{
			route(http.MethodGet, "/keys", s.list),
			route(http.MethodGet, "/keys/new", s.askCreate),
			route(http.MethodPost, "/keys/new", s.create),
			route(http.MethodGet, "/keys/{key}/revoke", s.askRevoke),
			route(http.MethodPost, "/keys/{key}/revoke", s.revoke),
		},
	}, nil
}

// list is the page.
type list struct {
	New     string
	Keys    []row
	Revoked bool
}

// row is one key with what can be done about it.
type row struct {
	operator.Key
	State, Tone string
	// Revoke is empty for a key that has ended.
	Revoke string
}

func (s section) list(v *frame.Visit) (frame.Answer, error) {
	all, err := s.keys.ListKeys(v.Context(), v.Workspace())
	if err != nil {
		return frame.Answer{}, err
	}
	page, now := list{New: v.Link("/keys/new"), Revoked: v.Query("done") == "revoked"}, time.Now()
	for _, key := range all {
		page.Keys = append(page.Keys, rowOf(v, key, now))
	}
	return frame.Answer{Title: "Keys", Template: "keys.html", Data: page}, nil
}

func rowOf(v *frame.Visit, key operator.Key, now time.Time) row {
	r := row{Key: key, State: "active", Tone: "good", Revoke: v.Link("/keys/" + key.ID + "/revoke")}
	switch {
	case key.RevokedAt != nil:
		r.State, r.Tone, r.Revoke = "revoked", "bad", ""
	case key.ExpiresAt != nil && !key.ExpiresAt.After(now):
		r.State, r.Tone = "expired", "warn"
	}
	return r
}
