package memories

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/access"
	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

const (
	// eraseNeeds is what the API asks for.
	eraseNeeds = access.Admin
	// countedRecords and countedEvents bound what a preview counts: it reads no more than a search does.
	countedRecords = 10_000
	countedEvents  = 100
)

// question asks whether an erase is to be done, and says what it removes.
type question struct {
	whose
	Here, Back string
	// Key makes one erase of a form that is sent twice.
	Key uuid.UUID
	// Records are counted, MoreRecords tells that there are more than that; so with the events that have not ended.
	Records     int
	MoreRecords bool
	Events      int
	MoreEvents  bool
	// Mistyped tells that the confirmation was something else.
	Mistyped bool
}

// done is what an erase has come to, for who may not see its event.
type done struct {
	write.Erased
	Back string
}

func (s section) askErase(v *frame.Visit) (frame.Answer, error) {
	chosen, err := whoseOf(v.Query("by"), v.Query("value"))
	if err != nil {
		return frame.Answer{}, err
	}
	if !chosen.chosen() {
		return frame.Answer{}, fault.New(fault.ScopeRequired)
	}
	return s.ask(v, question{whose: chosen, Key: uuid.New()})
}

// ask counts what there is to remove, within bounds.
func (s section) ask(v *frame.Visit, q question) (frame.Answer, error) {
	q.Here, q.Back = v.Link("/erase"), q.address(v.Link("/memories"))
	found, err := s.deps.Records.Searched(v.Context(), v.Workspace(), recall.Searched{Scope: q.Scope, Expired: true, Limit: countedRecords + 1})
	if err != nil {
		return frame.Answer{}, err
	}
	q.Records, q.MoreRecords = min(len(found), countedRecords), len(found) > countedRecords
	for _, status := range []task.EventStatus{task.EventPending, task.EventRunning, task.EventRetrying} {
		page, err := s.deps.Finder.FoundEvents(v.Context(), v.Workspace(), recall.EventFilter{
			Kinds: task.Kinds(), Status: status, By: q.By, Value: q.Value, Limit: countedEvents,
		})
		if err != nil {
			return frame.Answer{}, err
		}
		q.Events, q.MoreEvents = q.Events+len(page.Events), q.MoreEvents || page.Next != nil
	}
	answer := frame.Answer{Title: "Erase", Template: "erase.html", Data: q}
	if q.Mistyped {
		answer.Status = http.StatusBadRequest
	}
	return answer, nil
}

// erase is done only for who has typed whose memory it is.
func (s section) erase(v *frame.Visit) (frame.Answer, error) {
	form := v.Request.PostForm
	chosen, err := whoseOf(form.Get("by"), form.Get("value"))
	if err != nil {
		return frame.Answer{}, err
	}
	if !chosen.chosen() {
		return frame.Answer{}, fault.New(fault.ScopeRequired)
	}
	id, err := uuid.Parse(form.Get("key"))
	if err != nil {
		return frame.Answer{}, fault.At(fault.InvalidRequest, "/key", "that of the form")
	}
	if strings.TrimSpace(form.Get("confirm")) != chosen.Value {
		return s.ask(v, question{whose: chosen, Key: id, Mistyped: true})
	}
	key, err := command.ParseKey([]string{"console-erase-" + id.String()})
	if err != nil {
		return frame.Answer{}, err
	}
	erased, err := s.deps.Eraser.Erase(v.Context(), v.Caller, key, chosen.Scope)
	if err != nil {
		return frame.Answer{}, err
	}
	if v.May(access.OperationsRead) {
		return frame.Answer{To: v.Link("/events/" + frame.EventID(erased.EventID))}, nil
	}
	answer := done{Erased: erased}
	if v.May(access.MemoryRead) {
		answer.Back = v.Link("/memories")
	}
	return frame.Answer{Title: "Erased", Template: "erased.html", Data: answer}, nil
}
