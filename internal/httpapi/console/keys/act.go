package keys

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/operator"
)

// wanted is the form of a new key.
type wanted struct {
	Here, Back  string
	Reference   uuid.UUID
	Permissions []choice
}

// choice is a permission that a key can have.
type choice struct {
	Name   access.Permission
	Chosen bool
}

// made is the answer to the form. Secret is empty when the form was sent before.
type made struct {
	operator.Key
	Secret string
	Back   string
}

// ending asks whether a key is to be ended.
type ending struct {
	row
	Here, Back string
	// Word is what is to be typed: the key's name, its id without one. Mistyped tells that it was something else.
	Word     string
	Mistyped bool
}

func (s section) askCreate(v *frame.Visit) (frame.Answer, error) {
	form := wanted{Here: v.Link("/keys/new"), Back: v.Link("/keys"), Reference: uuid.New()}
	for _, p := range access.Permissions() {
		form.Permissions = append(form.Permissions, choice{p, p != access.Admin})
	}
	return frame.Answer{Title: "New key", Template: "key-new.html", Data: form}, nil
}

// create shows the secret in its own answer, so that no address leads to it.
func (s section) create(v *frame.Visit) (frame.Answer, error) {
	ask, err := askOf(v.Request, time.Now())
	if err != nil {
		return frame.Answer{}, err
	}
	key, secret, err := s.keys.CreateKeyOnce(v.Context(), v.Workspace(), ask)
	if err != nil {
		return frame.Answer{}, err
	}
	answer := made{Key: key, Back: v.Link("/keys")}
	if secret != nil {
		answer.Secret = secret.Reveal()
	}
	return frame.Answer{Title: "New key", Template: "key-made.html", Data: answer}, nil
}

// askOf reads the form. The reference is the form's own, so that it makes one key however often it is sent.
func askOf(r *http.Request, now time.Time) (operator.KeyAsk, error) {
	id, err := uuid.Parse(r.PostForm.Get("reference"))
	if err != nil {
		return operator.KeyAsk{}, fault.At(fault.InvalidRequest, "/reference", "that of the form")
	}
	ask := operator.KeyAsk{Reference: "console-" + id.String(), Name: strings.TrimSpace(r.PostForm.Get("name"))}
	for _, name := range r.PostForm["permission"] {
		ask.Permissions = append(ask.Permissions, access.Permission(name))
	}
	if text := r.PostForm.Get("expires"); text != "" {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil || !day.After(now) {
			return operator.KeyAsk{}, fault.At(fault.InvalidRequest, "/expires", "a day to come")
		}
		ask.ExpiresAt = &day
	}
	return ask, nil
}

// find answers a key of the workspace, which the address names.
func (s section) find(v *frame.Visit) (ending, error) {
	all, err := s.keys.ListKeys(v.Context(), v.Workspace())
	if err != nil {
		return ending{}, err
	}
	for _, key := range all {
		if key.ID != v.Request.PathValue("key") {
			continue
		}
		e := ending{row: rowOf(v, key, time.Now()), Back: v.Link("/keys"), Word: key.Name}
		e.Here = e.Revoke
		if e.Word == "" {
			e.Word = key.ID
		}
		return e, nil
	}
	return ending{}, fault.New(fault.RouteNotFound)
}

func (s section) askRevoke(v *frame.Visit) (frame.Answer, error) {
	e, err := s.find(v)
	return frame.Answer{Title: "Revoke key", Template: "key-revoke.html", Data: e}, err
}

func (s section) revoke(v *frame.Visit) (frame.Answer, error) {
	e, err := s.find(v)
	if err != nil {
		return frame.Answer{}, err
	}
	if strings.TrimSpace(v.Request.PostForm.Get("confirm")) != e.Word {
		e.Mistyped = true
		return frame.Answer{Status: http.StatusBadRequest, Title: "Revoke key", Template: "key-revoke.html", Data: e}, nil
	}
	if err := s.keys.RevokeKey(v.Context(), v.Workspace(), e.ID); err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{To: e.Back + "?done=revoked"}, nil
}
