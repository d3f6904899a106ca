package events

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

const (
	// soon and late are how often the page of an event asks again: while a worker has it, and while it waits.
	soon = time.Second
	late = 3 * time.Second
)

// shown is the page of one event.
type shown struct {
	Glance
	Scope   string
	Runs    []recall.LifeRun
	Omitted int
	// Retry and Cancel tell what can be done, and that the visitor may.
	Retry  bool
	Cancel bool
	Done   string
}

func (s section) read(v *frame.Visit) (recall.Event, error) {
	id, ok := httpapi.ParseEventID(v.Request.PathValue("id"))
	if !ok {
		return recall.Event{}, fault.New(fault.EventNotFound)
	}
	return s.deps.Reader.Get(v.Context(), v.Workspace(), id)
}

func (s section) show(v *frame.Visit) (frame.Answer, error) {
	event, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	life, err := s.deps.Lives.Life(v.Context(), v.Workspace(), event.ID)
	if err != nil {
		return frame.Answer{}, err
	}
	page := shown{
		Glance: glanceOf(v, event, life), Scope: scopeText(event.Scope), Runs: life.Runs, Omitted: life.Omitted,
		Retry: may(v) && retryable(event), Cancel: may(v) && cancellable(event),
	}
	switch v.Query("done") {
	case "retried":
		page.Done = "A new run is authorised and its credits are held."
	case "cancelled":
		page.Done = "The event is cancelled and its credits are released."
	}
	return frame.Answer{
		Title: "Event " + frame.EventID(event.ID), Template: "event.html", Data: page, Every: page.Every, Said: "Event is " + string(event.Status),
	}, nil
}

func here(v *frame.Visit, id uuid.UUID) string { return v.Link("/events/" + frame.EventID(id)) }

// retryable and cancellable only choose what is offered: the use cases decide.
func retryable(e recall.Event) bool { return e.Status == task.EventFailed && !e.InputGone }

func cancellable(e recall.Event) bool { return !e.Status.Terminal() && e.CommittedAt == nil }
