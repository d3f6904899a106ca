package frame

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
)

//go:embed layout
var layouts embed.FS

// sheet is one template within the layout.
type sheet struct {
	whole *template.Template
	live  bool
}

// loadSheets parses all templates, so that a broken one is found when the process starts.
func (f *Frame) loadSheets() error {
	base, err := template.New("layout.html").Funcs(f.functions()).ParseFS(layouts, "layout/layout.html", "layout/live.html", "layout/timeline.html")
	if err != nil {
		return fmt.Errorf("console: layout: %w", err)
	}
	own, err := fs.Sub(layouts, "layout")
	if err != nil {
		return fmt.Errorf("console: layout: %w", err)
	}
	if err := f.addSheets(base, own, "sign-in.html", "problem.html"); err != nil {
		return err
	}
	for _, page := range f.pages {
		names, err := fs.Glob(page.Templates, "*.html")
		if err == nil {
			err = f.addSheets(base, page.Templates, names...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Frame) addSheets(base *template.Template, from fs.FS, names ...string) error {
	for _, name := range names {
		if f.sheets[name] != nil {
			return fmt.Errorf("console: two templates are called %s", name)
		}
		whole, err := base.Clone()
		if err == nil {
			whole, err = whole.ParseFS(from, name)
		}
		if err != nil {
			return fmt.Errorf("console: template: %w", err)
		}
		f.sheets[name] = &sheet{whole: whole, live: whole.Lookup("live") != nil}
	}
	return nil
}

// entry is one of the navigation.
type entry struct {
	Name, Path, Key string
	Here            bool
}

// drawn is what a template sees.
type drawn struct {
	*Visit
	Title    string
	Data     any
	Entries  []entry
	SignedIn bool
	Who      string
	CSRF     string
	Root     string
	Said     string
	// LivePart is the part that renews itself, to be put where the page wants it.
	LivePart template.HTML
	// Seen, Every and Address are for that part.
	Seen    string
	Every   string
	Address string
}

// WorkspaceName is empty on a page that is about no workspace.
func (d drawn) WorkspaceName() string {
	if d.Visit.root == "" {
		return ""
	}
	return d.Caller.Workspace.Name
}

// Allows tells a template whether the visitor may do what needs the permission.
func (d drawn) Allows(p string) bool { return d.May(access.Permission(p)) }

// draw writes an answer, whole or the part that renews itself. Nothing is sent of a template that fails.
func (f *Frame) draw(w http.ResponseWriter, v *Visit, page *Page, answer Answer) {
	s := f.sheets[answer.Template]
	if s == nil {
		f.broken(w, v, fmt.Errorf("console: there is no template %s", answer.Template))
		return
	}
	d := drawn{
		Visit: v, Title: answer.Title, Data: answer.Data, Entries: f.entries(v, page), CSRF: v.csrf, Root: v.root, Said: answer.Said,
		SignedIn: v.Visitor.Operator != "" || v.Visitor.Caller.KeyID != "", Who: v.Visitor.Actor(), Address: addressOf(v.Request.URL),
	}
	if answer.Every > 0 {
		d.Every = answer.Every.Round(time.Millisecond).String()
	}
	if s.live {
		var part bytes.Buffer
		if err := s.whole.ExecuteTemplate(&part, "live", d); err != nil {
			f.broken(w, v, err)
			return
		}
		sum := sha256.Sum256(append(part.Bytes(), d.Every+d.Said...))
		d.Seen = hex.EncodeToString(sum[:8])
		d.LivePart = template.HTML(part.String()) // #nosec G203 -- the template's own output
	}
	if v.Live && s.live && d.Seen == v.seen {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	name := "layout.html"
	if v.Live && s.live {
		name = "renewed"
	}
	var out bytes.Buffer
	if err := s.whole.ExecuteTemplate(&out, name, d); err != nil {
		f.broken(w, v, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
	}
	_, _ = w.Write(out.Bytes()) // a reader that has gone is all that can be wrong
}

// addressOf is what the part that renews itself is asked for at.
func addressOf(u *url.URL) string {
	query := u.Query()
	query.Del("seen")
	if len(query) == 0 {
		return u.EscapedPath()
	}
	return u.EscapedPath() + "?" + query.Encode()
}

// broken is for a template that fails, which is a mistake of ours.
func (f *Frame) broken(w http.ResponseWriter, v *Visit, err error) {
	httpapi.Refuse(w, v.Request, fault.Wrap(fault.InternalError, err))
}

// entries are the pages that the visitor can go to from here.
func (f *Frame) entries(v *Visit, here *Page) []entry {
	var all []entry
	for i := range f.pages {
		page, first := &f.pages[i], f.pages[i].Routes[0]
		if page.Name == "" || first.Workspace != (v.root != "") || !first.Workspace && !v.Operator() || !v.May(page.Needs) && first.Workspace ||
			first.Operators && !v.Operator() {
			continue
		}
		path := Root + first.Path
		if first.Workspace {
			path = v.root + first.Path
		}
		all = append(all, entry{Name: page.Name, Path: path, Key: page.Key, Here: page == here})
	}
	return all
}

// problem is what the page of a refusal shows.
type problem struct {
	Code      fault.Code
	Message   string
	RequestID string
}

// refuse answers with a page that says what is wrong, or sends whoever isn't signed in to where they can be.
func (f *Frame) refuse(w http.ResponseWriter, r *http.Request, v *Visit, err error) {
	told := httpapi.Refusal(r.Context(), err)
	status := httpapi.StatusOf(told.Code)
	if status == http.StatusUnauthorized && v == nil {
		f.sendToSignIn(w, r)
		return
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	if r.Header.Get("Hx-Request") == "true" { // the page stays as it is and asks again
		zerolog.Ctx(r.Context()).Debug().Str("code", string(told.Code)).Msg("a part of a page could not be renewed")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if v == nil {
		v = &Visit{Request: r}
	}
	v.Live = false
	f.draw(w, v, nil, Answer{
		Status: status, Title: fault.Describe(told.Code).Title, Template: "problem.html",
		Data: problem{told.Code, Told(told), w.Header().Get("X-Request-Id")},
	})
}

func (f *Frame) sendToSignIn(w http.ResponseWriter, r *http.Request) {
	to := Root + "/sign-in"
	if r.Method == http.MethodGet && r.URL.Path != Root {
		to += "?next=" + url.QueryEscape(addressOf(r.URL))
	}
	if r.Header.Get("Hx-Request") == "true" {
		w.Header().Set("Hx-Redirect", to)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// workspaceText is an id as the API writes it.
func workspaceText(id uuid.UUID) string { return workspacePrefix + id.String() }
