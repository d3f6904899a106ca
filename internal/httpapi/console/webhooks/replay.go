package webhooks

import (
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-memory/holdfast/internal/endpoint"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// asked is a replay of a time range as its form says it.
type asked struct {
	Since, Until string
	FailedOnly   bool
}

// question is the page that asks what is to be sent again, and after a part of it how to go on.
type question struct {
	hook
	asked
	// Most is how many are sent again at once.
	Most int
	// Sent is how many were just now, Cursor where the next part begins, empty when nothing is left.
	Sent    string
	Cursor  string
	Problem string
}

// timeForms are what browsers send of a field with day and time, which are UTC here.
func timeForms() []string { return []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} }

func (a asked) selection() (endpoint.Selection, error) {
	which := endpoint.Selection{FailedOnly: a.FailedOnly}
	var err error
	if which.Since, err = timeOf("/since", a.Since); err != nil {
		return which, err
	}
	if which.Until, err = timeOf("/until", a.Until); err != nil {
		return which, err
	}
	switch {
	case which.Since == nil && which.Until == nil && !which.FailedOnly:
		return which, fault.At(fault.InvalidRequest, "", "a time, or those that failed alone")
	case which.Since != nil && which.Until != nil && !which.Since.Before(*which.Until):
		return which, fault.At(fault.InvalidRequest, "/until", "after the beginning")
	}
	return which, nil
}

func timeOf(pointer, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	for _, form := range timeForms() {
		if at, err := time.Parse(form, text); err == nil && at.Year() >= 2000 && at.Year() < 10000 { // what the database can hold, too
			at = at.UTC()
			return &at, nil
		}
	}
	return nil, fault.At(fault.InvalidRequest, pointer, "a day and a time")
}

func (s section) askReplay(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	q := question{
		hook: h, Most: write.MaxReplay, Cursor: v.Query("cursor"),
		asked: asked{Since: v.Query("since"), Until: v.Query("until"), FailedOnly: v.Query("failed") != ""},
	}
	if sent, err := strconv.Atoi(v.Query("sent")); err == nil && sent >= 0 && sent <= write.MaxReplay {
		q.Sent = strconv.Itoa(sent)
	}
	return frame.Answer{Title: "Replay deliveries", Template: "webhook-replay.html", Data: q}, err
}

// replay sends one part of a range again and leads to a page that goes on behind it.
func (s section) replay(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	form := v.Request.PostForm
	a := asked{Since: form.Get("since"), Until: form.Get("until"), FailedOnly: form.Get("failed") != ""}
	which, err := a.selection()
	if err != nil {
		told := httpapi.Refusal(v.Context(), err)
		return frame.Answer{
			Status: httpapi.StatusOf(told.Code), Title: "Replay deliveries", Template: "webhook-replay.html",
			Data: question{hook: h, asked: a, Most: write.MaxReplay, Problem: frame.Told(told)},
		}, nil
	}
	var cursor *string
	if text := form.Get("cursor"); text != "" {
		cursor = &text
	}
	const list = "console replay"
	query := []any{h.ID, a.Since, a.Until, a.FailedOnly}
	at, err := httpapi.OpenPlace(v.Caller.Workspace, list, query, cursor)
	if err != nil {
		return frame.Answer{}, err
	}
	var after *write.ReplayPlace
	if at != nil {
		after = &write.ReplayPlace{At: at.At, ID: at.ID}
	}
	done, err := s.deps.Replayer.Replay(v.Context(), v.Caller, h.ID, which, after)
	if err != nil {
		return frame.Answer{}, err
	}
	to := url.Values{"sent": {strconv.Itoa(done.Count)}, "since": {a.Since}, "until": {a.Until}}
	if a.FailedOnly {
		to.Set("failed", "on")
	}
	if done.Next != nil {
		next, err := httpapi.SealPlace(v.Caller.Workspace, list, query, &recall.Place{At: done.Next.At, ID: done.Next.ID})
		if err != nil {
			return frame.Answer{}, err
		}
		to.Set("cursor", *next)
	}
	return frame.Answer{To: h.Here + "/replay?" + to.Encode()}, nil
}

// replayOne sends one delivery again.
func (s section) replayOne(v *frame.Visit) (frame.Answer, error) {
	h, err := s.read(v)
	if err != nil {
		return frame.Answer{}, err
	}
	message, ok := idIn(v, "message", "msg_")
	if !ok {
		return frame.Answer{}, fault.New(fault.RouteNotFound)
	}
	done, err := s.deps.Replayer.Replay(v.Context(), v.Caller, h.ID, endpoint.Selection{Message: &message}, nil)
	if err == nil && done.Count == 0 { // it is another webhook's, or gone
		err = fault.New(fault.RouteNotFound)
	}
	if err != nil {
		return frame.Answer{}, err
	}
	return frame.Answer{To: h.Here + "?done=replayed"}, nil
}
