package events

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Glance is what another section shows of one event: its life, drawn by the template "timeline".
type Glance struct {
	recall.Event
	Here    string
	Moments []moment
	Told    *task.Explanation // of its error, nil without one
	Took    string
	// Every is how often it should be looked at again, zero once it has ended.
	Every time.Duration
}

// Look reads an event of the visitor's workspace. Fault EVENT_NOT_FOUND.
func (d Deps) Look(v *frame.Visit, id uuid.UUID) (Glance, error) {
	event, err := d.Reader.Get(v.Context(), v.Workspace(), id)
	if err != nil {
		return Glance{}, err
	}
	life, err := d.Lives.Life(v.Context(), v.Workspace(), id)
	if err != nil {
		return Glance{}, err
	}
	return glanceOf(v, event, life), nil
}

func glanceOf(v *frame.Visit, event recall.Event, life recall.Life) Glance {
	g := Glance{Event: event, Here: here(v, event.ID), Moments: moments(v, event, life)}
	if event.ErrorCode != "" {
		told := task.Explain(event.ErrorCode)
		g.Told = &told
	}
	if event.CompletedAt != nil {
		g.Took = frame.Span(event.CompletedAt.Sub(event.AcceptedAt))
	}
	switch event.Status {
	case task.EventRunning:
		g.Every = soon
	case task.EventPending, task.EventRetrying:
		g.Every = late
		if time.Since(event.AcceptedAt) < time.Minute {
			g.Every = soon
		}
	case task.EventSucceeded, task.EventFailed:
	}
	return g
}
