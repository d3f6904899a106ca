package recovery

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-memory/holdfast/internal/credit"
	"github.com/holdfast-memory/holdfast/internal/fault"
	"github.com/holdfast-memory/holdfast/internal/httpapi"
	"github.com/holdfast-memory/holdfast/internal/httpapi/console/frame"
	"github.com/holdfast-memory/holdfast/internal/task"
	"github.com/holdfast-memory/holdfast/internal/write"
)

// usual is how far back a choice begins where nothing else is said.
const usual = time.Hour

// question is the page that asks what is meant, and then whether that is to be done.
type question struct {
	asked
	Here, Back string
	// Problem says what is wrong with what was asked.
	Problem string
	// Found is nil before anything was asked.
	Found *found
}

// found is a preview with what is sent to have it done. Its asked has the moment that the preview counted to.
type found struct {
	asked
	Count   int
	Credits credit.Amount
	Lines   []line
	// Gone can't be retried any more, More tells that there are more than were counted.
	Gone    int
	More    bool
	Balance credit.Balance
	// Short tells that the account has too little for all of them.
	Short bool
	// Bulk is the id of what is done, Word what is to be typed first. Mistyped tells that it was something else.
	Bulk     uuid.UUID
	Word     string
	Mistyped bool
}

// line is a part of a preview, Name is empty for what has not failed yet.
type line struct {
	write.BulkLine
	Name, Action string
}

// ask shows the form, and the preview of what it says. It changes nothing.
func (s section) ask(v *frame.Visit) (frame.Answer, error) {
	query := v.Request.URL.Query()
	q := question{asked: askedOf(query), Here: v.Link("/recovery"), Back: v.Link("/events")}
	if !query.Has("act") {
		q.Act, q.Since = string(write.BulkRetry), time.Now().UTC().Add(-usual).Format(timeForms()[0])
		return answerOf(q), nil
	}
	return s.preview(v, q, uuid.New(), false)
}

// preview answers what the choice comes to, under the id of a bulk.
func (s section) preview(v *frame.Visit, q question, bulk uuid.UUID, mistyped bool) (frame.Answer, error) {
	choice, err := q.choice()
	if err != nil {
		return refused(v, q, err)
	}
	counted, err := s.deps.Bulk.Preview(v.Context(), v.Workspace(), choice)
	if err != nil {
		return refused(v, q, err)
	}
	balance, err := s.deps.Balances.Balance(v.Context(), v.Workspace())
	if err != nil {
		return frame.Answer{}, err
	}
	f := &found{
		asked: q.asked, Count: counted.Count, Credits: counted.Credits, Gone: counted.Gone, More: counted.More, Balance: balance,
		Bulk: bulk, Word: v.Caller.Workspace.Name, Mistyped: mistyped,
	}
	f.Until = counted.Until.Format(time.RFC3339Nano)
	f.Short = choice.Act == write.BulkRetry && balance.Metered && counted.Credits > balance.Available
	for _, l := range counted.Lines {
		shown := line{BulkLine: l}
		if l.Class != "" {
			shown.Name, shown.Action = string(l.Class), task.Explain(task.CodeOf(l.Class)).Action
		}
		f.Lines = append(f.Lines, shown)
	}
	q.Found = f
	return answerOf(q), nil
}

func answerOf(q question) frame.Answer {
	return frame.Answer{Title: "Recovery", Template: "recovery.html", Data: q}
}

// refused answers the form with what is wrong, for what a person can put right in it.
func refused(v *frame.Visit, q question, err error) (frame.Answer, error) {
	if !fault.Is(err, fault.InvalidRequest) {
		return frame.Answer{}, err
	}
	told := httpapi.Refusal(v.Context(), err)
	q.Problem = frame.Told(told)
	answer := answerOf(q)
	answer.Status = httpapi.StatusOf(told.Code)
	return answer, nil
}
