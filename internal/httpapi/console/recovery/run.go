package recovery

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/recall"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// report is what one part has done, and how to go on.
type report struct {
	asked
	Here, Back string
	Bulk       uuid.UUID
	Word       string
	// Done and Before are of this part, Sum with all before it.
	Done, Before, Sum int
	Refused           []refusal
	// Cursor is where the next part begins, empty when nothing is left. Again leads to the preview of what is left.
	Cursor string
	Again  string
}

// refusal is why some were not done.
type refusal struct {
	Code   string
	Count  int
	Advice string
}

// run does a part of what the form's preview has counted.
func (s section) run(v *frame.Visit) (frame.Answer, error) {
	form := v.Request.PostForm
	q := question{asked: askedOf(form), Here: v.Link("/recovery"), Back: v.Link("/events")}
	bulk, err := uuid.Parse(form.Get("bulk"))
	if err != nil {
		return frame.Answer{}, fault.At(fault.InvalidRequest, "/bulk", "that of the form")
	}
	word := v.Caller.Workspace.Name
	if strings.TrimSpace(form.Get("confirm")) != strings.TrimSpace(word) {
		answer, err := s.preview(v, q, bulk, true)
		answer.Status = http.StatusBadRequest
		return answer, err
	}
	choice, err := q.choice()
	if err != nil {
		return refused(v, q, err)
	}
	after, err := s.after(v, q.asked, bulk, form.Get("cursor"))
	if err != nil {
		return frame.Answer{}, err
	}
	done, err := s.deps.Bulk.Run(v.Context(), v.Workspace(), bulk, choice, after)
	if err != nil {
		return refused(v, q, err)
	}
	r := report{asked: q.asked, Here: q.Here, Back: q.Back, Bulk: bulk, Word: word, Done: done.Done, Before: done.Before, Sum: done.Done}
	if earlier, err := strconv.Atoi(form.Get("sum")); err == nil && earlier > 0 && after != nil {
		r.Sum += earlier
	}
	for code, count := range done.Refused {
		r.Refused = append(r.Refused, refusal{code, count, advice(code)})
	}
	slices.SortFunc(r.Refused, func(a, b refusal) int { return strings.Compare(a.Code, b.Code) })
	r.Again = q.Here + "?" + q.values().Encode()
	if done.Next != nil {
		next, err := httpapi.SealPlace(v.Caller.Workspace, list, queryOf(q.asked, bulk), &recall.Place{At: done.Next.At, ID: done.Next.ID})
		if err != nil {
			return frame.Answer{}, err
		}
		r.Cursor = *next
	}
	return frame.Answer{Title: "Recovery", Template: "recovery-done.html", Data: r}, nil
}

const list = "console recovery"

// queryOf is what a cursor is for: that bulk and no other choice.
func queryOf(a asked, bulk uuid.UUID) []any { return []any{bulk, a.values().Encode()} }

func (s section) after(v *frame.Visit, a asked, bulk uuid.UUID, cursor string) (*write.BulkPlace, error) {
	if cursor == "" {
		return nil, nil
	}
	at, err := httpapi.OpenPlace(v.Caller.Workspace, list, queryOf(a, bulk), &cursor)
	if err != nil || at == nil {
		return nil, err
	}
	return &write.BulkPlace{At: at.At, ID: at.ID}, nil
}

// advice is what to do about a refusal.
func advice(code string) string {
	switch code {
	case string(fault.InsufficientCredits):
		return "Grant the workspace credits, then look again at what is left."
	case string(fault.InputExpired):
		return "The input has been removed. It has to be sent as a new request."
	case string(fault.NotRetryable):
		return "Somebody was quicker, or no retry helps: its event says which."
	case string(fault.NotCancellable):
		return "It has committed or ended meanwhile. Nothing to do."
	case string(fault.TooManyPending):
		return "Let the workspace work off what waits, or raise its limit in Settings, then look again at what is left."
	case "WORKSPACE_SUSPENDED":
		return "Resume the workspace in Settings, then look again at what is left."
	}
	return fault.Describe(fault.Code(code)).Message
}
