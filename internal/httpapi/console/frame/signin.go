package frame

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

// asked is what the sign-in page shows.
type asked struct {
	Next    string
	Problem string
}

func (f *Frame) askWho(w http.ResponseWriter, r *http.Request) {
	f.draw(w, &Visit{Request: r}, nil, Answer{
		Title: "Sign in", Template: "sign-in.html", Data: asked{Next: nextOf(r.URL.Query().Get("next"))},
	})
}

// signIn opens a session for a key or an operator's token.
func (f *Frame) signIn(w http.ResponseWriter, r *http.Request) {
	again := func(status int, problem string) {
		f.draw(w, &Visit{Request: r}, nil, Answer{
			Status: status, Title: "Sign in", Template: "sign-in.html", Data: asked{nextOf(r.PostForm.Get("next")), problem},
		})
	}
	if err := r.ParseForm(); err != nil {
		again(http.StatusBadRequest, "That was no form of this page.")
		return
	}
	if !sameOrigin(r) {
		again(http.StatusForbidden, "The form was sent from another site.")
		return
	}
	if strings.HasPrefix(r.Header.Get("Origin"), "http://") && !local(r) {
		again(http.StatusBadRequest, "Over a network the console needs HTTPS: a browser wouldn't keep its session.")
		return
	}
	from := originOf(r)
	if !f.strange.some(from) {
		w.Header().Set("Retry-After", "60")
		again(http.StatusTooManyRequests, "Too many attempts failed. Try again in a minute.")
		return
	}
	holder, err := f.holderOf(r, strings.TrimSpace(r.PostForm.Get("secret")))
	if err != nil {
		told := httpapi.Refusal(r.Context(), err)
		if told.Kind() == fault.Unavailable || told.Kind() == fault.Internal {
			again(httpapi.StatusOf(told.Code), fault.Describe(told.Code).Message)
			return
		}
		f.strange.take(from)
		again(http.StatusUnauthorized, "That is no API key and no operator token that is good here.")
		return
	}
	secret := newSecret()
	if err := f.store.OpenSession(r.Context(), idOf(secret), holder, access.SessionLife); err != nil {
		again(http.StatusServiceUnavailable, fault.Describe(httpapi.Refusal(r.Context(), err).Code).Message)
		return
	}
	if old, ok := secretOf(r); ok { // whoever was signed in here before is no longer
		if err := f.store.CloseSession(r.Context(), idOf(old)); err != nil {
			_ = httpapi.Refusal(r.Context(), err) // it logs what is ours; that session ends by itself
		}
	}
	setCookie(w, r, secret)
	to := nextOf(r.PostForm.Get("next"))
	if to == "" {
		to = Root
	}
	http.Redirect(w, r, to, http.StatusSeeOther) // #nosec G710 -- a path of the console: nextOf
}

// holderOf answers whose secret it is: the two forms are never taken for each other.
func (f *Frame) holderOf(r *http.Request, secret string) (access.Holder, error) {
	if token, err := access.ParseToken(secret); err == nil {
		_, err := f.store.Operator(r.Context(), token)
		return access.Holder{Operator: true, ID: token.ID()}, err
	}
	key, err := access.ParseKey(secret)
	if err != nil {
		return access.Holder{}, err
	}
	_, err = f.store.Authenticate(r.Context(), key)
	return access.Holder{ID: key.ID()}, err
}

// signOut ends the session for good, wherever its cookie still is.
func (f *Frame) signOut(w http.ResponseWriter, r *http.Request) {
	v, err := f.admit(w, r, Route{Method: http.MethodPost, Open: true})
	if err == nil {
		err = f.store.CloseSession(r.Context(), v.session)
	}
	if err != nil {
		f.refuse(w, r, v, err)
		return
	}
	setCookie(w, r, nil)
	http.Redirect(w, r, Root+"/sign-in", http.StatusSeeOther)
}

// nextOf is a place of the console to go on to, empty for anything else.
func nextOf(text string) string {
	to, err := url.Parse(text)
	if err != nil || to.Scheme != "" || to.Host != "" || to.User != nil || !strings.HasPrefix(to.Path, Root+"/") ||
		strings.ContainsAny(text, "\\\r\n") || strings.Contains(to.Path, "//") {
		return ""
	}
	return text
}
