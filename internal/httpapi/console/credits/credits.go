package credits

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

//go:embed pages/*.html
var pages embed.FS

const (
	perPage = 50
	// holdsShown is how many events of each status that hold credits are named.
	holdsShown = 10
)

// Accounts reads a workspace's account and journal, the journal newest first.
type Accounts interface {
	Balance(ctx context.Context, workspace uuid.UUID) (credit.Balance, error)
	Entries(ctx context.Context, workspace uuid.UUID, after *recall.EntryPlace, limit int) (recall.EntryPage, error)
}

// Finder finds events.
type Finder interface {
	FoundEvents(ctx context.Context, workspace uuid.UUID, filter recall.EventFilter) (recall.EventPage, error)
}

// Deps are what the section needs, all of it.
type Deps struct {
	Accounts Accounts
	Finder   Finder
}

type section struct{ deps Deps }

// Page returns the section.
func Page(deps Deps) (frame.Page, error) {
	if deps.Accounts == nil || deps.Finder == nil {
		return frame.Page{}, errors.New("console: credits: all dependencies are required")
	}
	templates, err := fs.Sub(pages, "pages")
	if err != nil {
		return frame.Page{}, err
	}
	s := section{deps}
	route := func(path string, handler func(*frame.Visit) (frame.Answer, error)) frame.Route {
		return frame.Route{Method: http.MethodGet, Path: path, Workspace: true, Needs: access.CreditsRead, Handler: handler}
	}
	return frame.Page{
		Name: "Credits", Key: "c", Needs: access.CreditsRead, Templates: templates,
		Routes: []frame.Route{route("/credits", s.show), route("/credits/books", s.books)},
	}, nil
}

// account is the page.
type account struct {
	credit.Balance
	Here, Books string
	// Seen tells that the visitor may see events, and so which hold credits.
	Seen      bool
	Holds     []hold
	MoreHolds bool
	Entries   []entry
	// Next and First lead to other pages, empty without one.
	Next, First string
}

// hold is an event that holds credits.
type hold struct {
	recall.Event
	Link string
}

// entry is one line of the journal.
type entry struct {
	credit.Entry
	// Link is where its event is shown, empty for a grant and for who may not see events.
	Link string
}

func (s section) show(v *frame.Visit) (frame.Answer, error) {
	balance, err := s.deps.Accounts.Balance(v.Context(), v.Workspace())
	if err != nil {
		return frame.Answer{}, err
	}
	page := account{Balance: balance, Here: v.Link("/credits"), Books: v.Link("/credits/books"), Seen: v.May(access.OperationsRead)}
	if page.Seen && balance.Held > 0 {
		if err := s.addHolds(v, &page); err != nil {
			return frame.Answer{}, err
		}
	}
	if err := s.addEntries(v, &page); err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{Title: "Credits", Template: "credits.html", Data: page}, nil
}

// addHolds names events that hold credits: those that have not ended.
func (s section) addHolds(v *frame.Visit, page *account) error {
	for _, status := range []task.EventStatus{task.EventRunning, task.EventRetrying, task.EventPending} {
		found, err := s.deps.Finder.FoundEvents(v.Context(), v.Workspace(), recall.EventFilter{Kinds: task.Kinds(), Status: status, Limit: holdsShown})
		if err != nil {
			return err
		}
		for _, event := range found.Events {
			if event.Usage.Reserved > 0 {
				page.Holds = append(page.Holds, hold{event, v.Link("/events/" + frame.EventID(event.ID))})
			}
		}
		page.MoreHolds = page.MoreHolds || found.Next != nil
	}
	return nil
}

func (s section) addEntries(v *frame.Visit, page *account) error {
	var cursor *string
	if text := v.Query("cursor"); text != "" {
		cursor, page.First = &text, page.Here
	}
	after, err := httpapi.OpenEntryPlace(v.Caller.Workspace, "console journal", cursor)
	if err != nil {
		return err
	}
	found, err := s.deps.Accounts.Entries(v.Context(), v.Workspace(), after, perPage)
	if err != nil {
		return err
	}
	for _, e := range found.Entries {
		line := entry{Entry: e}
		if e.TaskID != nil && page.Seen {
			line.Link = v.Link("/events/" + frame.EventID(*e.TaskID))
		}
		page.Entries = append(page.Entries, line)
	}
	next, err := httpapi.SealEntryPlace(v.Caller.Workspace, "console journal", found.Next)
	if next != nil {
		page.Next = page.Here + "?cursor=" + *next // base64url
	}
	return err
}
